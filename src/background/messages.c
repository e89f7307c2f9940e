/*
 * Status messages of this node: which channels there are, the delivery on the loop of whoever
 * leads, and what is told of it.
 */

#include "outbox/courier.h"

#include <openssl/rand.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "node/internal.h"
#include "json/json.h"

enum { CENSUS_MOST = 10000, CENSUS_EVERY_MS = 5000 };

struct telling_out {
    struct server *server;
    struct courier *outbox;
    char source[256];    /* that of the configuration is shorter */
    struct buf taken;    /* the last target that was: most tasks have the same, or a few */
    uint64_t generation; /* of what people did */
    struct store_job census_job;
    bool counting;
    int64_t counted_at; /* steady */
    struct outbox_census census, fresh;
    enum err census_err;
};

/* The same on all nodes, and after all restarts; it tells nothing of the secret. */
static void name_source(struct telling_out *t)
{
    const struct server_config *c = &t->server->config;
    unsigned char text[64] = "installation";
    unsigned char hash[SHA256_DIGEST_LENGTH];

    if (c->source) {
        (void)snprintf(t->source, sizeof t->source, "%s", c->source);
        return;
    }
    memcpy(text + 16, c->store->ops->secret(c->store), 32);
    (void)SHA256(text, sizeof text, hash);
    (void)snprintf(t->source, sizeof t->source, "/intact/%02x%02x%02x%02x%02x%02x%02x%02x", hash[0],
                   hash[1], hash[2], hash[3], hash[4], hash[5], hash[6], hash[7]);
}

static bool leads(void *arg, struct fence *ret)
{
    const struct telling_out *t = arg;
    const struct server *sv = t->server;
    int64_t until = 0;

    return !sv->ended && supervisor_leads(sv->supervisor, ret, &until)
           && (!sv->config.store->shared || server_steady(NULL) < until);
}

static struct channel *channel_of(const struct server *sv, struct slice target, struct error *e)
{
    bool is_queue = target.len >= 5 && memcmp(target.ptr, "amqp:", 5) == 0;
    /* The last one says what it would take. */
    struct channel *const list[] = {is_queue ? sv->webhooks : sv->config.amqp,
                                    is_queue ? sv->config.amqp : sv->webhooks};
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

static struct channel *channel(void *arg, struct slice target, struct error *e)
{
    const struct telling_out *t = arg;

    return channel_of(t->server, target, e);
}

bool telling_takes(const struct server *sv, struct slice target, struct error *e)
{
    struct buf *taken = sv->telling ? &sv->telling->taken : NULL; /* a server that is not begun */

    if (taken && taken->len > 0 && slice_eq(buf_view(taken), target))
        return true;
    if (!channel_of(sv, target, e))
        return false;
    if (taken) {
        buf_clear(taken);
        buf_slice(taken, target);
    }
    return true;
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
    const struct telling_out *t = arg;

    return server_now(t->server);
}

static void is_back(void *arg)
{
    const struct telling_out *t = arg;

    courier_back(t->outbox, t->server->config.amqp);
}

struct telling_out *telling_new(struct server *sv)
{
    struct telling_out *t = calloc(1, sizeof *t);

    ASSERT(t);
    t->server = sv;
    name_source(t);
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
    return t;
}

struct slice telling_source(const struct telling_out *t)
{
    return slice_of(t->source);
}

void telling_told(struct server *sv)
{
    courier_told(sv->telling->outbox);
}

void telling_stored(struct server *sv, const struct message *list, size_t count)
{
    courier_stored(sv->telling->outbox, list, count);
}

void telling_heard(struct server *sv, uint64_t generation)
{
    struct telling_out *t = sv->telling;

    if (t->generation == generation)
        return;
    t->generation = generation;
    courier_by_hand(t->outbox);
}

void telling_by_hand(struct server *sv)
{
    courier_by_hand(sv->telling->outbox);
}

int64_t telling_turn(struct server *sv)
{
    return courier_turn(sv->telling->outbox);
}

void telling_drain(struct server *sv)
{
    courier_stop(sv->telling->outbox);
}

bool telling_is_busy(const struct server *sv)
{
    return courier_is_busy(sv->telling->outbox);
}

bool telling_is_drained(const struct server *sv)
{
    return courier_is_drained(sv->telling->outbox);
}

void telling_free(struct server *sv)
{
    courier_free(sv->telling->outbox);
    buf_fini(&sv->telling->taken);
    free(sv->telling);
}

int64_t telling_paused_until(const struct server *sv, struct slice target, char *story)
{
    return courier_paused_until(sv->telling->outbox, target, story);
}

/* ---- counts ---- */

static void census_run(struct store_job *j, struct store *store)
{
    struct telling_out *t = CONTAINER_OF(j, struct telling_out, census_job);
    struct error e;

    t->census_err = store->ops->outbox->census(store, CENSUS_MOST, &t->fresh, &e);
}

static void census_done(struct store_job *j)
{
    struct telling_out *t = CONTAINER_OF(j, struct telling_out, census_job);

    t->counting = false;
    t->server->exchange_count--;
    if (t->census_err == ERR_OK)
        t->census = t->fresh;
}

/* Who asks is told what was counted last, and has it counted for the next time. */
void telling_stats(struct server *sv, struct courier_stats *ret, struct outbox_census *ret_census)
{
    struct telling_out *t = sv->telling;
    int64_t steady = server_steady(NULL);

    courier_stats(t->outbox, ret);
    *ret_census = t->census;
    if (t->counting || sv->draining
        || (t->counted_at != 0 && steady < t->counted_at + CENSUS_EVERY_MS))
        return;
    t->counting = true;
    t->counted_at = steady;
    sv->exchange_count++;
    t->census_job = (struct store_job){.run = census_run, .done = census_done};
    sv->store->submit(sv->store, &t->census_job);
}
