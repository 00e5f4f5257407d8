/* remade.c - what replaces a stored image: its files and its image.json. */
#include "remade.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "conf/conf_degrade.h"
#include "image.h"
#include "image_json.h"
#include "store/directory.h"

#define NAME_MAX_LENGTH 64 /* of a member */

struct writer {
	struct json json;
	const struct image *image;
	const struct image_sums *sums;
};

/* Writes one variant: as it is made now, or (raw) as it was. */
typedef void write_new(struct writer *w, unsigned variant);
typedef void write_old(struct writer *w, const char *name, const char *raw);

/* Writes the object "variants": first those of the configuration in its order, then the others. */
static void variants(struct writer *w, const char *old, write_new *as_new, write_old *as_old)
{
	const struct conf *conf = image_conf(w->image);
	char name[NAME_MAX_LENGTH];
	const char *value = NULL;

	json_object(&w->json, "variants");
	for (unsigned i = 0; i < conf->variant_count; i++) {
		const char *was = json_reader_member(old, conf->variant[i].name);

		if (image_makes(w->image, i))
			as_new(w, i);
		else if (was)
			as_old(w, conf->variant[i].name, was);
	}
	while ((value = json_reader_next_named(old, value, name, sizeof name)))
		if (!conf_variant_find(conf, name))
			as_old(w, name, value);
	json_object_end(&w->json);
}

static void raw(struct writer *w, const char *name, const char *value)
{
	json_raw(&w->json, name, value, (size_t)(json_reader_end(value) - value));
}

static void new_public(struct writer *w, unsigned variant)
{
	image_variant_json(&w->json, w->image, variant);
}

static void new_settings(struct writer *w, unsigned variant)
{
	image_record_variant(&w->json, w->image, variant, w->sums);
}

/* An earlier version has recorded no checksum. One of its own is in the file's favour: damage since
 * the upload is not found, but damage from now on is. */
static void old_sum(struct writer *w, const char *name, const char *value)
{
	char file[NAME_MAX_LENGTH + 5], sum[CHECKSUM_LENGTH + 1] = "";
	uint64_t size;

	(void)value;
	snprintf(file, sizeof file, "%s.jpg", name);
	int fd = directory_open_file(w->image->remade->directory_fd, file, O_RDONLY);

	if (fd >= 0 && checksum_of_file(fd, sum, &size))
		sum[0] = '\0';
	if (fd >= 0)
		close(fd);
	if (!sum[0]) /* the file is missing: check tells that for any checksum */
		checksum_of("", 0, sum);
	json_object(&w->json, name);
	json_string(&w->json, "xxh128", sum);
	json_object_end(&w->json);
}

/* Returns whether the step, a string, has skipped a variant that the image makes now. */
static bool is_made_up(const struct image *image, const char *step)
{
	static const char skip[] = "skip ";
	const struct conf *conf = image_conf(image);
	char text[CONF_DEGRADE_TEXT_MAX];

	if (!json_reader_ascii(step, text, sizeof text) ||
	    strncmp(text, skip, sizeof skip - 1) != 0)
		return false;
	for (unsigned i = 0; i < conf->variant_count; i++)
		if (image_makes(image, i) &&
		    strcmp(text + sizeof skip - 1, conf->variant[i].name) == 0)
			return true;
	return false;
}

/* Writes the steps that still apply to some variant. */
static void degraded(struct writer *w, const char *steps)
{
	const char *step = NULL;
	unsigned n = 0;

	if (w->image->remade->is_complete)
		return;
	while ((step = json_reader_next(steps, step))) {
		if (is_made_up(w->image, step))
			continue;
		if (n++ == 0)
			json_array(&w->json, STORED_DEGRADED);
		raw(w, NULL, step);
	}
	if (n > 0)
		json_array_end(&w->json);
}

void remade_record_write(struct text *t, const struct image *image, const struct image_sums *sums)
{
	const struct remade *r = image->remade;
	const char *all = json_reader_check(r->document, r->length); /* it was checked before */
	const char *record = json_reader_member(all, STORED_RECORD), *value = NULL;
	struct writer w = { .json = { .text = t }, .image = image, .sums = sums };
	char name[NAME_MAX_LENGTH];

	json_object(&w.json, NULL);
	while ((value = json_reader_next_named(all, value, name, sizeof name)))
		if (strcmp(name, "variants") == 0)
			variants(&w, value, new_public, raw);
		else if (strcmp(name, STORED_DEGRADED) == 0)
			degraded(&w, value);
		else if (strcmp(name, STORED_RECORD) != 0)
			raw(&w, name, value);
	if (!json_reader_member(all, STORED_COLOR))
		image_placeholder_json(&w.json, image);
	json_object(&w.json, STORED_RECORD);
	while (record && (value = json_reader_next_named(record, value, name, sizeof name)))
		if (strcmp(name, "variants") == 0)
			variants(&w, value, new_settings, raw);
		else if (strcmp(name, "xxh128") != 0)
			raw(&w, name, value);
	if (!record) { /* an earlier version has stored it */
		image_record_begin(&w.json, w.image);
		image_record_original(&w.json, w.image, w.image->remade->original_sum);
		variants(&w, json_reader_member(all, "variants"), new_settings, old_sum);
	}
	image_record_end(&w.json);
}

void remade_set_item(struct store_item *item, const struct remade *r, const char *data,
                     size_t length)
{
	struct stored_info info;

	item->place = STORE_REPLACED;
	item->token = r->info.token;
	item->old_fd = r->directory_fd;
	item->old_bytes = stored_info_bytes(&r->info);
	item->new_bytes =
		stored_info_read(&info, data, length) ? item->old_bytes : stored_info_bytes(&info);
}
