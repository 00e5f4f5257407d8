/* geometry.c - computes sizes from the image down a plan's chain of steps. Any thread. */
#include "geometry.h"

#include <string.h>

#include "conf/conf_number.h"
#include "plan.h"

/* ---- focal points ---- */

/* Returns the first byte behind a share of 0% to 100%, or NULL. */
static const char *read_percent(const char *at, const char *end, double *value)
{
	at = decimal_read(at, end, value);
	if (!at || at == end || *at != '%' || *value > 100)
		return NULL;
	*value /= 100;
	return at + 1;
}

bool focus_parse(struct focus *focus, const char *text, size_t length)
{
	const char *end = text + length;

	if (length >= FOCUS_TEXT_MAX)
		return false;
	const char *at = read_percent(text, end, &focus->x);

	return at && at < end && *at == ':' && read_percent(at + 1, end, &focus->y) == end;
}

bool focus_is_same(const struct focus *a, const struct focus *b)
{
	return !(a->x < b->x) && !(a->x > b->x) && !(a->y < b->y) && !(a->y > b->y);
}

struct focus focus_before_rotation(struct focus focus, unsigned degrees)
{
	switch (degrees) {
	case 90:
		return (struct focus){ focus.y, 1 - focus.x };
	case 180:
		return (struct focus){ 1 - focus.x, 1 - focus.y };
	case 270:
		return (struct focus){ 1 - focus.y, focus.x };
	default:
		return focus;
	}
}

void focus_cover(double *at, double shown, double *place)
{
	double rest = 1 - shown, before = *at - shown / 2, inside;

	before = before < 0 ? 0 : before > rest ? rest : before;
	inside = (*at - before) / shown;
	*place = rest > 0 ? 2 * before / rest - 1 : 0;
	*at = inside < 0 ? 0 : inside > 1 ? 1 : inside;
}

/* ---- sizes ---- */

static int scale_rounded(int n, uint32_t to, int from)
{
	uint64_t scaled = ((uint64_t)n * to + (uint64_t)from / 2) / (uint64_t)from;

	return scaled ? (int)scaled : 1;
}

void size_inside(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
                 int *fit_height)
{
	if ((uint64_t)box_width * (uint64_t)height <= (uint64_t)box_height * (uint64_t)width) {
		*fit_width = (int)box_width;
		*fit_height = scale_rounded(height, box_width, width);
	} else {
		*fit_width = scale_rounded(width, box_height, height);
		*fit_height = (int)box_height;
	}
}

void size_fit(int width, int height, uint32_t box_width, uint32_t box_height, int *fit_width,
              int *fit_height)
{
	bool fits = (uint32_t)width <= box_width && (uint32_t)height <= box_height;

	*fit_width = width;
	*fit_height = height;
	if (!fits && box_width && box_height)
		size_inside(width, height, box_width, box_height, fit_width, fit_height);
}

void geometry_of_steps(struct geometry *g, const struct plan *plan, int width, int height,
                       const struct focus *focus)
{
	const struct geometry root = {
		.width = width,
		.height = height,
		.whole_width = width,
		.whole_height = height,
		.has_focus = focus != NULL,
		.focus = focus ? *focus : FOCUS_MIDDLE,
	};

	/* Parents precede their children. */
	for (unsigned i = 0; i < plan->step_count; i++) {
		const struct plan_step *step = &plan->step[i];
		const struct geometry *parent =
			step->parent == PLAN_ROOT ? &root : &g[step->parent];

		g[i] = *parent;
		g[i].shown_width = g[i].shown_height = 1;
		g[i].place_x = g[i].place_y = 0;
		if (step->op.class->resize)
			step->op.class->resize(&g[i], &step->op, parent);
	}
}
