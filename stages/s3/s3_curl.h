/*
 * s3_curl.h - libcurl, loaded only for store.kind = s3.
 *
 * It brings 29 libraries, 6 MB and 6 ms to the start of a process, which a daemon with files does
 * not need. Its functions are pointers here, with the types of curl/curl.h.
 */
#ifndef DARKROOM_S3_CURL_H
#define DARKROOM_S3_CURL_H

#include <curl/curl.h>

/* X(field, name in the library, type of the result, parameters) */
#define S3_CURL_FUNCTIONS(X)                                                              \
	X(global_init, "curl_global_init", CURLcode, (long))                              \
	X(global_cleanup, "curl_global_cleanup", void, (void))                            \
	X(easy_init, "curl_easy_init", CURL *, (void))                                    \
	X(easy_cleanup, "curl_easy_cleanup", void, (CURL *))                              \
	X(easy_reset, "curl_easy_reset", void, (CURL *))                                  \
	X(easy_setopt, "curl_easy_setopt", CURLcode, (CURL *, CURLoption, ...))           \
	X(easy_getinfo, "curl_easy_getinfo", CURLcode, (CURL *, CURLINFO, ...))           \
	X(easy_strerror, "curl_easy_strerror", const char *, (CURLcode))                  \
	X(multi_init, "curl_multi_init", CURLM *, (void))                                 \
	X(multi_cleanup, "curl_multi_cleanup", CURLMcode, (CURLM *))                      \
	X(multi_setopt, "curl_multi_setopt", CURLMcode, (CURLM *, CURLMoption, ...))      \
	X(multi_add_handle, "curl_multi_add_handle", CURLMcode, (CURLM *, CURL *))        \
	X(multi_remove_handle, "curl_multi_remove_handle", CURLMcode, (CURLM *, CURL *))  \
	X(multi_info_read, "curl_multi_info_read", CURLMsg *, (CURLM *, int *))           \
	X(multi_socket_action, "curl_multi_socket_action", CURLMcode,                     \
	  (CURLM *, curl_socket_t, int, int *))                                           \
	X(multi_assign, "curl_multi_assign", CURLMcode, (CURLM *, curl_socket_t, void *)) \
	X(slist_append, "curl_slist_append", struct curl_slist *,                         \
	  (struct curl_slist *, const char *))                                            \
	X(slist_free_all, "curl_slist_free_all", void, (struct curl_slist *))

struct s3_curl {
#define X(field, name, type, parameters) type(*field) parameters;
	S3_CURL_FUNCTIONS(X)
#undef X
};

extern struct s3_curl s3_curl; /* of no use before s3_curl_load() */

/* Loads and initialises the library, which stays loaded. Returns 0, or -ENOENT with the reason
 * logged. Main thread, before the sandbox is entered. */
int s3_curl_load(void);

#endif
