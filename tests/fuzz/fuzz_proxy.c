/*
 * fuzz_proxy.c - headers of the PROXY protocol: within the bytes, and in parts the same result as
 * whole.
 */
#include "admission/clients.h"
#include "http/forwarded.h"
#include "target.h"

const unsigned target_mutants = 3000;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct client_key none = { { 1, 2, 3 } };
	struct client_key whole = none, part = none;
	size_t max = size < PROXY_HEADER_MAX + 8 ? size : PROXY_HEADER_MAX + 8;
	int result = proxy_header_parse((const char *)data, max, whole.address), again = 0;

	assert(result <= (int)max && result <= PROXY_HEADER_MAX);
	if (result <= 0)
		assert(memcmp(&whole, &none, sizeof whole) == 0);
	for (size_t length = 0; again == 0 && length <= max; length++) {
		char *copy = target_copy(data, length);

		again = proxy_header_parse(copy, length, part.address);
		free(copy);
		assert(again <= (int)length);
	}
	/* The first part with a result has that of the whole. */
	assert(again == result && memcmp(&whole, &part, sizeof whole) == 0);
	return 0;
}

void target_seeds(void (*emit)(const void *data, size_t size))
{
	static const char v4[] =
		"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\x02\x01\x7f\0\0\x01\x10\0"
		"\x1f\x90GET / HTTP/1.1\r\n";
	static const char v6[] =
		"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x28\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0"
		"\0\0\0\x07\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x08\x10\0\x1f\x90"
		"\x04\0\x01z";
	static const char local[] = "\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
	static const char *const text[] = {
		"PROXY TCP4 192.0.2.1 127.0.0.1 4096 8080\r\n",
		"PROXY TCP6 2001:db8::7 ::1 4096 8080\r\nGET",
		"PROXY UNKNOWN\r\n",
	};

	emit(v4, sizeof v4 - 1);
	emit(v6, sizeof v6 - 1);
	emit(local, sizeof local - 1);
	target_emit_texts(emit, text, COUNT_OF(text));
}
