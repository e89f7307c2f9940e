/*
 * Which installation answers. Every answer has its id, and a request may say which one it is meant
 * for: another one refuses it before it does anything. So a client that goes on to the next of
 * several addresses cannot begin a task again in an installation that does not know of it.
 */

#include "node/internal.h"

#define HEADER "Intact-Installation"

const char *installation_id(const struct server *sv)
{
    return sv->config.store->ops->installation(sv->config.store);
}

struct slice installation_headers(struct server *sv)
{
    /* A browser takes what it is given for what it is said to be, and never for a page. */
    int len = snprintf(sv->always, sizeof sv->always,
                       HEADER ": %s\r\nX-Content-Type-Options: nosniff\r\n", installation_id(sv));

    ASSERT(len > 0 && (size_t)len < sizeof sv->always);
    return (struct slice){sv->always, (size_t)len};
}

bool installation_is_another(const struct server *sv, struct http_request *r)
{
    struct slice wanted = http_header(r, HEADER);

    if (!wanted.ptr || http_slice_is_like(wanted, installation_id(sv)))
        return false;
    http_problem(r, 421, "another-installation",
                 "the request is for the installation %.*s, and this server is the node %s of the "
                 "installation %s; use the addresses of one installation only",
                 SLICE_ARG(slice_cut(wanted, 64)), sv->config.node, installation_id(sv));
    return true;
}
