/* stored_lack.c - compares records and files with a configuration. Any thread. */
#include "stored_lack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "conf/conf.h"
#include "store.h"
#include "stored_image.h"

void stored_settings_json(struct json *j, const struct conf_variant *variant)
{
	json_string(j, "operations", variant->operations);
	json_bool(j, "enlarge", variant->enlarge == CONF_YES);
	json_uint(j, "quality", variant->quality);
	json_string(j, "chroma", variant->chroma == CONF_CHROMA_444 ? "444" : "420");
	json_bool(j, "progressive", variant->progressive == CONF_YES);
	json_bool(j, "optimize", variant->optimize == CONF_YES);
}

/* Returns whether the record begins with the settings, as stored_settings_json() writes them. */
static bool has_settings(const char *record, const struct conf_variant *variant)
{
	char data[STORED_SETTINGS_MAX];
	struct text t;
	struct json j;

	text_init(&t, data, sizeof data);
	json_init(&j, &t);
	json_object(&j, NULL);
	stored_settings_json(&j, variant);
	return record && !t.overflowed && strncmp(record, data, t.length) == 0 &&
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

static bool has_file(int directory_fd, const char *variant, uint64_t bytes)
{
	char name[CONF_NAME_MAX + 5];

	snprintf(name, sizeof name, "%s.jpg", variant);
	return size_of(directory_fd, name) == (int64_t)bytes;
}

static void compare(struct stored_lack *lack, int directory_fd, unsigned index,
                    const struct conf_variant *variant, const char *stored, const char *settings)
{
	const char *found = json_reader_member(stored, variant->name);
	uint64_t bytes = 0;

	if (!found || !json_reader_uint(json_reader_member(found, "bytes"), &bytes) ||
	    !has_file(directory_fd, variant->name, bytes))
		lack->missing |= UINT32_C(1) << index;
	else if (!settings || !has_settings(json_reader_member(settings, variant->name), variant))
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
	uint64_t width, height;

	*lack = (struct stored_lack){ .has_original = original > 0,
		                      .original_bytes = original > 0 ? (uint64_t)original : 0 };
	if (!stored || *stored != '{' || (settings && *settings != '{') ||
	    !json_reader_uint(json_reader_member(all, "width"), &width) ||
	    !json_reader_uint(json_reader_member(all, "height"), &height))
		return -EINVAL;
	lack->pixels = width * height;
	for (unsigned i = 0; i < conf->variant_count; i++)
		compare(lack, directory_fd, i, &conf->variant[i], stored, settings);
	return 0;
}
