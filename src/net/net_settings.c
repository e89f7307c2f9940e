/* Reads the network settings of a configuration: which networks may be called, and TLS
 * (net_settings.h). Shared by the HTTP agent (agents/http/http_config.c) and the webhooks
 * (webhook/webhook_config.c). */

#include "net/net_settings.h"

void read_networks(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct networks *n = target;
    struct path at = {path, SLICE_NONE, 0};

    if (j->type != JSON_ARRAY) {
        mistake_in(r, path, j, "an array of networks such as [10.0.0.0/8, 127.0.0.1]");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++)
        if (n->count == NETWORKS_MAX)
            mistake_in(r, &at, m, "at most %d networks", NETWORKS_MAX);
        else if (m->type != JSON_STRING || !network_parse(m->text, &n->list[n->count]))
            mistake_in(r, &at, m, "a network such as 10.0.0.0/8, 127.0.0.1 or fd00::/8");
        else
            n->count++;
}

void read_tls(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        TEXT_FIELD("ca", struct transfer_config, ca, 0),
        TEXT_FIELD("cert", struct transfer_config, cert, 0),
        TEXT_FIELD("key", struct transfer_config, key, 0),
    };
    struct transfer_config *c = target;

    read_object(r, j, path, fields, COUNT_OF(fields), c);
    if (j->type == JSON_OBJECT && !c->cert != !c->key)
        mistake_in(r, path, j, "cert and key beside each other");
}
