/* test_dataset.c - whole datasets: reproducible bytes, interruptions, and files as specified. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataset/exif_writer.c"
#include "dataset/file_maker.c"
#include "dataset/file_mix.c"
#include "dataset/generate.c"
#include "dataset/jpeg_writer.c"
#include "dataset/output_dir.c"
#include "dataset/paint.c"
#include "dataset/scene.c"
#include "dataset/size_table.c"
#include "dataset/texture.c"
#include "pixel/metadata.h"

#define FILES 12 /* in the mix */

static const struct file_mix small = {
	.seed = 5,
	.count = { [FILE_GOOD] = 8, [FILE_TRUNCATED] = 2, [FILE_NOT_JPEG] = 1, [FILE_EMPTY] = 1 }
};

struct fixture {
	char first[40], second[64]; /* directories; the first one holds the small set */
};

static int make(const char *path, uint64_t seed, unsigned jobs)
{
	struct generate_conf conf = { .mix = small, .path = path, .jobs = jobs };

	conf.mix.seed = seed;
	return generate(&conf);
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(path);
}

static void path_of(const char *directory, uint32_t index, char path[128])
{
	char name[FILE_NAME_SIZE];
	struct file_spec f;

	file_mix_spec(&small, index, &f);
	file_mix_name(&f, name);
	snprintf(path, 128, "%s/%s", directory, name);
}

/* Returns the file's bytes, for free(). */
static uint8_t *contents(const char *directory, uint32_t index, size_t *size)
{
	char path[128];
	uint8_t *data;
	struct stat st;
	FILE *f;

	path_of(directory, index, path);
	f = fopen(path, "rb");
	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	*size = (size_t)st.st_size;
	data = malloc(*size + 1);
	assert_non_null(data);
	assert_int_equal(fread(data, 1, *size, f), *size);
	fclose(f);
	return data;
}

static void assert_same(const char *a, const char *b)
{
	size_t size_a, size_b;
	uint32_t i;

	for (i = 0; i < FILES; i++) {
		uint8_t *data_a = contents(a, i, &size_a), *data_b = contents(b, i, &size_b);

		assert_int_equal(size_a, size_b);
		assert_memory_equal(data_a, data_b, size_a);
		free(data_a);
		free(data_b);
	}
}

static int begin_all(void **state)
{
	static struct fixture f;

	snprintf(f.first, sizeof f.first, "/tmp/test_dataset.XXXXXX");
	if (!mkdtemp(f.first))
		return -1;
	snprintf(f.second, sizeof f.second, "%s.second", f.first);
	*state = &f;
	return make(f.first, small.seed, 3);
}

static int end_all(void **state)
{
	struct fixture *f = *state;

	remove_all(f->first);
	return 0;
}

static int end_second(void **state)
{
	struct fixture *f = *state;

	atomic_store(&is_stopped, 0);
	remove_all(f->second);
	return 0;
}

static void bytes_are_the_same_with_any_number_of_jobs(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(make(f->second, small.seed, 1), 0);
	assert_same(f->first, f->second);
}

/* The state after a kill while a file was being written. */
static void an_interrupted_run_is_resumed(void **state)
{
	struct fixture *f = *state;
	struct stat before, after;
	char gone[128], kept[128], rest[160], name[FILE_NAME_SIZE];
	struct file_spec file;
	size_t size, size_again;
	uint8_t *data = contents(f->first, 3, &size), *again;
	FILE *part_file;

	path_of(f->first, 3, gone);
	path_of(f->first, 4, kept);
	file_mix_spec(&small, 3, &file);
	file_mix_name(&file, name);
	snprintf(rest, sizeof rest, "%s/.%s.part", f->first, name);
	assert_int_equal(rename(gone, rest), 0);
	part_file = fopen(rest, "ab");
	assert_non_null(part_file);
	fputs("longer than the file that replaces it", part_file);
	fclose(part_file);
	assert_int_equal(stat(kept, &before), 0);
	assert_int_equal(make(f->first, small.seed, 2), 0);
	assert_int_equal(stat(kept, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_not_equal(access(rest, F_OK), 0);
	again = contents(f->first, 3, &size_again);
	assert_int_equal(size_again, size);
	assert_memory_equal(again, data, size);
	free(again);
	free(data);
}

static void a_stopped_run_is_incomplete(void **state)
{
	struct fixture *f = *state;
	char path[128];

	generate_stop();
	assert_int_equal(make(f->second, small.seed, 2), -1);
	path_of(f->second, 0, path);
	assert_int_not_equal(access(path, F_OK), 0);
}

static void other_directories_are_refused(void **state)
{
	struct fixture *f = *state;
	char path[128];
	FILE *other;

	assert_int_equal(make(f->first, small.seed + 1, 1), -1);
	assert_int_equal(mkdir(f->second, 0700), 0);
	snprintf(path, sizeof path, "%s/holiday.jpg", f->second);
	other = fopen(path, "wb");
	assert_non_null(other);
	fclose(other);
	assert_int_equal(make(f->second, small.seed, 1), -1);
	assert_int_equal(make(path, small.seed, 1), -1);
	assert_int_equal(make("/nowhere/at/all", small.seed, 1), -1);
}

static void one_process_uses_a_directory_at_a_time(void **state)
{
	struct fixture *f = *state;
	int fd = open(f->first, O_RDONLY | O_DIRECTORY);

	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(make(f->first, small.seed, 1), -1);
	close(fd);
	assert_int_equal(make(f->first, small.seed, 1), 0);
}

static void failed_writes_are_reported(void **state)
{
	struct output_dir d = { .fd = -1 };
	struct iovec parts[1] = { { .iov_base = (char[]){ "x" }, .iov_len = 1 } };

	(void)state;
	assert_int_equal(output_dir_write(&d, "name", parts, 1), -EBADF);
}

/* Decodes the file. Returns the number of libjpeg's warnings. */
static long decode(const uint8_t *data, size_t size, const struct file_spec *f)
{
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr error;
	static uint8_t row[3 * SCENE_SIDE_MAX];
	JSAMPROW rows[] = { row };
	long warnings;

	jpeg.err = jpeg_std_error(&error);
	error.output_message = on_message;
	jpeg_create_decompress(&jpeg);
	jpeg_mem_src(&jpeg, data, size);
	assert_int_equal(jpeg_read_header(&jpeg, TRUE), JPEG_HEADER_OK);
	assert_int_equal(jpeg.num_components, f->form.sampling == JPEG_GREY ? 1 : 3);
	assert_int_equal(jpeg.comp_info[0].h_samp_factor,
	                 f->form.sampling == JPEG_420 || f->form.sampling == JPEG_422 ? 2 : 1);
	assert_int_equal(jpeg.comp_info[0].v_samp_factor, f->form.sampling == JPEG_420 ? 2 : 1);
	assert_int_equal(jpeg.progressive_mode, f->form.is_progressive);
	jpeg_start_decompress(&jpeg);
	while (jpeg.output_scanline < jpeg.output_height)
		jpeg_read_scanlines(&jpeg, rows, 1);
	jpeg_finish_decompress(&jpeg);
	warnings = error.num_warnings;
	jpeg_destroy_decompress(&jpeg);
	return warnings;
}

static void files_are_as_specified(void **state)
{
	static struct metadata metadata;
	struct fixture *f = *state;
	struct file_spec file;
	size_t size;
	uint32_t i;

	for (i = 0; i < FILES; i++) {
		uint8_t *data = contents(f->first, i, &size);

		file_mix_spec(&small, i, &file);
		if (file.kind == FILE_GOOD) {
			assert_int_equal(decode(data, size, &file), 0);
			assert_in_range(size, file.bytes * 98 / 100, file.bytes * 102 / 100 + 1);
			metadata_read(&metadata, data, size);
			assert_int_equal(metadata.orientation, file.orientation);
		} else if (file.kind == FILE_TRUNCATED) {
			assert_true(decode(data, size, &file) > 0);
			assert_int_equal(size, file.cut_bytes);
		} else if (file.kind == FILE_NOT_JPEG) {
			assert_int_equal(size, file.bytes);
			assert_int_not_equal(data[0], 0xff);
		} else {
			assert_int_equal(size, 0);
		}
		free(data);
	}
}

static void exif_has_every_orientation(void **state)
{
	static uint8_t out[EXIF_SEGMENT_MAX], thumbnail[EXIF_THUMBNAIL_MAX];
	struct exif x = { .width = 4000,
		          .height = 3000,
		          .thumbnail = thumbnail,
		          .thumbnail_size = EXIF_THUMBNAIL_MAX };

	(void)state;
	for (x.orientation = 1; x.orientation <= 8; x.orientation++) {
		size_t size;

		x.id = x.orientation * UINT64_C(0x123456789);
		x.note_size = x.orientation & 1 ? EXIF_NOTE_MIN : EXIF_NOTE_MAX;
		size = exif_write(&x, out);
		assert_in_range(size, EXIF_THUMBNAIL_MAX + x.note_size, EXIF_SEGMENT_MAX);
		assert_int_equal(out[2] * 256 + out[3] + 2, size);
		assert_int_equal(exif_orientation(out + 4, size - 4), x.orientation);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_as_specified),
		cmocka_unit_test_teardown(bytes_are_the_same_with_any_number_of_jobs, end_second),
		cmocka_unit_test(an_interrupted_run_is_resumed),
		cmocka_unit_test_teardown(a_stopped_run_is_incomplete, end_second),
		cmocka_unit_test_teardown(other_directories_are_refused, end_second),
		cmocka_unit_test(one_process_uses_a_directory_at_a_time),
		cmocka_unit_test(failed_writes_are_reported),
		cmocka_unit_test(exif_has_every_orientation),
	};

	return cmocka_run_group_tests(tests, begin_all, end_all);
}
