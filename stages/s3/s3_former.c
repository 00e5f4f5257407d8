/* s3_former.c - reads, copies and removes the objects of a former image. */
#include "s3_former.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/pool.h"
#include "s3_image.h"
#include "s3_objects.h"
#include "store/checksum.h"
#include "store/stored_image.h"

#define FILE_MAX (UINT64_C(1) << 30) /* bytes of a file that is copied: it is in memory */

static atomic_bool has_none; /* of such files in the bucket; saves requests */

static int note_key(const struct s3_listed *listed, void *arg)
{
	(void)listed;
	*(bool *)arg = true;
	return S3_LIST_END;
}

int s3_former_look(struct s3_client *c)
{
	bool has_some = false;
	int err = s3_list_keys(c, S3_FORMER_FILES, 1, note_key, &has_some);

	if (!err)
		atomic_store(&has_none, !has_some);
	return err;
}

/* ---- one image ---- */

struct copying {
	const char *id;
	struct stored_info info;
	struct s3_op op[STORED_FILES_MAX];        /* of image.json, and then of info.file[] */
	struct store_file file[STORED_FILES_MAX]; /* the same */
	struct iovec piece[STORED_FILES_MAX];
	char sum[CHECKSUM_LENGTH + 1]; /* of image.json */
	struct text head;
};

static struct s3_op json_op(const char *id)
{
	struct s3_op op = { .verb = S3_GET, .body_max = STORED_IMAGE_MAX };

	snprintf(op.key, sizeof op.key, S3_IMAGES "%s", id);
	return op;
}

/* Reads the files that image.json names. */
static int read_files(struct s3_client *c, struct copying *p)
{
	const struct text *json = &p->op[0].body;
	int err = stored_info_read(&p->info, json->data, json->length);
	unsigned count = p->info.file_count;

	if (err || !p->info.has_record || !stored_info_is_sound(&p->info, json->data, p->id))
		return S3_DAMAGED;
	checksum_of(json->data, json->length, p->sum);
	p->file[0] = (struct store_file){ STORED_IMAGE, json->data, json->length, p->sum };
	for (unsigned i = 1; i <= count; i++) {
		const struct stored_file *file = &p->info.file[i - 1];
		struct s3_op *op = &p->op[i];
		struct text key;

		if (file->bytes > FILE_MAX)
			return -EFBIG;
		*op = (struct s3_op){ .verb = S3_GET, .body_max = (size_t)file->bytes };
		text_init(&key, op->key, sizeof op->key);
		text_printf(&key, S3_FORMER_FILES "%s/%s", p->id, file->name);
	}
	s3_client_run(c, p->op + 1, count);
	for (unsigned i = 1; i <= count && !err; i++) {
		const struct stored_file *file = &p->info.file[i - 1];
		const struct text *body = &p->op[i].body;
		char sum[CHECKSUM_LENGTH + 1];

		checksum_of(body->data, body->length, sum);
		err = p->op[i].err;
		if (err == -ENOENT || (!err && (!body->length || strcmp(sum, file->sum) != 0)))
			err = S3_DAMAGED;
		p->file[i] = (struct store_file){ file->name, body->data, body->length, file->sum };
	}
	return err;
}

/* Puts the object of what was read. Returns as s3_former_copy(). */
static int put_copy(struct s3_client *c, struct copying *p)
{
	const struct store_item item = { .id = p->id,
		                         .file = p->file,
		                         .file_count = p->info.file_count + 1 };
	const struct text *json = &p->op[0].body;
	int pieces = s3_image_write(&p->head, p->piece, &item,
	                            stored_image_expires(json->data, json->length));

	if (pieces < 0)
		return pieces;
	struct s3_op put = {
		.verb = S3_PUT, .match = "*", .piece = p->piece, .piece_count = (unsigned)pieces
	};

	s3_image_key(put.key, p->id);
	s3_client_run(c, &put, 1); /* [U1] */
	return put.err == -EEXIST ? 0 : put.err ? put.err : 1;
}

/* Reads the former objects of an image that has no object. Returns 1, or as s3_former_copy(). */
static int read_image(struct s3_client *c, struct copying *p)
{
	/* Another node may have copied the image meanwhile, and removed what is read here. */
	for (unsigned looks = 0; looks < 2; looks++) {
		int fate = s3_image_fate(c, p->id, false); /* [M1] */

		if (fate != S3_ABSENT)
			return fate < 0 ? fate : 0;
		if (looks == 0)
			s3_client_run(c, p->op, 1); /* [M2] */
		if (p->op[0].err != -ENOENT)
			break;
	}
	int err = p->op[0].err ? p->op[0].err : read_files(c, p);

	return err ? err : 1;
}

int s3_former_copy(struct s3_client *c, const char *id)
{
	if (atomic_load(&has_none))
		return -ENOENT;
	struct copying *p = pool_get(sizeof *p);

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof *p);
	p->id = id;
	p->op[0] = json_op(id);
	text_init_growable(&p->head, S3_HEAD_MAX + 1);
	time_t began = time(NULL);
	int result = read_image(c, p);

	if (result > 0) /* [M3] A tombstone of the meantime may be gone. */
		result = time(NULL) - began > S3_ID_AGE_MAX_S ? -ETIME : put_copy(c, p);
	for (unsigned i = 0; i < STORED_FILES_MAX; i++)
		text_fini(&p->op[i].body);
	text_fini(&p->head);
	pool_put(p);
	return result;
}

/* ---- removal ---- */

static int remove_file(const struct s3_listed *listed, void *client)
{
	int err = s3_remove(client, listed->key, "");

	return err ? err : S3_LIST_NEXT;
}

int s3_former_remove(struct s3_client *c, const char *id)
{
	char prefix[S3_KEY_MAX];

	if (atomic_load(&has_none))
		return 0;
	int err = s3_remove(c, json_op(id).key, ""); /* [M4] */

	snprintf(prefix, sizeof prefix, S3_FORMER_FILES "%s/", id);
	return err ? err : s3_list_keys(c, prefix, STORED_FILES_MAX, remove_file, c);
}
