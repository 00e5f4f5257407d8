/* codec_webp.c - libwebp, which reduces by itself: a lossy file needs no picture of full size. With
 * alpha it would mix the colours of pixels that are hidden with others. Also encodes. */
#include "codec.h"

#include <string.h>
#include <webp/decode.h>
#include <webp/encode.h>

#define LIBRARY "libwebp.so.7"
#define PIECE ((size_t)32 << 10) /* bytes of the file between two looks at its rows */

#define FULL_NAME(name) WebP##name
/* clang-format off */
#define FUNCTIONS(X) \
	X(InitDecoderConfigInternal) X(GetFeaturesInternal) X(IDecode) X(IUpdate) X(IDecGetRGB) \
	X(ConfigInitInternal) X(PictureInitInternal) X(Encode)
/* clang-format on */

CODEC_LIBRARY(codec_webp_load, LIBRARY)

/* Reads the header, and sets the size of the result. Returns false if it is not as requested. */
static bool begin(struct codec_job *job, WebPDecoderConfig *config)
{
	const struct jail_request *q = job->request;

	if (!lib.InitDecoderConfigInternal(config, WEBP_DECODER_ABI_VERSION) ||
	    lib.GetFeaturesInternal(job->source, q->source_bytes, &config->input,
	                            WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK ||
	    config->input.has_animation ||
	    !codec_is_size(job, (uint32_t)config->input.width, (uint32_t)config->input.height))
		return false;
	config->options.use_scaling = q->reduce > 1 && !config->input.has_alpha;
	config->options.scaled_width = (int)jail_plane_side(q->width, q->reduce);
	config->options.scaled_height = (int)jail_plane_side(q->height, q->reduce);
	config->output.colorspace = config->input.has_alpha ? MODE_RGBA : MODE_RGB;
	return true;
}

enum jail_status codec_webp(struct codec_job *job)
{
	const struct jail_request *q = job->request;
	VP8StatusCode code = VP8_STATUS_SUSPENDED;
	WebPDecoderConfig config;
	size_t bytes = q->source_bytes;
	int given = 0;

	if (!begin(job, &config))
		return JAIL_DAMAGED;
	uint32_t reduced = config.options.use_scaling ? q->reduce : 1;

	if (!codec_rows_begin(job, jail_plane_side(q->width, reduced),
	                      config.input.has_alpha ? 4 : 3, q->reduce / reduced))
		return JAIL_DAMAGED;
	WebPIDecoder *decoder = lib.IDecode(NULL, 0, &config);

	for (size_t at = 0; decoder && at < bytes && code == VP8_STATUS_SUSPENDED;) {
		int rows = 0, width, height, stride, before = given;

		at = bytes - at < PIECE ? bytes : at + PIECE;
		code = lib.IUpdate(decoder, job->source, at);
		const uint8_t *p = lib.IDecGetRGB(decoder, &rows, &width, &height, &stride);

		for (; p && given < rows; given++)
			codec_row(job, p + (ptrdiff_t)given * stride);
		/* The pixels of the file: codec_row() has counted those of the planes. */
		codec_count(job,
		            (uint64_t)(given - before) * job->width * (reduced * reduced - 1) + 1);
	}
	return code == VP8_STATUS_OK && codec_rows_end(job) ? JAIL_DECODED : JAIL_DAMAGED;
}

/* ---- encoding ---- */

#define METHOD 4      /* more takes longer, and saves nothing */
#define RIFF_BYTES 20 /* "RIFF", a size, "WEBP", "VP8 ", a size: the daemon writes that itself */

/* The first call has the head, and perhaps more. */
static int put(const uint8_t *data, size_t size, const WebPPicture *picture)
{
	struct codec_job *job = picture->custom_ptr;
	size_t left = job->head_left < size ? job->head_left : size;

	job->head_left -= left;
	return codec_put(job, data + left, size - left);
}

/* Called some times for each picture. */
static int progress(int percent, const WebPPicture *picture)
{
	struct codec_job *job = picture->user_data;

	(void)percent;
	if (job->turn)
		job->turn();
	return 1;
}

enum jail_status codec_webp_encode(struct codec_job *job)
{
	const struct jail_request *q = job->request;
	WebPConfig config;
	WebPPicture picture;

	if (q->plane_count != 3 || q->chroma_reduce != 2 ||
	    !lib.ConfigInitInternal(&config, WEBP_PRESET_DEFAULT, (float)q->quality,
	                            WEBP_ENCODER_ABI_VERSION) ||
	    !lib.PictureInitInternal(&picture, WEBP_ENCODER_ABI_VERSION))
		return JAIL_DAMAGED;
	config.method = METHOD;
	job->head_left = RIFF_BYTES;
	picture.colorspace = WEBP_YUV420;
	picture.width = (int)q->width;
	picture.height = (int)q->height;
	picture.y = (uint8_t *)(uintptr_t)codec_plane(job, 0); /* which the library only reads */
	picture.u = (uint8_t *)(uintptr_t)codec_plane(job, 1);
	picture.v = (uint8_t *)(uintptr_t)codec_plane(job, 2);
	picture.y_stride = (int)q->width;
	picture.uv_stride = (int)jail_source_side(q, q->width, 1);
	picture.writer = put;
	picture.custom_ptr = picture.user_data = job;
	picture.progress_hook = progress;
	return lib.Encode(&config, &picture) && job->extra_bytes ? JAIL_DECODED : JAIL_DAMAGED;
}
