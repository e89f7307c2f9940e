/* Fuzz target of what is read back from the store: any row and document of a task (the first
 * bytes are the columns), as after a write by somebody else or a failure of the disk. Either the
 * row is refused, or it decodes to a task that keeps the core's invariants and survives encoding
 * and decoding. overdue.c judges it, and random events follow: no assertion of the core fails. */

#include "base/fuzz.h"
#include "core/attempts.h"
#include "definition/definition.h"
#include "store/codec/codec.h"
#include "supervisor/overdue.h"

/* clang-format off */
#define STEP(name, rest) "{\"name\":\"" name "\",\"agent\":\"g\",\"action\":\"x\"," rest "}"
#define UNDO             "\"undo\":{\"action\":\"y\"}"

static const char *const texts[] = {
    "{\"intact\":1,\"workflow\":\"w\",\"complete_by\":\"2h\",\"undo_complete_by\":\"1h\","
        "\"steps\":["
        STEP("a", UNDO ",\"retry\":{\"attempts\":2,\"wait\":\"1s\","
                  "\"defer\":\"1m\",\"defers\":1}") ","
        STEP("b", "\"pivot\":true,\"retry\":{\"attempts\":3,\"wait\":\"1s\"}") ","
        STEP("c", UNDO ",\"on_failure\":\"continue\"") "]}",
    "{\"intact\":1,\"workflow\":\"w\",\"on_failure\":\"hold\",\"steps\":["
        STEP("a", "\"undo\":\"none\"") ","
        STEP("b", UNDO ",\"after\":[]") ","
        STEP("c", UNDO ",\"after\":[\"a\",\"b\"]") "]}",
    "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" STEP("a", UNDO) "]}",
    "{\"intact\":1,\"workflow\":\"w\",\"on_signal\":{\"u\":\"undo\"},\"steps\":["
        "{\"name\":\"a\",\"signal\":{\"name\":[\"go\",\"no\"]},\"complete_by\":\"1h\"},"
        "{\"name\":\"b\",\"signal\":{\"name\":\"go\"}},"
        STEP("c", UNDO ",\"after\":[]") "]}",
    "{\"intact\":1,\"workflow\":\"w\",\"steps\":[" /* enough steps to form groups */
        STEP("a", UNDO) "," STEP("b", UNDO) "," STEP("c", UNDO) "," STEP("d", UNDO) ","
        STEP("e", UNDO) "," STEP("f", UNDO) "," STEP("g", UNDO) "," STEP("h", UNDO) ","
        STEP("i", UNDO) "," STEP("j", UNDO) "]}",
    "{\"intact\":1,\"workflow\":\"w\",\"steps\":["
        "{\"name\":\"a\",\"approve\":{\"by\":[\"g\"],\"question\":\"?\",\"people\":2},"
        "\"complete_by\":\"1h\"},"
        "{\"name\":\"b\",\"approve\":{\"by\":[\"h\"],\"question\":\"?\"}},"
        STEP("c", UNDO ",\"after\":[]") "]}",
};
/* clang-format on */

static const struct workflow *workflow_of(uint8_t choice)
{
    static struct definition *made[COUNT_OF(texts)];
    static struct mistakes m;
    size_t few = COUNT_OF(texts) - 3;
    size_t i = choice == 0xfd   ? few + 2
               : choice == 0xff ? few + 1
               : choice == 0xfe ? few
                                : choice % few;

    if (!made[i]) {
        enum err err = definition_parse(slice_of(texts[i]), DEFINITION_JSON, &made[i], &m, NULL);
        ASSERT(err == ERR_OK);
        made[i]->workflow.version = 1;
    }
    return &made[i]->workflow;
}

/* Mostly near the beginning, so that times can follow each other; sometimes any number. */
static int64_t time_of(struct fuzz *f)
{
    uint8_t kind = fuzz_byte(f);

    return kind < 0xf0 ? 1000000 + kind * INT64_C(1000) : (int64_t)fuzz_number(f, 8);
}

static int64_t time_or_none(struct fuzz *f, bool some)
{
    return some ? time_of(f) : 0;
}

static struct task_row row_of(struct fuzz *f)
{
#define GROUP                                                                               \
    "{\"0\":{\"name\":\"a\",\"state\":\"completed\",\"attempt\":1,\"output\":1,"            \
    "\"attempts\":[{\"attempt\":1,\"outcome\":\"completed\",\"effect\":\"happened\","       \
    "\"started_at\":1,\"ended_at\":2,\"complete_by\":3}]},\"1\":{\"name\":\"b\",\"state\":" \
    "\"waiting\"},\"2\":{\"name\":\"c\",\"state\":\"skipped\"}}"
    static const struct payload payloads[] = {{1, {"\"one\"", 5}},
                                              {2, {"[2]", 3}},
                                              {3, {GROUP, sizeof GROUP - 1}}};
    uint8_t what = fuzz_byte(f);
    uint8_t has = fuzz_byte(f);
    struct task_row row = {
        .id = SLICE("t"),
        .workflow = SLICE("w"),
        .version = 1,
        .revision = 1,
        .state = (enum task_state)(what % 6),
        .direction = what & 0x80 ? DIRECTION_UNDO : DIRECTION_FORWARD,
        .priority = 5,
        .locked_by = has & 1 ? SLICE("n/1") : SLICE_NONE,
        .payloads = payloads,
        .payload_count = has & 2 ? COUNT_OF(payloads) : 0,
    };

    row.submitted_at = time_of(f);
    row.complete_by = time_or_none(f, has & 4);
    row.not_before = time_or_none(f, has & 8);
    row.started_at = time_or_none(f, has & 16);
    row.ended_at = time_or_none(f, has & 32);
    row.failure_count = has & 64 ? (uint32_t)fuzz_number(f, 4) : 1;
    row.priority = has & 128 ? (int8_t)fuzz_byte(f) : 5;
    row.doc = fuzz_rest(f);
    return row;
}

static void add_payloads(struct task_row *row, const struct task_row *from, struct arena *a)
{
    struct payload *all =
        arena_alloc(a, (from->payload_count + row->payload_count + 1) * sizeof *all);

    for (size_t i = 0; i < from->payload_count; i++)
        all[i] = from->payloads[i];
    for (size_t i = 0; i < row->payload_count; i++)
        all[from->payload_count + i] = row->payloads[i];
    row->payloads = all;
    row->payload_count += from->payload_count;
}

/* A decoded task is the same after encoding and decoding. */
static void check_round(const struct workflow *w, struct task *t, const struct task_row *from,
                        struct arena *a)
{
    CLEANUP(buf_fini) struct buf once = {0};
    CLEANUP(buf_fini) struct buf twice = {0};
    struct task again;
    struct task_row row;
    struct task_row last;
    struct error e = {0};

    task_encode(w, t, a, &once, &row);
    add_payloads(&row, from, a);
    enum err err = task_decode(w, &row, a, &again, &e);
    ASSERT(err == ERR_OK);
    task_encode(w, &again, a, &twice, &last);
    ASSERT(slice_eq(buf_view(&once), buf_view(&twice)));
    ASSERT(last.state == row.state);
    ASSERT(last.complete_by == row.complete_by);
    ASSERT(task_wake_at(&again) == task_wake_at(t));
}

/* The same with steps in groups, before or after. */
static void check_kept_round(const struct workflow *w, const struct task_row *from, struct arena *a)
{
    CLEANUP(buf_fini) struct buf once = {0};
    CLEANUP(buf_fini) struct buf twice = {0};
    struct encoded *first = encoded_new(w, a);
    struct encoded *second = encoded_new(w, a);
    struct task t;
    struct task again;
    struct task_row row;
    struct task_row last;
    struct error e = {0};

    enum err err = task_decode_kept(w, from, first, a, &t, &e);
    ASSERT(err == ERR_OK);
    task_encode_again(w, &t, first, a, &once, &row);
    add_payloads(&row, from, a);
    err = task_decode_kept(w, &row, second, a, &again, &e);
    ASSERT(err == ERR_OK);
    task_encode_again(w, &again, second, a, &twice, &last);
    ASSERT(slice_eq(buf_view(&once), buf_view(&twice)));
    ASSERT(last.payload_count == 0);
}

static void check_verdict(const struct workflow *w, const struct task *t, int64_t now)
{
    static const int64_t gaps[] = {0, 5000, INT64_C(1) << 41};

    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        CLEANUP(buf_fini) struct buf text = {0};
        CLEANUP(arena_fini) struct arena a = {0};
        struct lost_time lost = {now - gaps[i], gaps[i] ? now : 0, 10000, 0, 0};
        struct verdict v;
        struct request back;
        overdue_judge(w, t, now, 0, &lost, &a, &v);
        row_request_write(&text, &v.request);
        row_request_read(buf_view(&text), &a, &back);
        ASSERT(back.count == v.request.count);
        ASSERT(v.request.count > 0 || !v.release);
        ASSERT(v.wake_at == 0 || v.wake_at > now);
    }
}

/* Room for one more attempt, as in the scheduler. */
static void make_room(struct step *s, struct arena *a)
{
    struct attempt *more = arena_alloc(a, ATTEMPTS_KEPT * sizeof *more);

    if (s->attempt_count)
        memcpy(more, s->attempts, s->attempt_count * sizeof *more);
    s->attempts = more;
    s->attempt_cap = ATTEMPTS_KEPT;
}

static const struct signal *any_signal(uint64_t dice)
{
    static const struct slice names[] = {{"go", 2}, {"no", 2}, {"u", 1}, {"go", 2}};
    static const struct slice keys[] = {{"k", 1}, {"l", 1}, {"m", 1}, {"n", 1}};
    static struct signal s;

    s = (struct signal){.key = keys[dice & 3],
                        .name = names[dice >> 2 & 3],
                        .content = SLICE("c"),
                        .data = {.json = SLICE("1")}};
    return &s;
}

static void make_room_for_signal(struct task *t, struct arena *a)
{
    uint16_t cap = (uint16_t)min_i64(t->signal_cap + 40, SIGNALS_MAX);
    struct signal *more = arena_alloc(a, cap * sizeof *more);

    if (t->signal_count)
        memcpy(more, t->signals, t->signal_count * sizeof *more);
    t->signals = more;
    t->signal_cap = cap;
}

static const struct ballot *any_ballot(uint64_t dice)
{
    static const struct slice persons[] = {{"p", 1}, {"q", 1}, {"r", 1}, {"s", 1}};
    static const struct slice groups[] = {{"g", 1}, {"h", 1}};
    static struct ballot b;

    b = (struct ballot){.person = persons[dice & 3],
                        .comment = SLICE("c"),
                        .groups = groups,
                        .group_count = 1 + (dice >> 2 & 1),
                        .asking = (uint32_t)(dice >> 3 & 3),
                        .agrees = dice >> 5 & 3};
    return &b;
}

static void make_room_for_vote(struct task *t, struct arena *a)
{
    uint16_t cap = (uint16_t)min_i64(t->vote_cap + 40, VOTES_MAX);
    struct vote *more = arena_alloc(a, cap * sizeof *more);

    if (t->vote_count)
        memcpy(more, t->votes, t->vote_count * sizeof *more);
    t->votes = more;
    t->vote_cap = cap;
}

static struct event any_event(const struct workflow *w, const struct task *t, uint64_t dice,
                              int64_t now)
{
    int step = (int)(dice >> 8) % t->step_count;
    const struct step *s = &t->steps[step];
    struct event ev = {
        .kind = (enum event_kind)(dice % (EVENT_HASTEN + 1)),
        .step = step,
        .direction = s->direction,
        .attempt = s->attempt,
        .instance = SLICE("n/1"),
        .error = {SLICE("code"), SLICE("words")},
        .failed = dice & 0x10000,
        .retryable = dice & 0x20000,
        .effect = dice & 0x40000 ? EFFECT_UNKNOWN : EFFECT_NONE,
        .signal = any_signal(dice >> 20),
        .ballot = any_ballot(dice >> 20),
    };

    if (ev.kind == EVENT_BEGIN)
        ev.input.json = SLICE("\"?\"");
    if (ev.kind == EVENT_TAKE || ev.kind == EVENT_DECIDED)
        ev.output.json = SLICE("1");
    if (ev.kind == EVENT_START) {
        struct attempt next = task_next_attempt(w, t, step, now);
        ev.direction = next.direction;
        ev.attempt = next.number;
        ev.input.json = SLICE("{}");
    }
    if (!ev.failed && ev.kind == EVENT_RESULT)
        ev.output.json = SLICE("1");
    if ((ev.kind == EVENT_RETRY || ev.kind == EVENT_CLAIM) && dice & 0x80000)
        ev.step = -1;
    return ev;
}

static void go_on(const struct workflow *w, struct task *t, struct arena *a, uint64_t dice)
{
    int64_t now = t->submitted_at;

    for (int i = 0; i < 40; i++) {
        static struct ready ready[STEPS_MAX + SLOTS_MAX];
        struct effects fx = {0};
        dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct event ev = any_event(w, t, dice >> 33, now);
        if (ev.kind == EVENT_START && step_needs_room(&t->steps[ev.step]))
            make_room(&t->steps[ev.step], a);
        if (ev.kind == EVENT_SIGNAL && task_needs_signal_room(t))
            make_room_for_signal(t, a);
        if (ev.kind == EVENT_VOTE && task_needs_vote_room(t))
            make_room_for_vote(t, a);
        enum answer answer = decide(w, t, &ev, now, &fx);
        ASSERT(answer != ANSWER_ACCEPTED || fx.changed);
        size_t count = task_ready(w, t, now, ready);
        ASSERT(count <= t->step_count);
        if (dice & 1)
            now = max_i64(now + 1, dice & 2 ? task_wake_at(t) : now + (int64_t)(dice >> 50));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct fuzz f = {bytes, len};
    const struct workflow *w = workflow_of(fuzz_byte(&f));
    uint64_t dice = fuzz_number(&f, 2);
    struct task_row row = row_of(&f);
    struct error e = {0};
    struct task t;

    if (task_decode(w, &row, &a, &t, &e) != ERR_OK) {
        ASSERT(e.code == ERR_CORRUPT);
        return 0;
    }
    ASSERT(task_valid(w, &t));
    check_round(w, &t, &row, &a);
    check_kept_round(w, &row, &a);
    check_verdict(w, &t, t.submitted_at);
    check_verdict(w, &t, INT64_C(1) << 41);
    go_on(w, &t, &a, dice);
    task_encode(w, &t, &a, &doc, &row);
    return 0;
}
