/*
 * Delivers alerts to their sinks. Each sink has a thread of its own and takes one delivery at a
 * time, so that a sink that hangs blocks neither others nor the event loop. Which alerts are sent,
 * and when, is decided by src/alerts.
 */

#include "background/alert_sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alerts/alert_settings.h"
#include "alerts/alerts.h"
#include "background/alert_send.h"
#include "base/list.h"
#include "base/log.h"
#include "outbox/channel.h"
#include "json/json.h"

/* One delivery. */
struct parcel {
    struct link link;
    void *user;
    size_t sink;
    struct buf body, id;
    struct delivery delivery; /* of a webhook */
    struct alert_sinks *sinks;
    bool took;
    char story[200];
};

struct worker {
    struct alert_sinks *sinks;
    const struct sink_setting *how;
    uv_thread_t thread;
    bool started;
    uv_cond_t wake;
    struct link todo;
};

struct alert_sinks {
    const struct alerts_settings *settings;
    struct channel *webhooks;
    char source[200];
    alert_sink_done *done;
    void *arg;
    uv_async_t async;
    bool unused; /* it was never opened, and goes with its handle */
    uv_mutex_t lock;
    struct link ended; /* under the lock */
    atomic_bool stop;
    struct link out; /* with the channel of webhooks */
    struct worker workers[ALERT_SINKS];
};

static void parcel_free(struct parcel *p)
{
    link_remove(&p->link);
    buf_fini(&p->body);
    buf_fini(&p->id);
    free(p);
}

static void hand_back(struct parcel *p)
{
    struct alert_sinks *s = p->sinks;

    s->done(s->arg, p->user, p->sink, p->took, p->story);
    parcel_free(p);
}

/* ---- the threads ---- */

static void work_on(struct worker *w, struct parcel *p)
{
    struct alert_sending sending = {.how = w->how,
                                    .body = buf_view(&p->body),
                                    .stop = &w->sinks->stop};

    p->took = alert_send(&sending, p->story, sizeof p->story);
}

static void work(void *arg)
{
    struct worker *w = arg;
    struct alert_sinks *s = w->sinks;

    uv_mutex_lock(&s->lock);
    while (!s->stop) {
        struct link *first = list_first(&w->todo);
        if (!first) {
            uv_cond_wait(&w->wake, &s->lock);
            continue;
        }
        struct parcel *p = CONTAINER_OF(first, struct parcel, link);
        link_remove(&p->link);
        uv_mutex_unlock(&s->lock);
        work_on(w, p);
        uv_mutex_lock(&s->lock);
        list_push(&s->ended, &p->link);
        (void)uv_async_send(&s->async);
    }
    uv_mutex_unlock(&s->lock);
}

static void came_back(uv_async_t *a)
{
    struct alert_sinks *s = a->data;
    struct link ended;

    list_init(&ended);
    uv_mutex_lock(&s->lock);
    list_take_all(&ended, &s->ended);
    uv_mutex_unlock(&s->lock);
    LIST_FOREACH (link, after, &ended) {
        hand_back(CONTAINER_OF(link, struct parcel, link));
    }
}

static void webhook_done(void *arg, struct delivery **list, size_t count)
{
    struct parcel *p = arg;

    ASSERT(count == 1);
    p->took = list[0]->end == DELIVERED;
    (void)snprintf(p->story, sizeof p->story, "%s", p->took ? "" : list[0]->story);
    link_remove(&p->link);
    hand_back(p);
}

/* ---- sending ---- */

static void log_alert(const struct alert *al)
{
    CLEANUP(buf_fini) struct buf labels = {0};
    CLEANUP(buf_fini) struct buf story = {0};

    for (size_t i = 0; i < al->label_count; i++) {
        buf_fmt(&labels, " %s=", al->labels[i].name);
        json_string(&labels, slice_of(al->labels[i].value)); /* quoted: nothing can be forged */
    }
    json_string(&story, slice_of(al->story));
    log_line(al->kind == NOTICE_RESOLVED ? LOG_INFO : LOG_ERROR,
             "event=alert notice=%s id=%s condition=%s%s count=%" PRIu64 " reason=%s",
             notice_text(al->kind), al->id, condition_text(al->condition), buf_view(&labels).ptr,
             al->count, story.ptr);
}

static void give_to_webhook(struct alert_sinks *s, struct parcel *p, int64_t now)
{
    struct delivery *d = &p->delivery;

    *d = (struct delivery){.id = buf_view(&p->id),
                           .target = slice_of(s->settings->how[p->sink].url),
                           .type = SLICE("intact.alert"),
                           .subject = SLICE("alerts"),
                           .body = buf_view(&p->body),
                           .created_at = now};
    list_push(&s->out, &p->link);
    s->webhooks->ops->send(s->webhooks, &d, 1, webhook_done, p);
}

static void give_to_thread(struct worker *w, struct parcel *p)
{
    uv_mutex_lock(&w->sinks->lock);
    list_push(&w->todo, &p->link);
    uv_cond_signal(&w->wake);
    uv_mutex_unlock(&w->sinks->lock);
}

void alert_sinks_send(struct alert_sinks *s, size_t sink, const struct alert *const *list,
                      size_t count, int64_t now, void *user)
{
    const struct sink_setting *how = &s->settings->how[sink];
    struct parcel *p = calloc(1, sizeof *p);

    ASSERT(p);
    *p = (struct parcel){.user = user, .sink = sink, .sinks = s};
    alert_body(how->kind, list, count, s->source, now, &p->body, &p->id);
    switch (how->kind) {
    case SINK_LOG:
        for (size_t i = 0; i < count; i++)
            log_alert(list[i]);
        p->took = true;
        uv_mutex_lock(&s->lock);
        list_push(&s->ended, &p->link);
        uv_mutex_unlock(&s->lock);
        (void)uv_async_send(&s->async);
        return;
    case SINK_WEBHOOK:
        give_to_webhook(s, p, now);
        return;
    case SINK_ALERTMANAGER:
    case SINK_COMMAND:
        give_to_thread(&s->workers[sink], p);
        return;
    }
    UNREACHABLE();
}

/* ---- opening and closing ---- */

static enum err webhook_fits(const struct alert_sinks *s, size_t i, struct error *e)
{
    struct error why = {0};
    const char *url = s->settings->how[i].url;

    if (s->webhooks && s->webhooks->ops->takes(s->webhooks, slice_of(url), &why))
        return ERR_OK;
    return error_set(e, ERR_INVALID, "alerts.sinks: %s must be listed in webhooks, too: %s", url,
                     s->webhooks ? why.text : "there is no such section");
}

/* Why the program cannot be run, as an errno; EISDIR if it is no file. 0 if it can. */
static int program_fault(const char *path)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EISDIR;
    return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0 ? 0 : errno;
}

/* The program may be installed later, so this is no error; but an operator should not find out by
 * an alert that is not delivered. */
static void look_at_command(const struct alert_sinks *s, size_t i)
{
    const char *path = s->settings->how[i].words[0];
    CLEANUP(buf_fini) struct buf name = {0};
    int code = program_fault(path);

    if (code == 0)
        return;
    json_string(&name, slice_of(path));
    log_line(LOG_WARN,
             "event=alert_command_missing path=%s reason=\"%s; put the program there, or correct "
             "alerts.sinks[%zu].command: until then this sink reports nothing\"",
             name.ptr, code == EISDIR ? "it is not a file" : strerror(code), i - 1);
}

static enum err start(struct alert_sinks *s, size_t i, struct error *e)
{
    struct worker *w = &s->workers[i];

    w->how = &s->settings->how[i];
    if (w->how->kind == SINK_LOG)
        return ERR_OK;
    if (w->how->kind == SINK_WEBHOOK)
        return webhook_fits(s, i, e);
    if (w->how->kind == SINK_COMMAND)
        look_at_command(s, i);
    int rc = uv_thread_create(&w->thread, work, w);
    if (rc != 0)
        return error_set(e, ERR_IO, "cannot start a thread for %s: %s", s->settings->sinks[i].name,
                         uv_strerror(rc));
    w->started = true;
    return ERR_OK;
}

struct alert_sinks *alert_sinks_open(uv_loop_t *loop, const struct alerts_settings *settings,
                                     struct channel *webhooks, const char *source,
                                     alert_sink_done *done, void *arg, struct error *e)
{
    struct alert_sinks *s = calloc(1, sizeof *s);
    enum err err = ERR_OK;

    ASSERT(s);
    s->settings = settings;
    s->webhooks = webhooks;
    s->done = done;
    s->arg = arg;
    (void)snprintf(s->source, sizeof s->source, "%s", source);
    list_init(&s->ended);
    list_init(&s->out);
    int rc = uv_mutex_init(&s->lock) | uv_async_init(loop, &s->async, came_back);
    ASSERT(rc == 0);
    s->async.data = s;
    alert_send_init();
    for (size_t i = 0; i < settings->count; i++) {
        s->workers[i].sinks = s;
        list_init(&s->workers[i].todo);
        rc = uv_cond_init(&s->workers[i].wake);
        ASSERT(rc == 0);
    }
    for (size_t i = 0; err == ERR_OK && i < settings->count; i++)
        err = start(s, i, e);
    if (err == ERR_OK)
        return s;
    s->unused = true;
    alert_sinks_close(s);
    return NULL;
}

static void drop_all(struct link *list)
{
    LIST_FOREACH (link, after, list) {
        parcel_free(CONTAINER_OF(link, struct parcel, link));
    }
}

static void handle_closed(uv_handle_t *h)
{
    struct alert_sinks *s = h->data;

    if (s->unused)
        alert_sinks_free(s);
}

void alert_sinks_close(struct alert_sinks *s)
{
    const size_t count = s->settings->count;

    uv_mutex_lock(&s->lock);
    s->stop = true;
    for (size_t i = 0; i < count; i++)
        uv_cond_signal(&s->workers[i].wake);
    uv_mutex_unlock(&s->lock);
    for (size_t i = 0; i < count; i++)
        if (s->workers[i].started)
            (void)uv_thread_join(&s->workers[i].thread);
    uv_close((uv_handle_t *)&s->async, handle_closed);
    drop_all(&s->ended);
}

void alert_sinks_free(struct alert_sinks *s)
{
    if (!s)
        return;
    drop_all(&s->out); /* their channel has been closed */
    for (size_t i = 0; i < s->settings->count; i++) {
        drop_all(&s->workers[i].todo);
        uv_cond_destroy(&s->workers[i].wake);
    }
    uv_mutex_destroy(&s->lock);
    free(s);
}
