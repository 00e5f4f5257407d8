/* stored_image.c - reads image.json, and finds the files beside it. Any thread. */
#include "stored_image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "directory.h"
#include "store.h"
#include "store_find.h"

size_t stored_image_public(const char *data, size_t length)
{
	/* A string cannot contain this: its quotation marks are escaped. */
	static const char begin[] = ",\"" STORED_RECORD "\":{";
	const char *record = memmem(data, length, begin, sizeof begin - 1);

	return record ? (size_t)(record - data) : length;
}

uint64_t stored_image_end(const char *id, uint64_t expires, uint64_t max_age_ms)
{
	uint64_t end = max_age_ms ? (uint64_t)ulid_time(id) + max_age_ms / 1000 : 0;

	return !end || (expires && expires < end) ? expires : end;
}

int stored_image_read(int fd, char data[STORED_IMAGE_MAX + 1])
{
	ssize_t length = directory_read_at(fd, data, STORED_IMAGE_MAX + 1, 0);

	if (length > (ssize_t)STORED_IMAGE_MAX)
		return -EFBIG;
	data[length > 0 ? length : 0] = '\0';
	return (int)length;
}

int stored_image_load(struct store *s, const char *id, char data[STORED_IMAGE_MAX + 1],
                      uint64_t *expires)
{
	char tag[STORE_TAG_MAX];
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);

	*expires = 0;
	if (fd < 0)
		return fd;
	int length = stored_image_read(fd, data);

	*expires = store_tag(fd, tag);
	close(fd);
	return length;
}

int stored_image_read_public(int fd, struct text *to)
{
	char data[STORED_IMAGE_MAX + 1];
	int length = stored_image_read(fd, data);

	if (length < 0)
		return length;
	size_t visible = stored_image_public(data, (size_t)length);

	text_put(to, data, visible);
	if (visible < (size_t)length)
		text_puts(to, "}\n");
	return 0;
}

uint64_t stored_image_expires(const char *data, size_t length)
{
	const char *all = json_reader_check(data, length), *end = NULL;
	char date[ULID_DATE_MAX];
	struct tm tm = { .tm_sec = 0 };

	if (all && json_reader_ascii(json_reader_member(all, "expires"), date, sizeof date))
		end = strptime(date, "%Y-%m-%dT%H:%M:%SZ", &tm);
	time_t seconds = end && !*end ? timegm(&tm) : 0;

	return seconds > 0 ? (uint64_t)seconds : 0;
}

bool stored_image_says_skipped(const char *data, size_t length, const char *variant)
{
	static const char skip[] = "skip ";
	const char *all = json_reader_check(data, length), *step = NULL;
	const char *steps = all ? json_reader_member(all, STORED_DEGRADED) : NULL;
	char text[sizeof skip + CONF_NAME_MAX];

	while (steps && *steps == '[' && (step = json_reader_next(steps, step)))
		if (json_reader_ascii(step, text, sizeof text) &&
		    strncmp(text, skip, sizeof skip - 1) == 0 &&
		    strcmp(text + sizeof skip - 1, variant) == 0)
			return true;
	return false;
}

bool stored_image_is_of(const char *data, size_t length, const char *token)
{
	const char *all = json_reader_check(data, length);
	const char *record = all ? json_reader_member(all, STORED_RECORD) : NULL;
	const char *upload = record ? json_reader_member(record, "upload") : NULL;
	char name[SPOOL_TOKEN_MAX];

	return upload &&
	       json_reader_ascii(json_reader_member(upload, "token"), name, sizeof name) &&
	       strcmp(name, token) == 0;
}

/* ---- what it says ---- */

/* Returns whether files of the format are made. */
static bool is_made(enum file_format format)
{
	return format == FILE_JPEG || format == FILE_AVIF || format == FILE_WEBP;
}

bool stored_file_is_named(const char *name)
{
	enum file_format format = file_format_of_name(name);
	char variant[STORED_NAME_MAX];

	if (strcmp(name, STORED_IMAGE) == 0)
		return true;
	if (!is_made(format) || strlen(name) >= sizeof variant)
		return false;
	snprintf(variant, sizeof variant, "%.*s",
	         (int)(strlen(name) - strlen(file_format_suffix(format))), name);
	return conf_is_variant_name(variant);
}

void stored_file_label(char label[CONF_FILE_NAME_MAX], const char *name)
{
	char variant[CONF_NAME_MAX];

	snprintf(variant, sizeof variant, "%.*s", (int)strcspn(name, "."), name);
	conf_file_label(label, variant, file_format_of_name(name));
}

const char *stored_source_find(const char *variant, enum file_format format)
{
	const char *all = json_reader_member(variant, STORED_SOURCES), *source = NULL;
	char type[16];

	while (all && *all == '[' && (source = json_reader_next(all, source)))
		if (*source == '{' &&
		    json_reader_ascii(json_reader_member(source, "type"), type, sizeof type) &&
		    strcmp(type, file_format_type(format)) == 0)
			return source;
	return NULL;
}

static bool read_sum(const char *object, char sum[CHECKSUM_LENGTH + 1])
{
	const char *value = object ? json_reader_member(object, "xxh128") : NULL;

	sum[0] = '\0';
	return json_reader_ascii(value, sum, CHECKSUM_LENGTH + 1) && strlen(sum) == CHECKSUM_LENGTH;
}

const struct stored_file *stored_info_find(const struct stored_info *info, const char *name)
{
	for (unsigned i = 0; i < info->file_count; i++)
		if (strcmp(info->file[i].name, name) == 0)
			return &info->file[i];
	return NULL;
}

/* Adds a file of a variant. value: what image.json says of it. settings: of all files in the
 * record; NULL: there is no record. */
static int add_file(struct stored_info *info, const char *variant, enum file_format format,
                    const char *value, const char *settings)
{
	struct stored_file file;
	char label[CONF_FILE_NAME_MAX];

	conf_file_label(label, variant, format);
	const char *of = settings ? json_reader_member(settings, label) : NULL;

	snprintf(file.name, sizeof file.name, "%s%s", variant, file_format_suffix(format));
	if (!stored_file_is_named(file.name) || strcmp(file.name, STORE_ORIGINAL) == 0 ||
	    stored_info_find(info, file.name) ||
	    !json_reader_uint(json_reader_member(value, "bytes"), &file.bytes) ||
	    read_sum(of, file.sum) != (settings != NULL) || info->file_count >= CONF_FILE_MAX)
		return -EINVAL;
	info->file[info->file_count++] = file;
	return 0;
}

static int read_variants(struct stored_info *info, const char *all)
{
	const char *variants = json_reader_member(all, "variants"), *value = NULL, *source;
	const char *record = json_reader_member(all, STORED_RECORD);
	const char *settings = record ? json_reader_member(record, "variants") : NULL;
	char name[CONF_NAME_MAX];
	int err = 0;

	if (!variants || *variants != '{' || (record && (!settings || *settings != '{')))
		return -EINVAL;
	while (!err && (value = json_reader_next_named(variants, value, name, sizeof name))) {
		if (*value != '{')
			return -EINVAL;
		err = add_file(info, name, FILE_JPEG, value, settings);
		for (unsigned f = FILE_JPEG + 1; f < FILE_FORMATS && !err; f++)
			if ((source = stored_source_find(value, (enum file_format)f)))
				err = add_file(info, name, (enum file_format)f, source, settings);
	}
	return err;
}

static int read_record(struct stored_info *info, const char *record)
{
	const char *upload = json_reader_member(record, "upload");
	const char *original = json_reader_member(record, "original");
	struct stored_file file = { .name = STORE_ORIGINAL };

	if (!upload || !json_reader_uint(json_reader_member(upload, "bytes"), &info->upload_bytes))
		return -EINVAL;
	/* A text without a token leaves it empty. */
	if (!json_reader_ascii(json_reader_member(upload, "token"), info->token,
	                       sizeof info->token))
		info->token[0] = '\0';
	if (!original)
		return 0;
	if (!json_reader_uint(json_reader_member(original, "bytes"), &file.bytes) ||
	    !read_sum(original, file.sum))
		return -EINVAL;
	info->file[info->file_count++] = file;
	return 0;
}

/* The checksum of image.json stands at its end, and its place does not depend on the JSON. */
static int read_own_sum(struct stored_info *info, const char *data, size_t length)
{
	static const char begin[] = ",\"xxh128\":\"", end[] = "\"}}\n";
	size_t size = sizeof begin - 1 + CHECKSUM_LENGTH + sizeof end - 1;
	const char *at = data + length - size;

	if (length < size || memcmp(at, begin, sizeof begin - 1) != 0 ||
	    memcmp(data + length - (sizeof end - 1), end, sizeof end - 1) != 0)
		return -EINVAL;
	memcpy(info->own_sum, at + sizeof begin - 1, CHECKSUM_LENGTH);
	info->own_sum_at = length - size;
	return 0;
}

int stored_info_read(struct stored_info *info, const char *data, size_t length)
{
	const char *all = json_reader_check(data, length);

	*info = (struct stored_info){ 0 };
	if (all && !json_reader_ascii(json_reader_member(all, "id"), info->id, sizeof info->id))
		info->id[0] = '\0';
	if (!all || !json_reader_uint(json_reader_member(all, "width"), &info->width) ||
	    !json_reader_uint(json_reader_member(all, "height"), &info->height) ||
	    read_variants(info, all))
		return -EINVAL;
	const char *record = json_reader_member(all, STORED_RECORD);

	info->has_record = record != NULL;
	if (!record) /* a checksum without a record: its name is damaged */
		return read_own_sum(info, data, length) ? 0 : -EINVAL;
	return read_record(info, record) ? -EINVAL : read_own_sum(info, data, length);
}

int stored_info_load(struct stored_info *info, struct store *s, const char *id, char *data)
{
	uint64_t expires;
	int length = stored_image_load(s, id, data, &expires);

	if (length < 0)
		return length == -EFBIG ? -EINVAL : length;
	return stored_info_read(info, data, (size_t)length);
}

uint64_t stored_info_bytes(const struct stored_info *info)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < info->file_count; i++)
		bytes += info->file[i].bytes;
	return bytes;
}

bool stored_info_is_sound(const struct stored_info *info, const char *data, const char *id)
{
	char own[CHECKSUM_LENGTH + 1];

	checksum_of(data, info->own_sum_at, own);
	return strcmp(info->id, id) == 0 && (!info->has_record || strcmp(own, info->own_sum) == 0);
}

bool stored_image_is_sound(const char *data, size_t length)
{
	struct stored_info info = { .has_record = stored_image_public(data, length) < length };
	bool has_sum = read_own_sum(&info, data, length) == 0;

	return has_sum ? info.has_record && stored_info_is_sound(&info, data, "")
	               : !info.has_record;
}

const char *stored_file_fault(const struct stored_file *expected, uint64_t size, const char *sum)
{
	if (size < expected->bytes)
		return "truncated";
	return size > expected->bytes || (expected->sum[0] && strcmp(sum, expected->sum) != 0)
	               ? "rotten"
	               : NULL;
}

/* ---- what it lacks ---- */

static void picture_settings(struct json *j, const struct conf_variant *variant)
{
	json_string(j, "operations", variant->operations);
	json_bool(j, "enlarge", variant->enlarge == CONF_YES);
}

static const char *chroma_of(const struct conf_variant *variant)
{
	return variant->chroma == CONF_CHROMA_444 ? "444" : "420";
}

/* What files of other formats share with the JPEG is a checksum, so that image.json stays small. */
static void other_settings(struct json *j, const struct conf_variant *variant,
                           enum file_format format)
{
	struct text t = TEXT_LOCAL(STORED_SETTINGS_MAX);
	struct json shared = { .text = &t };
	char sum[CHECKSUM_LENGTH + 1];

	json_object(&shared, NULL);
	picture_settings(&shared, variant);
	json_string(&shared, "chroma", chroma_of(variant));
	checksum_of(t.data, t.length, sum);
	json_string(j, "picture", sum);
	json_uint(j, "quality", variant->quality);
	if (format == FILE_AVIF)
		json_string(j, "effort", variant->effort == CONF_EFFORT_SMALL ? "small" : "fast");
}

void stored_settings_json(struct json *j, const struct conf_variant *variant,
                          enum file_format format)
{
	if (format != FILE_JPEG) {
		other_settings(j, variant, format);
		return;
	}
	picture_settings(j, variant);
	json_uint(j, "quality", variant->quality);
	json_string(j, "chroma", chroma_of(variant));
	json_bool(j, "progressive", variant->progressive == CONF_YES);
	json_bool(j, "optimize", variant->optimize == CONF_YES);
}

/* Returns whether the record begins with the settings, as stored_settings_json() writes them. */
static bool has_settings(const char *record, const struct conf_variant *variant,
                         enum file_format format)
{
	struct text t = TEXT_LOCAL(STORED_SETTINGS_MAX);
	struct json j = { .text = &t };

	json_object(&j, NULL);
	stored_settings_json(&j, variant, format);
	return record && !t.overflowed && strncmp(record, t.data, t.length) == 0 &&
	       record[t.length] == ',';
}

/* Returns the size of a file of the image, or -1. */
static int64_t size_of(int directory_fd, const char *name)
{
	struct stat st;

	if (fstatat(directory_fd, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return -1;
	return st.st_size;
}

static void compare_file(struct stored_lack *lack, int directory_fd, unsigned index,
                         const struct conf_file *file, const struct conf_variant *variant,
                         const char *stored, const char *settings)
{
	const char *found = json_reader_member(stored, variant->name);
	uint64_t bytes = 0;

	if (found && file->format != FILE_JPEG)
		found = stored_source_find(found, file->format);
	if (!found || !json_reader_uint(json_reader_member(found, "bytes"), &bytes) ||
	    size_of(directory_fd, file->name) != (int64_t)bytes)
		lack->missing |= UINT32_C(1) << index;
	else if (!settings ||
	         !has_settings(json_reader_member(settings, file->label), variant, file->format))
		lack->differs |= UINT32_C(1) << index;
}

int stored_lack_find(struct stored_lack *lack, const struct conf *conf, int directory_fd,
                     const char *data, size_t length)
{
	const char *all = json_reader_check(data, length);
	const char *stored = all ? json_reader_member(all, "variants") : NULL;
	const char *record = all ? json_reader_member(all, STORED_RECORD) : NULL;
	const char *settings = record ? json_reader_member(record, "variants") : NULL;
	int64_t original = size_of(directory_fd, STORE_ORIGINAL);
	struct conf_files files;
	uint64_t width, height;

	*lack = (struct stored_lack){ .has_original = original > 0,
		                      .original_bytes = original > 0 ? (uint64_t)original : 0 };
	if (!stored || *stored != '{' || (settings && *settings != '{') ||
	    !json_reader_uint(json_reader_member(all, "width"), &width) ||
	    !json_reader_uint(json_reader_member(all, "height"), &height))
		return -EINVAL;
	lack->pixels = width * height;
	conf_files_list(&files, conf);
	for (unsigned i = 0; i < files.count; i++)
		compare_file(lack, directory_fd, i, &files.file[i],
		             &conf->variant[files.file[i].variant], stored, settings);
	return 0;
}
