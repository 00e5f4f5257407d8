/* kernels.c - compares all kernels of the processor that it runs on with the one in plain C;
 * tests/cross/kernels builds and runs it. */
#include <stdio.h>
#include <string.h>

#include "support/kernel_compare.h"

/* usage: kernels NAME: the best kernel there must be the one of that name. */
int main(int argc, char **argv)
{
	unsigned count = 0, passed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: kernels NAME\n");
		return 2;
	}
	if (strcmp(kernel_at(0)->name, argv[1])) {
		printf("the best kernel is %s, not %s\n", kernel_at(0)->name, argv[1]);
		return 1;
	}
	while (kernel_at(count + 1))
		count++;
	for (unsigned k = 0; k < count; k++)
		if (kernels_agree(kernel_at(k), kernel_at(count))) {
			printf("%s computes what %s does\n", kernel_at(k)->name,
			       kernel_at(count)->name);
			passed++;
		}
	return count == 0 || passed != count;
}
