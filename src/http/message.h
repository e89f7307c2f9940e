#ifndef HTTP_MESSAGE_H
#define HTTP_MESSAGE_H

/*
 * A request as this folder sees it: what the handler gets, and behind it what only we need. It lies
 * in its own arena, together with the bytes of its head, so that a small parked request is one
 * allocation of 1 KiB.
 */

#include "http/http.h"

struct http_connection;

struct http_field {
    struct slice name, value; /* the value without the white space around it */
};

struct http_message {
    struct http_request request;        /* first: a pointer to it is a pointer to this */
    struct http_connection *connection; /* who waits for the answer */
    struct http_field *fields;
    unsigned field_count, field_max;
    struct slice target;   /* as it came */
    struct slice version;  /* "HTTP/1.1" */
    struct buf body;       /* if it came in more than one piece */
    bool keeps_alive;      /* the client wants to go on after the answer */
    bool expects_continue; /* it waits for "100 Continue" before it sends the body */
    bool is_cut;           /* its body is not read: the connection ends behind the answer */
    bool is_answered;
    bool is_chunked; /* the answer, which is a stream */
    bool is_sized;   /* the same, of known length */
    uint64_t left;   /* bytes to come yet, if it is sized */
};

/* With room for `field_max` fields, and a copy of `head` in *ret_head. */
struct http_message *http_message_new(unsigned field_max, struct slice head,
                                      struct slice *ret_head);
void http_message_free(struct http_message *m); /* NULL is fine */

static inline struct http_message *http_message_of(const struct http_request *r)
{
    return (
        struct http_message *)(uintptr_t)r; /* the message is ours to change, not the handler's */
}

static inline bool http_message_is_1_0(const struct http_message *m)
{
    return slice_is(m->version, "HTTP/1.0");
}

int http_hex_digit(char c); /* -1 if it is none */

_Static_assert(offsetof(struct http_message, request) == 0, "http_message_of relies on it");

#endif
