/*
 * The tie between a request that waits and its client. `http` of an exchange is NULL as soon as the
 * client has gone; its handler drops the answer then. Used by nearly every handler.
 */

#include "node/exchange.h"

#include "node/door.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/readings.h"

void exchange_begin(struct exchange *x, struct server *sv, struct http_request *r)
{
    x->server = sv;
    x->http = r;
    r->user = x;
}

void exchange_untie(struct exchange *x)
{
    if (x->http)
        x->http->user = NULL;
    x->http = NULL;
}

void exchange_done(void *arg, struct http_request *r, bool sent)
{
    struct exchange *x = r->user;
    struct server *sv = arg;
    (void)sent;

    metrics_request_done(&sv->metrics, r);
    door_left(sv, r);
    quota_leave(r->account);

    if (!x)
        return; /* answered */
    exchange_untie(x);
    if (x->reading)
        readings_drop(sv->readings, x->reading);
    if (x->gone)
        x->gone(x);
}
