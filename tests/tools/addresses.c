/*
 * addresses.c - gives a program's names other addresses.
 *
 * For LD_PRELOAD. Names that end with ".test" have the address in the file DARKROOM_ADDRESS, or
 * none while it is empty.
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **list)
{
	int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
	void *function = dlsym(RTLD_NEXT, "getaddrinfo");
	size_t length = node ? strlen(node) : 0;
	char address[64] = "";

	memcpy(&real, &function, sizeof real);
	if (length < 5 || strcmp(node + length - 5, ".test") != 0)
		return real(node, service, hints, list);
	FILE *file = fopen(getenv("DARKROOM_ADDRESS"), "re");

	if (file && !fgets(address, sizeof address, file))
		address[0] = '\0';
	if (file)
		fclose(file);
	return address[0] ? real(address, service, hints, list) : EAI_AGAIN;
}
