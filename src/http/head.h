#ifndef HTTP_HEAD_H
#define HTTP_HEAD_H

/*
 * The rules of RFC 9112 and 9110 for the head of a request that decide where the request ends and
 * which host it is for. llhttp checks the grammar; this file checks what llhttp leaves open or
 * tolerates. Request smuggling needs two servers that read one message differently, so every
 * ambiguity is refused.
 */

#include "http/http_message.h"

/* Why a request was refused. status 0: it was accepted. `type` completes "urn:intact:problem:". */
struct http_fault {
    int status;
    const char *type;
    const char *reason;
};

/* How the body is delimited. */
struct http_framing {
    bool is_chunked;
    bool has_length;
};

/* Splits "METHOD SP target SP HTTP/x.y" into m->request.method, m->target, m->version. */
bool http_head_line(struct http_message *m, struct slice line, struct http_fault *f) MUST_USE;

/* Checks the complete fields: Host, the framing, Expect, and the target, which gives path and
 * query. */
bool http_head_check(struct http_message *m, struct http_framing *ret,
                     struct http_fault *f) MUST_USE;

#endif
