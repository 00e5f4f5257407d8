/*
 * conf_keys_variant.c - rows of the table of keys: [variant.NAME], and the reference variants.
 */
#include "base/check.h"
#include "conf.h"
#include "conf_keys.h"

static const struct conf_choice chroma_choices[] = { { "420", CONF_CHROMA_420 },
	                                             { "444", CONF_CHROMA_444 },
	                                             { 0 } };

static const struct conf_key rows[] = {
	{
		CONF_KEY_OF(variant, operations, operations),
		.type = CONF_TYPE_TEXT,
		.min = 1,
		.is_live = true,
		.help = "Operations on the picture, in this order, separated by commas:\n"
			"  scale WIDTHxHEIGHT inside  as large as fits inside, proportions kept\n"
			"  scale WIDTHxHEIGHT cover   exactly this size, cropped alike on both sides;\n"
			"                             top, bottom, left, right or X%:Y% behind it\n"
			"                             names the part to keep, as does the field focus\n"
			"                             of an upload, which comes first\n"
			"  scale WIDTHxHEIGHT exact   exactly this size, proportions not kept\n"
			"  blur SIGMA                 Gaussian, 0.3 to 200 pixels of the scaled picture\n"
			"  sharpen AMOUNT [SIGMA]     unsharp mask, brightness only: adds 0.05 to 10\n"
			"                             times what a blur by 0.3 to 20 pixels (default\n"
			"                             1) removes\n"
			"  grayscale                  without colours\n"
			"  rotate 90, 180 or 270      degrees clockwise",
	},
	{
		CONF_KEY_OF(variant, enlarge, enlarge),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether scale may enlarge pictures, up to limits.width, height and pixels. If\n"
			"not: inside and exact keep a side that is smaller, and cover makes the largest\n"
			"picture of the box's proportions.",
	},
	{
		CONF_KEY_OF(variant, quality, quality),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 100,
		.default_value = "82",
		.is_live = true,
		.help = "Quality of the JPEG.",
	},
	{
		CONF_KEY_OF(variant, chroma, chroma),
		.type = CONF_TYPE_CHOICE,
		.choices = chroma_choices,
		.default_value = "420",
		.is_live = true,
		.help = "Resolution of the colours. 420: half in both directions, as in most JPEGs.\n"
			"444: full. Files are larger, and edges between colours are sharper, for\n"
			"example in text and drawings.",
	},
	{
		CONF_KEY_OF(variant, progressive, progressive),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether the JPEG is progressive: it shows all of the picture early. It is\n"
			"smaller by about 5 % and takes seven times the work.",
	},
	{
		CONF_KEY_OF(variant, optimize, optimize),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "yes",
		.is_live = true,
		.help = "Whether Huffman tables are made for the file, as progressive files always have\n"
			"them. The file is 3 to 15 % smaller, for 3 % more CPU time per image (40 %\n"
			"with libjpeg-turbo 3).",
	},
};

const struct conf_key_list conf_keys_variant = { rows, COUNT_OF(rows) };

#define REFERENCE(name_, operations_, quality_)                                                    \
	{                                                                                          \
		.name = name_, .operations = operations_, .enlarge = CONF_NO, .quality = quality_, \
		.chroma = CONF_CHROMA_420, .progressive = CONF_NO, .optimize = CONF_YES            \
	}

static const struct conf_variant reference_variants[] = {
	REFERENCE("medium", "scale 800x800 inside", 82),
	REFERENCE("thumb", "scale 160x160 inside", 80),
	REFERENCE("blurred", "scale 800x800 inside, blur 8", 75),
};

const struct conf_variant *conf_reference_variant_at(size_t index)
{
	return index < COUNT_OF(reference_variants) ? &reference_variants[index] : NULL;
}
