/* geometry.c - computes sizes from the image down a plan's chain of steps. Any thread. */
#include "geometry.h"

#include "pixel/orient.h"
#include "pixel/picture_scale.h"
#include "plan.h"
#include "stage_ids.h"

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

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

static void swap_int(int *a, int *b)
{
	int was = *a;

	*a = *b;
	*b = was;
}

static void fit_inside(struct geometry *g, const struct plan_step *step,
                       const struct geometry *parent)
{
	int w, h;

	if (step->may_enlarge) {
		size_inside(parent->whole_width, parent->whole_height, step->width, step->height,
		            &g->width, &g->height);
		return;
	}
	/* A box that does not make the parent's picture smaller keeps its size. */
	size_fit(parent->width, parent->height, step->width, step->height, &w, &h);
	if (w == parent->width && h == parent->height)
		return;
	size_fit(parent->whole_width, parent->whole_height, step->width, step->height, &w, &h);
	g->width = min_int(w, parent->width);
	g->height = min_int(h, parent->height);
}

/* Returns whether the parent is a cover of the same proportions. */
static bool is_cut_alike(const struct plan_step *step, const struct geometry *parent)
{
	return parent->cut_width && (uint64_t)parent->cut_width * step->height ==
	                                    (uint64_t)parent->cut_height * step->width;
}

/* Places the part that a cover shows. */
static void place(struct geometry *g, const struct plan_step *step)
{
	struct focus at = g->has_focus ? g->focus : step->gravity;

	g->place_x = focus_place(at.x, g->shown_width);
	g->place_y = focus_place(at.y, g->shown_height);
	g->focus.x = focus_inside(at.x, g->shown_width);
	g->focus.y = focus_inside(at.y, g->shown_height);
}

/* The size is the box, or the largest size of its proportions that the pixels allow. The picture
 * shows the largest part of the whole with these proportions. */
static void cover(struct geometry *g, const struct plan_step *step, const struct geometry *parent)
{
	bool is_alike = is_cut_alike(step, parent);
	double across, down;

	if (!is_alike) {
		g->uncut_width = parent->width;
		g->uncut_height = parent->height;
	}
	g->width = (int)step->width;
	g->height = (int)step->height;
	g->cut_width = step->width;
	g->cut_height = step->height;
	if (!step->may_enlarge) {
		size_fit(g->width, g->height, (uint32_t)g->uncut_width, (uint32_t)g->uncut_height,
		         &g->width, &g->height);
		g->width = min_int(g->width, parent->width);
		g->height = min_int(g->height, parent->height);
	}
	across = (double)g->width * parent->whole_height;
	down = (double)g->height * parent->whole_width;
	if (is_alike) /* cutting again would take from the height what rounding took from a thin
	                 picture's width */
		return;
	if (across < down)
		g->shown_width = across / down;
	else
		g->shown_height = down / across;
	place(g, step);
}

static void make_exact(struct geometry *g, const struct plan_step *step,
                       const struct geometry *parent)
{
	g->width = (int)step->width;
	g->height = (int)step->height;
	if (!step->may_enlarge) {
		g->width = min_int(g->width, parent->width);
		g->height = min_int(g->height, parent->height);
	}
}

void geometry_root(struct geometry *g, int width, int height)
{
	*g = (struct geometry){
		.width = width,
		.height = height,
		.whole_width = width,
		.whole_height = height,
		.shown_width = 1,
		.shown_height = 1,
	};
}

void geometry_next(struct geometry *g, const struct plan_step *step, const struct geometry *parent)
{
	*g = *parent;
	g->shown_width = g->shown_height = 1;
	g->place_x = g->place_y = 0;
	if (step->stage != STAGE_SCALE)
		return;
	if (step->rotation == 90 || step->rotation == 270) {
		swap_int(&g->width, &g->height);
		swap_int(&g->whole_width, &g->whole_height);
		g->cut_width = g->cut_height = 0;
	}
	if (!step->width)
		return;
	g->cut_width = g->cut_height = 0;
	if (step->fit == PLAN_INSIDE) {
		fit_inside(g, step, parent);
		return;
	}
	if (step->fit == PLAN_COVER)
		cover(g, step, parent);
	else
		make_exact(g, step, parent);
	g->whole_width = g->width;
	g->whole_height = g->height;
}

void geometry_of_step(struct geometry *g, const struct plan *plan, unsigned index, int width,
                      int height, const struct focus *focus)
{
	struct geometry parent;
	unsigned path[PLAN_STEP_MAX], length = 0;

	for (int i = (int)index; i != PLAN_ROOT; i = plan->step[i].parent)
		path[length++] = (unsigned)i;
	geometry_root(g, width, height);
	if (focus) {
		g->has_focus = true;
		g->focus = *focus;
	}
	while (length > 0) {
		parent = *g;
		geometry_next(g, &plan->step[path[--length]], &parent);
	}
}

void geometry_scaling(struct scaling *to, const struct plan_step *step, const struct geometry *g,
                      unsigned orientation)
{
	*to = (struct scaling){
		.exif = step->parent == PLAN_ROOT ? orientation
		                                  : orient_of_rotation(step->rotation),
		.width = g->width,
		.height = g->height,
		.shown_width = g->shown_width,
		.shown_height = g->shown_height,
		.chroma = step->chroma,
		.place_x = g->place_x,
		.place_y = g->place_y,
	};
}
