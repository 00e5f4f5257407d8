/* image_json.c - writes an image as JSON; allocates nothing. Any thread. */
#include "image_json.h"

#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "store/stored_image.h"

/* variant: its name, or NULL for the URL of the image itself. version: of the variant. */
static void json_url(struct json *j, const char *id, const char *variant, const char *version)
{
	char url[96];
	struct text t;

	text_init(&t, url, sizeof url);
	text_puts(&t, "/images/");
	text_puts(&t, id);
	if (variant) {
		text_puts(&t, "/");
		text_puts(&t, variant);
		text_puts(&t, ".jpg?v=");
		text_puts(&t, version);
	}
	json_string_n(j, "url", t.data, t.length);
}

void image_variant_json(struct json *j, const struct image *image, unsigned index)
{
	const struct image_variant *variant = &image->variant[index];
	const char *name = image_conf(image)->variant[index].name;

	json_object(j, name);
	json_url(j, image->id, name, variant->version);
	json_uint(j, "width", variant->width);
	json_uint(j, "height", variant->height);
	json_uint(j, "bytes", variant->size);
	json_object_end(j);
}

static void variants_json(struct json *j, const struct image *image)
{
	json_object(j, "variants");
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++)
		if (image_makes(image, i))
			image_variant_json(j, image, i);
	json_object_end(j);
}

/* As RFC 3339. */
static void json_expires(struct json *j, time_t expires)
{
	char date[ULID_DATE_MAX];
	struct tm tm;

	gmtime_r(&expires, &tm);
	json_string_n(j, "expires", date, strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &tm));
}

/* The texts that the client has sent with the image. */
static void metadata_json(struct json *j, const struct image_texts *m)
{
	const char *end = m->data + m->length, *value;

	if (!m->length)
		return;
	json_object(j, "metadata");
	for (const char *name = m->data; name < end; name = value + strlen(value) + 1) {
		value = name + strlen(name) + 1;
		if (value >= end)
			break;
		json_string(j, name, value);
	}
	json_object_end(j);
}

void image_placeholder_json(struct json *j, const struct image *image)
{
	if (!image->placeholder.color[0])
		return;
	json_string(j, STORED_COLOR, image->placeholder.color);
	json_string(j, "thumbhash", image->placeholder.hash);
}

void image_json(struct json *j, const struct image *image, bool is_stored)
{
	json_string(j, "id", image->id);
	json_url(j, image->id, NULL, NULL);
	/* Relaxed: set before the response is sent, by a thread that the response has joined. */
	json_uint(j, "width", atomic_load_explicit(&image->width, memory_order_relaxed));
	json_uint(j, "height", atomic_load_explicit(&image->height, memory_order_relaxed));
	if (image->file_name[0])
		json_string(j, "filename", image->file_name);
	if (image->upload->expires)
		json_expires(j, (time_t)image->upload->expires);
	if (image->upload->focus[0])
		json_string(j, STORED_FOCUS, image->upload->focus);
	metadata_json(j, &image->upload->metadata);
	if (image->is_damaged)
		json_bool(j, "damaged", true);
	if (image->upload->level) { /* what was cheapened or left out */
		json_array(j, STORED_DEGRADED);
		for (unsigned i = 0; i < image->upload->level; i++)
			json_string(j, NULL, image->upload->epoch->degrade.step[i].text);
		json_array_end(j);
	}
	if (is_stored) {
		image_placeholder_json(j, image);
		variants_json(j, image);
	} else {
		json_string(j, "status", "processing");
	}
}

/* ---- the stored image.json ---- */

void image_record_variant(struct json *j, const struct image *image, unsigned index,
                          const struct image_sums *sums)
{
	const struct upload *u = image->upload;
	struct conf_variant made;

	conf_degrade_variant(&u->epoch->degrade, u->level, &u->epoch->conf.variant[index], &made);
	json_object(j, made.name);
	stored_settings_json(j, &made);
	json_string(j, "xxh128", sums->variant[index]);
	json_object_end(j);
}

static void record_variants(struct json *j, const struct image *image,
                            const struct image_sums *sums)
{
	json_object(j, "variants");
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++)
		if (image_makes(image, i))
			image_record_variant(j, image, i, sums);
	json_object_end(j);
}

void image_record_begin(struct json *j, const struct image *image)
{
	char uploaded[ULID_DATE_MAX];

	ulid_date(image->id, uploaded);
	json_string(j, "uploaded", uploaded);
	json_object(j, "upload");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "format", file_format_type(image->format));
	if (image->upload->token_name[0])
		json_string(j, "token", image->upload->token_name);
	json_object_end(j);
}

void image_record_original(struct json *j, const struct image *image, const char *sum)
{
	json_object(j, "original");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "xxh128", sum);
	json_object_end(j);
}

void image_record_end(struct json *j)
{
	char own[CHECKSUM_LENGTH + 1];

	checksum_of(j->text->data, j->text->length, own);
	json_string(j, "xxh128", own);
	json_object_end(j);
	json_object_end(j);
	text_puts(j->text, "\n");
}

void image_record_write(struct text *t, const struct image *image, const struct image_sums *sums)
{
	struct json j = { .text = t };

	json_object(&j, NULL);
	image_json(&j, image, true);
	json_object(&j, STORED_RECORD);
	image_record_begin(&j, image);
	if (sums->original)
		image_record_original(&j, image, sums->original);
	record_variants(&j, image, sums);
	image_record_end(&j);
}
