/* page_files.c - the files of stages/page/ and openapi.json, embedded by the assembler. */
#include "page_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

#include "base/check.h"

/* The Makefile compiles this file again when one of them changes. */
#define EMBED(name, path)                                                      \
	__asm__(".pushsection .rodata\n"                                       \
	        "page_" #name ":\n"                                            \
	        ".incbin \"stages/" path "\"\n"                                \
	        "page_" #name "_end:\n"                                        \
	        ".byte 0\n"                                                    \
	        ".popsection\n");                                              \
	extern const char page_##name[] __attribute__((visibility("hidden"))), \
		page_##name##_end[] __attribute__((visibility("hidden")))

EMBED(icon, "page/icon.svg");
EMBED(html, "page/page.html");
EMBED(css, "page/page.css");
EMBED(js, "page/page.js");
EMBED(operator_html, "page/operator.html");
EMBED(operator_css, "page/operator.css");
EMBED(operator_js, "page/operator.js");
EMBED(openapi, "http/openapi.json");

#define SVG "image/svg+xml"
#define HTML "text/html; charset=utf-8"
#define CSS "text/css; charset=utf-8"
#define JS "text/javascript; charset=utf-8"

static const struct page_file files[] = {
	{ "/", HTML, page_html, page_html_end, PAGE_FOR_CLIENTS },
	{ "/page.js", JS, page_js, page_js_end, PAGE_FOR_CLIENTS },
	{ "/page.css", CSS, page_css, page_css_end, PAGE_FOR_CLIENTS },
	{ "/page.svg", SVG, page_icon, page_icon_end, PAGE_FOR_CLIENTS },
	{ "/operator.svg", SVG, page_icon, page_icon_end, PAGE_FOR_OPERATORS },
	{ "/operator", HTML, page_operator_html, page_operator_html_end, PAGE_FOR_OPERATORS },
	{ "/operator.css", CSS, page_operator_css, page_operator_css_end, PAGE_FOR_OPERATORS },
	{ "/operator.js", JS, page_operator_js, page_operator_js_end, PAGE_FOR_OPERATORS },
	{ "/openapi.json", "application/json", page_openapi, page_openapi_end, PAGE_FOR_ALL },
};

const struct page_file *page_file_at(unsigned index)
{
	return index < COUNT_OF(files) ? &files[index] : NULL;
}

void page_file_etag(const struct page_file *file, char etag[PAGE_ETAG_MAX])
{
	XXH128_hash_t sum = XXH3_128bits(file->data, (size_t)(file->end - file->data));

	snprintf(etag, PAGE_ETAG_MAX, "\"%016" PRIx64 "%016" PRIx64 "\"", (uint64_t)sum.high64,
	         (uint64_t)sum.low64);
}
