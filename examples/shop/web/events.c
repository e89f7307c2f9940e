/* Server-sent events for the page of an order: each stream sends what the page has not seen,
 * and waits in its connection's own thread until news.c wakes it. shop.h shows the whole web
 * server. */

#include "shop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAMS_MAX  400 /* of the 500 connections that main.c allows */
#define QUIET_FOR_S  15  /* then a line says that we are still here, and finds out who left */
#define ORDER_ID_MAX 64

/* A live page: its connection's thread waits here until there is news of its order. */
struct stream {
    struct shop *shop;
    char order[ORDER_ID_MAX];
    char last[32]; /* the sequence of the last event that was sent */
    char *text;    /* what is being sent */
    size_t sent;
    bool ended;
    bool woken;
    struct stream *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct stream *streams;
static int stream_count;
static bool stopping;

void events_wake(const char *order)
{
    pthread_mutex_lock(&lock);
    for (struct stream *s = streams; s; s = s->next)
        if (strcmp(s->order, order) == 0)
            s->woken = true;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

void events_stop(void)
{
    pthread_mutex_lock(&lock);
    stopping = true;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
}

static bool stream_add(struct stream *s)
{
    pthread_mutex_lock(&lock);
    bool room = stream_count < STREAMS_MAX && !stopping;
    if (room) {
        s->next = streams;
        streams = s;
        stream_count++;
    }
    pthread_mutex_unlock(&lock);
    return room;
}

static void stream_free(void *closure)
{
    struct stream *s = closure;
    pthread_mutex_lock(&lock);
    for (struct stream **at = &streams; *at; at = &(*at)->next) {
        if (*at == s) {
            *at = s->next;
            stream_count--;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    free(s->text);
    free(s);
}

/* False: nothing happened for a while. */
static bool stream_wait(struct stream *s)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += QUIET_FOR_S;

    pthread_mutex_lock(&lock);
    while (!s->woken && !stopping)
        if (pthread_cond_timedwait(&news, &lock, &until) == ETIMEDOUT)
            break;
    bool woken = s->woken;
    s->woken = false;
    s->ended = s->ended || stopping;
    pthread_mutex_unlock(&lock);
    return woken;
}

static char *event_text(struct stream *s, const json_t *item)
{
    const char *sequence = json_string_value(json_object_get(item, "sequence"));
    char *data = json_dumps(item, JSON_COMPACT);
    char *text = NULL;
    if (!data || asprintf(&text, "id: %s\nevent: news\ndata: %s\n\n", sequence, data) < 0)
        text = NULL;
    free(data);
    snprintf(s->last, sizeof(s->last), "%s", sequence);
    return text;
}

/* All that the page has not seen yet, as one text; NULL if there is nothing. */
static char *unseen(struct stream *s)
{
    json_t *items = news_of(s->shop, s->order, s->last);
    char *all = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&all, &size);
    if (!items || !out)
        s->ended = true; /* the page comes again, and says what it has seen */
    for (size_t i = 0; out && i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        char *text = event_text(s, item);
        fputs(text ? text : "", out);
        free(text);
        if (news_is_last(json_string_value(json_object_get(item, "event")))) {
            fputs("event: end\ndata: {}\n\n", out);
            s->ended = true;
        }
    }
    if (out)
        fclose(out);
    json_decref(items);
    if (size > 0)
        return all;
    free(all);
    return NULL;
}

/* What libmicrohttpd sends next. It calls this from the connection's own thread, so we may wait. */
static ssize_t stream_read(void *closure, uint64_t position, char *buffer, size_t max)
{
    struct stream *s = closure;
    (void)position;
    while (!s->text) {
        if (s->ended)
            return MHD_CONTENT_READER_END_OF_STREAM;
        s->sent = 0;
        s->text = unseen(s);
        if (!s->text && !s->ended && !stream_wait(s) && !s->ended)
            s->text = strdup(": still here\n\n");
    }
    size_t left = strlen(s->text + s->sent);
    size_t size = left < max ? left : max;
    memcpy(buffer, s->text + s->sent, size);
    s->sent += size;
    if (size == left) {
        free(s->text);
        s->text = NULL;
    }
    return (ssize_t)size;
}

enum MHD_Result events_get(struct request *r, const char *id)
{
    const char *last = request_header(r, "Last-Event-ID");
    struct stream *s = calloc(1, sizeof(*s));
    if (!s)
        return MHD_NO;
    s->shop = r->shop;
    snprintf(s->order, sizeof(s->order), "%s", id);
    snprintf(s->last, sizeof(s->last), "%s", last ? last : "");
    s->text = strdup("retry: 1000\n\n");
    if (!stream_add(s)) {
        stream_free(s);
        return answer_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, NULL,
                            "Too many live pages are open at the moment. Please reload this one.");
    }
    return answer(r, MHD_HTTP_OK,
                  MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, s,
                                                    stream_free),
                  "text/event-stream");
}
