/* Requests of a browser with the cookie of a session: see browser_kit.h. */

#include "browser_kit.h"

#include <stdlib.h>

void browser_send(const struct browser *b, struct reply *ret, const char *method, const char *path,
                  const char *headers, const char *body)
{
    CLEANUP(buf_fini) struct buf out = {0};
    int fd = dial(b->node);

    buf_fmt(&out, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n%s%s", method, path,
            b->node->port, b->cookie, headers);
    if (body)
        buf_fmt(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    buf_fmt(&out, "\r\n%s", body ? body : "");
    say(fd, buf_view(&out));
    hear(fd, ret);
}

char *reply_cookie(const struct reply *r)
{
    const char line[] = "\r\nSet-Cookie: ";
    const char *at = memmem(r->head.ptr, r->head.len, line, sizeof line - 1);

    CHECK(at, "no cookie: %.*s", SLICE_ARG(r->head));
    at += sizeof line - 1;
    char *value = strndup(at, strcspn(at, "\r"));
    CHECK(value, "no memory");
    return value;
}

void browser_take_cookie(struct browser *b, const struct reply *r)
{
    char *cookie = reply_cookie(r);

    (void)snprintf(b->cookie, sizeof b->cookie, "Cookie: %.*s\r\n", (int)strcspn(cookie, ";"),
                   cookie);
    free(cookie);
}

struct browser browser_signed_in(const struct node *n, const char *token)
{
    struct browser b = {.node = n};
    REPLY r = {0};
    char line[100];

    (void)snprintf(line, sizeof line, "Authorization: Bearer %s\r\n", token);
    browser_send(&b, &r, "POST", "/v1/session", line, NULL);
    EXPECT(&r, 201);
    browser_take_cookie(&b, &r);
    return b;
}

int browser_status(const struct browser *b, const char *method, const char *path)
{
    REPLY r = {0};

    browser_send(b, &r, method, path, CONSOLE, strcmp(method, "POST") == 0 ? "{}" : NULL);
    return r.status;
}
