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

/* Writes a file of an earlier record, as it was or with a new checksum. */
typedef void write_old(struct writer *w, const char *name, const char *raw);

static void raw(struct writer *w, const char *name, const char *value)
{
	json_raw(&w->json, name, value, (size_t)(json_reader_end(value) - value));
}

/* ---- what clients see ---- */

/* Returns the index of the file, or that of none. */
static unsigned find_file(const struct conf_files *files, const char *label)
{
	unsigned i = 0;

	while (i < files->count && strcmp(files->file[i].label, label) != 0)
		i++;
	return i;
}

/* Writes the files of other formats than JPEG: as they are made now, or as they were. */
static void sources(struct writer *w, const char *variant, const char *was)
{
	const struct conf_files *files = &image_plan(w->image)->files;
	char label[CONF_FILE_NAME_MAX];
	unsigned n = 0;

	for (unsigned f = FILE_JPEG + 1; f < FILE_FORMATS; f++) {
		conf_file_label(label, variant, (enum file_format)f);
		unsigned i = find_file(files, label);
		bool is_new = i < files->count && image_has(w->image, i);
		const char *old = was ? stored_source_find(was, (enum file_format)f) : NULL;

		if (!is_new && !old)
			continue;
		if (n++ == 0)
			json_array(&w->json, STORED_SOURCES);
		if (is_new)
			image_source_json(&w->json, w->image, i);
		else
			raw(w, NULL, old);
	}
	if (n)
		json_array_end(&w->json);
}

/* was: NULL: the image did not have it. */
static void public_variant(struct writer *w, unsigned variant, const char *was)
{
	const char *name = image_conf(w->image)->variant[variant].name, *value = NULL;
	char member[NAME_MAX_LENGTH];

	json_object(&w->json, name);
	if (image_has(w->image, variant))
		image_jpeg_json(&w->json, w->image, variant);
	else
		while ((value = json_reader_next_named(was, value, member, sizeof member)))
			if (strcmp(member, STORED_SOURCES) != 0)
				raw(w, member, value);
	sources(w, name, was);
	json_object_end(&w->json);
}

/* Writes the variants: first those of the configuration in its order, then the others. */
static void public_variants(struct writer *w, const char *old)
{
	const struct conf *conf = image_conf(w->image);
	char name[NAME_MAX_LENGTH];
	const char *value = NULL;

	json_object(&w->json, "variants");
	for (unsigned i = 0; i < conf->variant_count; i++) {
		const char *was = json_reader_member(old, conf->variant[i].name);

		if (image_has(w->image, i) || was)
			public_variant(w, i, was);
	}
	while ((value = json_reader_next_named(old, value, name, sizeof name)))
		if (!conf_variant_find(conf, name))
			raw(w, name, value);
	json_object_end(&w->json);
}

/* ---- the record ---- */

/* Writes the files in the same order. */
static void record_files(struct writer *w, const char *old, write_old *as_old)
{
	const struct conf_files *files = &image_plan(w->image)->files;
	char name[NAME_MAX_LENGTH];
	const char *value = NULL;

	json_object(&w->json, "variants");
	for (unsigned i = 0; i < files->count; i++) {
		const char *label = files->file[i].label, *was = json_reader_member(old, label);

		if (image_has(w->image, i))
			image_record_file(&w->json, w->image, i, w->sums);
		else if (was)
			as_old(w, label, was);
	}
	while ((value = json_reader_next_named(old, value, name, sizeof name)))
		if (find_file(files, name) == files->count)
			as_old(w, name, value);
	json_object_end(&w->json);
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
		if (image_has(image, i) &&
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
			public_variants(&w, value);
		else if (strcmp(name, STORED_DEGRADED) == 0)
			degraded(&w, value);
		else if (strcmp(name, STORED_RECORD) != 0)
			raw(&w, name, value);
	if (!json_reader_member(all, STORED_COLOR))
		image_placeholder_json(&w.json, image);
	json_object(&w.json, STORED_RECORD);
	while (record && (value = json_reader_next_named(record, value, name, sizeof name)))
		if (strcmp(name, "variants") == 0)
			record_files(&w, value, raw);
		else if (strcmp(name, "xxh128") != 0)
			raw(&w, name, value);
	if (!record) { /* an earlier version has stored it */
		image_record_begin(&w.json, w.image);
		image_record_original(&w.json, w.image, w.image->remade->original_sum);
		record_files(&w, json_reader_member(all, "variants"), old_sum);
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
