/* codec_aom.c - libaom, which encodes the AV1 of an AVIF. */
#include "codec.h"

#include <aom/aom_encoder.h>
#include <aom/aomcx.h>
#include <string.h>

#define LIBRARY "libaom.so.3"
#define QUANTIZER_MAX 63
/* The same as libavif chooses for its speeds of 10 and 6. */
#define CPU_USED_FAST 9
#define CPU_USED_SMALL 6

#define FULL_NAME(name) aom_##name
/* clang-format off */
#define FUNCTIONS(X) \
	X(codec_av1_cx) X(codec_enc_config_default) X(codec_enc_init_ver) X(codec_control) \
	X(codec_encode) X(codec_get_cx_data) X(codec_destroy)
/* clang-format on */

CODEC_LIBRARY(codec_aom_load, LIBRARY)

/* One still picture, of constant quality. Returns whether the library accepts that. */
static bool begin(const struct jail_request *q, aom_codec_ctx_t *codec)
{
	aom_codec_iface_t *av1 = lib.codec_av1_cx();
	bool is_small = q->effort == JAIL_ENCODE_SMALL;
	aom_codec_enc_cfg_t c;

	if (lib.codec_enc_config_default(av1, &c, AOM_USAGE_ALL_INTRA))
		return false;
	c.g_profile = q->plane_count == 3 && q->chroma_reduce == 1;
	c.g_w = q->width;
	c.g_h = q->height;
	c.g_limit = 1;
	c.g_threads = 1;
	c.g_lag_in_frames = 0;
	c.rc_end_usage = AOM_Q;
	c.rc_max_quantizer = QUANTIZER_MAX;
	c.monochrome = q->plane_count == 1;
	if (lib.codec_enc_init_ver(codec, av1, &c, 0, AOM_ENCODER_ABI_VERSION))
		return false;
	/* The same as the daemon writes into the file: full range, BT.709 primaries, sRGB transfer
	 * and BT.601 matrix (H.273). A macro of the header checks the types. */
	return !lib.codec_control(codec, AOME_SET_CPUUSED,
	                          is_small ? CPU_USED_SMALL : CPU_USED_FAST) &&
	       !lib.codec_control(codec, AOME_SET_CQ_LEVEL, (int)q->quality) &&
	       !lib.codec_control(codec, AOME_SET_TUNING,
	                          is_small ? AOM_TUNE_PSNR : AOM_TUNE_SSIM) &&
	       !lib.codec_control(codec, AV1E_SET_COLOR_PRIMARIES, AOM_CICP_CP_BT_709) &&
	       !lib.codec_control(codec, AV1E_SET_TRANSFER_CHARACTERISTICS, AOM_CICP_TC_SRGB) &&
	       !lib.codec_control(codec, AV1E_SET_MATRIX_COEFFICIENTS, AOM_CICP_MC_BT_601) &&
	       !lib.codec_control(codec, AV1E_SET_COLOR_RANGE, AOM_CR_FULL_RANGE);
}

/* The planes as the library has them: it only reads. */
static aom_image_t image_of(const struct codec_job *job)
{
	const struct jail_request *q = job->request;
	unsigned shift = q->plane_count == 3 && q->chroma_reduce == 1 ? 0 : 1;
	aom_image_t image = { .fmt = shift ? AOM_IMG_FMT_I420 : AOM_IMG_FMT_I444,
		              .cp = AOM_CICP_CP_BT_709,
		              .tc = AOM_CICP_TC_SRGB,
		              .mc = AOM_CICP_MC_BT_601,
		              .monochrome = q->plane_count == 1,
		              .range = AOM_CR_FULL_RANGE,
		              .w = q->width,
		              .h = q->height,
		              .bit_depth = 8,
		              .d_w = q->width,
		              .d_h = q->height,
		              .x_chroma_shift = shift,
		              .y_chroma_shift = shift,
		              .bps = shift ? 12 : 24 };

	for (unsigned c = 0; c < 3; c++) {
		/* Of a grey picture the library reads no other plane. */
		image.planes[c] =
			(uint8_t *)(uintptr_t)codec_plane(job, c < q->plane_count ? c : 0);
		image.stride[c] = (int)jail_source_side(q, q->width, c);
	}
	return image;
}

/* Encodes the image, or with NULL what is left, into the file. Returns whether that is possible. */
static bool encode(struct codec_job *job, aom_codec_ctx_t *codec, const aom_image_t *image)
{
	const aom_codec_cx_pkt_t *packet;
	aom_codec_iter_t iter = NULL;
	bool is_good = lib.codec_encode(codec, image, 0, 1, 0) == AOM_CODEC_OK;

	while (is_good && (packet = lib.codec_get_cx_data(codec, &iter))) {
		const uint8_t *data = packet->data.frame.buf;
		/* An item of an AVIF has no temporal delimiters (AV1-ISOBMFF 1.2, 2.4). */
		size_t size = packet->data.frame.sz,
		       skipped = size >= 2 && data[0] == 0x12 && data[1] == 0 ? 2 : 0;

		if (packet->kind == AOM_CODEC_CX_FRAME_PKT)
			is_good = codec_put(job, data + skipped, size - skipped);
	}
	return is_good;
}

enum jail_status codec_aom_encode(struct codec_job *job)
{
	const struct jail_request *q = job->request;
	const aom_image_t image = image_of(job);
	aom_codec_ctx_t codec;

	if (q->quality > QUANTIZER_MAX || !begin(q, &codec))
		return JAIL_DAMAGED;
	bool is_good = encode(job, &codec, &image) && encode(job, &codec, NULL);

	lib.codec_destroy(&codec); /* what the first small picture took serves later ones */
	return is_good && job->extra_bytes ? JAIL_DECODED : JAIL_DAMAGED;
}
