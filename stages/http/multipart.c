/* multipart.c - the form parser: one function per state, each resumable at any byte. Any thread. */
#include "multipart.h"

#include <string.h>

#include "base/check.h"

#define BYTES_IN_A_ROW 8
#define DELIMITER_BEGIN "\r\n--"
#define DELIMITER_BEGIN_LENGTH (sizeof DELIMITER_BEGIN - 1)
#define PADDING_MAX 256 /* spaces behind a boundary, which RFC 2046 allows */

enum step { STEP_AGAIN = 1, STEP_MORE, STEP_PART, STEP_END, STEP_BAD };

struct input {
	const char *data;
	size_t length;
	bool is_last;
};

void multipart_init(struct multipart *m, const char *boundary, size_t boundary_length,
                    size_t header_max)
{
	assert(boundary_length >= 1);
	assert(boundary_length <= BOUNDARY_MAX);
	*m = (struct multipart){ .state = MULTIPART_START, .header_max = header_max };
	memcpy(m->delimiter, DELIMITER_BEGIN, DELIMITER_BEGIN_LENGTH);
	memcpy(m->delimiter + DELIMITER_BEGIN_LENGTH, boundary, boundary_length);
	m->delimiter_length = DELIMITER_BEGIN_LENGTH + boundary_length;
}

void multipart_init_mixed(struct multipart *m, const char *boundary, size_t boundary_length,
                          size_t header_max)
{
	multipart_init(m, boundary, boundary_length, header_max);
	m->is_mixed = true;
}

static enum step bad(struct multipart *m, const char *error)
{
	m->error = error;
	m->state = MULTIPART_FAILED;
	return STEP_BAD;
}

static enum step start_step(struct multipart *m, const struct input *in)
{
	size_t need = m->delimiter_length - 2;
	size_t n = in->length < need ? in->length : need;

	if (memcmp(in->data, m->delimiter + 2, n) != 0 || (n < need && in->is_last)) {
		m->state = MULTIPART_PREAMBLE;
		return STEP_AGAIN;
	}
	if (n < need)
		return STEP_MORE;
	m->at = need;
	m->state = MULTIPART_DELIMITER;
	return STEP_AGAIN;
}

/* Returns where a delimiter may begin, or the length. Pictures have few CRs, so memchr() is fast. A
 * hostile body of CRs must not cost one call for each of them, so the bytes behind a CR are checked
 * here. */
static size_t next_candidate(const struct input *in, size_t at)
{
	for (;;) {
		const char *cr = memchr(in->data + at, '\r', in->length - at);

		if (!cr)
			return in->length;
		at = (size_t)(cr - in->data);
		if (in->length - at < DELIMITER_BEGIN_LENGTH + BYTES_IN_A_ROW)
			return at;
		for (unsigned i = 0; i < BYTES_IN_A_ROW; i++, at++)
			if (memcmp(in->data + at, DELIMITER_BEGIN, DELIMITER_BEGIN_LENGTH) == 0)
				return at;
	}
}

/* Finds the delimiter from m->at on. A boundary has no CR, so candidates never overlap. */
static enum step search_step(struct multipart *m, const struct input *in)
{
	while (m->at < in->length) {
		size_t at = next_candidate(in, m->at), rest = in->length - at;
		size_t n = rest < m->delimiter_length ? rest : m->delimiter_length;

		if (rest == 0)
			break;
		m->at = at;
		if (memcmp(in->data + at, m->delimiter, n) != 0) {
			m->at = at + 1;
		} else if (n == m->delimiter_length) {
			m->is_in_part = m->state == MULTIPART_BODY;
			m->delimiter_at = at;
			m->at = at + n;
			m->state = MULTIPART_DELIMITER;
			return STEP_AGAIN;
		} else if (!in->is_last) {
			return STEP_MORE;
		} else {
			break;
		}
	}
	if (!in->is_last) {
		/* There is no candidate: if one had begun, the loop would have returned. */
		m->at = in->length;
		return STEP_MORE;
	}
	return bad(m, m->state == MULTIPART_BODY
	                      ? "the form ends within a part: its closing boundary is missing"
	                      : "the boundary of Content-Type does not occur in the form");
}

/* The rest of the boundary's line is not that of a delimiter, so all of it is data. */
static enum step not_a_delimiter(struct multipart *m)
{
	m->state = m->is_in_part ? MULTIPART_BODY : MULTIPART_PREAMBLE;
	return STEP_AGAIN;
}

static enum step delimited(struct multipart *m, size_t next, bool is_closing)
{
	bool is_in_part = m->is_in_part;

	if (is_in_part) {
		/* A part without a body may share its line end with the delimiter. */
		size_t end = m->delimiter_at > m->body_at ? m->delimiter_at : m->body_at;

		m->part.body = (struct span){ m->body_at, end - m->body_at };
	}
	m->at = next;
	m->is_in_part = false;
	m->state = is_closing ? MULTIPART_DONE : MULTIPART_HEADER;
	return is_in_part ? STEP_PART : STEP_AGAIN;
}

static enum step delimiter_step(struct multipart *m, const struct input *in)
{
	const char *p = in->data + m->at, *end = in->data + in->length;
	bool is_closing = false;
	size_t padding = 0;

	if (p < end && *p == '-') {
		if (p + 1 == end)
			return in->is_last ? not_a_delimiter(m) : STEP_MORE;
		if (p[1] != '-')
			return not_a_delimiter(m);
		is_closing = true;
		p += 2;
	}
	while (p < end && (*p == ' ' || *p == '\t')) {
		if (++padding > PADDING_MAX)
			return not_a_delimiter(m);
		p++;
	}
	if (p == end) {
		if (!in->is_last)
			return STEP_MORE;
		return is_closing ? delimited(m, in->length, true) : not_a_delimiter(m);
	}
	if (is_closing && (*p == '\r' || *p == '\n'))
		return delimited(m, (size_t)(p - in->data), true);
	if (*p != '\r')
		return not_a_delimiter(m);
	if (p + 1 == end)
		return in->is_last ? not_a_delimiter(m) : STEP_MORE;
	return p[1] == '\n' ? delimited(m, (size_t)(p + 2 - in->data), false) : not_a_delimiter(m);
}

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
	while ((found = field_param_next_lenient(&rest, &param)) > 0) {
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

static enum step header_step(struct multipart *m, const struct input *in)
{
	const char *begin = in->data + m->at;
	size_t length = in->length - m->at;
	size_t block = 0; /* length of the headers with their line ends */

	if (length < 2 && !in->is_last)
		return STEP_MORE;
	if (length < 2 || memcmp(begin, "\r\n", 2) != 0) {
		const char *end = memmem(begin, length < m->header_max ? length : m->header_max,
		                         "\r\n\r\n", 4);

		if (!end && length >= m->header_max)
			return bad(m, "the headers of a part exceed limits.header_bytes");
		if (!end)
			return in->is_last ? bad(m, "the form ends within the headers of a part")
			                   : STEP_MORE;
		block = (size_t)(end - begin) + 2;
	}
	memset(&m->part, 0, sizeof m->part);
	const char *error = read_headers(m, in->data, (struct slice){ begin, block });

	if (error)
		return bad(m, error);
	m->body_at = m->at + block + 2;
	m->at = m->body_at - 2;
	m->state = MULTIPART_BODY;
	return STEP_AGAIN;
}

static enum step done_step(struct multipart *m, const struct input *in)
{
	(void)m;
	(void)in;
	return STEP_END;
}

static enum step failed_step(struct multipart *m, const struct input *in)
{
	(void)m;
	(void)in;
	return STEP_BAD;
}

static const struct {
	const char *name;
	enum step (*step)(struct multipart *m, const struct input *in);
} states[MULTIPART_STATE_COUNT] = {
	[MULTIPART_START] = { "start", start_step },
	[MULTIPART_PREAMBLE] = { "preamble", search_step },
	[MULTIPART_DELIMITER] = { "delimiter", delimiter_step },
	[MULTIPART_HEADER] = { "header", header_step },
	[MULTIPART_BODY] = { "body", search_step },
	[MULTIPART_DONE] = { "done", done_step },
	[MULTIPART_FAILED] = { "failed", failed_step },
};

enum multipart_result multipart_next(struct multipart *m, const char *data, size_t length,
                                     bool is_last, struct multipart_part *part)
{
	const struct input in = { data, length, is_last };
	enum step step;

	assert(m->at <= length);
	do
		step = states[m->state].step(m, &in);
	while (step == STEP_AGAIN);
	switch (step) {
	case STEP_PART:
		*part = m->part;
		return MULTIPART_PART;
	case STEP_END:
		return MULTIPART_END;
	case STEP_MORE:
		debug_assert(!is_last);
		return MULTIPART_MORE;
	default:
		return MULTIPART_BAD;
	}
}

/* ---- names ---- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Returns the byte for %XX at the head of raw, or -1 if it must not be decoded. */
static int percent_value(struct slice raw, bool is_extended)
{
	if (raw.length < 3 || raw.data[0] != '%')
		return -1;
	int high = hex_value(raw.data[1]), low = hex_value(raw.data[2]);

	if (high < 0 || low < 0)
		return -1;
	int value = high * 16 + low;
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
