/* Heartbeats waiting to be sent: see heartbeat.h. Handlers store them, the driving thread takes
 * them. */
#include "libintact/heartbeat.h"

#include "libintact/agent_outbox.h"
#include "libintact/peer.h"

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

size_t heartbeats_take(struct heartbeats *h, struct peer *p, struct buf *b)
{
    size_t count = 0;

    pthread_mutex_lock(&h->lock);
    LIST_FOREACH (l, after, &h->pending) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, beat_link);
        if (r->beat_peer != p || count == HEARTBEATS_MAX)
            continue;
        link_remove(l);
        r->beat_on = p;
        json_raw(b, buf_view(&r->beat));
        count++;
    }
    pthread_mutex_unlock(&h->lock);
    return count;
}

/* Requests that require heartbeats have a shorter minimum interval. */
static int64_t gap_of(const struct intact_request *r)
{
    int64_t quarter = r->heartbeat_ms / 4;

    return r->heartbeat_ms > 0 ? min_i64(peer_timing.beat_ms, quarter) : peer_timing.beat_ms;
}

int64_t heartbeats_due_at(struct heartbeats *h, const struct peer *p, int64_t sent_at)
{
    int64_t at = INT64_MAX;

    pthread_mutex_lock(&h->lock);
    LIST_FOREACH (l, after, &h->pending) {
        struct intact_request *r = CONTAINER_OF(l, struct intact_request, beat_link);
        if (r->beat_peer == p)
            at = min_i64(at, sent_at + gap_of(r));
    }
    pthread_mutex_unlock(&h->lock);
    return at;
}

void heartbeats_drop(struct heartbeats *h, struct intact_request *r)
{
    pthread_mutex_lock(&h->lock);
    link_remove(&r->beat_link);
    pthread_mutex_unlock(&h->lock);
}

/* ---- called by handlers ---- */

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

static bool is_short_json(struct slice json)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *ignored;

    return json.len <= HEARTBEAT_PROGRESS_MAX
           && json_parse_within(&a, json, JSON_DEPTH_IN_CALL, &ignored, NULL) == ERR_OK;
}

static void write_beat(struct buf *b, const struct intact_request *r, const char *progress,
                       const char *message)
{
    buf_clear(b);
    json_open(b, '{');
    json_member_text(b, "token", r->token);
    if (progress) {
        json_member_raw(b, "progress", slice_of(progress));
    }
    if (message) {
        json_member_text(b, "message", message_of(message));
    }
    if (r->left_resume.len > 0) {
        json_member_raw(b, "resume", buf_view(&r->left_resume));
    }
    json_close(b, '}');
}

void heartbeats_again(struct heartbeats *h, struct intact_request *r)
{
    pthread_mutex_lock(&h->lock);
    if (!h->closed && !link_is_in(&r->beat_link)) {
        if (r->beat.len == 0)
            write_beat(&r->beat, r, NULL, NULL);
        list_push(&h->pending, &r->beat_link);
    }
    pthread_mutex_unlock(&h->lock);
}

bool heartbeat_resume(struct intact_request *r, struct buf *ret)
{
    if (!r->outbox) /* a request without an agent */
        return false;
    struct heartbeats *h = &r->outbox->beats;
    pthread_mutex_lock(&h->lock);
    buf_slice(ret, buf_view(&r->left_resume));
    pthread_mutex_unlock(&h->lock);
    return ret->len > 0;
}

static bool is_fine(const char *json)
{
    return !json || is_short_json(slice_of(json));
}

bool intact_heartbeat(struct intact_request *r, const char *progress_json, const char *message)
{
    return intact_heartbeat_resume(r, progress_json, message, NULL);
}

bool intact_heartbeat_resume(struct intact_request *r, const char *progress_json,
                             const char *message, const char *resume_json)
{
    struct heartbeats *h = &r->outbox->beats;

    if (!is_fine(progress_json) || !is_fine(resume_json))
        return false;
    pthread_mutex_lock(&h->lock);
    bool first = !h->closed && !link_is_in(&r->beat_link);
    if (resume_json) {
        buf_clear(&r->left_resume);
        buf_slice(&r->left_resume, slice_of(resume_json));
    }
    if (!h->closed)
        write_beat(&r->beat, r, progress_json, message);
    if (first)
        list_push(&h->pending, &r->beat_link);
    pthread_mutex_unlock(&h->lock);
    if (first)
        outbox_wake(r->outbox);
    return true;
}
