/* shares.c - counts of each client, and what its announcements claim. */
#include "shares.h"

#include <math.h>

#include "base/check.h"
#include "base/clock.h"

#define WORK_MAX (UINT64_C(1) << 40) /* of one upload; sums and products do not overflow */
#define HEAVY_SHARE 0.75
#define HALF_LIFE_NS ((double)SHARES_HALF_LIFE_S * NS_PER_S)
#define HALVES_MAX 256 /* squares of work do not overflow */

/* Nothing was announced, or x, and y has come. */
static double expected(uint64_t x, uint64_t y)
{
	return x > 0 ? (double)x * (double)y / (double)(x + y) : 0;
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
	return work;
}

void shares_forget(struct shares *s, unsigned client, uint64_t work, uint64_t now_ns)
{
	struct share *c = &s->client[client];

	assert(c->announced.images > 0 && c->announced.work >= work);
	c->announced.images--;
	c->announced.work -= work;
	look(s, c, now_ns);
}

/* Returns what work is worth now. It doubles with each half-life, which is cheaper than to halve
 * the recent work of all clients. */
static double unit(struct shares *s, uint64_t now_ns)
{
	double halves = now_ns > s->unit_ns ? (double)(now_ns - s->unit_ns) / HALF_LIFE_NS : 0;

	if (halves > HALVES_MAX) {
		for (unsigned i = 0; i < CLIENT_SLOTS; i++)
			s->client[i].recent *= exp2(-halves);
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
	c->recent += (double)work * unit(s, now_ns);
	look(s, c, now_ns);
}

void shares_end(struct shares *s, unsigned client, uint64_t work)
{
	assert(s->client[client].in_flight >= work);
	s->client[client].in_flight -= work;
}

static uint64_t work_of(const struct share *c)
{
	return c->in_flight + c->claim.work;
}

/* Returns the room of a client with that recent work. sum, squares: of all. */
static double room_of(double recent, double sum, double squares)
{
	double typical = sum > 0 ? squares / sum : 1;

	return 1 - 2 * SHARES_RESERVE * recent / (recent + typical);
}

struct shares_view shares_look(struct shares *s, unsigned client, uint64_t quantum, uint64_t now_ns)
{
	const struct share *own = &s->client[client];
	uint64_t most = work_of(own) > quantum ? work_of(own) : quantum, work = 0;
	double sum = 0, squares = 0;

	for (unsigned i = 0; i < CLIENT_SLOTS; i++) {
		struct share *c = &s->client[i];

		if (c->announced.images > 0)
			look(s, c, now_ns);
		work += work_of(c) < most ? work_of(c) : most;
		sum += c->recent;
		squares += c->recent * c->recent;
	}
	return (struct shares_view){ work, room_of(own->recent, sum, squares),
		                     own->recent > HEAVY_SHARE * sum };
}
