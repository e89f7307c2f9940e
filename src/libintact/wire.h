#ifndef LIBINTACT_WIRE_H
#define LIBINTACT_WIRE_H

/* Shared by client and agent: HTTP with libcurl. */

#include <curl/curl.h>
#include <signal.h>

#include "base/buf.h"
#include "net/reactor.h"

enum { WIRE_ANSWER_MAX = 64 << 20 }; /* bytes of an answer; a longer one fails the call */

/* The argument, or INTACT_SERVER of the environment, or the default. Never NULL. */
const char *wire_server(const char *given);
const char *wire_token(const char *given); /* or INTACT_TOKEN; NULL: none */

const char *wire_ca(const char *given); /* or INTACT_CA; NULL: the system's */

/* Whether the URL is on a loopback address, and its port. */
bool wire_is_loopback(const char *url, int *ret_port);

/* Headers of a call; free with curl_slist_free_all. `token` and `type` may be NULL. */
struct curl_slist *wire_headers(const char *token, const char *type);

struct curl_slist *wire_add_header(struct curl_slist *list, const char *line);

/* Sets a handle's address and trust (`ca`: a file of certificates, PEM; may be NULL). A loopback
 * address never uses a proxy, which would get the token. */
bool wire_address(CURL *easy, const char *url, const char *ca) MUST_USE;

/* Sets the common options: the answer goes to `answer`, the reason of a failure to `why`
 * (CURL_ERROR_SIZE bytes). False: out of memory. */
bool wire_prepare(CURL *easy, struct buf *answer, char *why) MUST_USE;

/* Blocks, between hold and release, a signal that the calling thread's own writes raise, whatever
 * the program does with that signal elsewhere. */
struct wire_held {
    sigset_t before;
    int number;
    bool was_pending;
};

void wire_hold(struct wire_held *h, int number);
void wire_release(struct wire_held *h); /* by the same thread */

#endif
