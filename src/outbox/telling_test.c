/*
 * The messages of tasks, over thousands of histories of any workflows: some changes are stored one
 * by one, others together, and now and then the task is read again. The expected messages are
 * derived from the stored states, and from the observer's model.
 */

#include "outbox/telling.h"

#include <stdlib.h>

#include "base/fuzz.h"
#include "base/prng.h"
#include "base/test.h"
#include "core/history_check.h"
#include "store/codec/envelope.h"

enum { HISTORIES = 1000, BYTES = 600, TOLD_MAX = 4000 };

static struct {
    struct prng prng;
    struct reply reply;
    struct arena arena;
    struct told told;
    struct node stored; /* the last stored state */
    bool any, alert;
    uint64_t revision;
    char last[32]; /* sequence */
    size_t counts[EVENT_TYPE_COUNT];
    unsigned long messages, of_type[EVENT_TYPE_COUNT], again;
    const char *order[40]; /* of this change */
    int step_of[40];
    size_t order_count;
} h;

static struct slice member(const struct json *j, const char *name)
{
    const struct json *m = json_get(j, name);

    CHECK(m && m->type == JSON_STRING, "%s: no %s", history_story(), name);
    return m->text;
}

static int step_named(struct slice name)
{
    for (int i = 0; i < history.graph.w.step_count; i++)
        if (slice_eq(history.graph.w.steps[i].name, name))
            return i;
    return -1;
}

static enum event_type type_of(struct slice type)
{
    for (int t = 0; t < EVENT_TYPE_COUNT; t++) {
        char text[64];
        (void)snprintf(text, sizeof text, "intact.task.%s", event_type_text((enum event_type)t));
        if (slice_is(type, text))
            return (enum event_type)t;
    }
    CHECK(false, "%.*s", SLICE_ARG(type));
    return EVENT_TYPE_COUNT;
}

/* The envelope agrees with the row; its number is higher than all before. */
static void check_message(const struct message *m, const struct telling *now)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j = NULL;
    char id[200];

    CLEANUP(buf_fini) struct buf body = {0};
    envelope_write(&body, m);
    CHECK(json_parse(&a, buf_view(&body), &j, NULL) == ERR_OK, "%s", body.ptr);
    (void)snprintf(id, sizeof id, "%.*s/%.*s", SLICE_ARG(m->task), SLICE_ARG(m->name));
    CHECK(slice_is(member(j, "id"), id), "%s: %s", id, body.ptr);
    CHECK(body.len <= envelope_size(m), "%zu are more than %zu", body.len, envelope_size(m));
    struct slice sequence = member(j, "sequence");
    CHECK(sequence.len == 20 && memcmp(sequence.ptr, h.last, 20) > 0, "%s: %s, then %.*s",
          history_story(), h.last, SLICE_ARG(sequence));
    memcpy(h.last, sequence.ptr, 20);
    enum event_type type = type_of(member(j, "type"));
    CHECK(now->reply->events & 1U << type, "%s: %s was not asked for", history_story(), id);
    const struct json *step = json_get(json_get(j, "data"), "step");
    CHECK(slice_is(member(json_get(j, "data"), "state"), task_state_text(now->task->state)), "%s",
          id);
    h.step_of[h.order_count] = step ? step_named(member(step, "name")) : -1;
    h.order[h.order_count++] = event_type_text(type);
    CHECK(h.order_count < COUNT_OF(h.order), "%s: so many", history_story());
    h.counts[type]++;
    h.of_type[type]++;
    h.messages++;
}

static size_t told_now(enum event_type type, int step)
{
    size_t n = 0;

    for (size_t i = 0; i < h.order_count; i++)
        n += strcmp(h.order[i], event_type_text(type)) == 0 && h.step_of[i] == step;
    return n;
}

static void must_tell(enum event_type type, int step, bool so)
{
    bool wanted = h.reply.events & 1U << type;
    size_t n = told_now(type, step);

    CHECK(n == (so && wanted), "%s: %s of step %d told %zu times in revision %" PRIu64,
          history_story(), event_type_text(type), step, n, h.revision);
}

static bool over(const struct node *n)
{
    return task_state_is_end(n->t.state) || n->t.state == TASK_ERROR;
}

static bool has_begun(const struct node *n)
{
    for (uint16_t i = 0; i < n->t.step_count; i++)
        if (n->world.steps[i].count[0] + n->world.steps[i].count[1] > 0)
            return true;
    return false;
}

/* Progress: every step that ended since. */
static void check_steps(const struct node *was, const struct node *is)
{
    for (uint16_t i = 0; i < is->t.step_count; i++) {
        const struct step *s = &is->steps[i];
        bool ended = s->state == STEP_COMPLETED || s->state == STEP_FAILED
                     || s->state == STEP_SKIPPED || s->state == STEP_UNDONE;
        bool new = !h.any || s->state != was->steps[i].state;
        const struct workflow_step *ws = &history.graph.steps[i];
        bool undo =
            ws->on_undo ? ws->on_failure == ON_FAILURE_HOLD : s->direction == DIRECTION_UNDO;
        if (ended && s->state == STEP_FAILED && !new) { /* another time? the observer knows */
            const struct world_step *w = &is->world.steps[i];
            const struct world_step *b = &was->world.steps[i];
            new = w->count[0] + w->count[1] != b->count[0] + b->count[1]
                  || s->direction != was->steps[i].direction
                  || s->failure_count != was->steps[i].failure_count;
        }
        must_tell(EVENT_TYPE_PROGRESS, i, ended && new);
        bool waits = s->state == STEP_WAITING && s->begun_at != 0;
        bool waited =
            h.any && was->steps[i].state == STEP_WAITING && was->steps[i].begun_at == s->begun_at;
        must_tell(EVENT_TYPE_WAITING, i, waits && !waited);
        must_tell(EVENT_TYPE_NEEDS_OPERATOR, i,
                  ended && new &&undo && s->state == STEP_FAILED && !over(is)
                      && is->t.direction == DIRECTION_UNDO);
    }
}

static void check_told(const struct node *was, const struct node *is)
{
    enum task_state before = h.any ? was->t.state : TASK_PENDING;
    bool stops = is->t.state == TASK_ERROR && (before != TASK_ERROR || h.alert);

    must_tell(EVENT_TYPE_RECEIVED, -1, !h.any);
    must_tell(EVENT_TYPE_COMPENSATING, -1, is->world.back && !(h.any && was->world.back));
    must_tell(EVENT_TYPE_PROCESSED, -1, is->t.state == TASK_PROCESSED && before != TASK_PROCESSED);
    must_tell(EVENT_TYPE_COMPENSATED, -1,
              is->t.state == TASK_COMPENSATED && before != TASK_COMPENSATED);
    must_tell(EVENT_TYPE_ERROR, -1, stops);
    must_tell(EVENT_TYPE_NEEDS_OPERATOR, -1, h.alert);
    bool was_paused = h.any && was->world.paused_at != 0;
    must_tell(EVENT_TYPE_PAUSED, -1, is->world.paused_at != 0 && !was_paused);
    must_tell(EVENT_TYPE_RESUMED, -1, is->world.paused_at == 0 && was_paused && !over(is));
    must_tell(EVENT_TYPE_CLOSED, -1, is->world.closed && !(h.any && was->world.closed));
    size_t started = h.counts[EVENT_TYPE_STARTED];
    CHECK(started <= 1, "%s: started twice", history_story());
    CHECK(started == 1 || !has_begun(is) || !(h.reply.events & 1U << EVENT_TYPE_STARTED),
          "%s: nobody was told that it started", history_story());
    check_steps(was, is);
}

/* The row shows what was reported: a reader continues where the last writer was. */
static void read_again(const struct node *is)
{
    struct told fresh = {0};

    told_of(&is->t, &h.reply, &h.arena, &fresh);
    CHECK(fresh.started == h.told.started, "%s: it is forgotten that it started", history_story());
    h.told = fresh;
    h.again++;
}

static void store(const struct node *is)
{
    CLEANUP(arena_fini) struct arena a = {0};
    size_t count = 0;
    const struct telling now = {
        .workflow = &history.graph.w,
        .task = &is->t,
        .revision = ++h.revision,
        .reply = &h.reply,
        .source = SLICE("/intact/test"),
        .alert = h.alert,
        .now = is->now,
    };

    CLEANUP(buf_fini) struct buf scratch = {0};
    const struct message *list = messages_of(&h.told, &now, &scratch, &a, &count);
    h.order_count = 0;
    for (size_t i = 0; i < count; i++)
        check_message(&list[i], &now);
    check_told(&h.stored, is);
    told_of(&is->t, &h.reply, &h.arena, &h.told);
    node_copy(&h.stored, is);
    h.any = true;
    h.alert = false;
    if (prng_below(&h.prng, 5) == 0)
        read_again(is);
}

static void changed(const struct node *was, const struct node *is, const struct effects *fx)
{
    if (!h.any && prng_below(&h.prng, 4) > 0)
        store(was); /* as it was received, or together with what came next */
    h.alert |= fx->alert;
    if (prng_below(&h.prng, 3) > 0)
        store(is);
}

static void begin(uint32_t events)
{
    arena_fini(&h.arena);
    memset(&h.told, 0, sizeof h.told);
    memset(h.counts, 0, sizeof h.counts);
    (void)strcpy(h.last, "00000000000000000000");
    h.any = h.alert = false;
    h.revision = 0;
    h.reply = (struct reply){SLICE("https://shop.example/"), events};
}

static void histories(uint64_t seed, uint32_t events)
{
    uint8_t bytes[BYTES];

    h.prng.state = seed;
    for (int i = 0; i < HISTORIES; i++) {
        begin(events ? events : (uint32_t)prng_next(&h.prng) & ((1U << EVENT_TYPE_COUNT) - 1));
        for (size_t b = 0; b < sizeof bytes; b++)
            bytes[b] = (uint8_t)prng_below(&h.prng, 256);
        (void)LLVMFuzzerTestOneInput(bytes, sizeof bytes);
    }
}

static void every_event_is_told_once_in_order(void **state)
{
    (void)state;
    history.changed = changed;
    histories(1, (1U << EVENT_TYPE_COUNT) - 1);
    for (int t = 0; t < EVENT_TYPE_COUNT; t++)
        CHECK(h.of_type[t] > 30, "%s: %lu", event_type_text((enum event_type)t), h.of_type[t]);
    CHECK(h.again > 300, "%lu", h.again);
}

static void what_was_not_asked_for_is_not_told(void **state)
{
    (void)state;
    history.changed = changed;
    histories(2, 0);
}

/* ---- locks ---- */

/* Is it told now that it waits for its lock? */
static bool tells_of_lock(struct told *told, const struct task *t, int64_t now)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf scratch = {0};
    CLEANUP(buf_fini) struct buf body = {0};
    const struct workflow w = {.name = SLICE("w"), .version = 1};
    const struct reply reply = {SLICE("https://a/"), 1U << EVENT_TYPE_WAITING};
    const struct telling telling = {.workflow = &w,
                                    .task = t,
                                    .revision = 1,
                                    .reply = &reply,
                                    .source = SLICE("s"),
                                    .now = now};
    size_t count = 0;

    const struct message *list = messages_of(told, &telling, &scratch, &a, &count);
    told_of(t, &reply, &a, told);
    told->steps = NULL;
    if (count == 0)
        return false;
    envelope_write(&body, &list[0]);
    buf_byte(&body, '\0');
    CHECK(count == 1 && strstr(body.ptr, "\"lock\":\"w/k\"") && !strstr(body.ptr, "\"step\""), "%s",
          body.ptr);
    return true;
}

static void who_waits_for_its_lock_says_so(void **state)
{
    struct task t = {.id = SLICE("t"),
                     .state = TASK_PENDING,
                     .submitted_at = 1,
                     .not_before = 100,
                     .lock = SLICE("w/k")};
    struct told told = {0};
    (void)state;

    CHECK(!tells_of_lock(&told, &t, 50), "its start time is to come");
    t.state = TASK_PROCESSING;
    CHECK(!tells_of_lock(&told, &t, 100), "a claim finds it");
    t.state = TASK_PENDING;
    CHECK(tells_of_lock(&told, &t, 100), "it waits");
    CHECK(!tells_of_lock(&told, &t, 101), "that is known");
    t.paused_at = 102;
    CHECK(!tells_of_lock(&told, &t, 102), "it is passed over");
    t.paused_at = 0;
    CHECK(tells_of_lock(&told, &t, 103), "it waits again");
    t.lock_since = 104;
    CHECK(!tells_of_lock(&told, &t, 105), "it has it");
    t.lock = SLICE_NONE;
    t.lock_since = 0;
    CHECK(!tells_of_lock(&told, &t, 106), "it needs none");
}

/* ---- reply_to ---- */

static enum err check(const char *text, struct reply *r, struct error *e, struct arena *a)
{
    struct json *j = NULL;

    CHECK(json_parse(a, slice_of(text), &j, NULL) == ERR_OK, "%s", text);
    return reply_check(j, r, e);
}

static void reply_to_is_an_address_or_an_object(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct reply r, stored;
    struct error e;
    (void)state;

    CHECK(check("\"https://a/\"", &r, &e, &a) == ERR_OK && slice_is(r.to, "https://a/"), "plain");
    reply_read(SLICE("https://a/"), &a, &stored);
    CHECK(stored.events == r.events && slice_eq(stored.to, r.to), "as it is stored");
    CHECK(!(r.events & (1U << EVENT_TYPE_PROGRESS | 1U << EVENT_TYPE_PAUSED)), "by default");
    CHECK(check("{\"to\": \"amqp:q\", \"events\": \"all\"}", &r, &e, &a) == ERR_OK
              && r.events == (1U << EVENT_TYPE_COUNT) - 1,
          "all");
    reply_read(SLICE("{\"to\": \"amqp:q\", \"events\": [\"closed\", \"closed\"]}"), &a, &stored);
    CHECK(stored.events == 1U << EVENT_TYPE_CLOSED && slice_is(stored.to, "amqp:q"), "one");
    reply_read(SLICE("{\"to\": 1"), &a, &stored);
    CHECK(!stored.to.ptr && stored.events == 0, "what cannot be read asks for nothing");
}

static void what_makes_no_sense_is_told_so(void **state)
{
    static const char *const wrong[][2] = {
        {"\"\"", "reply_to is empty"},
        {"\"https://a b/\"", "blank"},
        {"\"https://a\\u0001/\"", "control"},
        {"1", "is a number"},
        {"{}", "reply_to.to is missing"},
        {"{\"to\": null}", "reply_to.to is null"},
        {"{\"to\": \"https://a/\", \"event\": []}", "a member \"event\""},
        {"{\"to\": \"https://a/\", \"events\": []}", "is empty"},
        {"{\"to\": \"https://a/\", \"events\": {}}", "is an object"},
        {"{\"to\": \"https://a/\", \"events\": \"some\"}", "is a string"},
        {"{\"to\": \"https://a/\", \"events\": [\"processed\", \"Error\"]}", "has \"Error\""},
        {"{\"to\": \"https://a/\", \"events\": [1]}", "has 1"},
    };
    CLEANUP(arena_fini) struct arena a = {0};
    struct reply r;
    (void)state;

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct error e = {0};
        CHECK(check(wrong[i][0], &r, &e, &a) == ERR_INVALID, "%s", wrong[i][0]);
        CHECK(strstr(e.text, wrong[i][1]), "%s: %s", wrong[i][0], e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_event_is_told_once_in_order),
        cmocka_unit_test(what_was_not_asked_for_is_not_told),
        cmocka_unit_test(who_waits_for_its_lock_says_so),
        cmocka_unit_test(reply_to_is_an_address_or_an_object),
        cmocka_unit_test(what_makes_no_sense_is_told_so),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    arena_fini(&h.arena);
    return failed;
}
