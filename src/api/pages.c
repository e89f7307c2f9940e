/*
 * The console's pages, as far as the node is concerned: whether it has them, and which requests for
 * them are let in. What they consist of, and how it is sent: console/console.c.
 */

#include "api/pages.h"

#include "api/room.h"
#include "console/console.h"
#include "node/door.h"

/* A browser says when a page is not opened, but used by another one. */
static bool is_opened(const struct http_request *r)
{
    struct slice use = http_header(r, "sec-fetch-dest");

    return !use.ptr || http_slice_is_like(use, "document");
}

/* Links to pages are in mails, chats and other pages. A page that is opened from there learns
 * nothing from where it came, and has the cookie of no session in its request. */
static bool is_foreign(const struct server *sv, const struct http_request *r)
{
    if (console_is_page(r) && !console_is_asset(r) && is_opened(r))
        return door_host_is_foreign(sv, r);
    return door_is_foreign(sv, r);
}

bool pages_answer(struct server *sv, struct http_request *r)
{
    if (!sv->api->console || !(console_is_page(r) || console_is_asset(r)) || is_foreign(sv, r))
        return false;
    r->route = ROUTE_PAGES;
    console_answer(sv->api->console, r);
    return true;
}

bool pages_are_served(const struct server *sv)
{
    return sv->api->console != NULL;
}

static enum err pages_open(struct server *sv, struct error *e)
{
    (void)e;
    if (sv->config.console && console_is_built())
        sv->api->console = console_new();
    return ERR_OK;
}

static void pages_free(struct server *sv)
{
    console_free(sv->api->console);
}

const struct part pages_part = {.name = "pages", .open = pages_open, .free = pages_free};
