/* s3_breaker.c - counts failures in a row. One thread. */
#include "s3_breaker.h"

bool s3_breaker_succeeded(struct s3_breaker *b)
{
	bool was_open = b->is_open;

	*b = (struct s3_breaker){ .is_open = false };
	return was_open;
}

bool s3_breaker_failed(struct s3_breaker *b, uint64_t now_ns)
{
	if (b->failures++ == 0)
		b->first_ns = now_ns;
	if (b->is_open || b->failures < S3_BREAKER_FAILURES ||
	    now_ns - b->first_ns < S3_BREAKER_OPEN_NS)
		return false;
	b->is_open = true;
	return true;
}
