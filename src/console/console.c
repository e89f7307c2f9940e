/*
 * Serves the console's files: which one a request means, in which form (RFC 9110, 12.5.3), whether
 * the browser has it already, and the headers that keep pages from running what is not theirs. The
 * files are part of the program (embedded.h), so no path leads out of them.
 */

#include "console/console.h"

#include <stdlib.h>
#include <string.h>

#include "console/embedded.h"

enum { FORM_PLAIN, FORM_GZIP, FORM_BR, FORMS };

/* The address of a page changes with the program, that of an asset with its content. */
#define PAGE_CACHING  "Cache-Control: no-cache\r\n"
#define ASSET_CACHING "Cache-Control: public, max-age=31536000, immutable\r\n"

static const char page_headers[] =
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "
    "'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Referrer-Policy: same-origin\r\n" /* with no-referrer, changes could come without an Origin */
    "X-Frame-Options: DENY\r\n"
    "X-Robots-Tag: noindex\r\n";

/* A form that was sent is kept: clients share it. */
struct console {
    size_t count;
    struct http_text *texts[][FORMS];
};

static size_t files_count(void)
{
    size_t count = 0;

    while (console_files[count].path)
        count++;
    return count;
}

bool console_is_built(void)
{
    return files_count() > 0;
}

struct console *console_new(void)
{
    size_t count = files_count();
    struct console *c = calloc(1, sizeof *c + count * sizeof c->texts[0]);

    ASSERT(c);
    c->count = count;
    return c;
}

void console_free(struct console *c)
{
    for (size_t i = 0; c && i < c->count; i++)
        for (int form = 0; form < FORMS; form++)
            http_text_drop(c->texts[i][form]);
    free(c);
}

/* ---- what is asked for ---- */

static bool is_reading(const struct http_request *r)
{
    return slice_is(r->method, "GET") || slice_is(r->method, "HEAD");
}

bool console_is_asset(const struct http_request *r)
{
    static const char folder[] = "/assets/";

    return is_reading(r) && r->path.len >= sizeof folder - 1
           && memcmp(r->path.ptr, folder, sizeof folder - 1) == 0;
}

static struct slice trimmed(struct slice s)
{
    while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\t'))
        s = (struct slice){s.ptr + 1, s.len - 1};
    while (s.len > 0 && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* Cuts the next member off a list such as "gzip;q=1, br": its name and its parameters. */
static bool list_next(struct slice *list, struct slice *ret_name, struct slice *ret_parameters)
{
    const char *comma = list->len > 0 ? memchr(list->ptr, ',', list->len) : NULL;
    size_t len = comma ? (size_t)(comma - list->ptr) : list->len;
    struct slice one = {list->ptr, len};

    if (list->len == 0)
        return false;
    *list = (struct slice){list->ptr + len + (comma != NULL), list->len - len - (comma != NULL)};
    const char *semicolon = one.len > 0 ? memchr(one.ptr, ';', one.len) : NULL;
    size_t name_len = semicolon ? (size_t)(semicolon - one.ptr) : one.len;
    *ret_name = trimmed((struct slice){one.ptr, name_len});
    *ret_parameters = (struct slice){one.ptr + name_len, one.len - name_len};
    return true;
}

/* ";q=0", "; q=0.000": not acceptable. */
static bool is_refused(struct slice parameters)
{
    bool is_weight = false;
    bool is_zero = true;

    for (size_t i = 0; i < parameters.len; i++) {
        char c = parameters.ptr[i];
        if (is_weight && c >= '1' && c <= '9')
            is_zero = false;
        is_weight |= c == '=' && i > 0 && (parameters.ptr[i - 1] | 0x20) == 'q';
    }
    return is_weight && is_zero;
}

bool console_is_page(const struct http_request *r)
{
    struct slice accept = http_header(r, "accept");
    struct slice name;
    struct slice parameters;

    if (!is_reading(r) || !accept.ptr)
        return false;
    while (list_next(&accept, &name, &parameters))
        if (http_slice_is_like(name, "text/html"))
            return !is_refused(parameters);
    return false;
}

static const struct console_file *file_of(const struct http_request *r)
{
    struct slice path = console_is_asset(r) ? r->path : SLICE("/index.html");

    for (size_t i = 0; console_files[i].path; i++)
        if (slice_is(path, console_files[i].path))
            return &console_files[i];
    return NULL;
}

/* ---- forms ---- */

static const char *const codings[FORMS] = {[FORM_GZIP] = "gzip", [FORM_BR] = "br"};
static const char *const suffixes[FORMS] = {
    [FORM_PLAIN] = "", [FORM_GZIP] = "-gzip", [FORM_BR] = "-br"};

static struct slice form_of(const struct console_file *f, int form)
{
    return form == FORM_GZIP ? f->gzip : form == FORM_BR ? f->br : f->plain;
}

/* A form is sent if the client names it: a client that names none may know none. */
static int form_wanted(const struct http_request *r, const struct console_file *f)
{
    struct slice accepted = http_header(r, "accept-encoding");
    struct slice name;
    struct slice parameters;
    int best = FORM_PLAIN;

    while (list_next(&accepted, &name, &parameters))
        for (int form = FORM_GZIP; form < FORMS; form++)
            if (http_slice_is_like(name, codings[form]) && !is_refused(parameters)
                && form_of(f, form).ptr && form > best)
                best = form;
    return best;
}

/* Weakly: a proxy that compresses answers weakens their tags (RFC 9110, 13.1.2). */
static bool is_known(const struct http_request *r, const struct console_file *f)
{
    struct slice known = http_header(r, "if-none-match");
    struct slice name;
    struct slice parameters;

    while (list_next(&known, &name, &parameters)) {
        if (name.len > 2 && memcmp(name.ptr, "W/", 2) == 0)
            name = (struct slice){name.ptr + 2, name.len - 2};
        if (slice_is(name, "*"))
            return true;
        if (name.len < strlen(f->etag) + 2 || name.ptr[0] != '"'
            || memcmp(name.ptr + 1, f->etag, strlen(f->etag)) != 0)
            continue;
        struct slice rest = {name.ptr + 1 + strlen(f->etag), name.len - 1 - strlen(f->etag)};
        for (int form = 0; form < FORMS; form++)
            if (rest.len == strlen(suffixes[form]) + 1 && rest.ptr[rest.len - 1] == '"'
                && memcmp(rest.ptr, suffixes[form], rest.len - 1) == 0)
                return true;
    }
    return false;
}

static struct http_text *text_of(struct console *c, const struct console_file *f, int form)
{
    struct http_text **text = &c->texts[f - console_files][form];

    if (!*text) {
        struct slice bytes = form_of(f, form);
        struct buf copy = {0};
        buf_add(&copy, bytes.ptr, bytes.len);
        *text = http_text_new(&copy);
    }
    return *text;
}

/* ---- answers ---- */

static const char text_type[] = "text/plain; charset=utf-8";

void console_answer(struct console *c, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf headers = {0};
    const struct console_file *f = file_of(r);
    bool is_asset = console_is_asset(r);

    if (!f) {
        http_answer(r, 404, text_type,
                    SLICE("There is no such file. Another version of the console may have had it: "
                          "load the page again.\n"),
                    "Cache-Control: no-store\r\n");
        return;
    }
    int form = form_wanted(r, f);
    buf_str(&headers, is_asset ? ASSET_CACHING : PAGE_CACHING);
    buf_fmt(&headers, "ETag: \"%s%s\"\r\nVary: Accept-Encoding\r\n", f->etag, suffixes[form]);
    buf_str(&headers, "Cross-Origin-Resource-Policy: same-origin\r\n");
    buf_str(&headers, page_headers);
    if (is_known(r, f)) {
        http_answer(r, 304, NULL, SLICE(""), headers.ptr);
        return;
    }
    if (form != FORM_PLAIN)
        buf_fmt(&headers, "Content-Encoding: %s\r\n", codings[form]);
    http_answer_text(r, 200, f->type, text_of(c, f, form), headers.ptr);
}
