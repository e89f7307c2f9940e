#include "libintact/heartbeat.h"

#include "libintact/outbox.h"

void heartbeats_init(struct heartbeats *h)
{
    pthread_mutex_init(&h->lock, NULL);
    list_init(&h->pending);
    h->closed = false;
}

void heartbeats_close(struct heartbeats *h)
{
    pthread_mutex_lock(&h->lock);
    h->closed = true;
    LIST_FOREACH (l, after, &h->pending) {
        link_remove(l);
    }
    pthread_mutex_unlock(&h->lock);
}

void heartbeats_fini(struct heartbeats *h)
{
    pthread_mutex_destroy(&h->lock);
}

size_t heartbeats_take(struct heartbeats *h, const struct peer *p, struct buf *b)
{
    size_t count = 0;

    pthread_mutex_lock(&h->lock);
    LIST_FOREACH (l, after, &h->pending) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, beat_link);
        if (r->peer != p || count == HEARTBEATS_MAX)
            continue;
        link_remove(l);
        json_raw(b, buf_view(&r->beat));
        count++;
    }
    pthread_mutex_unlock(&h->lock);
    return count;
}

bool heartbeats_any(struct heartbeats *h, const struct peer *p)
{
    bool any = false;

    pthread_mutex_lock(&h->lock);
    LIST_FOREACH (l, after, &h->pending) {
        any |= CONTAINER_OF(l, struct intact_request, beat_link)->peer == p;
    }
    pthread_mutex_unlock(&h->lock);
    return any;
}

void heartbeats_drop(struct heartbeats *h, struct intact_request *r)
{
    pthread_mutex_lock(&h->lock);
    link_remove(&r->beat_link);
    pthread_mutex_unlock(&h->lock);
}

/* ---- a handler's side ---- */

/* Cut between characters. */
static struct slice message_of(const char *text)
{
    struct slice s = slice_of(text);

    if (s.len <= HEARTBEAT_MESSAGE_MAX)
        return s;
    s.len = HEARTBEAT_MESSAGE_MAX;
    while (s.len > 0 && ((unsigned char)s.ptr[s.len] & 0xc0) == 0x80)
        s.len--;
    return s;
}

static bool is_progress(struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *ignored;

    return json.len <= HEARTBEAT_PROGRESS_MAX
           && json_parse_within(&a, json, JSON_DEPTH_OUTSIDE, &ignored, NULL) == ERR_OK;
}

static void write_beat(struct buf *b, const struct intact_request *r, const char *progress,
                       const char *message)
{
    buf_clear(b);
    json_open(b, '{');
    json_key(b, "token");
    json_string(b, r->token);
    if (progress) {
        json_key(b, "progress");
        json_raw(b, slice_of(progress));
    }
    if (message) {
        json_key(b, "message");
        json_string(b, message_of(message));
    }
    json_close(b, '}');
}

bool intact_heartbeat(struct intact_request *r, const char *progress_json, const char *message)
{
    struct heartbeats *h = &r->outbox->beats;

    if (progress_json && !is_progress(slice_of(progress_json)))
        return false;
    pthread_mutex_lock(&h->lock);
    bool first = !h->closed && !link_is_in(&r->beat_link);
    if (!h->closed)
        write_beat(&r->beat, r, progress_json, message);
    if (first)
        list_push(&h->pending, &r->beat_link);
    pthread_mutex_unlock(&h->lock);
    if (first)
        outbox_wake(r->outbox);
    return true;
}
