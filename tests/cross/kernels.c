/* kernels.c - compares all kernels of this processor with the kernel in plain C. Built and run by
 * tests/cross/kernels. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "pixel/kernel.h"
#include "pixel/mcu.h"
#include "support/kernel_compare.h"

/* usage: kernels NAME: NAME must be the name of the fastest kernel.
 *        kernels       prints hashes of the notes and samples that are made in plain C */
int main(int argc, char **argv)
{
	unsigned count = 0, passed = 0;

	if (argc == 1) {
		while (mcu_kernel_at(count + 1))
			count++;
		printf("%016" PRIx64 " %016" PRIx64 "\n", mcu_notes_hash(mcu_kernel_at(count)),
		       mcu_samples_hash(mcu_kernel_at(count)));
		return 0;
	}
	if (strcmp(kernel_at(0)->name, argv[1]) != 0) {
		printf("the fastest kernel is %s, expected %s\n", kernel_at(0)->name, argv[1]);
		return 1;
	}
	while (kernel_at(count + 1))
		count++;
	for (unsigned k = 0; k < count; k++)
		if (kernels_agree(kernel_at(k), kernel_at(count))) {
			printf("%s agrees with %s\n", kernel_at(k)->name, kernel_at(count)->name);
			passed++;
		}
	return count == 0 || passed != count;
}
