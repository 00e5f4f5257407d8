/* mg1.h - the polling table of policy mg1, exported for its test. Pure functions. */
#ifndef DARKROOM_POLICY_MG1_H
#define DARKROOM_POLICY_MG1_H

struct stage_rates;

#define MG1_TABLE_MAX 144 /* slots; golden-ratio placement needs a Fibonacci number */

/* Returns the load of a stage, rho: arrival rate / service rate, per core, within [0.005, 0.99]. */
double mg1_load(const struct stage_rates *r);

/* Returns the weight that the number of visits is proportional to: sqrt(rho (1 - rho)) with
 * exhaustive service, sqrt(rho (1 + rho)) with gated service (Boxma, Levy & Weststrate 1993). */
double mg1_weight(const struct stage_rates *r);

/*
 * Fills table[slots] with stage numbers. Stage i gets floor(weight_i / sum * slots) visits, at
 * least one, spread by the golden ratio. Remaining slots go to the most frequent stage. n <= slots
 * <= MG1_TABLE_MAX.
 */
void mg1_table(unsigned char *table, unsigned slots, unsigned n, const double *weight);

#endif
