/* s3_secret.c - reads the file of keys. */
#include "s3_secret.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/opener.h"

/* Removes spaces from both ends. */
static void trim(const char **text, size_t *length)
{
	while (*length && strchr(" \t\r", **text)) {
		++*text;
		--*length;
	}
	while (*length && strchr(" \t\r", (*text)[*length - 1]))
		--*length;
}

/* Copies a value into an empty field. */
static int take_value(char *field, size_t size, const char *value, size_t length)
{
	if (*field || length == 0 || length >= size)
		return -EINVAL;
	for (size_t i = 0; i < length; i++)
		if (value[i] <= ' ' || value[i] > '~')
			return -EINVAL;
	memcpy(field, value, length);
	return 0;
}

static int take_line(struct s3_secret *s, const char *line, size_t length)
{
	const struct {
		const char *name;
		char *field;
		size_t size;
	} field[] = {
		{ "aws_access_key_id", s->id, sizeof s->id },
		{ "aws_secret_access_key", s->secret, sizeof s->secret },
		{ "aws_session_token", s->session, sizeof s->session },
	};

	trim(&line, &length);
	if (length == 0 || *line == '#' || *line == '[')
		return 0;
	const char *equals = memchr(line, '=', length);
	size_t name_length = equals ? (size_t)(equals - line) : length;
	const char *value = equals ? equals + 1 : line + length, *name = line;
	size_t value_length = length - name_length - (equals != NULL);

	trim(&name, &name_length);
	trim(&value, &value_length);
	for (size_t i = 0; i < COUNT_OF(field); i++)
		if (strlen(field[i].name) == name_length &&
		    memcmp(field[i].name, name, name_length) == 0)
			return take_value(field[i].field, field[i].size, value, value_length);
	return -EINVAL;
}

int s3_secret_parse(const char *text, size_t length, struct s3_secret *s)
{
	int err = 0;

	*s = (struct s3_secret){ .id = "" };
	while (length && !err) {
		const char *end = memchr(text, '\n', length);
		size_t line = end ? (size_t)(end - text) : length;

		err = take_line(s, text, line);
		line += end != NULL;
		text += line;
		length -= line;
	}
	return err || !*s->id || !*s->secret ? -EINVAL : 0;
}

int s3_secret_read(const char *path, struct s3_secret *s)
{
	char text[S3_SECRET_FILE_MAX];
	int fd = opener_open(path, OPENER_READ_FILE), err = 0;
	size_t length = 0;
	ssize_t n;

	if (fd < 0)
		return fd;
	do {
		n = read(fd, text + length, sizeof text - length);
		if (n < 0 && errno != EINTR)
			err = -errno;
		length += n > 0 ? (size_t)n : 0;
	} while (!err && n != 0 && length < sizeof text);
	close(fd);
	if (!err)
		err = length < sizeof text ? s3_secret_parse(text, length, s) : -EINVAL;
	explicit_bzero(text, sizeof text);
	return err;
}
