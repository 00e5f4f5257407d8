/* upload_quota.c - checks the quotas of a token. */
#include "upload_quota.h"

#include "conn.h"
#include "image/image.h"
#include "image/image_service.h"

static bool reserve(struct conn *c, uint64_t images, uint64_t bytes)
{
	static const char *const limit[] = { [USAGE_IMAGES] = "quota.images",
		                             [USAGE_BYTES] = "quota.bytes",
		                             [USAGE_UPLOADS] = "quota.uploads" };
	const struct usage_limits limits = { c->quota.images, c->quota.bytes, c->quota.uploads };
	struct usage *usage = &conn_images(c)->store.usage;
	uint64_t used = 0;

	if (conn_images(c)->s3) { /* whose images are not counted */
		problem_set(&c->problem, 501, "not-implemented",
		            "store.kind = s3 does not provide quotas");
		return false;
	}
	switch (usage_reserve(usage, c->token_name, &limits, images, bytes, &used)) {
	case USAGE_GRANTED:
		return true;
	case USAGE_IMAGES:
		problem_set_limit(&c->problem, 507, "quota-exceeded", limit[USAGE_IMAGES],
		                  limits.images, used + images);
		break;
	case USAGE_BYTES:
		problem_set_limit(&c->problem, 507, "quota-exceeded", limit[USAGE_BYTES],
		                  limits.bytes, used + bytes);
		break;
	case USAGE_UPLOADS:
		problem_set_limit(&c->problem, 429, "quota-exceeded", limit[USAGE_UPLOADS],
		                  limits.uploads, used + images);
		c->problem.retry_after_s = usage_day_left();
		break;
	}
	return false;
}

static bool has_quota(const struct conn *c)
{
	return c->quota.images || c->quota.bytes || c->quota.uploads;
}

bool quota_has_room(struct conn *c)
{
	if (!has_quota(c))
		return true;
	if (!reserve(c, 1, 1))
		return false;
	usage_release(&conn_images(c)->store.usage, c->token_name, 1, 1, 1);
	return true;
}

static uint64_t bytes_of(const struct upload *u)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < u->image_count; i++)
		bytes += u->image[i]->source_size;
	return bytes;
}

bool quota_take(struct conn *c, struct upload *u)
{
	u->has_quota = has_quota(c) && reserve(c, u->image_count, bytes_of(u));
	return u->has_quota || !has_quota(c);
}

void quota_drop(struct upload *u)
{
	if (u->has_quota)
		usage_release(&u->service->store.usage, u->token_name, u->image_count, bytes_of(u),
		              u->image_count);
	u->has_quota = false;
}
