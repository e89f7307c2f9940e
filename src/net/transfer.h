#ifndef NET_TRANSFER_H
#define NET_TRANSFER_H

/*
 * One request to a service and its response, over libcurl. Memory use is limited whatever the
 * service sends, and the result is one of a few outcomes with a text for people.
 */

#include <curl/curl.h>

#include "base/list.h"
#include "net/address.h"
#include "net/received_answer.h"

enum {
    HEAD_MAX = 64 << 10, /* bytes of all heads of a response */
    HEAD_LINES_MAX = 256,
};

/* Shared by all transfers to one service. */
struct transfer_config {
    const char *user_agent;
    const char *ca, *cert, *key; /* files; NULL: the system's, none */
    const char *proxy;           /* NULL: none */
    bool http2, is_https;
    int64_t connect_timeout_ms;
    size_t answer_max;        /* bytes of a body */
    struct networks networks; /* private networks that may be called */
};

struct transfer {
    struct link link; /* of its service: in the list of idle ones */
    CURL *easy;
    const struct transfer_config *config;
    void *owner; /* the running request; NULL: idle */
    struct curl_slist *lines;
    struct buf head, body;
    size_t head_lines;
    bool is_head_whole; /* the empty line after the last header was received */
    bool is_head_too_large, is_body_too_large;
    char forbidden[64];        /* the address that was refused; "": none */
    bool was_tried;            /* an allowed address was tried */
    char why[CURL_ERROR_SIZE]; /* libcurl's message */
    int64_t within_ms;         /* its time limit */
};

/* A request. The texts belong to the caller and must stay until the transfer has ended. */
struct question {
    const char *method, *url;
    struct slice body;        /* NONE: none */
    struct curl_slist *lines; /* ownership passes to the transfer */
    int64_t within_ms;
};

/* The result. */
struct transfer_outcome {
    const char *code;   /* NULL: there is a response */
    bool was_sent;      /* at least in part */
    bool may_try_again; /* a retry may help */
    struct http_answer answer;
};

/* NULL: libcurl is unusable. */
struct transfer *transfer_new(const struct transfer_config *s);
void transfer_free(struct transfer *t); /* not while it runs */

/* False: out of memory; the transfer is unchanged, and the lines are freed. */
bool transfer_start(struct transfer *t, CURLM *multi, void *owner,
                    const struct question *q) MUST_USE;
/* Removes it from libcurl, finished or not; it is idle then. Its bytes stay until it is cleared. */
void transfer_stop(struct transfer *t, CURLM *multi);
void transfer_clear(struct transfer *t);

/* For a transfer that libcurl has finished: `story` gets a description of the error, if any. */
void transfer_conclude(struct transfer *t, CURLcode code, struct arena *a,
                       struct transfer_outcome *ret, struct buf *story);
bool transfer_was_sent(const struct transfer *t); /* at least one byte of the request */

#endif
