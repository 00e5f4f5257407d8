/* s3_lease.c - contents and requests of leases. */
#include "s3_lease.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/pool.h"

static const char *const state_name[] = { [S3_LEASE_HELD] = "held",
	                                  [S3_LEASE_REMOVED] = "removed",
	                                  [S3_LEASE_QUARANTINED] = "quarantined" };

void s3_original_key(char key[S3_KEY_MAX], const char *id)
{
	snprintf(key, S3_KEY_MAX, S3_SPOOL "%.*s", ULID_LENGTH, id);
}

void s3_lease_key(char key[S3_KEY_MAX], const char *id)
{
	snprintf(key, S3_KEY_MAX, S3_SPOOL "%.*s" S3_LEASE, ULID_LENGTH, id);
}

size_t s3_lease_write(char data[S3_LEASE_MAX], const struct s3_lease *lease)
{
	int n = snprintf(data, S3_LEASE_MAX, "%s %s %" PRIu64 "\n", state_name[lease->state],
	                 lease->node, lease->expires_ms);

	assert(n > 0 && (size_t)n + lease->note_length <= S3_LEASE_MAX);
	memcpy(data + n, lease->note, lease->note_length);
	return (size_t)n + lease->note_length;
}

int s3_lease_parse(struct s3_lease *lease, const char *data, size_t length)
{
	const char *line_end = memchr(data, '\n', length);
	char line[64], state[16], node[S3_NODE_MAX];
	int end = 0;

	if (!line_end || (size_t)(line_end - data) >= sizeof line)
		return -EINVAL;
	size_t line_length = (size_t)(line_end - data), left = length - line_length - 1;

	memcpy(line, data, line_length);
	line[line_length] = '\0';
	if (sscanf(line, "%15s %16[0-9a-f] %n", state, node, &end) != 2 || !end || !line[end] ||
	    line[end + (int)strspn(line + end, "0123456789")] || left < 2 ||
	    left >= sizeof lease->note)
		return -EINVAL;
	lease->expires_ms = strtoull(line + end, NULL, 10);
	memcpy(lease->node, node, sizeof node);
	memcpy(lease->note, line_end + 1, left);
	lease->note[left] = '\0';
	lease->note_length = left;
	for (unsigned i = S3_LEASE_HELD; i < COUNT_OF(state_name); i++)
		if (strcmp(state, state_name[i]) == 0) {
			lease->state = (enum s3_lease_state)i;
			return 0;
		}
	return -EINVAL;
}

int s3_lease_read(struct s3_store *s, const char (*id)[ULID_LENGTH + 1], struct s3_lease *lease,
                  int *err, unsigned count)
{
	struct s3_op *ops = pool_get((count + 1) * sizeof *ops);

	if (!ops)
		return -ENOMEM;
	memset(ops, 0, (count + 1) * sizeof *ops);
	for (unsigned i = 0; i < count; i++) {
		ops[i].verb = S3_GET;
		ops[i].body_max = S3_LEASE_MAX;
		s3_lease_key(ops[i].key, id[i]);
	}
	s3_client_run(s->client, ops, count);
	for (unsigned i = 0; i < count; i++) {
		err[i] = ops[i].err;
		if (!err[i])
			err[i] = s3_lease_parse(&lease[i], ops[i].body.data, ops[i].body.length);
		memcpy(lease[i].etag, ops[i].etag, sizeof lease[i].etag);
		text_fini(&ops[i].body);
	}
	pool_put(ops);
	return 0;
}

int s3_lease_replace(struct s3_store *s, const char *id, struct s3_lease *lease)
{
	char data[S3_LEASE_MAX], key[S3_KEY_MAX], etag[S3_ETAG_MAX];
	size_t size = s3_lease_write(data, lease);

	s3_lease_key(key, id);
	int err = s3_put_if(s, key, data, size, lease->etag, etag);

	if (!err)
		memcpy(lease->etag, etag, sizeof lease->etag);
	return err;
}
