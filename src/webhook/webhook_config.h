#ifndef WEBHOOK_WEBHOOK_CONFIG_H
#define WEBHOOK_WEBHOOK_CONFIG_H

/*
 * Section `webhooks` of the server's configuration: which URLs may be called, and how.
 * docs/webhooks.md is its reference. Only its secrets can change later.
 */

#include "config/secret.h"
#include "net/transfer.h"
#include "webhook/url.h"

enum {
    WEBHOOK_TARGETS_MAX = 100,
    WEBHOOK_SECRETS_MAX = 4, /* places; each may hold several */
    WEBHOOK_BATCH_MAX = 1000,
    WEBHOOK_CONNECTIONS_MAX = 100,
    WEBHOOK_HEADERS_MAX = 32,
};

/* A header that is always sent; its value is here or a secret. */
struct webhook_header {
    struct webhook_header *next;
    struct slice name;
    struct slice value;       /* NONE: it is in ... */
    struct secret_place kept; /* ... this place */
};

struct webhook_target {
    struct webhook_target *next;
    struct slice url;   /* as configured */
    struct url pattern; /* the same, parsed */
    struct secret_place secrets[WEBHOOK_SECRETS_MAX];
    size_t secret_count;
    struct webhook_header *headers;
    struct transfer_config net;
    uint32_t batch, connections; /* concurrent requests to one host */
    int64_t timeout_ms;
};

struct webhook_config {
    struct webhook_target *targets; /* in the order of the text; the first match applies */
    size_t count;
};

/* For a `struct field`; target is a struct webhook_config. */
void read_webhooks(struct reader *r, const struct json *j, const struct path *path, void *target);

/* The target for a URL; NULL: none, and *e says what is allowed. */
const struct webhook_target *webhook_target_find(const struct webhook_config *c, struct slice url,
                                                 struct error *e);

#endif
