/* top_screen.c - draws lines, and reads keys. Main thread. */
#include "top_screen.h"

#include <curses.h>
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>

#include "base/check.h"
#include "policy/policy.h"

#define ESCAPE 27
#define ESCAPE_WAIT_MS 50 /* for the rest of a key's sequence */
#define WIDE 60           /* columns; a narrower screen names fewer keys */
#define TALL 24           /* rows; a lower screen has no empty lines */

enum { COLOUR_BUSY = 1, COLOUR_BAD };

static const char keys_text[] = "q quit  p policy  s sort  r reverse  ? help",
		  few_keys_text[] = "q quit  ? help";

static const char *const help[] = {
	"q            quit",
	"p            switch the policy",
	"s, r         sort by the next column, reverse",
	"up, down     scroll a line",
	"page up, page down, home, end",
	"?            this help",
	"",
	"in/s, out/s: events of the last 2 seconds",
	"ms:          mean service time of an event",
	"busy:        share of the threads' time",
	"p50...p99:   uploads of the last 10 seconds",
};

static SCREEN *screen;

/* ---- the terminal ---- */

bool top_screen_open(void)
{
	if (!(screen = newterm(NULL, stdout, stdin)))
		return false;
	if (!cursor_address) {
		top_screen_close();
		return false;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_WAIT_MS);
	curs_set(0);
	if (has_colors() && !getenv("NO_COLOR") && start_color() == OK) {
		use_default_colors();
		init_pair(COLOUR_BUSY, COLOR_YELLOW, -1);
		init_pair(COLOUR_BAD, COLOR_RED, -1);
	}
	return true;
}

void top_screen_close(void)
{
	if (!screen)
		return;
	endwin();
	delscreen(screen);
	screen = NULL;
}

bool top_screen_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* ---- drawing ---- */

static attr_t style_of(enum top_style style)
{
	switch (style) {
	case TOP_HEAD:
		return A_REVERSE;
	case TOP_BUSY:
		return A_BOLD | (attr_t)COLOR_PAIR(COLOUR_BUSY);
	case TOP_BAD:
		return (attr_t)COLOR_PAIR(COLOUR_BAD);
	default:
		return A_NORMAL;
	}
}

/* Returns the bytes of the first columns of a text, which has one column a character. */
static int bytes_of(const char *text, int limit)
{
	const char *p = text;

	for (; *p; p++)
		if (((unsigned char)*p & 0xC0) != 0x80 && limit-- == 0)
			break;
	return (int)(p - text);
}

/* Draws a line, over the whole width if it is a head. Longer text would wrap, so it is cut. */
static void draw_line(int row, const char *text, attr_t style)
{
	if (row < 0 || row >= LINES)
		return;
	attrset((int)style);
	move(row, 0);
	clrtoeol();
	if (style & A_REVERSE)
		mvhline(row, 0, ' ' | style, COLS);
	mvaddnstr(row, 0, text, bytes_of(text, COLS));
	attrset(A_NORMAL);
}

static void draw_table(struct top_state *s, const struct top_figures *f, int rows)
{
	static struct top_table table;
	const struct top_look look = { COLS, top_screen_is_utf8(), LINES < TALL };
	int count, last;

	top_table(f, look, &table);
	count = (int)table.count;
	last = count > rows ? count - rows : 0;
	s->first = s->first > last ? last : s->first < 0 ? 0 : s->first;
	for (int i = 0; i < rows && s->first + i < count; i++) {
		const struct top_line *line = &table.line[s->first + i];

		draw_line(1 + i, line->text, style_of(line->style));
	}
}

static void draw_help(int rows)
{
	for (int i = 0; i < rows && i < (int)COUNT_OF(help); i++)
		draw_line(1 + i, help[i], A_NORMAL);
}

static void draw_policies(const struct top_state *s, int rows)
{
	const struct policy_class *policy;
	int chosen = (int)s->policy, top = chosen >= rows ? chosen - rows + 1 : 0;
	char text[TOP_WIDTH_MAX];

	for (int i = top; i - top < rows && (policy = policy_at((size_t)i)); i++) {
		snprintf(text, sizeof text, "%c %-21s %s", i == chosen ? '>' : ' ', policy->name,
		         policy->help);
		draw_line(1 + i - top, text, i == chosen ? A_REVERSE : A_NORMAL);
	}
}

static void draw_last(const struct top_state *s)
{
	char text[TOP_WIDTH_MAX];

	if (s->mode == TOP_CHOOSE_POLICY)
		snprintf(text, sizeof text, "Enter switches, Esc cancels");
	else if (s->mode == TOP_SHOW_HELP)
		snprintf(text, sizeof text, "any key returns");
	else if (*s->message)
		snprintf(text, sizeof text, "%s", s->message);
	else
		snprintf(text, sizeof text, "%s, by %s%s", COLS < WIDE ? few_keys_text : keys_text,
		         top_order_name(s->order), s->is_reversed ? " reversed" : "");
	draw_line(LINES - 1, text, *s->message && s->mode == TOP_SHOW_TABLE ? A_BOLD : A_DIM);
}

void top_screen_draw(struct top_state *s, const struct top_figures *f, const char *trouble)
{
	const struct top_look look = { COLS, false, false };
	struct top_line title = { .text = "darkroomd" };
	int rows = LINES - 2;

	erase();
	if (f)
		top_title(f, look, &title);
	draw_line(0, trouble ? trouble : title.text,
	          trouble ? A_BOLD | (attr_t)COLOR_PAIR(COLOUR_BAD) : A_BOLD);
	if (s->mode == TOP_SHOW_HELP)
		draw_help(rows);
	else if (s->mode == TOP_CHOOSE_POLICY)
		draw_policies(s, rows);
	else if (f)
		draw_table(s, f, rows);
	if (LINES > 1)
		draw_last(s);
	refresh();
}

/* ---- keys ---- */

static void open_policies(struct top_state *s, const char *active)
{
	s->mode = TOP_CHOOSE_POLICY;
	s->policy = 0;
	for (unsigned i = 0; policy_at(i); i++)
		if (strcmp(policy_at(i)->name, active) == 0)
			s->policy = i;
}

static void choose(struct top_state *s, int key)
{
	switch (key) {
	case KEY_UP:
	case 'k':
		s->policy -= s->policy > 0;
		break;
	case KEY_DOWN:
	case 'j':
		s->policy += policy_at(s->policy + 1) != NULL;
		break;
	case '\r':
	case '\n':
	case KEY_ENTER:
		s->wants_policy = true;
		s->mode = TOP_SHOW_TABLE;
		break;
	case ESCAPE:
	case 'q':
	case 'p':
		s->mode = TOP_SHOW_TABLE;
		break;
	default:
		break;
	}
}

static void scroll_table(struct top_state *s, int key)
{
	int page = LINES > 4 ? LINES - 3 : 1;

	s->first += key == KEY_DOWN || key == 'j' ? 1 : 0;
	s->first -= key == KEY_UP || key == 'k' ? 1 : 0;
	s->first += key == KEY_NPAGE || key == ' ' ? page : 0;
	s->first -= key == KEY_PPAGE ? page : 0;
	if (key == KEY_HOME)
		s->first = 0;
	if (key == KEY_END)
		s->first = TOP_LINES_MAX; /* the drawing limits it */
}

static void take_key(struct top_state *s, int key, const char *active)
{
	if (s->mode == TOP_CHOOSE_POLICY) {
		choose(s, key);
		return;
	}
	*s->message = '\0';
	if (s->mode == TOP_SHOW_HELP) {
		s->mode = TOP_SHOW_TABLE;
		return;
	}
	switch (key) {
	case 'q':
		s->ends = true;
		break;
	case '?':
	case 'h':
		s->mode = TOP_SHOW_HELP;
		break;
	case 'p':
		open_policies(s, active);
		break;
	case 's':
		s->order = (enum top_order)((s->order + 1) % TOP_ORDER_COUNT);
		break;
	case 'r':
		s->is_reversed = !s->is_reversed;
		break;
	case 'L' & 31:
		clearok(curscr, TRUE);
		break;
	default:
		scroll_table(s, key);
	}
}

void top_screen_keys(struct top_state *s, const char *active)
{
	int key;

	while (!s->ends && (key = getch()) != ERR)
		if (key != KEY_RESIZE)
			take_key(s, key, active);
}
