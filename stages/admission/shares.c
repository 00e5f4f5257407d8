/* shares.c - counts of each client, and what its announcements claim. */
#include "shares.h"

#include <math.h>

#include "base/check.h"
#include "base/clock.h"

#define WORK_MAX (UINT64_C(1) << 40) /* of one upload; sums and products do not overflow */
#define HEAVY_SHARE 0.75
#define HALVES_MAX 256 /* squares of work do not overflow */

/* Nothing was announced, or x, and y has come. */
static double expected(uint64_t x, uint64_t y)
{
	return x > 0 ? (double)x * (double)y / (double)(x + y) : 0;
}

static void note_busy(struct shares *s, unsigned client)
{
	const struct share *c = &s->client[client];
	uint64_t bit = UINT64_C(1) << client % 64, *word = &s->busy[client / 64];

	*word = c->in_flight > 0 || c->announced.images > 0 ? *word | bit : *word & ~bit;
}

/* Something has changed, or the time. */
static void look(struct shares *s, struct share *c, uint64_t now_ns)
{
	/* A thread reads the clock before it has the lock. */
	uint64_t passed_ns = now_ns > c->halved_ns ? now_ns - c->halved_ns : 0;
	uint64_t halvings = passed_ns / s->window_ns;

	c->come.images = halvings < 64 ? c->come.images >> halvings : 0;
	c->come.work = halvings < 64 ? c->come.work >> halvings : 0;
	c->halved_ns += halvings * s->window_ns;
	s->claims.images -= c->claim.images;
	s->claims.work -= c->claim.work;
	c->claim.images = (uint64_t)ceil(expected(c->announced.images, c->come.images + 1));
	c->claim.work = (uint64_t)expected(c->announced.work, c->come.work);
	s->claims.images += c->claim.images;
	s->claims.work += c->claim.work;
}

uint64_t shares_announce(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns)
{
	struct share *c = &s->client[client];

	work = work < WORK_MAX ? work : WORK_MAX;
	c->announced.images++;
	c->announced.work += work;
	look(s, c, now_ns);
	note_busy(s, client);
	return work;
}

void shares_forget(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns)
{
	struct share *c = &s->client[client];

	assert(c->announced.images > 0 && c->announced.work >= work);
	c->announced.images--;
	c->announced.work -= work;
	look(s, c, now_ns);
	note_busy(s, client);
}

/* Returns what work is worth now. It doubles with each half-life, which is cheaper than to halve
 * the recent work of all clients. */
static double unit(struct shares *s, uint64_t now_ns)
{
	double passed_ns = now_ns > s->unit_ns ? (double)(now_ns - s->unit_ns) : 0;
	double halves = passed_ns / (double)s->half_life_ns;

	if (halves > HALVES_MAX) {
		for (unsigned i = 0; i < CLIENT_SLOTS; i++)
			s->client[i].recent *= exp2(-halves);
		s->recent *= exp2(-halves);
		s->squares *= exp2(-2 * halves);
		s->unit_ns = now_ns;
		halves = 0;
	}
	return exp2(halves);
}

void shares_begin(struct shares *s, unsigned client, unsigned images, uint64_t work,
                  uint64_t now_ns)
{
	struct share *c = &s->client[client];

	look(s, c, now_ns);
	c->in_flight += work;
	c->come.images += images;
	c->come.work += work;
	double added = (double)work * unit(s, now_ns);

	s->recent += added;
	s->squares += added * (2 * c->recent + added);
	c->recent += added;
	look(s, c, now_ns);
	note_busy(s, client);
}

void shares_end(struct shares *s, unsigned client, uint64_t work)
{
	assert(s->client[client].in_flight >= work);
	s->client[client].in_flight -= work;
	note_busy(s, client);
}

static uint64_t work_of(const struct share *c)
{
	return c->in_flight + c->claim.work;
}

static double typical(const struct shares *s)
{
	return s->recent > 0 ? s->squares / s->recent : 1;
}

/* Returns the room of a client with that recent work. */
static double room_of(const struct shares *s, double recent)
{
	return 1 - 2 * s->reserve * recent / (recent + typical(s));
}

/* The inverse of room_of() is the recent work at which the client is admitted. */
double shares_wait_s(const struct shares *s, unsigned client, double taken)
{
	double left = (1 - taken) / (2 * s->reserve);

	if (left <= 0 || left >= 1)
		return 0;
	double recent = typical(s) * left / (1 - left);

	return fmax(log2(s->client[client].recent / recent), 0) * (double)s->half_life_ns /
	       (double)NS_PER_S;
}

struct shares_view shares_look(struct shares *s, unsigned client, uint64_t quantum, uint64_t now_ns)
{
	const struct share *own = &s->client[client];
	uint64_t most = work_of(own) > quantum ? work_of(own) : quantum, work = 0;

	for (unsigned i = 0; i < COUNT_OF(s->busy); i++)
		for (uint64_t left = s->busy[i]; left; left &= left - 1) {
			struct share *c = &s->client[i * 64 + (unsigned)__builtin_ctzll(left)];

			if (c->announced.images > 0)
				look(s, c, now_ns);
			work += work_of(c) < most ? work_of(c) : most;
		}
	return (struct shares_view){ work, room_of(s, own->recent),
		                     own->recent > HEAVY_SHARE * s->recent };
}
