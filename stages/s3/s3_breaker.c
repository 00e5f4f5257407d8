/* s3_breaker.c - adds failures in a row. One thread. */
#include "s3_breaker.h"

bool s3_breaker_succeeded(struct s3_breaker *b)
{
	bool was_open = b->is_open;

	*b = (struct s3_breaker){ .is_open = false };
	return was_open;
}

bool s3_breaker_failed(struct s3_breaker *b, unsigned weight, uint64_t began_ns, uint64_t now_ns)
{
	if (b->weight == 0)
		b->first_ns = began_ns;
	b->weight += weight;
	if (b->is_open || b->weight < S3_BREAKER_WEIGHT ||
	    now_ns - b->first_ns < S3_BREAKER_OPEN_NS)
		return false;
	b->is_open = true;
	return true;
}
