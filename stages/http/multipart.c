/* multipart.c - the form parser: it searches for delimiters, and reads the headers of the parts
 * behind them. Any thread. */
#include "multipart.h"

#include <string.h>

#include "base/check.h"

#define BYTES_IN_A_ROW 8
#define DELIMITER_BEGIN "\r\n--"
#define DELIMITER_BEGIN_LENGTH (sizeof DELIMITER_BEGIN - 1)
#define PADDING_MAX 256 /* spaces behind a boundary, which RFC 2046 allows */

void multipart_init(struct multipart *m, const char *boundary, size_t boundary_length,
                    size_t header_max)
{
	assert(boundary_length >= 1);
	assert(boundary_length <= BOUNDARY_MAX);
	*m = (struct multipart){ .header_max = header_max };
	memcpy(m->delimiter, DELIMITER_BEGIN, DELIMITER_BEGIN_LENGTH);
	memcpy(m->delimiter + DELIMITER_BEGIN_LENGTH, boundary, boundary_length);
	m->delimiter_length = DELIMITER_BEGIN_LENGTH + boundary_length;
}

void multipart_init_mixed(struct multipart *m, const char *boundary, size_t boundary_length,
                          size_t header_max, size_t begin)
{
	multipart_init(m, boundary, boundary_length, header_max);
	m->begin = m->at = begin;
	m->is_mixed = true;
}

/* ---- delimiters ---- */

/* Returns where a delimiter may begin, or `end`. Pictures have few CRs, so memchr() is fast. A
 * hostile body of CRs must not cost one call for each of them, so the bytes behind a CR are checked
 * here. */
static size_t next_candidate(struct slice body, size_t at, size_t end)
{
	while (at < end) {
		const char *cr = memchr(body.data + at, '\r', end - at);

		if (!cr)
			return end;
		at = (size_t)(cr - body.data);
		if (body.length - at < DELIMITER_BEGIN_LENGTH + BYTES_IN_A_ROW)
			return at;
		for (unsigned i = 0; i < BYTES_IN_A_ROW; i++, at++)
			if (memcmp(body.data + at, DELIMITER_BEGIN, DELIMITER_BEGIN_LENGTH) == 0)
				return at;
	}
	return end;
}

/* Reads the rest of a line behind a boundary. Returns where the parser continues, or 0: the line is
 * not a delimiter, so all of it is data. */
static size_t read_line_end(struct slice body, size_t at, bool *is_closing)
{
	size_t padding = 0;

	*is_closing = body.length - at >= 2 && memcmp(body.data + at, "--", 2) == 0;
	if (*is_closing)
		at += 2;
	for (; at < body.length && (body.data[at] == ' ' || body.data[at] == '\t'); at++)
		if (++padding > PADDING_MAX)
			return 0;
	if (*is_closing)
		return at == body.length || body.data[at] == '\r' || body.data[at] == '\n' ? at : 0;
	return body.length - at >= 2 && memcmp(body.data + at, "\r\n", 2) == 0 ? at + 2 : 0;
}

/* Returns whether a delimiter begins at `at`, without its first `skipped` bytes; then continues
 * behind it. */
static bool take_delimiter(struct multipart *m, struct slice body, size_t at, size_t skipped)
{
	size_t length = m->delimiter_length - skipped, next;
	bool is_closing;

	if (body.length - at < length ||
	    memcmp(body.data + at, m->delimiter + skipped, length) != 0)
		return false;
	next = read_line_end(body, at + length, &is_closing);
	if (!next)
		return false;
	m->at = next;
	m->is_done = is_closing;
	m->is_at_header = !is_closing;
	return true;
}

/* Looks for the next delimiter that begins before `end`, and sets *found to its begin. A boundary
 * has no CR, so candidates never overlap. */
static bool find_delimiter(struct multipart *m, struct slice body, size_t end, size_t *found)
{
	*found = 0;
	/* At the first byte, a boundary needs no line end before it. */
	if (m->at == m->begin && take_delimiter(m, body, m->begin, 2))
		return true;
	for (size_t at = m->at; (at = next_candidate(body, at, end)) < end; at++) {
		*found = at;
		if (take_delimiter(m, body, at, 0))
			return true;
	}
	if (m->at < end)
		m->at = end;
	return false;
}

/* ---- headers ---- */

static struct span span_of(struct slice s, const char *base)
{
	return (struct span){ (size_t)(s.data - base), s.length };
}

static const char *read_disposition(struct multipart *m, const char *base, struct slice value)
{
	struct multipart_part *part = &m->part;
	struct field_param param;
	struct slice rest, word = field_word(value, &rest);
	int found;

	if (part->has_disposition)
		return "a part has two Content-Disposition headers";
	part->has_disposition = true;
	if (!slice_is(word, "form-data") &&
	    !(m->is_mixed && (slice_is(word, "attachment") || slice_is(word, "file"))))
		return "the Content-Disposition of a part is not form-data";
	while ((found = field_param_next(&rest, &param, true)) > 0) {
		if (slice_is(param.name, "name")) {
			part->name = span_of(param.value, base);
		} else if (slice_is(param.name, "filename") && !part->has_file_name) {
			part->file_name = span_of(param.value, base);
			part->has_file_name = true;
		} else if (slice_is(param.name, "filename*")) {
			/* RFC 7578 forbids it, RFC 6266 prefers it, and some clients send only it.
			 */
			part->file_name = span_of(param.value, base);
			part->has_file_name = part->is_file_name_extended = true;
		}
	}
	if (found < 0)
		return "the parameters of a part's Content-Disposition are malformed";
	return part->name.at || part->has_file_name || m->is_mixed
	               ? NULL
	               : "the Content-Disposition of a part has neither a name nor a file name";
}

/* Parses one header, folded or not, without its line end. Returns NULL or the error. */
static const char *read_header(struct multipart *m, const char *base, struct slice line)
{
	struct multipart_part *part = &m->part;
	const char *colon = memchr(line.data, ':', line.length);
	struct slice params;

	if (!colon || colon == line.data)
		return "a part has a header line without a name and a colon";
	struct slice name = { line.data, (size_t)(colon - line.data) };
	struct slice value = slice_trim((struct slice){ colon + 1, line.length - name.length - 1 });

	for (size_t i = 0; i < name.length; i++) {
		if ((unsigned char)name.data[i] <= ' ' || (unsigned char)name.data[i] >= 0x7f)
			return "a part has a header whose name has a space or a control character";
	}
	if (slice_is(name, "content-disposition"))
		return read_disposition(m, base, value);
	if (slice_is(name, "content-type")) {
		part->type = span_of(field_word(value, &params), base);
		part->content_type = span_of(value, base);
	}
	return NULL;
}

/* Parses all headers of a part, each with its line end. A line that begins with a space continues
 * the one before. Returns NULL or the error. */
static const char *read_headers(struct multipart *m, const char *base, struct slice block)
{
	if (block.length && memchr(block.data, '\0', block.length))
		return "a part has a zero byte in its headers";
	while (block.length > 0) {
		size_t end = 0;

		do {
			const char *lf = memchr(block.data + end, '\n', block.length - end);

			if (!lf || lf == block.data || lf[-1] != '\r')
				return "a header line of a part does not end with CR LF";
			end = (size_t)(lf - block.data) + 1;
		} while (end < block.length && (block.data[end] == ' ' || block.data[end] == '\t'));
		const char *error = read_header(m, base, (struct slice){ block.data, end - 2 });

		if (error)
			return error;
		block.data += end;
		block.length -= end;
	}
	return m->part.has_disposition || m->is_mixed ? NULL
	                                              : "a part has no Content-Disposition header";
}

/* Reads the headers of a part, and sets where its body begins. Returns NULL or the error. */
static const char *begin_part(struct multipart *m, struct slice body)
{
	const char *begin = body.data + m->at;
	size_t length = body.length - m->at, max = length < m->header_max ? length : m->header_max;
	size_t block = 0; /* length of the headers with their line ends */

	m->is_at_header = false;
	if (length < 2 || memcmp(begin, "\r\n", 2) != 0) {
		const char *end = memmem(begin, max, "\r\n\r\n", 4);

		if (!end)
			return length >= m->header_max
			               ? "the headers of a part exceed limits.header_bytes"
			               : "the form ends within the headers of a part";
		block = (size_t)(end - begin) + 2;
	}
	memset(&m->part, 0, sizeof m->part);
	const char *error = read_headers(m, body.data, (struct slice){ begin, block });

	if (error)
		return error;
	m->is_in_part = true;
	m->body_at = m->at + block + 2;
	m->at = m->body_at - 2; /* the body may be empty, and share its line end */
	return NULL;
}

/* ---- parts ---- */

static enum multipart_result bad(struct multipart *m, const char *error)
{
	m->error = error;
	return MULTIPART_BAD;
}

enum multipart_result multipart_next(struct multipart *m, struct slice body, size_t end,
                                     struct multipart_part *part)
{
	size_t found;

	assert(end <= body.length);
	while (!m->error && !m->is_done) {
		const char *error = m->is_at_header ? begin_part(m, body) : NULL;
		bool is_in_part = m->is_in_part;

		if (error)
			return bad(m, error);
		if (!find_delimiter(m, body, end, &found) && end < body.length)
			return MULTIPART_MORE;
		if (!m->is_at_header && !m->is_done)
			return bad(m, is_in_part
			                      ? "the form ends within a part: its closing boundary "
			                        "is missing"
			                      : "the boundary of Content-Type does not occur in "
			                        "the form");
		m->is_in_part = false;
		if (!is_in_part)
			continue;
		*part = m->part;
		part->body.at = m->body_at;
		part->body.length = found > m->body_at ? found - m->body_at : 0;
		return MULTIPART_PART;
	}
	return m->error ? MULTIPART_BAD : MULTIPART_END;
}

/* ---- names ---- */

/* Returns the byte for %XX at the head of raw, or -1 if it must not be decoded. */
static int percent_value(struct slice raw, bool is_extended)
{
	int value = field_escaped(raw);

	/* The HTML standard escapes only these three in the names of forms, and not '%'. */
	return is_extended || value == '"' || value == '\r' || value == '\n' ? value : -1;
}

/* Returns the length without an incomplete UTF-8 character at the end. */
static size_t whole_characters(const char *text, size_t length)
{
	size_t back = 1;

	while (back < 4 && back < length && ((unsigned char)text[length - back] & 0xc0) == 0x80)
		back++;
	if (length == 0)
		return 0;
	unsigned char lead = (unsigned char)text[length - back];
	size_t need = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;

	return need > back ? length - back : length;
}

size_t multipart_text(struct slice raw, bool is_extended, char *out, size_t size)
{
	size_t i = 0, length = 0;

	assert(size >= 1);
	if (is_extended) { /* charset'language'text */
		const char *quote = memchr(raw.data, '\'', raw.length);
		const char *second =
			quote ? memchr(quote + 1, '\'', raw.length - (size_t)(quote + 1 - raw.data))
			      : NULL;

		i = second ? (size_t)(second + 1 - raw.data) : 0;
	}
	while (i < raw.length && length < size - 1) {
		int value =
			percent_value((struct slice){ raw.data + i, raw.length - i }, is_extended);
		char c = raw.data[i];

		if (value >= 0) {
			c = (char)value;
			i += 3;
		} else {
			if (c == '\\' && i + 1 < raw.length &&
			    (raw.data[i + 1] == '"' || raw.data[i + 1] == '\\'))
				c = raw.data[++i];
			i++;
		}
		out[length++] = c ? c : '?';
	}
	if (i < raw.length)
		length = whole_characters(out, length);
	out[length] = '\0';
	return length;
}
