/* seam.c - the list of all seams. */
#include "seam.h"

struct seam *seams;
