#ifndef HTTP_HTTP_MESSAGE_H
#define HTTP_HTTP_MESSAGE_H

/*
 * A request as this folder sees it: the handler's part, followed by private fields. It is in its
 * own arena together with the bytes of its head, so that a small parked request is one allocation
 * of 1 KiB.
 */

#include "http/http.h"

struct http_connection;

struct http_field {
    struct slice name, value; /* the value without surrounding white space */
};

struct http_message {
    struct http_request request;        /* first: a pointer to it is a pointer to this */
    struct http_connection *connection; /* the connection that waits for the response */
    struct http_field *fields;
    unsigned field_count, field_max;
    struct slice target;   /* as received */
    struct slice version;  /* "HTTP/1.1" */
    struct buf body;       /* if it came in more than one piece */
    bool keeps_alive;      /* the client wants to keep the connection */
    bool expects_continue; /* it waits for "100 Continue" before it sends the body */
    bool is_cut;           /* its body is not read: the connection ends after the response */
    bool is_answered;
    bool is_chunked; /* the response is a stream */
    bool is_sized;   /* the same, of known length */
    uint64_t left;   /* bytes still to be written, if it is sized */
};

/* With room for `field_max` fields, and a copy of `head` in *ret_head. */
struct http_message *http_message_new(unsigned field_max, struct slice head,
                                      struct slice *ret_head);
void http_message_free(struct http_message *m); /* NULL is allowed */

static inline struct http_message *http_message_of(const struct http_request *r)
{
    return (struct http_message *)(uintptr_t)r; /* this folder may modify the message, the handler
                                                 * may not */
}

static inline bool http_message_is_1_0(const struct http_message *m)
{
    return slice_is(m->version, "HTTP/1.0");
}

int http_hex_digit(char c); /* -1 if it is not one */

_Static_assert(offsetof(struct http_message, request) == 0, "http_message_of relies on it");

#endif
