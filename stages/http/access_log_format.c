/* access_log_format.c - formats a line of the access log. Knows no connection. Any thread. */
#include "access_log_format.h"

#include <string.h>

#include "base/json.h"
#include "base/text.h"

static void put_time(const struct access_line *line, struct text *to)
{
	unsigned ms = line->time_ms % 1000;
	const char fraction[] = { '.', (char)('0' + ms / 100), (char)('0' + ms / 10 % 10),
		                  (char)('0' + ms % 10), 'Z' };

	text_puts(to, line->time);
	text_put(to, fraction, sizeof fraction);
}

/* ---- text ---- */

static bool is_bare(unsigned char c)
{
	return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '=';
}

static void escape(struct text *to, unsigned char c)
{
	static const char digits[] = "0123456789abcdef";
	const char quoted[] = { '\\', (char)c },
		   hex[] = { '\\', 'x', digits[c >> 4], digits[c & 15] };

	if (c == '"' || c == '\\')
		text_put(to, quoted, sizeof quoted);
	else
		text_put(to, hex, sizeof hex);
}

/* Appends a value, in quotation marks if it has bytes that a reader could misinterpret. */
static void put_value(struct text *to, const char *data, size_t length)
{
	size_t i = 0, plain = 0; /* data[plain..i) needs no escapes, and is written later */

	while (i < length && is_bare((unsigned char)data[i]))
		i++;
	if (i == length && length > 0) {
		text_put(to, data, length);
		return;
	}
	text_put(to, "\"", 1);
	for (i = 0; i < length; i++) {
		unsigned char c = (unsigned char)data[i];

		if (is_bare(c) || c == ' ' || c == '=')
			continue;
		text_put(to, data + plain, i - plain);
		escape(to, c);
		plain = i + 1;
	}
	text_put(to, data + plain, length - plain);
	text_put(to, "\"", 1);
}

static void put_string(struct text *to, const char *name, const char *value)
{
	text_puts(to, name);
	put_value(to, value, strlen(value));
}

static void put_uint(struct text *to, const char *name, uint64_t value)
{
	text_puts(to, name);
	text_uint(to, value);
}

static void put_ms(struct text *to, const char *name, uint64_t ns)
{
	text_puts(to, name);
	text_ms(to, ns);
}

static void put_images(const struct access_line *line, struct text *to)
{
	put_uint(to, " files=", line->files);
	put_uint(to, " failed=", line->failed);
	for (unsigned i = 0; i < line->image_count; i++) {
		const struct access_image *image = &line->image[i];

		text_puts(to, i ? "," : " images=");
		text_puts(to, image->id);
		put_uint(to, ":", image->width);
		put_uint(to, "x", image->height);
	}
}

void access_line_text(const struct access_line *line, struct text *to)
{
	text_puts(to, "time=");
	put_time(line, to);
	put_string(to, " client=", line->client);
	if (line->token[0])
		put_string(to, " token=", line->token);
	put_string(to, " id=", line->id);
	put_string(to, " method=", line->method ? line->method : "-");
	text_puts(to, " path=");
	put_value(to, line->path.length ? line->path.data : "-",
	          line->path.length ? line->path.length : 1);
	if (line->status)
		put_uint(to, " status=", line->status);
	else
		text_puts(to, " status=-");
	if (!line->is_complete)
		text_puts(to, " complete=no");
	put_uint(to, " bytes_in=", line->bytes_in);
	put_uint(to, " bytes_out=", line->bytes_out);
	if (line->files)
		put_images(line, to);
	put_ms(to, " total_ms=", line->total_ns);
	if (line->read_ns)
		put_ms(to, " read_ms=", line->read_ns);
	put_ms(to, " queue_ms=", line->queue_ns);
	for (unsigned i = 0; i < line->stage_count; i++) {
		if (!line->stage_ns[i])
			continue;
		text_put(to, " ", 1);
		text_puts(to, line->stage_name[i]);
		put_ms(to, "_ms=", line->stage_ns[i]);
	}
}

/* ---- JSON ---- */

static void json_images(const struct access_line *line, struct json *j)
{
	json_uint(j, "files", line->files);
	json_uint(j, "failed", line->failed);
	json_array(j, "images");
	for (unsigned i = 0; i < line->image_count; i++) {
		json_object(j, NULL);
		json_string(j, "id", line->image[i].id);
		json_uint(j, "width", line->image[i].width);
		json_uint(j, "height", line->image[i].height);
		json_object_end(j);
	}
	json_array_end(j);
}

static void json_stages(const struct access_line *line, struct json *j)
{
	json_object(j, "stages_ms");
	for (unsigned i = 0; i < line->stage_count; i++)
		if (line->stage_ns[i])
			json_ms(j, line->stage_name[i], line->stage_ns[i]);
	json_object_end(j);
}

void access_line_json(const struct access_line *line, struct text *to)
{
	char time[40];
	struct text t;
	struct json j;

	text_init(&t, time, sizeof time);
	put_time(line, &t);
	json_init(&j, to);
	json_object(&j, NULL);
	json_string(&j, "time", time);
	json_string(&j, "client", line->client);
	if (line->token[0])
		json_string(&j, "token", line->token);
	json_string(&j, "id", line->id);
	if (line->method)
		json_string(&j, "method", line->method);
	if (line->path.length)
		json_string_n(&j, "path", line->path.data, line->path.length);
	if (line->status)
		json_uint(&j, "status", line->status);
	json_bool(&j, "complete", line->is_complete);
	json_uint(&j, "bytes_in", line->bytes_in);
	json_uint(&j, "bytes_out", line->bytes_out);
	if (line->files)
		json_images(line, &j);
	json_ms(&j, "total_ms", line->total_ns);
	if (line->read_ns)
		json_ms(&j, "read_ms", line->read_ns);
	json_ms(&j, "queue_ms", line->queue_ns);
	json_stages(line, &j);
	json_object_end(&j);
}
