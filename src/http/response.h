#ifndef HTTP_RESPONSE_H
#define HTTP_RESPONSE_H

/* Builds responses. Pure: bytes into a buf. */

#include "base/buf.h"

struct http_answer {
    int status;
    const char *content_type; /* NULL: none */
    const char *headers;      /* extra lines, each with its CRLF, or NULL */
    struct slice always;      /* lines in every response of this server; may be empty */
    uint64_t body_len;
    bool is_stream;  /* of unknown length: the next field says how its end is marked */
    bool is_chunked; /* by a last chunk; otherwise by the end of the connection */
    bool closes;     /* the connection ends after this response */
    bool says_1_0;   /* for an HTTP/1.0 client that asked to keep the connection */
};

void http_answer_head(struct buf *b, const struct http_answer *a);

/* RFC 9112, 6.3: 1xx, 204 and 304 have no body, whatever the headers say. */
bool http_status_has_body(int status);
const char *http_status_text(int status);

/* A problem document (RFC 9457). `detail` may contain any bytes; invalid UTF-8 is replaced. */
void http_problem_write(struct buf *b, int status, const char *type, struct slice detail);

#endif
