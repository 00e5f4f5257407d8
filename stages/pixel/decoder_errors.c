/*
 * decoder_errors.c - the error manager of the decoder's libjpeg object.
 *
 * Warnings count as loss only if pixels are missing afterwards. Common mistakes of cameras do not.
 */
#include "decoder_errors.h"

#include <jerror.h>

#include "decoder_scans.h"

static void fault_set(struct decoder *d, enum decoder_fault fault, const char *text)
{
	d->fault = fault;
	snprintf(d->fault_text, sizeof(d->fault_text), "%s", text);
}

_Noreturn void decoder_fail(struct decoder *d, enum decoder_fault fault, const char *text)
{
	fault_set(d, fault, text);
	longjmp(d->errors.failed, 1);
}

static enum decoder_fault fault_of(int message)
{
	switch (message) {
	case JERR_OUT_OF_MEMORY:
	case JERR_NO_BACKING_STORE: /* more coefficients than reserved */
		return DECODER_NO_MEMORY;
	case JERR_IMAGE_TOO_BIG:
		return DECODER_TOO_LARGE;
	case JERR_BAD_PRECISION:
	case JERR_SOF_UNSUPPORTED:
	case JERR_COMPONENT_COUNT:
	case JERR_BAD_MCU_SIZE:
		return DECODER_UNSUPPORTED;
	default:
		return DECODER_DAMAGED;
	}
}

static void on_error(j_common_ptr c)
{
	char text[JMSG_LENGTH_MAX];

	c->err->format_message(c, text);
	decoder_fail(c->client_data, fault_of(c->err->msg_code), text);
}

/* Returns whether pixels are missing after this warning of libjpeg. */
static bool is_loss(const struct decoder *d)
{
	const struct jpeg_error_mgr *err = &d->errors.mgr;

	switch (err->msg_code) {
	case JWRN_HIT_MARKER:
	case JWRN_HUFF_BAD_CODE:
	case JWRN_MUST_RESYNC:
	case JWRN_ARITH_BAD_CODE:
		return true;
	case JWRN_BOGUS_PROGRESSION:
		/* The scan overwrites bits that are known, or the ones before are missing. AC
		 * before DC is harmless, and is reported as coefficient 0 of a scan of others. */
		return err->msg_parm.i[1] != 0 || d->in.Ss == 0;
	default:
		return false;
	}
}

void decoder_note_loss(struct decoder *d, const char *text)
{
	if (!d->has_lost)
		snprintf(d->lost_text, sizeof(d->lost_text), "%s", text);
	d->has_lost = true;
	if (d->stop_on_loss)
		decoder_fail(d, DECODER_DAMAGED, d->lost_text);
}

static void on_message(j_common_ptr c, int level)
{
	struct decoder *d = c->client_data;
	char text[JMSG_LENGTH_MAX];

	if (level >= 0)
		return;
	c->err->num_warnings++;
	if (c->err->msg_code == JWRN_JPEG_EOF)
		d->has_ended_early = true;
	if (c->err->msg_code == JWRN_EXTRANEOUS_DATA)
		decoder_scans_skipped(d, (size_t)c->err->msg_parm.i[0]);
	if (!is_loss(d))
		return;
	c->err->format_message(c, text);
	decoder_note_loss(d, d->has_ended_early ? DECODER_PREMATURE_END : text);
}

static void on_output_message(j_common_ptr c)
{
	(void)c;
}

void decoder_errors_init(struct decoder *d)
{
	d->in.err = jpeg_std_error(&d->errors.mgr);
	d->errors.mgr.error_exit = on_error;
	d->errors.mgr.emit_message = on_message;
	d->errors.mgr.output_message = on_output_message;
}

static const char *unsupported_process(unsigned sof)
{
	switch (sof) {
	case 0xc3:
	case 0xc7:
	case 0xcb:
	case 0xcf:
		return "lossless JPEG is not supported";
	case 0xc5:
	case 0xc6:
	case 0xcd:
	case 0xce:
		return "hierarchical JPEG is not supported";
	default:
		return "this JPEG process is not supported";
	}
}

void decoder_fault_explain(struct decoder *d)
{
	const struct jpeg_error_mgr *err = &d->errors.mgr;
	char text[JMSG_LENGTH_MAX];

	switch (err->msg_code) {
	case JERR_BAD_PRECISION:
		snprintf(text, sizeof(text), "samples of %d bits are not supported, only of 8",
		         err->msg_parm.i[0]);
		fault_set(d, DECODER_UNSUPPORTED, text);
		break;
	case JERR_SOF_UNSUPPORTED:
		fault_set(d, DECODER_UNSUPPORTED,
		          unsupported_process((unsigned)err->msg_parm.i[0]));
		break;
	case JERR_EMPTY_IMAGE:
		if (d->in.num_components > 0 && d->in.image_width > 0)
			fault_set(d, DECODER_UNSUPPORTED,
			          "a height of 0, to be defined later (DNL), is not supported");
		break;
	default:
		if (d->has_ended_early && d->fault == DECODER_DAMAGED)
			fault_set(d, DECODER_DAMAGED, DECODER_PREMATURE_END);
		break;
	}
}
