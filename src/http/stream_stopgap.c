#include "http/http.h"

void http_stream_begin(struct http_request *r, int status, const char *content_type,
                       const char *headers)
{
    http_answer(r, status, content_type, SLICE("retry: 1000\n\n"), headers);
}

bool http_stream_write(struct http_request *r, struct slice bytes)
{
    (void)r;
    (void)bytes;
    return true;
}

size_t http_stream_backlog(const struct http_request *r)
{
    (void)r;
    return 0;
}

void http_stream_end(struct http_request *r)
{
    (void)r;
}
