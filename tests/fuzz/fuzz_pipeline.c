/*
 * fuzz_pipeline.c - a JPEG's way from bytes to the files of its variants: decode, orient, scale,
 * blur, sharpen, encode.
 *
 * Each input runs twice. The second run has another pattern in all new memory, and takes the
 * smallest steps. Both must give the same files: otherwise a file shows memory of other pictures,
 * or depends on when its job yields. The memory used must be within the estimate that the daemon
 * reserves.
 */
#include "pattern_pool.h"

#include "base/pool.h"
#include "conf/conf.h"
#include "jpeg_mutator.h"
#include "pixel/decoder.h"
#include "pixel/encoder.h"
#include "pixel/metadata.h"
#include "pixel/orient.h"
#include "pixel/picture_job.h"
#include "plan/geometry.h"
#include "plan/memory_need.h"
#include "plan/plan.h"
#include "stage_ids.h"
#include "support/jpeg_structures.h"
#include "target.h"

#define PIXELS_MAX (256 * 256)
#define SCANS_MAX 30
#define RANDOM_SEEDS 60

const unsigned target_mutants = 8;

/* The result of one run. */
struct outcome {
	enum decoder_fault fault; /* 0: none */
	bool has_lost;
	unsigned file_count;
	struct {
		size_t size;
		uint32_t hash;
	} file[CONF_VARIANT_MAX];
};

struct work {
	const struct plan *plan;
	struct resampler resampler;
	struct metadata metadata;
	int width, height; /* as displayed */
	unsigned step;     /* rows or tiles at a time */
	uint8_t *icc;      /* of the current image */
	size_t icc_size;
	uint64_t bytes_max; /* the daemon would reserve this much */
	struct outcome *outcome;
};

#define FORMATS "jpeg", CONF_EFFORT_FAST, CONF_WHEN_UPLOAD

static const struct plan *make_plan(void)
{
	static const struct conf conf = {
		.limits = { .pixels = PIXELS_MAX, .width = PICTURE_SIDE_MAX, .height = PICTURE_SIDE_MAX },
		.variant = {
			{ "a", "scale 40x40 inside", CONF_NO, 82, CONF_CHROMA_420, CONF_NO, CONF_NO, FORMATS },
			{ "b", "scale 40x40 inside, blur 2", CONF_NO, 75, CONF_CHROMA_420, CONF_NO,
			  CONF_YES, FORMATS },
			{ "c", "scale 24x17 cover, sharpen 1, rotate 90", CONF_YES, 90,
			  CONF_CHROMA_444, CONF_YES, CONF_NO, FORMATS },
			{ "d", "scale 150x150 exact, grayscale", CONF_YES, 60, CONF_CHROMA_420,
			  CONF_NO, CONF_NO, FORMATS },
			{ "e", "", CONF_NO, 95, CONF_CHROMA_444, CONF_NO, CONF_NO, FORMATS },
		},
		.variant_count = 5,
	};
	static struct plan plan;
	char error[256];
	unsigned variant;

	if (!plan.step_count)
		assert(plan_build(&plan, &conf, 0, &variant, error, sizeof error) == 0);
	return &plan;
}

/* ---- decoding ---- */

static void estimate(struct work *w, const struct decoder *d)
{
	struct memory_need need = { .color_space = (int)d->in.jpeg_color_space,
		                    .working_bytes = decoder_working_bytes(d),
		                    .width = w->width,
		                    .height = w->height,
		                    .orientation = w->metadata.orientation,
		                    .icc_bytes = w->metadata.icc_bytes };

	need.plane_count = decoder_shapes(d, need.shape);
	w->bytes_max = memory_need_bytes(&need, w->plan, 0);
}

static void copy_profile(struct work *w, const struct decoder *d)
{
	J_COLOR_SPACE space = d->in.jpeg_color_space;
	int err = 0;

	if (space == JCS_GRAYSCALE)
		err = metadata_copy_icc(&w->metadata, ICC_GRAY, &w->icc, &w->icc_size);
	else if (space == JCS_YCbCr || space == JCS_RGB)
		err = metadata_copy_icc(&w->metadata, ICC_RGB, &w->icc, &w->icc_size);
	assert(!err);
}

static struct picture *decode(struct work *w, struct decoder *d, const uint8_t *jpeg, size_t size)
{
	struct memory_need_step need;
	enum decoder_result result = decoder_open(d, jpeg, size);

	if (result == DECODER_FAILED ||
	    (uint64_t)d->in.image_width * d->in.image_height > PIXELS_MAX)
		return NULL;
	metadata_read(&w->metadata, jpeg, size);
	w->width = (int)d->in.image_width;
	w->height = (int)d->in.image_height;
	orient_size(w->metadata.orientation, &w->width, &w->height);
	memory_need_root(w->plan, w->width, w->height, w->metadata.orientation, &need);
	decoder_choose(d, need.width, need.height, need.chroma_width, need.chroma_height);
	estimate(w, d);
	copy_profile(w, d);
	result = decoder_start(d, SCANS_MAX, size % 2 == 0);
	while (result == DECODER_MORE)
		result = decoder_advance(d, w->step);
	w->outcome->has_lost = result == DECODER_DONE && d->has_lost;
	return result == DECODER_DONE ? decoder_take(d) : NULL;
}

/* ---- variants ---- */

static void encode(struct work *w, const struct plan_step *step, const struct picture *picture)
{
	struct encoder *e = encoder_new(&step->encoding, picture, w->icc, w->icc_size);
	unsigned i = w->outcome->file_count++;
	uint8_t *data;
	size_t size;
	int more;

	assert(e);
	while ((more = encoder_advance(e, w->step)) > 0)
		continue;
	assert(more == 0);
	encoder_take(e, &data, &size);
	encoder_free(e);
	assert(size > 4 && data[0] == 0xff && data[1] == 0xd8 && data[size - 1] == 0xd9);
	w->outcome->file[i].size = size;
	w->outcome->file[i].hash = target_hash(data, size);
	pool_put(data);
}

static struct picture *make(struct work *w, unsigned index, struct picture *input)
{
	const struct operation_image image = { w->width, w->height, w->metadata.orientation, NULL };
	struct picture_job *job = operation_begin(w->plan, index, input, &image);
	int more;

	assert(job);
	while ((more = picture_job_advance(job, &w->resampler, w->step)) > 0)
		continue;
	assert(more == 0);
	struct picture *made = picture_job_take(job);

	picture_job_free(job);
	return made;
}

/* Runs all steps with this input, depth first. */
static void follow(struct work *w, int parent, struct picture *input)
{
	for (unsigned i = 0; i < w->plan->step_count; i++) {
		if (w->plan->step[i].parent != parent)
			continue;
		if (w->plan->step[i].op.class == &operation_encode) {
			encode(w, &w->plan->step[i], input);
			continue;
		}
		struct picture *picture = make(w, i, input);

		follow(w, (int)i, picture);
		picture_unref(picture);
	}
}

/* ---- runs ---- */

static void run(struct outcome *o, const uint8_t *jpeg, size_t size, uint8_t pattern, unsigned step)
{
	static struct work w;

	*o = (struct outcome){ .file_count = 0 };
	w.plan = make_plan();
	w.step = step;
	w.outcome = o;
	w.icc = NULL;
	w.icc_size = 0;
	w.bytes_max = UINT64_MAX;
	resampler_init(&w.resampler);
	pattern_pool_begin(pattern);
	struct decoder *d = decoder_new();

	assert(d);
	d->fault = 0;
	struct picture *picture = decode(&w, d, jpeg, size);

	if (!picture)
		o->fault = d->fault;
	assert(o->fault != DECODER_NO_MEMORY);
	decoder_free(d);
	if (picture)
		follow(&w, PLAN_ROOT, picture);
	picture_unref(picture);
	pool_put(w.icc);
	assert(pattern_pool_peak() <= w.bytes_max);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct outcome first, second;

	run(&first, data, size, 0x00, 1000);
	run(&second, data, size, 0xa5, 1);
	assert(first.fault == second.fault && first.has_lost == second.has_lost);
	assert(first.file_count == second.file_count);
	for (unsigned i = 0; i < first.file_count; i++)
		assert(first.file[i].size == second.file[i].size &&
		       first.file[i].hash == second.file[i].hash);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max, unsigned seed)
{
	return jpeg_mutate(data, size, size_max, seed);
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	size_t size;

	for (unsigned i = 0; i < STRUCTURE_COUNT; i++) {
		uint8_t *jpeg = fixture_make(&structures[i], &size);

		emit(jpeg, size);
		free(jpeg);
	}
	for (unsigned i = 0; i < RANDOM_SEEDS; i++) {
		uint8_t *jpeg = jpeg_random(i, &size);

		emit(jpeg, size);
		free(jpeg);
	}
}
