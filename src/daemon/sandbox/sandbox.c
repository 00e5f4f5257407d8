/*
 * sandbox.c - the order: user, core dumps, no_new_privs, Landlock, seccomp. Main thread.
 */
#include "sandbox.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/opener.h"
#include "base/text.h"
#include "conf/conf.h"
#include "conf/conf_endpoint.h"
#include "conf/conf_source.h"
#include "log/log.h"

/* The runtime of a sanitizer opens files and starts processes: for symbols, and to find leaks. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED true
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED true
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED false
#endif

/* ---- the user ---- */

static int change_user(const struct passwd *user)
{
	if (initgroups(user->pw_name, user->pw_gid) ||
	    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) ||
	    setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return -errno;
	if (user->pw_uid != 0 && setuid(0) == 0)
		return -EPERM; /* root could be regained */
	return 0;
}

int sandbox_become_user(const struct conf *conf)
{
	const char *name = conf->server.user;

	if (!*name) {
		if (geteuid() != 0)
			return 0;
		log_error("running as root: expected server.user with the user to become; "
		          "-o server.user=root stays root");
		return -EPERM;
	}
	errno = 0;
	const struct passwd *user = getpwnam(name);

	if (!user) {
		int err = errno ? -errno : -ENOENT;

		log_error("%sserver.user = %s: %s", conf_place("server.user"), name,
		          err == -ENOENT ? "unknown user" : strerror(-err));
		return err;
	}
	if (user->pw_uid == geteuid() && user->pw_uid == getuid())
		return 0;
	int err = change_user(user);

	if (err)
		log_error("%sserver.user = %s: cannot become this user: %s",
		          conf_place("server.user"), name, strerror(-err));
	return err;
}

/* ---- core dumps ---- */

int sandbox_limit_cores(const struct conf *conf)
{
	const struct rlimit none = { 0 };
	bool is_allowed = conf->experiment.core_dumps == CONF_YES;

	/* A change of the user has cleared it, also where cores are wanted. The limit alone would
	 * not do: the kernel ignores it if a program collects cores (core(5)). */
	if (prctl(PR_SET_DUMPABLE, is_allowed, 0, 0, 0) ||
	    (!is_allowed && setrlimit(RLIMIT_CORE, &none))) {
		int err = -errno;

		log_error("experiment.core_dumps: cannot set it: %s", strerror(-err));
		return err;
	}
	return 0;
}

/* ---- the sandbox ---- */

static bool is_wanted(const struct conf *conf)
{
	return conf->server.sandbox != CONF_SANDBOX_OFF && !IS_SANITIZED;
}

/* Also the port of an S3 store, and the file that it needs for TLS. */
static struct sandbox_allowed allowed_by(const struct conf *conf)
{
	struct sandbox_allowed allowed = { .root = sandbox_files_root(conf->server.root) };
	struct conf_endpoint e;

	if (conf->store.kind == CONF_STORE_S3 && conf_endpoint_parse(conf->store.s3_endpoint, &e)) {
		allowed.port = e.port;
		allowed.read_file = e.is_tls ? conf->store.s3_ca_file : NULL;
	}
	return allowed;
}

static bool has_files(void)
{
	return sandbox_files_version() >= SANDBOX_FILES_MIN;
}

void sandbox_describe(const struct conf *conf, struct text *to)
{
	if (!is_wanted(conf)) {
		text_printf(to, "sandbox: off (%s)",
		            IS_SANITIZED ? "this build has a sanitizer" : "server.sandbox = off");
		return;
	}
	text_puts(to, "sandbox: no new privileges; ");
	sandbox_files_describe(allowed_by(conf).port, to);
	text_puts(to, sandbox_calls_are_supported()
	                      ? "; seccomp: only the system calls that it needs"
	                      : "; no seccomp (this kernel does not have it)");
	if (*conf->server.user)
		text_printf(to, "; user %s", conf->server.user);
	else if (geteuid() == 0)
		text_puts(to, "; root cannot start the daemon, because server.user is empty");
}

int sandbox_start_opener(const struct conf *conf, const char *config_path)
{
	struct opener_file file[OPENER_FILES_MAX];
	unsigned count = 0;

	if (!is_wanted(conf) || !has_files())
		return 0;
	if (config_path)
		file[count++] = (struct opener_file){ config_path, OPENER_READ };
	if (*conf->access.tokens_file)
		file[count++] = (struct opener_file){ conf->access.tokens_file, OPENER_READ_FILE };
	if (conf->store.kind == CONF_STORE_S3)
		file[count++] =
			(struct opener_file){ conf->store.s3_credentials, OPENER_READ_FILE };
	if (conf->log.access_file[0] == '/')
		file[count++] = (struct opener_file){ conf->log.access_file, OPENER_APPEND_FILE };
	int err = count ? opener_start(file, count) : 0;

	if (err)
		log_error("sandbox: cannot start the process that opens files: %s", strerror(-err));
	return err;
}

int sandbox_enter(const struct conf *conf)
{
	const struct sandbox_allowed allowed = allowed_by(conf);
	struct text line = TEXT_LOCAL(512);
	int err = 0;

	sandbox_describe(conf, &line);
	log_notice("%s", line.data);
	if (!is_wanted(conf))
		return 0;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && has_files())
		err = sandbox_files_enter(&allowed);
	if (!err && sandbox_calls_are_supported())
		err = sandbox_calls_enter(conf->experiment.counters == CONF_YES, allowed.port != 0);
	if (err)
		log_error("sandbox: cannot enter it: %s; server.sandbox = off runs without it",
		          strerror(-err));
	return err;
}
