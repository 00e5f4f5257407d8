/* figure.h - writes numbers for people: with a unit and without an exponent. */
#ifndef DARKROOM_LOADGEN_LOAD_FIGURE_H
#define DARKROOM_LOADGEN_LOAD_FIGURE_H

#define FIGURE_SIZE 32 /* of a text with its zero byte */

/* "0.512 ms", "95.7 ms", "1.02 s" */
const char *figure_duration(double ns, char text[FIGURE_SIZE]);

/* "512 B", "1.2 MB" */
const char *figure_bytes(double n, char text[FIGURE_SIZE]);

/* "34.0/s", "0.250/s", "1234567/s" */
const char *figure_rate(double per_s, char text[FIGURE_SIZE]);

/* "100", "0.25": up to six decimals, as many as the number has */
const char *figure_exact(double x, char text[FIGURE_SIZE]);

#endif
