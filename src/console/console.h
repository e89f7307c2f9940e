#ifndef CONSOLE_CONSOLE_H
#define CONSOLE_CONSOLE_H

/*
 * The console: the pages in which an operator works, served from the program's own memory. They
 * hold no data: what they show, they ask of the API, as whoever has signed in. So they need no
 * token.
 *
 * Event loop only.
 */

#include "http/http.h"

struct console;

bool console_is_built(void); /* does this program have it? */

struct console *console_new(void);
void console_free(struct console *c); /* NULL is fine */

/* Does the request ask for a page, or for a part of one? The pages are routes within the browser:
 * each address is answered with the same document. The caller has made sure that it is no address
 * of the API. */
bool console_is_page(const struct http_request *r);
bool console_is_asset(const struct http_request *r);

/* Answers a page or an asset. */
void console_answer(struct console *c, struct http_request *r);

#endif
