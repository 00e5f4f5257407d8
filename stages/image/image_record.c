/* image_record.c - writes image.json; allocates nothing. Any thread. */
#include "image_record.h"

#include "base/json.h"
#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_json.h"
#include "store/stored_image.h"
#include "store/stored_lack.h"

void image_record_variant(struct json *j, const struct image *image, unsigned index,
                          const struct image_sums *sums)
{
	const struct upload *u = image->upload;
	struct conf_variant made;

	conf_degrade_variant(&u->epoch->degrade, u->level, &u->epoch->conf.variant[index], &made);
	json_object(j, made.name);
	stored_settings_json(j, &made);
	json_string(j, "xxh128", sums->variant[index]);
	json_object_end(j);
}

static void variants_json(struct json *j, const struct image *image, const struct image_sums *sums)
{
	json_object(j, "variants");
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++)
		if (image_makes(image, i))
			image_record_variant(j, image, i, sums);
	json_object_end(j);
}

void image_record_begin(struct json *j, const struct image *image)
{
	char uploaded[ULID_DATE_MAX];

	ulid_date(image->id, uploaded);
	json_string(j, "uploaded", uploaded);
	json_object(j, "upload");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "format", "image/jpeg");
	if (image->upload->token_name[0])
		json_string(j, "token", image->upload->token_name);
	json_object_end(j);
}

void image_record_original(struct json *j, const struct image *image, const char *sum)
{
	json_object(j, "original");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "xxh128", sum);
	json_object_end(j);
}

void image_record_end(struct json *j)
{
	char own[CHECKSUM_LENGTH + 1];

	checksum_of(j->text->data, j->text->length, own);
	json_string(j, "xxh128", own);
	json_object_end(j);
	json_object_end(j);
	text_puts(j->text, "\n");
}

void image_record_write(struct text *t, const struct image *image, const struct image_sums *sums)
{
	struct json j;

	json_init(&j, t);
	json_object(&j, NULL);
	image_json(&j, image, true);
	json_object(&j, STORED_RECORD);
	image_record_begin(&j, image);
	if (sums->original)
		image_record_original(&j, image, sums->original);
	variants_json(&j, image, sums);
	image_record_end(&j);
}
