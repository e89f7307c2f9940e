/* Heartbeats with a deadline for requests that require them: when each is due, what its
 * acknowledgement moves, and when an attempt must be given up (pulse.h). On the driving thread;
 * peer.c sends them, heartbeat.c has those of handlers. */

#include "libintact/pulse.h"

#include "libintact/agent.h"

enum { WITHIN_MIN_MS = 250 }; /* a call always gets that long */

static bool is_beaten_for(const struct intact_request *r)
{
    return r->heartbeat_ms > 0 && r->in_work && r->begun && atomic_load(&r->is_beaten_for);
}

void pulse_tick(struct intact_agent *a, int64_t now)
{
    struct intact_request *r;

    for (size_t i = 0; a->pulsing > 0 && (r = map_next(&a->held, &i));) {
        if (!is_beaten_for(r) || now < r->pulse_at || request_is_over(r))
            continue;
        heartbeats_again(&a->outbox->beats, r);
        r->pulse_at = now + max_i64(r->heartbeat_ms / PULSES, 1);
    }
}

int64_t pulse_wake_at(struct intact_agent *a)
{
    struct intact_request *r;
    int64_t at = INT64_MAX;

    for (size_t i = 0; a->pulsing > 0 && (r = map_next(&a->held, &i));)
        if (is_beaten_for(r) && r->pulse_at < request_stop_at(r))
            at = min_i64(at, r->pulse_at);
    return at;
}

void intact_request_set_heartbeats(struct intact_request *r, bool are_automatic)
{
    atomic_store(&r->is_beaten_for, are_automatic);
    outbox_wake(r->outbox);
}

/* ---- acknowledgements ---- */

static struct peer *next_after(const struct intact_agent *a, const struct peer *p)
{
    size_t at = 0;

    while (at < a->peer_count && a->peers[at] != p)
        at++;
    for (size_t i = 1; i < a->peer_count; i++) {
        struct peer *other = a->peers[(at + i) % a->peer_count];
        if (other->used && other->answered && other->failures == 0)
            return other;
    }
    return NULL;
}

/* Another node may have taken over the task. If there is none, this one may soon know it. */
static void beat_elsewhere(struct intact_agent *a, struct intact_request *r)
{
    struct peer *other = next_after(a, r->beat_peer);

    if (other)
        r->beat_peer = other;
    if (r->heartbeat_ms > 0 && r->in_work)
        heartbeats_again(&a->outbox->beats, r);
}

static void acknowledge(struct intact_request *r, int64_t sent_at)
{
    if (r->heartbeat_ms > 0)
        atomic_store(&r->beat_by, sent_at + r->heartbeat_ms);
}

static void read_outcome(struct peer *p, struct intact_request *r, const struct json *j)
{
    struct slice status = json_get_text(j, "status");

    if (slice_is(status, "accepted"))
        acknowledge(r, p->beat.sent_at);
    else if (slice_is(status, "late"))
        request_tell_stop(r);         /* it may still report a result, which an undo may need */
    else if (!json_get(j, "problem")) /* an invalid heartbeat is invalid everywhere */
        beat_elsewhere(p->agent, r);
}

void pulse_answered(struct peer *p, const struct json *outcomes)
{
    struct intact_agent *a = p->agent;
    struct intact_request *r;

    for (const struct json *j = outcomes ? outcomes->child : NULL; j; j = j->next) {
        r = map_get(&a->held, json_get_text(j, "token"));
        if (!r || r->beat_on != p)
            continue;
        r->beat_on = NULL;
        read_outcome(p, r, j);
    }
    for (size_t i = 0; (r = map_next(&a->held, &i));) {
        if (r->beat_on != p)
            continue;
        r->beat_on = NULL;
        beat_elsewhere(a, r);
    }
}

int64_t pulse_within_ms(const struct peer *p, int64_t within_ms)
{
    const struct intact_agent *a = p->agent;
    struct intact_request *r;

    for (size_t i = 0; a->pulsing > 0 && (r = map_next(&a->held, &i));)
        if (r->beat_on == p && r->heartbeat_ms > 0)
            within_ms = min_i64(within_ms, max_i64(r->heartbeat_ms / PULSES, WITHIN_MIN_MS));
    return within_ms;
}

void pulse_forget(struct intact_agent *a, const struct peer *p)
{
    struct intact_request *r;

    for (size_t i = 0; (r = map_next(&a->held, &i));) {
        if (r->beat_peer == p)
            r->beat_peer = r->peer;
        if (r->beat_on == p)
            r->beat_on = NULL;
    }
}
