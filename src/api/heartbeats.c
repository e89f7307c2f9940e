/*
 * POST /v1/agents/{agent}/heartbeats: answered at once, from memory. The scheduler keeps what is
 * reported; streams of the task get it.
 */

#include <stdio.h>

#include "api/body.h"
#include "api/events.h"
#include "api/handlers.h"
#include "base/names.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "json/json.h"

enum { PROBLEM_MAX = 100 };

/* One beat as it came, and what is wrong with it. */
struct read_beat {
    struct slice token;
    char problem[PROBLEM_MAX]; /* "": nothing */
};

struct beats_read {
    struct heartbeats call;
    struct read_beat *read; /* all of them, in their order; call.list has those in order */
    size_t count;
};

static void read_progress(const struct json *j, struct heartbeat *b, struct read_beat *rb)
{
    struct slice raw = json_get_raw(j, "progress");

    if (raw.len > BEAT_PROGRESS_MAX)
        (void)snprintf(rb->problem, PROBLEM_MAX, "progress is %zu bytes, at most %d", raw.len,
                       BEAT_PROGRESS_MAX);
    else if (raw.ptr && !slice_is(raw, "null"))
        b->progress = raw;
}

static void read_message(const struct json *j, struct heartbeat *b, struct read_beat *rb)
{
    const struct json *v = json_get(j, "message");

    if (!v || v->type == JSON_NULL)
        return;
    if (v->type != JSON_STRING)
        (void)snprintf(rb->problem, PROBLEM_MAX, "message is %s, expected a text",
                       json_type_text(v->type));
    else if (v->text.len > BEAT_MESSAGE_MAX)
        (void)snprintf(rb->problem, PROBLEM_MAX, "message is %zu bytes, at most %d", v->text.len,
                       BEAT_MESSAGE_MAX);
    else
        b->message = v->text;
}

static void read_resume(const struct json *j, struct heartbeat *b, struct read_beat *rb)
{
    struct slice raw = json_get_raw(j, "resume");

    if (raw.len > RESUME_MAX)
        (void)snprintf(rb->problem, PROBLEM_MAX, "resume is %zu bytes, at most %d", raw.len,
                       RESUME_MAX);
    else if (raw.ptr && !slice_is(raw, "null"))
        b->resume = raw;
}

/* One bad beat fails only itself. */
static void read_beat(const struct json *j, uint32_t depth, struct beats_read *br)
{
    struct read_beat *rb = &br->read[br->count++];
    struct heartbeat b = {.token = json_get_text(j, "token")};

    rb->token = b.token;
    if (!b.token.ptr)
        (void)snprintf(rb->problem, PROBLEM_MAX, "token is missing, or no text");
    if (!json_is_within(j, depth))
        (void)snprintf(rb->problem, PROBLEM_MAX,
                       "the heartbeat is nested deeper than %" PRIu32 " levels", depth);
    read_progress(j, &b, rb);
    read_message(j, &b, rb);
    read_resume(j, &b, rb);
    if (!*rb->problem)
        br->call.list[br->call.count++] = b;
}

static bool read_list(struct http_request *r, const struct json *list, struct beats_read *br)
{
    uint32_t depth = body_entry_depth(http_handler_arg(r));
    char where[40];

    if (!list || list->type != JSON_ARRAY || list->count > HEARTBEATS_MAX) {
        http_problem(r, 422, "bad-heartbeats", "beats is %s, expected an array of at most %d",
                     !list                      ? "missing"
                     : list->type == JSON_ARRAY ? "longer"
                                                : json_type_text(list->type),
                     HEARTBEATS_MAX);
        return false;
    }
    br->call.list = arena_alloc(&r->arena, (list->count + 1) * sizeof *br->call.list);
    br->read = arena_alloc(&r->arena, (list->count + 1) * sizeof *br->read);
    for (const struct json *one = list->child; one; one = one->next) {
        (void)snprintf(where, sizeof where, "beats[%zu]", br->count);
        if (one->type == JSON_OBJECT
            && !members_ok(r, one, NAMES("token", "progress", "message", "resume"), where))
            return false;
        read_beat(one, depth, br);
    }
    return true;
}

static bool read_call(struct http_request *r, const struct json *j, struct beats_read *br)
{
    if (!members_ok(r, j, NAMES("instance", "beats"), "a call with heartbeats"))
        return false;
    br->call = (struct heartbeats){.agent_name = http_segment(r, 2),
                                   .instance_name = json_get_text(j, "instance"),
                                   .arena = &r->arena};
    if (!is_name(br->call.agent_name) || !is_name(br->call.instance_name)) {
        http_problem(r, 422, "bad-heartbeats",
                     "agent and instance must be names of 1 to 128 characters of [A-Za-z0-9._:-]");
        return false;
    }
    return read_list(r, json_get(j, "beats"), br);
}

static void render_outcomes(struct buf *b, const struct beats_read *br)
{
    const struct heartbeat *taken = br->call.list;

    json_open(b, '[');
    for (size_t i = 0; i < br->count; i++) {
        const struct read_beat *rb = &br->read[i];
        enum beat_status st = *rb->problem ? BEAT_UNKNOWN : (taken++)->status;
        json_open(b, '{');
        json_key(b, "token");
        json_string(b, rb->token);
        json_key(b, "status");
        json_string(b, slice_of(beat_status_text(st)));
        if (*rb->problem) {
            json_key(b, "problem");
            json_string(b, slice_of(rb->problem));
        }
        json_close(b, '}');
    }
    json_close(b, ']');
}

void heartbeats_post(struct server *sv, struct http_request *r)
{
    struct beats_read br = {0};
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json_of_list(r, &tree);
    CLEANUP(buf_fini) struct buf b = {0};

    if (!j || !read_call(r, j, &br))
        return;
    scheduler_heartbeats(sv->scheduler, &br.call);
    for (size_t i = 0; i < br.call.count; i++)
        if (br.call.list[i].status == BEAT_ACCEPTED)
            events_beat(sv, &br.call.list[i]);
    json_open(&b, '{');
    json_key(&b, "now");
    json_time(&b, server_now(sv));
    json_key(&b, "outcomes");
    render_outcomes(&b, &br);
    json_key(&b, "stop");
    json_open(&b, '[');
    for (size_t i = 0; i < br.call.stop_count; i++)
        json_string(&b, br.call.stop[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}
