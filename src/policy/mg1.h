/*
 * mg1.h - the polling table of policy mg1, for its test.
 */
#ifndef DARKROOM_MG1_H
#define DARKROOM_MG1_H

struct stage_rates;

#define MG1_TABLE_MAX 144 /* a Fibonacci number, as golden-ratio placement wants */

/* The load of a stage: arrival / service rate, per core, within [0.005, 0.99]. */
double mg1_load(const struct stage_rates *r);

/*
 * Fills table[slots] with stage numbers: stage i gets floor(f_i * slots) visits, at least one, with
 * f_i = sqrt(rho_i (1 - rho_i)) / sum (Boxma, Levy & Weststrate 1993, exhaustive service), spread by the golden ratio;
 * what is left over goes to the most frequent stage. n <= slots <= MG1_TABLE_MAX.
 */
void mg1_table(unsigned char *table, unsigned slots, unsigned n, const double *load);

#endif
