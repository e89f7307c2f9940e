#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H

/*
 * One request to a service and its answer, over libcurl. Whatever the service does, no more than
 * the limits say is kept of it, and what came of it is one of a few outcomes with words for people.
 */

#include <curl/curl.h>

#include "base/list.h"
#include "net/address.h"
#include "net/answer.h"

enum {
    HEAD_MAX = 64 << 10, /* bytes of all heads of an answer */
    HEAD_LINES_MAX = 256,
};

/* Of all transfers to one service. */
struct transfer_config {
    const char *user_agent;
    const char *ca, *cert, *key; /* files; NULL: the system's, none */
    const char *proxy;           /* NULL: none */
    bool http2, is_https;
    int64_t connect_timeout_ms;
    size_t answer_max;        /* bytes of a body */
    struct networks networks; /* private ones that may be called */
};

struct transfer {
    struct link link; /* of its service: among those at rest */
    CURL *easy;
    const struct transfer_config *config;
    void *owner; /* of the request that is under way; NULL: at rest */
    struct curl_slist *lines;
    struct buf head, body;
    size_t head_lines;
    bool is_head_whole; /* the empty line behind the last one has come */
    bool is_head_too_large, is_body_too_large;
    char forbidden[64];        /* an address that it must not connect to; "": none */
    bool was_tried;            /* another one, that it may */
    char why[CURL_ERROR_SIZE]; /* what libcurl says */
    int64_t within_ms;         /* what it was given */
};

/* What is sent. Texts are the caller's, and stay until the transfer has ended. */
struct question {
    const char *method, *url;
    struct slice body;        /* NONE: none */
    struct curl_slist *lines; /* becomes the transfer's */
    int64_t within_ms;
};

/* What came of it. */
struct transfer_outcome {
    const char *code;   /* NULL: there is an answer */
    bool was_sent;      /* any of it */
    bool may_try_again; /* might another try help? */
    struct http_answer answer;
};

/* NULL: libcurl cannot be used. */
struct transfer *transfer_new(const struct transfer_config *s);
void transfer_free(struct transfer *t); /* not while it is under way */

/* False: out of memory; it is as before, and the lines are freed. */
bool transfer_start(struct transfer *t, CURLM *multi, void *owner,
                    const struct question *q) MUST_USE;
/* Takes it from the wire, finished or not; it is at rest. Its bytes stay until it is cleared. */
void transfer_stop(struct transfer *t, CURLM *multi);
void transfer_clear(struct transfer *t);

/* Of one that libcurl has finished with: `story` tells what went wrong, if something did. */
void transfer_conclude(struct transfer *t, CURLcode code, struct arena *a,
                       struct transfer_outcome *ret, struct buf *story);
bool transfer_was_sent(const struct transfer *t); /* any byte of the request? */

#endif
