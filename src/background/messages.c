/*
 * Status messages of this node: opens the channels, drives the courier (src/outbox), which delivers
 * while this node leads, and counts. GET /v1/outbox and its commands are api/outbox.c.
 */

#include "background/messages.h"

#include <openssl/rand.h>
#include <stdlib.h>

#include "background/room.h"
#include "base/log.h"
#include "net/holes.h"
#include "node/node.h"
#include "node/part.h"
#include "outbox/courier.h"
#include "store/job.h"
#include "webhook/webhook.h"
#include "json/json.h"

enum { CENSUS_MOST = 10000, CENSUS_EVERY_MS = 5000 };

struct messages {
    struct server *server;
    struct courier *outbox;
    uint64_t generation; /* of what people did */
    struct store_job census_job;
    bool counting;
    int64_t counted_at; /* steady */
    struct outbox_census census, fresh;
    enum err census_err;
};

static bool leads(void *arg, struct fence *ret)
{
    const struct messages *t = arg;
    const struct server *sv = t->server;
    int64_t until = 0;

    return !sv->ended && supervisor_leads(sv->supervisor, ret, &until)
           && (!sv->config.store->shared || server_steady(NULL) < until);
}

static struct channel *channel(void *arg, struct slice target, struct error *e)
{
    const struct messages *t = arg;

    return channels_find(t->server, target, e);
}

/* A target and a receiver's words are not ours: quoted, nothing can be forged. */
static void target_changed(void *arg, struct slice target, const char *story)
{
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    (void)arg;

    json_string(&name, target);
    if (!story) {
        log_line(LOG_INFO, "event=target_works_again target=%s", name.ptr);
        return;
    }
    json_string(&reason, slice_of(story));
    log_line(LOG_WARN, "event=target_fails target=%s reason=%s", name.ptr, reason.ptr);
}

static void is_dead(void *arg, const struct delivery *d)
{
    CLEANUP(buf_fini) struct buf name = {0};
    CLEANUP(buf_fini) struct buf reason = {0};
    (void)arg;

    json_string(&name, d->target);
    json_string(&reason, slice_of(d->story));
    log_line(LOG_ERROR, "event=message_dead message=%.*s target=%s tries=%u reason=%s",
             SLICE_ARG(d->id), name.ptr, d->tries, reason.ptr);
}

static int64_t now(void *arg)
{
    const struct messages *t = arg;

    return server_now_elapsing(t->server);
}

static void is_back(void *arg)
{
    const struct messages *t = arg;

    courier_back(t->outbox, t->server->config.amqp);
}

static enum err open_webhooks(struct server *sv, struct error *e)
{
    const struct webhook_config *c = sv->config.webhooks;

    if (!c || c->count == 0)
        return ERR_OK;
    holes_warn(HOLES_HTTP); /* no proxy is theirs */
    sv->channels.webhooks = webhook_open(&sv->loop, c, e);
    return sv->channels.webhooks ? ERR_OK : e->code;
}

static enum err messages_open(struct server *sv, struct error *e)
{
    enum err err = open_webhooks(sv, e);

    if (err != ERR_OK)
        return err;
    struct messages *t = calloc(1, sizeof *t);

    ASSERT(!sv->background->messages);
    ASSERT(t);
    t->server = sv;
    const struct courier_outside outside = {.arg = t,
                                            .now = now,
                                            .leads = leads,
                                            .channel = channel,
                                            .target = target_changed,
                                            .dead = is_dead};
    struct courier_config c = {.shared = sv->config.store->shared,
                               .give_up_ms = sv->config.give_up_ms};
    int rc = RAND_bytes((unsigned char *)&c.seed, sizeof c.seed);
    ASSERT(rc == 1);
    t->outbox = courier_new(&c, sv->store, &outside);
    if (sv->config.amqp) {
        sv->config.amqp->back = is_back;
        sv->config.amqp->back_arg = t;
    }
    sv->background->messages = t;
    return ERR_OK;
}

void messages_are_new(struct server *sv)
{
    courier_told(sv->background->messages->outbox);
}

void messages_stored(struct server *sv, const struct message *list, size_t count)
{
    courier_stored(sv->background->messages->outbox, list, count);
}

void messages_check_generation(struct server *sv, uint64_t generation)
{
    struct messages *t = sv->background->messages;

    if (t->generation == generation)
        return;
    t->generation = generation;
    courier_by_hand(t->outbox);
}

void messages_changed(struct server *sv)
{
    courier_by_hand(sv->background->messages->outbox);
}

static int64_t messages_turn(struct server *sv)
{
    return server_of_elapsing(sv, courier_turn(sv->background->messages->outbox));
}

void messages_each_delivery(const struct server *sv, void (*take)(void *arg, struct slice target),
                            void *arg)
{
    courier_each_delivery(sv->background->messages->outbox, take, arg);
}

static void messages_drain(struct server *sv)
{
    courier_stop(sv->background->messages->outbox);
}

static bool messages_are_busy(const struct server *sv)
{
    return courier_is_busy(sv->background->messages->outbox);
}

static bool messages_are_drained(const struct server *sv)
{
    return courier_is_drained(sv->background->messages->outbox);
}

static void messages_free(struct server *sv)
{
    courier_free(sv->background->messages->outbox);
    free(sv->background->messages);
}

int64_t messages_paused_until(const struct server *sv, struct slice target, char *story)
{
    return courier_paused_until(sv->background->messages->outbox, target, story);
}

/* ---- counts ---- */

static void census_run(struct store_job *j, struct store *store)
{
    struct messages *t = CONTAINER_OF(j, struct messages, census_job);
    struct error e;

    t->census_err = store->ops->outbox->census(store, CENSUS_MOST, &t->fresh, &e);
}

static void census_done(struct store_job *j)
{
    struct messages *t = CONTAINER_OF(j, struct messages, census_job);

    ASSERT(t->counting);
    ASSERT(t->server->load.exchanges > 0);
    t->counting = false;
    t->server->load.exchanges--;
    if (t->census_err == ERR_OK)
        t->census = t->fresh;
}

/* Returns the last census, and starts a new one for the next caller. */
void messages_stats(struct server *sv, struct courier_stats *ret, struct outbox_census *ret_census)
{
    struct messages *t = sv->background->messages;
    int64_t steady = server_steady(NULL);

    courier_stats(t->outbox, ret);
    *ret_census = t->census;
    if (t->counting || sv->draining
        || (t->counted_at != 0 && steady < t->counted_at + CENSUS_EVERY_MS))
        return;
    t->counting = true;
    t->counted_at = steady;
    sv->load.exchanges++;
    t->census_job = (struct store_job){.run = census_run, .done = census_done};
    sv->store->submit(sv->store, &t->census_job);
}

static void messages_close(struct server *sv)
{
    if (sv->channels.webhooks)
        sv->channels.webhooks->ops->close(sv->channels.webhooks);
    if (sv->config.amqp)
        sv->config.amqp->ops->close(sv->config.amqp);
}

const struct part messages_part = {
    .name = "messages",
    .open = messages_open,
    .turn = messages_turn,
    .drain = messages_drain,
    .is_drained = messages_are_drained,
    .is_busy = messages_are_busy,
    .close = messages_close,
    .free = messages_free,
};
