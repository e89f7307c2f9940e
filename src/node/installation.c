/*
 * Which installation answers. Every answer has its id, and a request may say which one it is meant
 * for: another one refuses it before it does anything. So a client that goes on to the next of
 * several addresses cannot begin a task again in an installation that does not know of it.
 */

#include "node/installation.h"

#include <openssl/sha.h>

#include "base/when.h"
#include "node/node.h"

#define HEADER "Intact-Installation"

const char *installation_id(const struct server *sv)
{
    return sv->config.store->ops->installation(sv->config.store);
}

struct slice installation_headers(struct server *sv)
{
    /* A browser uses the declared type of an answer, and never takes it for a page. */
    int len = snprintf(sv->always, sizeof sv->always,
                       HEADER ": %s\r\nX-Content-Type-Options: nosniff\r\n", installation_id(sv));

    if (sv->config.virtual_time) {
        CLEANUP(buf_fini) struct buf time = {0};
        time_write(&time, server_now(sv));
        len += snprintf(sv->always + len, sizeof sv->always - (size_t)len,
                        "Intact-Virtual-Time: %s\r\n", time.ptr);
    }

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

const char *server_version(const struct server *sv)
{
    return sv->config.version ? sv->config.version : INTACT_VERSION;
}

/* The same on all nodes and after all restarts. It does not reveal the secret. */
void installation_source(struct server *sv)
{
    const struct server_config *c = &sv->config;
    unsigned char text[64] = "installation";
    unsigned char hash[SHA256_DIGEST_LENGTH];

    if (c->source) {
        (void)snprintf(sv->source, sizeof sv->source, "%s", c->source);
        return;
    }
    memcpy(text + 16, c->store->ops->secret(c->store), 32);
    (void)SHA256(text, sizeof text, hash);
    (void)snprintf(sv->source, sizeof sv->source, "/intact/%02x%02x%02x%02x%02x%02x%02x%02x",
                   hash[0], hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]);
}
