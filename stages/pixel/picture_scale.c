/*
 * picture_scale.c - scales a picture, upright, to the planes that the encoder needs.
 *
 * Every plane is scaled by its true extent, so planes stay aligned when sides are odd. Orientation
 * costs nothing: the weights mirror and the resampler transposes. Colour spaces other than grey and
 * YCbCr are converted at the small size. Cropped parts are never computed: the weights start inside
 * of the picture.
 */
#include <math.h>
#include <stdio.h>

#include <jpeglib.h>

#include "base/check.h"
#include "orient.h"
#include "picture_job.h"

/* ---- the rare colour spaces, in plain floating point ---- */

/* The conversion runs after the first scaling, at the small size, so its speed does not matter. The
 * formulas are those of JFIF 1.02 and of libjpeg. CMYK becomes RGB without a profile, as in
 * browsers.
 */
struct rgb {
	float r, g, b;
};

static inline float clamp(float v)
{
	return v < 0 ? 0 : v > 255 ? 255 : v;
}

static inline struct rgb rgb_of_ycc(float y, float cb, float cr)
{
	cb -= 128;
	cr -= 128;
	return (struct rgb){ clamp(y + 1.402f * cr), clamp(y - .344136f * cb - .714136f * cr),
		             clamp(y + 1.772f * cb) };
}

/* Each ink absorbs its share of the light; black scales the remainder. */
static inline struct rgb rgb_of_inks(float c, float m, float y, float k)
{
	float light = (255 - k) / 255;

	return (struct rgb){ (255 - c) * light, (255 - m) * light, (255 - y) * light };
}

static inline struct rgb pixel_rgb(const struct picture *src, const uint8_t *const row[PLANE_MAX],
                                   int x)
{
	struct rgb v = { row[0][x], row[1][x], row[2][x] };
	float k;

	if (src->plane_count == 3)
		return v;
	if (src->color_space == JCS_YCCK) {
		/* The first three planes are YCbCr of (255 - C, 255 - M, 255 - Y). */
		v = rgb_of_ycc(v.r, v.g, v.b);
		v = (struct rgb){ 255 - v.r, 255 - v.g, 255 - v.b };
	}
	k = row[3][x];
	if (src->is_inverted)
		return rgb_of_inks(255 - v.r, 255 - v.g, 255 - v.b, 255 - k);
	return rgb_of_inks(v.r, v.g, v.b, k);
}

/* Converts `count` lines starting at `first`. src has 3 planes (RGB) or 4 planes (CMYK or YCCK).
 * All planes of src, y, cb and cr have the same size. */
static void to_ycc(const struct picture *src, int first, int count, struct plane *y,
                   struct plane *cb, struct plane *cr)
{
	assert(src->plane_count >= 3 && src->plane_count <= PLANE_MAX);
	for (int line = first; line < first + count; line++) {
		uint8_t *to_y = y->data + line * y->stride;
		uint8_t *to_cb = cb->data + line * cb->stride,
			*to_cr = cr->data + line * cr->stride;
		const uint8_t *row[PLANE_MAX] = { NULL };

		for (unsigned c = 0; c < src->plane_count; c++)
			row[c] = src->plane[c].data + line * src->plane[c].stride;
		for (int x = 0; x < src->width; x++) {
			struct rgb v = pixel_rgb(src, row, x);

			to_y[x] = (uint8_t)(.299f * v.r + .587f * v.g + .114f * v.b + .5f);
			to_cb[x] = (uint8_t)clamp(128.5f - .168736f * v.r - .331264f * v.g +
			                          .5f * v.b);
			to_cr[x] = (uint8_t)clamp(128.5f + .5f * v.r - .418688f * v.g -
			                          .081312f * v.b);
		}
	}
}

/* ---- scaling ---- */

static bool is_same(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static bool is_ready_space(int color_space)
{
	return color_space == JCS_GRAYSCALE || color_space == JCS_YCbCr;
}

/* Orientation of src and the part of it that is shown, in the axes of the stored picture. */
struct view {
	struct orient orient;
	double shown_x, shown_y, place_x, place_y;
};

static const struct view whole = { .shown_x = 1, .shown_y = 1 };

static struct view view_of(const struct scaling *to)
{
	struct view v = { orient_of(to->exif), to->shown_width, to->shown_height, to->place_x,
		          to->place_y };

	if (v.orient.transpose) {
		v.shown_x = to->shown_height;
		v.shown_y = to->shown_width;
		v.place_x = to->place_y;
		v.place_y = to->place_x;
	}
	return v;
}

/* Returns whether src is neither turned nor cropped. */
static bool is_whole(const struct view *v)
{
	return !v->orient.mirror_x && !v->orient.mirror_y && !v->orient.transpose &&
	       is_same(v->shown_x, 1) && is_same(v->shown_y, 1);
}

/* Sets the filters from a stored plane to an upright one. */
static void scale_filters(const struct plane_shape *from, const struct plane_shape *to,
                          const struct view *v, struct filter *x, struct filter *y)
{
	struct plane_shape stored = *to;

	if (v->orient.transpose) {
		stored.width = to->height;
		stored.height = to->width;
		stored.real_width = to->real_height;
		stored.real_height = to->real_width;
	}
	*x = filter_lanczos(from->width, stored.width, from->real_width, stored.real_width,
	                    v->shown_x, v->place_x, v->orient.mirror_x);
	*y = filter_lanczos(from->height, stored.height, from->real_height, stored.real_height,
	                    v->shown_y, v->place_y, v->orient.mirror_y);
}

static struct plane_shape shape_of(const struct plane *p)
{
	return (struct plane_shape){ p->width,  p->height,     p->width,
		                     p->height, p->real_width, p->real_height };
}

static bool is_same_shape(const struct plane_shape *a, const struct plane_shape *b)
{
	return a->width == b->width && a->height == b->height &&
	       is_same(a->real_width, b->real_width) && is_same(a->real_height, b->real_height);
}

/* Adds a pass that scales src to the shape of dst, or copies it. */
static void add_pass(struct picture_job *job, const struct plane *src, const struct view *v,
                     struct plane *dst)
{
	struct pass *pass = &job->pass[job->pass_count++];
	struct plane_shape from = shape_of(src), to = shape_of(dst);

	*pass = (struct pass){ .lines = picture_job_copy, .src = src, .dst = dst };
	if (is_whole(v) && is_same_shape(&from, &to))
		return;
	pass->lines = NULL;
	pass->transpose = v->orient.transpose;
	scale_filters(&from, &to, v, &pass->x, &pass->y);
}

static void add_passes(struct picture_job *job, const struct picture *src, const struct view *v,
                       struct picture *dst)
{
	for (unsigned c = 0; c < dst->plane_count; c++)
		add_pass(job, &src->plane[c], v, &dst->plane[c]);
}

/* Makes the intermediate pictures of a conversion, both at the size of the result: the scaled RGB,
 * CMYK or YCCK planes, and chroma before it is halved. */
static bool make_between(struct picture_job *job, const struct picture *src)
{
	struct plane_shape shape[PLANE_MAX];
	struct picture *full, *chroma;

	for (unsigned c = 0; c < PLANE_MAX; c++)
		picture_shapes(&shape[c], CHROMA_NONE, job->result->width, job->result->height);
	full = job->between[0] = picture_new(shape, src->plane_count, src->color_space);
	chroma = job->between[1] = picture_new(shape, 2, JCS_UNKNOWN);
	if (!full || !chroma)
		return false;
	full->is_inverted = src->is_inverted;
	return true;
}

/* Converts between[0], a rare colour space, to dst (luma) and between[1] (chroma). */
static void convert_lines(const struct picture_job *job, const struct pass *pass, int first,
                          int count)
{
	to_ycc(job->between[0], first, count, pass->dst, &job->between[1]->plane[0],
	       &job->between[1]->plane[1]);
}

static bool add_conversion(struct picture_job *job, const struct picture *src, const struct view *v)
{
	struct picture *dst = job->result;

	if (!make_between(job, src))
		return false;
	add_passes(job, src, v, job->between[0]);
	picture_job_add(job, &job->between[0]->plane[0], &dst->plane[0], convert_lines);
	for (unsigned c = 1; c < dst->plane_count; c++)
		add_pass(job, &job->between[1]->plane[c - 1], &whole, &dst->plane[c]);
	return true;
}

static bool is_ready(const struct picture *src, const struct plane_shape *shape,
                     unsigned plane_count, const struct view *v)
{
	bool is_ready =
		is_ready_space(src->color_space) && src->plane_count == plane_count && is_whole(v);

	for (unsigned c = 0; c < plane_count && is_ready; c++) {
		struct plane_shape has = shape_of(&src->plane[c]);

		is_ready = is_same_shape(&has, &shape[c]);
	}
	return is_ready;
}

/* Makes the result and plans its passes. Returns false without memory. */
static bool plan_passes(struct picture_job *job, const struct picture *src,
                        const struct plane_shape *shape, unsigned plane_count, const struct view *v)
{
	job->result = picture_new(shape, plane_count, plane_count == 1 ? JCS_GRAYSCALE : JCS_YCbCr);
	if (!job->result)
		return false;
	if (!is_ready_space(src->color_space))
		return add_conversion(job, src, v);
	add_passes(job, src, v, job->result);
	return true;
}

/* Returns the chroma of the result. Grey stays grey. */
static enum chroma chroma_of(const struct scaling *to, unsigned src_plane_count)
{
	return src_plane_count == 1 ? CHROMA_NONE : to->chroma;
}

struct picture_job *picture_scale_begin(struct picture *src, const struct scaling *to)
{
	struct picture_job *job = picture_job_new();
	enum chroma chroma = chroma_of(to, src->plane_count);
	unsigned plane_count = chroma_planes(chroma);
	struct plane_shape shape[PLANE_MAX];
	struct view v = view_of(to);

	if (!job)
		return NULL;
	picture_shapes(shape, chroma, to->width, to->height);
	if (is_ready(src, shape, plane_count, &v)) {
		picture_ref(src);
		job->result = src;
	} else if (!plan_passes(job, src, shape, plane_count, &v)) {
		picture_job_free(job);
		return NULL;
	}
	return job;
}

/* Counts the scratch memory of every plane: the pool may keep the scratch of one plane while the
 * next one needs a different size. */
uint64_t picture_scale_bytes(const struct plane_shape *shape, unsigned plane_count, int color_space,
                             const struct scaling *to)
{
	enum chroma chroma = chroma_of(to, plane_count);
	struct plane_shape of_result[PLANE_MAX], full[PLANE_MAX];
	uint64_t bytes, scratch = 0;
	struct filter x, y;
	struct view v = view_of(to);
	bool converts = !is_ready_space(color_space);

	picture_shapes(of_result, chroma, to->width, to->height);
	for (unsigned c = 0; c < PLANE_MAX; c++)
		full[c] = of_result[0];
	for (unsigned c = 0; c < (converts ? plane_count : chroma_planes(chroma)); c++) {
		scale_filters(&shape[c], converts ? &full[c] : &of_result[c], &v, &x, &y);
		scratch += resample_bytes(&x, &y);
	}
	bytes = picture_bytes(of_result, chroma_planes(chroma));
	if (converts) {
		scale_filters(&full[0], chroma == CHROMA_420 ? &of_result[1] : &full[0], &whole, &x,
		              &y);
		scratch += resample_bytes(&x, &y);
		bytes += picture_bytes(full, plane_count) + picture_bytes(full, 2);
	}
	return bytes + scratch;
}
