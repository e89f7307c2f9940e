#ifndef E2E_BROWSER_KIT_H
#define E2E_BROWSER_KIT_H

/* A browser that has signed in to the console, as far as the server sees it: requests with a
 * cookie, and the header that pages send. */

#include "kit.h"

#define CONSOLE "Intact-Console: 1\r\n"

struct browser {
    const struct node *node;
    char cookie[160]; /* "Cookie: intact_session=...\r\n", or empty */
};

/* `headers` are lines; `body` NULL: none. */
void browser_send(const struct browser *b, struct reply *ret, const char *method, const char *path,
                  const char *headers, const char *body);
char *reply_cookie(const struct reply *r); /* the Set-Cookie of an answer; to be freed */
void browser_take_cookie(struct browser *b, const struct reply *r);
struct browser browser_signed_in(const struct node *n, const char *token);
/* The status of a request that has what pages send; POST: with an empty object. */
int browser_status(const struct browser *b, const char *method, const char *path);

#endif
