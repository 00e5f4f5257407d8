/* ulid.c - makes and checks ids. Any thread. */
#include "ulid.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/check.h"

static const char crockford[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* Takes two numbers from a per-thread stock of the kernel's random bytes; one system call fills the
 * stock for 16 ids. */
static void random_take(uint64_t random[2])
{
	static _Thread_local struct {
		uint64_t data[32]; /* getrandom(2) never returns fewer than 256 bytes once the
		                      kernel's pool is initialised */
		unsigned left;
	} stock;

	if (stock.left < 2) {
		while (getrandom(stock.data, sizeof stock.data, 0) != sizeof stock.data)
			continue;
		stock.left = COUNT_OF(stock.data);
	}
	random[0] = stock.data[--stock.left];
	random[1] = stock.data[--stock.left];
}

static void print_time(uint64_t ms, char id[ULID_LENGTH + 1])
{
	for (int i = 9; i >= 0; i--, ms >>= 5)
		id[i] = crockford[ms & 31];
}

void ulid_bound(uint64_t ms, char fill, char id[ULID_LENGTH + 1])
{
	print_time(ms, id);
	memset(id + 10, fill, ULID_LENGTH - 10);
	id[ULID_LENGTH] = '\0';
}

void ulid_new(char id[ULID_LENGTH + 1])
{
	struct timespec now;
	uint64_t random[2];

	clock_gettime(CLOCK_REALTIME, &now);
	uint64_t ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;

	random_take(random);
	print_time(ms, id);
	for (int i = 0; i < 16; i++)
		id[10 + i] = crockford[random[i / 8] >> (i % 8 * 5) & 31];
	id[ULID_LENGTH] = '\0';
}

static uint64_t time_ms(const char *id)
{
	uint64_t ms = 0;

	for (int i = 0; i < 10; i++)
		ms = ms << 5 | (uint64_t)(strchr(crockford, id[i]) - crockford);
	return ms;
}

time_t ulid_time(const char *id)
{
	return (time_t)(time_ms(id) / 1000);
}

void ulid_date(const char *id, char date[ULID_DATE_MAX])
{
	uint64_t ms = time_ms(id);
	time_t seconds = (time_t)(ms / 1000);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	size_t n = strftime(date, ULID_DATE_MAX, "%Y-%m-%dT%H:%M:%S", &tm);

	snprintf(date + n, ULID_DATE_MAX - n, ".%03uZ", (unsigned)(ms % 1000));
}

bool ulid_is_valid(const char *text, size_t length)
{
	if (length != ULID_LENGTH)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!text[i] || !strchr(crockford, text[i]))
			return false;
	return true;
}

int ulid_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}
