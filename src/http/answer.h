#ifndef HTTP_ANSWER_H
#define HTTP_ANSWER_H

/* What answers look like. Pure: bytes into a buf. */

#include "base/buf.h"

struct http_answer {
    int status;
    const char *content_type; /* NULL: none */
    const char *headers;      /* extra lines, each with its CRLF, or NULL */
    struct slice always;      /* lines that every answer of this server has; may be empty */
    uint64_t body_len;
    bool is_stream;  /* its length is not known: the next one tells where it ends */
    bool is_chunked; /* with a last chunk; else with the connection */
    bool closes;     /* the connection ends with this answer */
    bool says_1_0;   /* to a client of HTTP/1.0 that asked to keep the connection */
};

void http_answer_head(struct buf *b, const struct http_answer *a);

/* RFC 9112, 6.3: 1xx, 204 and 304 have no body, whatever else is said. */
bool http_status_has_body(int status);
const char *http_status_text(int status);

/* A problem document (RFC 9457). `detail` may hold any bytes; what is not UTF-8 in it is replaced.
 */
void http_problem_write(struct buf *b, int status, const char *type, struct slice detail);

#endif
