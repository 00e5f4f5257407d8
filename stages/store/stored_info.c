/* stored_info.c - reads image.json. Any thread. */
#include "stored_info.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json_reader.h"
#include "store_find.h"
#include "stored_image.h"

static bool read_sum(const char *object, char sum[CHECKSUM_LENGTH + 1])
{
	const char *value = object ? json_reader_member(object, "xxh128") : NULL;

	sum[0] = '\0';
	return json_reader_ascii(value, sum, CHECKSUM_LENGTH + 1) && strlen(sum) == CHECKSUM_LENGTH;
}

static int read_variants(struct stored_info *info, const char *all)
{
	const char *variants = json_reader_member(all, "variants"), *value = NULL;
	const char *record = json_reader_member(all, STORED_RECORD);
	const char *settings = record ? json_reader_member(record, "variants") : NULL;
	struct stored_file file;

	if (!variants || *variants != '{' || (record && (!settings || *settings != '{')))
		return -EINVAL;
	while ((value = json_reader_next_named(variants, value, file.name, sizeof file.name))) {
		const char *of = settings ? json_reader_member(settings, file.name) : NULL;

		if (!json_reader_uint(json_reader_member(value, "bytes"), &file.bytes) ||
		    read_sum(of, file.sum) != (record != NULL) ||
		    info->file_count >= CONF_VARIANT_MAX)
			return -EINVAL;
		info->file[info->file_count++] = file;
	}
	return 0;
}

static int read_record(struct stored_info *info, const char *record)
{
	const char *upload = json_reader_member(record, "upload");
	const char *original = json_reader_member(record, "original");
	struct stored_file file = { .name = "original" };

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
	uint64_t size;
	int fd = store_open_file(s, id, STORED_IMAGE, &size);

	if (fd < 0)
		return fd;
	int length = stored_image_read(fd, data);

	close(fd);
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
