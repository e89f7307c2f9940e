/*
 * Finds the channel of status messages that takes a target. The channels themselves are opened and
 * closed by background/messages.c; submissions are checked against them before they are accepted.
 */

#include "node/channels.h"

#include "node/node.h"
#include "outbox/channel.h"

struct channel *channels_find(const struct server *sv, struct slice target, struct error *e)
{
    bool is_queue = target.len >= 5 && memcmp(target.ptr, "amqp:", 5) == 0;
    /* The error of the last one is reported: it tells what would be needed. */
    struct channel *const list[] = {is_queue ? sv->channels.webhooks : sv->config.amqp,
                                    is_queue ? sv->config.amqp : sv->channels.webhooks};
    bool any = false;

    for (size_t i = 0; i < COUNT_OF(list); i++) {
        if (list[i] && list[i]->ops->takes(list[i], target, e))
            return list[i];
        any |= list[i] != NULL;
    }
    if (!any)
        (void)error_set(e, ERR_INVALID,
                        "this server sends no messages: to use reply_to, list the allowed targets "
                        "in the file of serve --config, as docs/messages.md shows");
    return NULL;
}

bool channels_take(struct server *sv, struct slice target, struct error *e)
{
    struct buf *taken = &sv->channels.taken;

    if (taken->len > 0 && slice_eq(buf_view(taken), target))
        return true;
    if (!channels_find(sv, target, e))
        return false;
    buf_clear(taken);
    buf_slice(taken, target);
    return true;
}
