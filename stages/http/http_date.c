/* http_date.c - the daemon sets no locale, so libc's names of days and months are those of RFC
 * 9110. Any thread. */
#include "http_date.h"

#include <string.h>

#include "base/check.h"

void http_date_format(char text[HTTP_DATE_MAX], time_t seconds)
{
	struct tm tm;

	text[0] = '\0';
	if (gmtime_r(&seconds, &tm))
		strftime(text, HTTP_DATE_MAX, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}

bool http_date_parse(struct slice value, time_t *seconds)
{
	static const char *const forms[] = {
		"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", /* RFC 850 */
		"%a %b %e %H:%M:%S %Y",                                   /* asctime(3) */
	};
	char text[HTTP_DATE_MAX];

	if (value.length >= sizeof text || (value.length && memchr(value.data, '\0', value.length)))
		return false;
	memcpy(text, value.data, value.length);
	text[value.length] = '\0';
	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		struct tm tm = { .tm_mday = 0 };
		const char *end = strptime(text, forms[i], &tm);

		if (end && *end == '\0') {
			*seconds = timegm(&tm);
			return true;
		}
	}
	return false;
}
