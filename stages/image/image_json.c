/* image_json.c - writes an image as JSON; allocates nothing. Any thread. */
#include "image_json.h"

#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "store/stored_image.h"

static void put_url(struct text *t, const char *id)
{
	text_puts(t, "/images/");
	text_puts(t, id);
}

/* The URL of the image itself. */
static void json_url(struct json *j, const char *id)
{
	char url[64];
	struct text t;

	text_init(&t, url, sizeof url);
	put_url(&t, id);
	json_string_n(j, "url", t.data, t.length);
}

/* The URL of a file, with its version; width: as a descriptor in srcset, 0: none. */
static void json_file_url(struct json *j, const char *member, const struct image *image,
                          unsigned file, uint32_t width)
{
	char url[128];
	struct text t;

	text_init(&t, url, sizeof url);
	put_url(&t, image->id);
	text_puts(&t, "/");
	text_puts(&t, image_plan(image)->files.file[file].name);
	text_puts(&t, "?v=");
	text_puts(&t, image->file[file].version);
	if (width)
		text_printf(&t, " %uw", width);
	json_string_n(j, member, t.data, t.length);
}

void image_jpeg_json(struct json *j, const struct image *image, unsigned file)
{
	const struct image_file *made = &image->file[file];

	json_file_url(j, "url", image, file, 0);
	json_uint(j, "width", made->width);
	json_uint(j, "height", made->height);
	json_uint(j, "bytes", made->size);
}

void image_source_json(struct json *j, const struct image *image, unsigned file)
{
	json_object(j, NULL);
	json_string(j, "type", file_format_type(image_plan(image)->files.file[file].format));
	json_file_url(j, "srcset", image, file, image->file[file].width);
	json_uint(j, "bytes", image->file[file].size);
	json_object_end(j);
}

static void variant_json(struct json *j, const struct image *image, unsigned variant)
{
	const struct conf_files *files = &image_plan(image)->files;
	unsigned n = 0;

	json_object(j, image_conf(image)->variant[variant].name);
	image_jpeg_json(j, image, variant);
	for (unsigned i = image_conf(image)->variant_count; i < files->count; i++) {
		if (files->file[i].variant != variant || !image_has(image, i))
			continue;
		if (n++ == 0)
			json_array(j, STORED_SOURCES);
		image_source_json(j, image, i);
	}
	if (n)
		json_array_end(j);
	json_object_end(j);
}

static void variants_json(struct json *j, const struct image *image)
{
	json_object(j, "variants");
	for (unsigned i = 0; i < image_conf(image)->variant_count; i++)
		if (image_has(image, i))
			variant_json(j, image, i);
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
	json_url(j, image->id);
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

void image_record_file(struct json *j, const struct image *image, unsigned file,
                       const struct image_sums *sums)
{
	const struct upload *u = image->upload;
	const struct conf_file *f = &image_plan(image)->files.file[file];
	struct conf_variant made;

	conf_degrade_variant(&u->epoch->degrade, u->level, &u->epoch->conf.variant[f->variant],
	                     &made);
	json_object(j, f->label);
	stored_settings_json(j, &made, f->format);
	json_string(j, "xxh128", sums->file[file]);
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
	json_object(&j, "variants");
	for (unsigned i = 0; i < image_plan(image)->files.count; i++)
		if (image_has(image, i))
			image_record_file(&j, image, i, sums);
	json_object_end(&j);
	image_record_end(&j);
}
