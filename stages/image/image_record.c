/* image_record.c - writes image.json; allocates nothing. Any thread. */
#include "image_record.h"

#include "base/json.h"
#include "base/text.h"
#include "conf_epoch.h"
#include "image.h"
#include "image_json.h"
#include "store/stored_image.h"

static void settings_json(struct json *j, const struct conf_variant *variant)
{
	json_string(j, "operations", variant->operations);
	json_bool(j, "enlarge", variant->enlarge == CONF_YES);
	json_uint(j, "quality", variant->quality);
	json_string(j, "chroma", variant->chroma == CONF_CHROMA_444 ? "444" : "420");
	json_bool(j, "progressive", variant->progressive == CONF_YES);
	json_bool(j, "optimize", variant->optimize == CONF_YES);
}

static void variants_json(struct json *j, const struct image *image, const struct image_sums *sums)
{
	const struct upload *u = image->upload;

	json_object(j, "variants");
	for (unsigned i = 0; i < image_plan(image)->variant_count; i++) {
		struct conf_variant made;

		if (!conf_degrade_variant(&u->epoch->degrade, u->level, &u->epoch->conf.variant[i],
		                          &made))
			continue;
		json_object(j, made.name);
		settings_json(j, &made);
		json_string(j, "xxh128", sums->variant[i]);
		json_object_end(j);
	}
	json_object_end(j);
}

static void upload_json(struct json *j, const struct image *image)
{
	json_object(j, "upload");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "format", "image/jpeg");
	if (image->upload->token_name[0])
		json_string(j, "token", image->upload->token_name);
	json_object_end(j);
}

static void original_json(struct json *j, const struct image *image, const char *sum)
{
	json_object(j, "original");
	json_uint(j, "bytes", image->source_size);
	json_string(j, "xxh128", sum);
	json_object_end(j);
}

void image_record_write(struct text *t, const struct image *image, const struct image_sums *sums)
{
	char uploaded[ULID_DATE_MAX], own[CHECKSUM_LENGTH + 1];
	struct json j;

	ulid_date(image->id, uploaded);
	json_init(&j, t);
	json_object(&j, NULL);
	image_json(&j, image, true);
	json_object(&j, STORED_RECORD);
	json_string(&j, "uploaded", uploaded);
	upload_json(&j, image);
	if (sums->original)
		original_json(&j, image, sums->original);
	variants_json(&j, image, sums);
	checksum_of(t->data, t->length, own);
	json_string(&j, "xxh128", own);
	json_object_end(&j);
	json_object_end(&j);
	text_puts(t, "\n");
}
