#ifndef API_PAGE_H
#define API_PAGE_H

/*
 * Pages for people with a browser, and the forms that they send. A page has no script, loads
 * nothing, is kept by no cache, is shown in no frame, and sends its forms to this server alone.
 * What comes from elsewhere is escaped.
 */

#include "http/http.h"

enum { FORM_MAX = 16 << 10 /* bytes of a form */ };

void page_text(struct buf *b, struct slice s);
void page_time(struct buf *b, int64_t at); /* "2026-01-31 10:00 UTC" */

/* `heading` is plain text, `body` what follows it. */
void page_answer(struct http_request *r, int status, const char *heading, struct slice body);

/* One sentence in plain text, and `link`: the way to the page that this one answers for. */
void page_say(struct http_request *r, int status, const char *heading, bool link, const char *fmt,
              ...) PRINTF(5, 6);

/*
 * The next field of application/x-www-form-urlencoded. ERR_NOT_FOUND: there is none. ERR_PARSE: it
 * is badly encoded, no UTF-8, or has control characters other than tabs and line breaks, which are
 * "\n" in the value.
 */
enum err form_next(struct slice *rest, struct arena *a, struct slice *ret_name,
                   struct slice *ret_value) MUST_USE;

#endif
