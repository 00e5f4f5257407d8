/*
 * conf_keys_store.c - rows of the table of keys: [store].
 */
#include "base/check.h"
#include "conf.h"
#include "conf_endpoint.h"
#include "conf_fields.h"
#include "conf_keys.h"

#define TIB (UINT64_C(1) << 40)
#define CONF_MS_PER_DAY (UINT64_C(24) * CONF_MS_PER_HOUR)

static const struct conf_choice kind_choices[] = { { "file", CONF_STORE_FILE },
	                                           { "s3", CONF_STORE_S3 },
	                                           { 0 } };
static const struct conf_choice serve_choices[] = { { "proxy", CONF_SERVE_PROXY },
	                                            { "redirect", CONF_SERVE_REDIRECT },
	                                            { 0 } };

static const struct conf_choice spool_choices[] = {
	{ "none", CONF_SPOOL_NONE }, { "file", CONF_SPOOL_FILE }, { "s3", CONF_SPOOL_S3 }, { 0 }
};

static const struct conf_key rows[] = {
	{
		CONF_KEY(store, kind, kind),
		.type = CONF_TYPE_CHOICE,
		.choices = kind_choices,
		.default_value = "file",
		.help = "Where images are kept. file: in files below server.root. s3: as objects in a\n"
			"bucket of an S3 store, which several nodes may share; any of them then serves any\n"
			"image. server.root is then for files that live as long as a request. What needs\n"
			"files is refused at the start: see darkroomd(8), OBJECT STORE.",
	},
	{
		CONF_KEY(store, s3_endpoint, s3_endpoint),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_endpoint_is_valid,
		.form = CONF_ENDPOINT_FORM,
		.default_value = "",
		.help = "Where the S3 store is, such as https://s3.eu-central-1.amazonaws.com. Its\n"
			"addresses are looked up once, at the start.",
	},
	{
		CONF_KEY(store, s3_bucket, s3_bucket),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_bucket_is_valid,
		.form = CONF_BUCKET_FORM,
		.default_value = "",
		.help = "The bucket, which must exist. Requests have it in their path.",
	},
	{
		CONF_KEY(store, s3_prefix, s3_prefix),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_prefix_is_valid,
		.form = CONF_PREFIX_FORM,
		.default_value = "",
		.help = "All keys of objects begin with it, so that a bucket may have other ones.",
	},
	{
		CONF_KEY(store, s3_region, s3_region),
		.type = CONF_TYPE_TEXT,
		.min = 1,
		.default_value = "us-east-1",
		.help = "The region that requests are signed for.",
	},
	{
		CONF_KEY(store, s3_credentials, s3_credentials),
		.type = CONF_TYPE_PATH,
		.default_value = "",
		.help = "A file with lines aws_access_key_id = ..., aws_secret_access_key = ... and\n"
			"perhaps aws_session_token = ..., for example a credential of systemd below\n"
			"/run/credentials. It is read again when it changes.",
	},
	{
		CONF_KEY(store, s3_ca_file, s3_ca_file),
		.type = CONF_TYPE_PATH,
		.min = 1,
		.default_value = "/etc/ssl/certs/ca-certificates.crt",
		.help = "The certificates that an endpoint with https:// is checked by.",
	},
	{
		CONF_KEY(store, s3_serve, s3_serve),
		.type = CONF_TYPE_CHOICE,
		.choices = serve_choices,
		.default_value = "proxy",
		.help = "How a GET of a variant is answered. proxy: by its content. redirect: by the\n"
			"status 307 and a URL of the store that is valid for five minutes.",
	},
	{
		CONF_KEY(store, s3_connections, s3_connections),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 1024,
		.default_value = "32",
		.help = "Connections to the S3 store, at most. They are kept open.",
	},
	{
		CONF_KEY(store, s3_timeout, s3_timeout_ms),
		.type = CONF_TYPE_MS,
		.min = 1000,
		.max = 60000,
		.default_value = "5s",
		.help = "How long the S3 store may be silent. A request to it is then repeated, up to five\n"
			"times within four times that time.",
	},
	{
		CONF_KEY(store, s3_spool, s3_spool),
		.type = CONF_TYPE_CHOICE,
		.choices = spool_choices,
		.default_value = "none",
		.help = "Where an upload waits that is answered 202, before its variants are stored. none:\n"
			"no upload is answered 202. file: in ROOT/.spool; also while the S3 store is away,\n"
			"so that such an upload is then accepted. The same node makes and stores it\n"
			"later, also after a crash. s3: in the store, so that another node makes it if\n"
			"this one ends. The store must then do conditional PUTs.",
	},
	{
		CONF_KEY(store, s3_spool_bytes, s3_spool_bytes),
		.type = CONF_TYPE_BYTES,
		.min = UINT64_C(64) << 10,
		.max = 1024 * TIB,
		.default_value = "1G",
		.help = "Bytes in ROOT/.spool, at most, with store.s3_spool = file. Each image counts with\n"
			"8 KiB more than its size. Uploads that do not fit are answered 503.",
	},
	{
		CONF_KEY(store, s3_lease, s3_lease_ms),
		.type = CONF_TYPE_MS,
		.min = 10000,
		.max = CONF_MS_PER_HOUR,
		.default_value = "1m",
		.help = "How long a node may be silent, with store.s3_spool = s3, before another one makes\n"
			"its images. At least ten times store.s3_timeout. Nodes look for such images at\n"
			"least twice in that time. Their clocks should differ by less than a second.",
	},
	{
		CONF_KEY(store, max_age, max_age_ms),
		.type = CONF_TYPE_MS,
		.max = 36500 * CONF_MS_PER_DAY,
		.default_value = "0",
		.is_live = true,
		.help = "Images that were uploaded longer ago are removed: 365d is a year. They are\n"
			"answered 404 at once, and no cache may keep them longer. 0: no limit.",
	},
	{
		CONF_KEY(store, max_bytes, max_bytes),
		.type = CONF_TYPE_BYTES,
		.max = 1024 * TIB,
		.default_value = "0",
		.is_live = true,
		.help = "Bytes of all stored files, without image.json. If there are more, the oldest\n"
			"images are removed. After a crash, and after darkroomd store remove, the\n"
			"daemon counts the images first, in the background. 0: no limit.",
	},
	{
		CONF_KEY(store, sweep_interval, sweep_interval_ms),
		.type = CONF_TYPE_MS,
		.min = 100,
		.max = CONF_MS_PER_DAY,
		.default_value = "1m",
		.is_live = true,
		.help = "How often images to remove are looked for.",
	},
	{
		CONF_KEY(store, sweep_rate, sweep_rate),
		.type = CONF_TYPE_NUMBER,
		.min = 1,
		.max = 100000,
		.default_value = "500",
		.is_live = true,
		.help = "Images removed in a second, at most. Uploads come first: while images are in\n"
			"flight, each batch of removals waits for up to 100 ms.",
	},
	{
		CONF_KEY(store, metadata, metadata),
		.type = CONF_TYPE_NOTATION,
		.is_valid = conf_fields_are_valid,
		.form = CONF_FIELDS_FORM,
		.default_value = "",
		.is_live = true,
		.help = "Fields of upload forms, at most 8, that are kept as texts with each image of the\n"
			"form and returned in its JSON, such as caption, user. Others are ignored.",
	},
	{
		CONF_KEY(store, make_missing, make_missing),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether a GET of a variant that a stored image lacks makes it from the original,\n"
			"with all others that it lacks, also those that overload.degrade has skipped.\n"
			"Uploads come first. If 32 images wait for that, or 4 of one client, the answer\n"
			"is 503. Needs server.keep_originals = yes when the image is uploaded. If not,\n"
			"the answer is 404: see darkroom-store(7), remake.",
	},
	{
		CONF_KEY(store, placeholder, placeholder),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "yes",
		.is_live = true,
		.help = "Keeps the average colour of each image and a ThumbHash, 25 bytes from which a page\n"
			"draws a blurred picture until it has the real one, and returns them in its\n"
			"JSON. They are made from the smallest variant.",
	},
	{
		CONF_KEY(store, idempotency_age, idempotency_age_ms),
		.type = CONF_TYPE_MS,
		.max = 30 * CONF_MS_PER_DAY,
		.default_value = "24h",
		.is_live = true,
		.help = "How long the Idempotency-Key of an upload is remembered. A repeated upload gets\n"
			"the first one's images meanwhile. 0: the field is ignored.",
	},
	{
		CONF_KEY(store, dedupe, dedupe),
		.type = CONF_TYPE_CHOICE,
		.choices = conf_yes_no,
		.default_value = "no",
		.is_live = true,
		.help = "Whether a file that its client uploads again gets the image that it made, for\n"
			"store.idempotency_age. Only for uploads of one file without Idempotency-Key and\n"
			"X-Expires-After. Another configuration of the variants makes another image.",
	},
};

const struct conf_key_list conf_keys_store = { rows, COUNT_OF(rows) };
