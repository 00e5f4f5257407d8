/* image_texts.c - checks texts, and writes them as JSON. Any thread. */
#include "image_texts.h"

#include <string.h>

#include "base/json.h"

/* Control characters would take six bytes in JSON. A tab and line ends are text. */
static bool is_text(const char *value, size_t length)
{
	for (size_t i = 0; i < length;) {
		size_t step = json_utf8_length((const unsigned char *)value + i, length - i);
		unsigned char c = (unsigned char)value[i];

		if (!step || (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f)
			return false;
		i += step;
	}
	return true;
}

static const char *next(const struct image_texts *m, const char *at)
{
	return at + strlen(at) + 1 < m->data + m->length ? at + strlen(at) + 1 : NULL;
}

static bool has(const struct image_texts *m, const char *name, size_t length)
{
	for (const char *at = m->length ? m->data : NULL; at; at = next(m, at)) {
		if (strlen(at) == length && memcmp(at, name, length) == 0)
			return true;
		at = next(m, at); /* the value */
		if (!at)
			break;
	}
	return false;
}

const char *image_texts_add(struct image_texts *m, const char *name, size_t name_length,
                            const char *value, size_t length)
{
	if (has(m, name, name_length))
		return "occurs twice";
	if (length > METADATA_VALUE_MAX)
		return "has more than 1024 bytes";
	if (!is_text(value, length))
		return "is not text in UTF-8, or has control characters";
	if (m->length + name_length + length + 2 > sizeof m->data)
		return "makes all fields of store.metadata more than 2048 bytes";
	char *to = m->data + m->length;

	memcpy(to, name, name_length);
	to[name_length] = '\0';
	if (length)
		memcpy(to + name_length + 1, value, length);
	to[name_length + 1 + length] = '\0';
	m->length += name_length + length + 2;
	return NULL;
}

void image_texts_json(struct json *j, const struct image_texts *m)
{
	if (!m->length)
		return;
	json_object(j, "metadata");
	for (const char *name = m->data, *value; name; name = next(m, value)) {
		value = next(m, name);
		if (!value)
			break;
		json_string(j, name, value);
	}
	json_object_end(j);
}
