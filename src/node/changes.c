/*
 * Changes that people make wait here for the store, in lines by token: see changes.h. The store has
 * one of them at a time.
 */

#include "node/changes.h"

#include <stdlib.h>

#include "base/list.h"
#include "base/map.h"
#include "store/job.h"

enum {
    LONG_US = 1000, /* a change that takes longer is followed by a rest: twice what is beyond it */
    REST_MAX_MS = 250,
};

/* The changes of one token. */
struct line {
    struct link link; /* among those that have something */
    struct link jobs;
    size_t name_len;
    char name[]; /* of the map */
};

struct changes {
    struct changes_config config;
    struct link lines;
    struct map by_name;
    struct store_job out;      /* what the store's thread has ... */
    struct store_job *at_work; /* ... stands for this one; NULL: it has none */
    size_t waiting;
    uv_timer_t timer; /* active during a rest */
};

/* ---- lines ---- */

static struct line *line_of(struct changes *ch, struct slice token)
{
    struct slice name = token.ptr ? token : SLICE("");
    struct line *l = map_get(&ch->by_name, name);

    if (l)
        return l;
    l = calloc(1, sizeof *l + name.len);
    ASSERT(l);
    l->name_len = name.len;
    memcpy(l->name, name.ptr, name.len);
    list_init(&l->jobs);
    map_put(&ch->by_name, (struct slice){l->name, l->name_len}, l);
    list_push(&ch->lines, &l->link);
    return l;
}

/* The first change of the line whose turn it is, which then comes last. NULL: nothing waits. */
static struct store_job *next(struct changes *ch)
{
    struct link *first = list_first(&ch->lines);

    if (!first)
        return NULL;
    struct line *l = CONTAINER_OF(first, struct line, link);
    struct link *job = list_first(&l->jobs);
    ASSERT(job); /* or the line would not be there */
    link_remove(first);
    link_remove(job);
    if (list_empty(&l->jobs)) {
        (void)map_remove(&ch->by_name, (struct slice){l->name, l->name_len});
        free(l);
    } else {
        list_push(&ch->lines, first);
    }
    return CONTAINER_OF(job, struct store_job, link);
}

/* ---- turns ---- */

static void run(struct store_job *out, struct store *s)
{
    struct changes *ch = CONTAINER_OF(out, struct changes, out);

    ch->at_work->run(ch->at_work, s);
}

static void done(struct store_job *out);

static void begin_next(struct changes *ch)
{
    if (ch->at_work || uv_is_active((uv_handle_t *)&ch->timer))
        return;
    ch->at_work = next(ch);
    if (!ch->at_work)
        return;
    ch->out = (struct store_job){.run = run, .done = done};
    ch->config.store->submit(ch->config.store, &ch->out);
}

static void rested(uv_timer_t *timer)
{
    begin_next(timer->data);
}

static void rest(struct changes *ch, void *account, int64_t took_us)
{
    int64_t ms = took_us > LONG_US ? 2 * (took_us - LONG_US) / 1000 : 0;

    if (ms == 0 || !ch->config.is_alone || ch->config.is_alone(ch->config.arg, account))
        return;
    uv_update_time(ch->timer.loop);
    (void)uv_timer_start(&ch->timer, rested, (uint64_t)(ms < REST_MAX_MS ? ms : REST_MAX_MS), 0);
}

static void done(struct store_job *out)
{
    struct changes *ch = CONTAINER_OF(out, struct changes, out);
    struct store_job *j = ch->at_work;

    ch->at_work = NULL;
    ch->waiting--;
    j->took_us = out->took_us;
    rest(ch, j->account, out->took_us);
    begin_next(ch);
    j->done(j);
}

void changes_add(struct changes *ch, struct slice token, void *account, struct store_job *j)
{
    j->account = account;
    list_push(&line_of(ch, token)->jobs, &j->link);
    ch->waiting++;
    begin_next(ch);
}

size_t changes_waiting(const struct changes *ch)
{
    return ch->waiting;
}

/* ---- life ---- */

struct changes *changes_new(uv_loop_t *loop, const struct changes_config *c)
{
    struct changes *ch = calloc(1, sizeof *ch);

    ASSERT(ch);
    ch->config = *c;
    list_init(&ch->lines);
    int rc = uv_timer_init(loop, &ch->timer);
    ASSERT(rc == 0);
    ch->timer.data = ch;
    return ch;
}

void changes_close(struct changes *ch)
{
    ASSERT(ch->waiting == 0 && !ch->at_work && list_empty(&ch->lines));
    uv_close((uv_handle_t *)&ch->timer, NULL);
}

void changes_free(struct changes *ch)
{
    if (!ch)
        return;
    map_fini(&ch->by_name);
    free(ch);
}
