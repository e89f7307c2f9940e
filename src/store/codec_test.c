#include "base/test.h"

#include <stdlib.h>

#include "base/prng.h"
#include "store/codec.h"
#include "json/json.h"

#define SHA256 "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

enum { STEPS = 4 };

static const struct workflow_step steps[STEPS] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"charge", 6}, .undo_kind = UNDO_CALL},
    {.name = {"ship", 4}, .undo_kind = UNDO_PIVOT},
    {.name = {"tell", 4}, .undo_kind = UNDO_NONE, .on_failure = ON_FAILURE_CONTINUE},
};

static const struct workflow workflow = {.name = {"order", 5},
                                         .version = 3,
                                         .steps = steps,
                                         .step_count = STEPS};

static const struct workflow_step steps_back[] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"ship", 4}, .undo_kind = UNDO_PIVOT},
    {.name = {"tell", 4}, .undo_kind = UNDO_NONE, .on_failure = ON_FAILURE_HOLD, .on_undo = true},
    {.name = {"note", 4}, .undo_kind = UNDO_NONE, .on_undo = true},
};

/* Two of its steps run when a task goes back. */
static const struct workflow workflow_back = {.name = {"back", 4},
                                              .version = 3,
                                              .steps = steps_back,
                                              .step_count = COUNT_OF(steps_back)};

enum { LONG = STEPS_FEW + 4 };

/* The same again and again: of so many something is kept. */
static const struct workflow *long_workflow(void)
{
    static struct workflow_step of_long[LONG];
    static struct workflow w = {.name = {"long", 4},
                                .version = 3,
                                .steps = of_long,
                                .step_count = LONG};

    for (size_t i = 0; i < LONG; i++)
        of_long[i] = steps[i % STEPS];
    return &w;
}

/* --- random tasks --- */

static struct slice random_text(struct prng *p)
{
    static const char *const texts[] = {
        NULL,           "",           "declined",     "n-1",
        "\"quoted\\\"", "line\nline", "\x01\x1f\x7f", "gr\xc3\xbc\xc3\x9f \xf0\x9f\x9a\x80",
    };

    return slice_of(texts[prng_below(p, COUNT_OF(texts))]);
}

static struct value random_value(struct prng *p, struct arena *a)
{
    static const char *const values[] = {
        NULL, "null", "0.10", "{\"id\":12345678901234567890,\"x\":[1,{}]}", "\"\\u00e9\\n\"", "[]"};
    uint32_t pick = prng_below(p, COUNT_OF(values) + 1);

    if (pick < COUNT_OF(values))
        return (struct value){slice_of(values[pick]), 0};
    size_t len = PAYLOAD_INLINE_MAX - 1 + prng_below(p, 4); /* on both sides of the limit */
    char *text = arena_bytes(a, len);
    memset(text, 'x', len);
    text[0] = text[len - 1] = '"';
    return (struct value){{text, len}, 0};
}

static struct fault_note random_note(struct prng *p)
{
    return (struct fault_note){random_text(p), random_text(p)};
}

static int64_t random_time(struct prng *p)
{
    return 1 + (int64_t)(prng_next(p) % UINT64_C(253402300799999));
}

static struct attempt random_attempt(struct prng *p, struct arena *a, enum direction d)
{
    struct attempt at = {
        .direction = d,
        .outcome = (enum outcome)(1 + prng_below(p, OUTCOME_LATE)),
        .effect = (enum effect)prng_below(p, EFFECT_HAPPENED + 1),
        .started_at = random_time(p),
        .ended_at = random_time(p),
        .complete_by = random_time(p),
        .resent = prng_chance(p, 500) ? prng_below(p, 5) : 0,
        .tries = prng_chance(p, 500) ? 1 + prng_below(p, 1000000) : 0,
        .elsewhere = prng_chance(p, 200),
        .instance = random_text(p),
        .output = random_value(p, a),
        .error = random_note(p),
    };

    if (at.outcome == OUTCOME_COMPLETED)
        at.effect = EFFECT_HAPPENED;
    return at;
}

static void random_attempts(struct prng *p, struct arena *a, struct step *s, enum direction d)
{
    uint32_t number = 0;
    uint32_t count = prng_below(p, 4);

    for (uint32_t i = 0; i < count; i++) {
        struct attempt *at = &s->attempts[s->attempt_count++];
        *at = random_attempt(p, a, d);
        number += 1 + prng_below(p, 3);
        at->number = number;
    }
    s->attempt = number;
}

static struct step random_step(struct prng *p, struct arena *a)
{
    struct step s = {
        .state = (enum step_state)prng_below(p, STEP_UNDONE + 1),
        .direction = (enum direction)prng_below(p, 2),
        .failure_count = (uint32_t)prng_next(p) >> (2 + prng_below(p, 30)),
        .wait_until = prng_chance(p, 50) ? random_time(p) : 0,
        .input = random_value(p, a),
        .output = random_value(p, a),
        .undo_input = random_value(p, a),
        .error = random_note(p),
        .resume = prng_chance(p, 300) ? SLICE("{\"page\": [7, null]}") : SLICE_NONE,
        .attempts = arena_alloc(a, 8 * sizeof(struct attempt)),
        .attempt_cap = 8,
        .dropped_count = prng_chance(p, 20) ? prng_below(p, 100) : 0,
        .dropped_effect = prng_chance(p, 20) ? EFFECT_UNKNOWN : EFFECT_NONE,
        .dropped_until = prng_chance(p, 20) ? random_time(p) : 0,
        .dropped_attempt = prng_chance(p, 20) ? prng_below(p, 100) : 0,
        .supplied = prng_chance(p, 50),
        .resolved = prng_chance(p, 200) ? 1 + prng_below(p, 4) : 0,
    };

    random_attempts(p, a, &s, DIRECTION_FORWARD);
    if (s.direction == DIRECTION_UNDO)
        random_attempts(p, a, &s, DIRECTION_UNDO);
    if (s.attempt_count > 0 && prng_chance(p, 20)) {
        struct attempt *last = &s.attempts[s.attempt_count - 1];
        last->outcome = OUTCOME_OPEN;
        last->effect = EFFECT_UNKNOWN;
        last->ended_at = 0;
    }
    return s;
}

/* A step alone is valid or not; drawing them one by one is what makes valid tasks likely. */
static struct step valid_step(struct prng *p, struct arena *a, const struct workflow_step *ws,
                              enum direction d)
{
    const struct workflow one = {.steps = ws, .step_count = 1};

    for (;;) {
        struct step s = random_step(p, a);
        struct task t = {.state = TASK_PENDING,
                         .direction = DIRECTION_UNDO,
                         .submitted_at = 1,
                         .steps = &s,
                         .step_count = 1};
        if (task_valid(&one, &t) && s.direction <= d)
            return s;
    }
}

static struct task random_task(const struct workflow *w, struct prng *p, struct arena *a)
{
    for (;;) {
        struct task t = {
            .id = SLICE("o-17"),
            .locked_by = prng_chance(p, 30) ? SLICE("n1/7") : SLICE_NONE,
            .revision = 1 + prng_below(p, 1000),
            .state = (enum task_state)prng_below(p, TASK_ERROR + 1),
            .direction = (enum direction)prng_below(p, 2),
            .stop = (enum stop)prng_below(p, STOP_HOLD + 1),
            .priority = (int)prng_below(p, 10),
            .deadline_passed = prng_chance(p, 50),
            .complete_by = prng_chance(p, 50) ? random_time(p) : 0,
            .undo_complete_by = prng_chance(p, 50) ? random_time(p) : 0,
            .not_before = prng_chance(p, 50) ? random_time(p) : 0,
            .submitted_at = random_time(p),
            .started_at = prng_chance(p, 50) ? random_time(p) : 0,
            .ended_at = prng_chance(p, 50) ? random_time(p) : 0,
            .failure_count = (uint32_t)prng_next(p) >> (2 + prng_below(p, 30)),
            .content = {prng_next(p) >> prng_below(p, 64),
                        prng_chance(p, 70) ? SLICE(SHA256) : SLICE_NONE},
            .input = random_value(p, a),
            .output = random_value(p, a),
            .error = random_note(p),
            .reply_to = random_text(p),
            .tags = prng_chance(p, 50) ? SLICE("{\"k\":\"v\"}") : SLICE_NONE,
            .trace = random_text(p),
            .owner = random_text(p),
            .paused_at = prng_chance(p, 30) ? random_time(p) : 0,
            .steps = arena_alloc(a, w->step_count * sizeof(struct step)),
            .step_count = w->step_count,
        };
        if (t.state == TASK_ERROR && prng_chance(p, 50)) {
            t.closed_at = random_time(p);
            t.closed_reason = random_text(p);
        }
        if (t.direction == DIRECTION_UNDO || t.stop != STOP_NONE || t.state == TASK_ERROR)
            t.cause = (struct cause){{SLICE("declined"), random_text(p)},
                                     (int)prng_below(p, w->step_count + 1u) - 1};
        for (size_t i = 0; i < w->step_count; i++)
            t.steps[i] = valid_step(p, a, &w->steps[i], t.direction);
        if (task_valid(w, &t))
            return t;
    }
}

/* --- comparison --- */

#define TEXT(f) \
    CHECK(slice_eq(x->f, y->f), #f " is %.*s and %.*s", SLICE_ARG(x->f), SLICE_ARG(y->f))
#define NUMBER(f) \
    CHECK(x->f == y->f, #f " is %" PRId64 " and %" PRId64, (int64_t)x->f, (int64_t)y->f)
#define VALUE(f)           \
    do {                   \
        TEXT(f.json);      \
        NUMBER(f.payload); \
    } while (0)
#define NOTE(f)          \
    do {                 \
        TEXT(f.code);    \
        TEXT(f.message); \
    } while (0)

static void attempts_equal(const struct attempt *x, const struct attempt *y)
{
    NUMBER(number);
    NUMBER(direction);
    NUMBER(outcome);
    NUMBER(effect);
    NUMBER(started_at);
    NUMBER(ended_at);
    NUMBER(complete_by);
    NUMBER(resent);
    NUMBER(tries);
    NUMBER(elsewhere);
    TEXT(instance);
    VALUE(output);
    NOTE(error);
}

static void steps_equal(const struct step *x, const struct step *y)
{
    NUMBER(state);
    NUMBER(direction);
    NUMBER(attempt);
    NUMBER(failure_count);
    NUMBER(wait_until);
    VALUE(input);
    VALUE(output);
    VALUE(undo_input);
    NOTE(error);
    TEXT(resume);
    NUMBER(dropped_count);
    NUMBER(dropped_effect);
    NUMBER(dropped_until);
    NUMBER(dropped_attempt);
    NUMBER(supplied);
    NUMBER(resolved);
    NUMBER(attempt_count);
    for (uint16_t i = 0; i < x->attempt_count; i++)
        attempts_equal(&x->attempts[i], &y->attempts[i]);
}

static void tasks_equal(const struct task *x, const struct task *y)
{
    TEXT(id);
    TEXT(locked_by);
    NUMBER(revision);
    NUMBER(state);
    NUMBER(direction);
    NUMBER(stop);
    NUMBER(priority);
    NUMBER(deadline_passed);
    NUMBER(complete_by);
    NUMBER(undo_complete_by);
    NUMBER(not_before);
    NUMBER(submitted_at);
    NUMBER(started_at);
    NUMBER(ended_at);
    NUMBER(failure_count);
    NUMBER(payload_count);
    CHECK(x->content.hash == y->content.hash, "content");
    TEXT(content.sha256);
    VALUE(input);
    VALUE(output);
    NOTE(error);
    NOTE(cause.error);
    if (x->cause.error.code.ptr) /* names of the long workflow stand several times in it */
        CHECK(x->cause.step < 0 ? y->cause.step < 0 : y->cause.step >= 0, "step of the cause");
    TEXT(reply_to);
    TEXT(tags);
    TEXT(trace);
    TEXT(owner);
    NUMBER(paused_at);
    NUMBER(closed_at);
    TEXT(closed_reason);
    NUMBER(step_count);
    for (uint16_t i = 0; i < x->step_count; i++)
        steps_equal(&x->steps[i], &y->steps[i]);
}

/* --- tests --- */

static void a_task_comes_back_as_it_was_written(void **state)
{
    size_t payloads = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 3000; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        CLEANUP(buf_fini) struct buf again = {0};
        struct prng p = {seed};
        const struct workflow *w = seed % 4 == 0 ? &workflow_back : &workflow;
        struct task t = random_task(w, &p, &a);
        struct task back;
        struct task_row row;
        struct task_row second;
        struct error e = {0};

        buf_str(&doc, "[1]"); /* it is appended to what is there */
        task_encode(w, &t, &a, &doc, &row);
        CHECK(slice_eq(row.workflow, w->name) && row.version == 3, "of its workflow");
        CHECK(row.payload_count == t.payload_count, "numbered just now");
        CHECK(task_decode(w, &row, &a, &back, &e) == ERR_OK, "seed %" PRIu64 ": %s", seed, e.text);
        tasks_equal(&t, &back);
        payloads += row.payload_count;

        task_encode(w, &back, &a, &again, &second);
        CHECK(second.payload_count == 0, "payloads are stored once");
        CHECK(slice_eq(row.doc, second.doc), "the same text");
    }
    CHECK(payloads > 1000, "met %zu payloads", payloads);
}

/* Any of what is written of a step. */
static uint16_t change_a_step(const struct workflow *w, struct prng *p, struct arena *a,
                              struct task *t)
{
    uint16_t i = (uint16_t)prng_below(p, w->step_count);
    struct step was = t->steps[i];
    struct attempt first = was.attempt_count ? was.attempts[0] : (struct attempt){.number = 0};

    switch (prng_below(p, 4)) {
    case 0:
        t->steps[i] = valid_step(p, a, &w->steps[i], t->direction);
        break;
    case 1:
        t->steps[i].failure_count++;
        break;
    case 2:
        if (was.attempt_count > 0)
            was.attempts[0].tries++;
        break;
    default:
        t->steps[i].output = random_value(p, a);
        break;
    }
    if (!task_valid(w, t)) {
        if (was.attempt_count > 0)
            was.attempts[0] = first;
        t->steps[i] = was;
    }
    return i;
}

/* All that was ever given to the payload table. */
struct stored {
    struct payload list[400];
    size_t count;
};

static void store_payloads(struct stored *s, struct task_row *row)
{
    CHECK(s->count + row->payload_count <= COUNT_OF(s->list), "few payloads");
    for (size_t i = 0; i < row->payload_count; i++)
        s->list[s->count++] = row->payloads[i];
    row->payloads = s->list;
    row->payload_count = s->count;
}

/* Read by another one, who goes on from there: what he writes is the same, to the byte. */
static void check_reread(const struct workflow *w, const struct task *t, const struct task_row *row,
                         struct arena *a, uint64_t seed)
{
    CLEANUP(buf_fini) struct buf again = {0};
    struct encoded *kept = encoded_new(w, a);
    struct task back;
    struct task_row second;
    struct error e = {0};

    CHECK(task_decode_kept(w, row, kept, a, &back, &e) == ERR_OK, "seed %" PRIu64 ": %s", seed,
          e.text);
    tasks_equal(t, &back);
    task_encode_again(w, &back, kept, a, &again, &second);
    CHECK(second.payload_count == 0, "payloads are stored once");
    CHECK(slice_eq(row->doc, second.doc), "seed %" PRIu64 ": %.*s, not %.*s", seed,
          SLICE_ARG(second.doc), SLICE_ARG(row->doc));
}

static void a_task_that_is_written_again_and_again_comes_back_as_it_is(void **state)
{
    const struct workflow *w = long_workflow();
    size_t grouped = 0;
    size_t whole = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 500; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(arena_fini) struct arena of_task = {0};
        struct prng p = {seed};
        struct task t = random_task(w, &p, &a);
        struct encoded *kept = encoded_new(w, &of_task);
        struct stored stored = {.count = 0};

        for (int n = 0; n < 8; n++) {
            CLEANUP(buf_fini) struct buf doc = {0};
            CLEANUP(buf_fini) struct buf anew = {0};
            struct task_row row;
            struct task_row second;
            task_encode_again(w, &t, kept, &a, &doc, &row);
            store_payloads(&stored, &row);
            check_reread(w, &t, &row, &a, seed);
            *(doc_is_grouped(row.doc) ? &grouped : &whole) += 1;
            task_encode(w, &t, &a, &anew, &second);
            CHECK(second.payload_count == 0, "values are stored once");
            if (n % 2)
                encoded_look_at(kept, change_a_step(w, &p, &a, &t));
            t.revision++;
        }
    }
    CHECK(grouped > 500 && whole > 500, "grouped %zu, whole %zu", grouped, whole);
}

static void a_task_read_without_its_payloads_keeps_their_numbers(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    CLEANUP(buf_fini) struct buf again = {0};
    struct prng p = {1};
    struct task t = random_task(&workflow, &p, &a);
    struct task_row row;
    struct task back;
    struct error e = {0};
    char text[PAYLOAD_INLINE_MAX + 1];
    (void)state;

    memset(text, '1', sizeof text);
    t.input = (struct value){{text, sizeof text}, 0};
    task_encode(&workflow, &t, &a, &doc, &row);
    row.payloads = NULL;
    row.payload_count = 0;
    CHECK(task_decode(&workflow, &row, &a, &back, &e) == ERR_OK, "%s", e.text);
    CHECK(back.input.payload == t.input.payload && back.input.json.ptr, "there");
    CHECK(back.input.json.len == 0, "but not read");
    struct task_row second;
    task_encode(&workflow, &back, &a, &again, &second);
    CHECK(slice_eq(row.doc, second.doc), "the same text");
}

static void the_document_is_json_with_the_names_of_the_api(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf doc = {0};
    struct attempt at = {.number = 1,
                         .outcome = OUTCOME_FAILED,
                         .effect = EFFECT_UNKNOWN,
                         .started_at = 5,
                         .ended_at = 6,
                         .complete_by = 9,
                         .instance = SLICE("p-1"),
                         .error = {SLICE("timeout"), SLICE_NONE}};
    struct step s[STEPS] = {{.attempt = 1,
                             .failure_count = 1,
                             .input = {SLICE("{\"n\":1}"), 0},
                             .attempts = &at,
                             .attempt_count = 1,
                             .attempt_cap = 1}};
    struct task t = {.id = SLICE("x"),
                     .revision = 1,
                     .submitted_at = 4,
                     .content = {0xabc, SLICE(SHA256)},
                     .input = {SLICE("null"), 0},
                     .steps = s,
                     .step_count = STEPS};
    struct task_row row;
    (void)state;

    task_encode(&workflow, &t, &a, &doc, &row);
    static const char want[] =
        "{\"input\":null,\"content\":\"0000000000000abc\",\"sha256\":\"" SHA256 "\",\"steps\":["
        "{\"name\":\"reserve\",\"state\":\"waiting\",\"attempt\":1,\"failure_count\":1,"
        "\"in_doubt\":true,\"input\":{\"n\":1},\"attempts\":[{\"attempt\":1,\"outcome\":\"failed\","
        "\"effect\":\"unknown\",\"instance\":\"p-1\",\"started_at\":5,\"ended_at\":6,"
        "\"complete_by\":9,\"error\":{\"code\":\"timeout\"}}]},"
        "{\"name\":\"charge\",\"state\":\"waiting\"},{\"name\":\"ship\",\"state\":\"waiting\"},"
        "{\"name\":\"tell\",\"state\":\"waiting\"}]}";
    CHECK(slice_is(row.doc, want), "%.*s", SLICE_ARG(row.doc));
}

static enum err decode_text(const char *doc, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {.id = SLICE("x"),
                           .workflow = SLICE("order"),
                           .version = 3,
                           .revision = 1,
                           .submitted_at = 1,
                           .doc = slice_of(doc)};
    struct task t;

    return task_decode(&workflow, &row, &a, &t, e);
}

static struct step first_step_of(const char *first, struct arena *a)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct error e = {0};
    struct task t;

    buf_fmt(&doc,
            "{\"steps\":[{\"name\":\"reserve\",\"state\":\"waiting\",%s},"
            "{\"name\":\"charge\",\"state\":\"waiting\"},{\"name\":\"ship\",\"state\":"
            "\"waiting\"},{\"name\":\"tell\",\"state\":\"waiting\"}]}",
            first);
    const struct task_row row = {.id = SLICE("x"),
                                 .workflow = SLICE("order"),
                                 .version = 3,
                                 .revision = 1,
                                 .submitted_at = 1,
                                 .doc = buf_view(&doc)};
    CHECK(task_decode(&workflow, &row, a, &t, &e) == ERR_OK, "%s", e.text);
    return t.steps[0];
}

/* The attempt that a person resolved, and what there was before anybody could: attempts that were
 * merged without a number. */
static void who_resolved_what_is_read_back(void **state)
{
#define UNKNOWN                                                                     \
    "\"attempt\":2,\"attempts\":[{\"attempt\":2,\"outcome\":\"failed\",\"effect\":" \
    "\"unknown\",\"started_at\":1,\"ended_at\":2,\"complete_by\":3}]"
    CLEANUP(arena_fini) struct arena a = {0};
    static const struct {
        const char *text;
        bool doubt;
    } docs[] = {
        {UNKNOWN, true},
        {UNKNOWN ",\"resolved\":1", true},
        {UNKNOWN ",\"resolved\":2", false},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"until\":3}", true},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"until\":3},\"resolved\":2",
         false},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"attempt\":2},\"resolved\":1",
         true},
        {UNKNOWN ",\"dropped\":{\"count\":1,\"effect\":\"unknown\",\"attempt\":1},\"resolved\":2",
         false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        struct step s = first_step_of(docs[i].text, &a);
        CHECK(step_in_doubt(&s) == docs[i].doubt, "%s", docs[i].text);
    }
}

#define STEP(name)  "{\"name\":\"" name "\",\"state\":\"waiting\"}"
#define REST        STEP("charge") "," STEP("ship") "," STEP("tell") "]"
#define DOC(first)  "{\"steps\":[" first "," REST "}"
#define KNOWN(more) "{\"name\":\"reserve\",\"state\":\"waiting\"," more "}"

static void documents_that_do_not_fit_are_corrupt(void **state)
{
    static const char *const good[] = {
        DOC(STEP("reserve")),
        DOC(KNOWN("\"something\":\"newer\"")),
        "{\"payloads\":1,\"input_payload\":1,\"steps\":[" STEP("reserve") "," REST "}",
    };
    static const char *const bad[] = {
        NULL,
        DOC(KNOWN("\"resolved\":1")), /* of no attempt */
        "",
        "{",
        "[]",
        "{}",
        "null",
        "{\"steps\":[]}",
        "{\"steps\":{}}",
        DOC("null"),
        DOC("{\"name\":\"reserve\"}"),
        DOC("{\"state\":\"waiting\"}"),
        DOC("{\"name\":\"reserve\",\"state\":\"asleep\"}"),
        DOC(STEP("charge")),
        DOC(KNOWN("\"attempt\":-1")),
        DOC(KNOWN("\"attempt\":4294967296")),
        DOC(KNOWN("\"attempt\":\"1\"")),
        DOC(KNOWN("\"wait_until\":1.5")),
        DOC(KNOWN("\"wait_until\":9223372036854775808")),
        DOC(KNOWN("\"wait_until\":9223372036854775807")), /* nothing could be added to it */
        DOC(KNOWN("\"failure_count\":4294967295")),
        DOC(KNOWN("\"dropped\":{\"count\":1,\"until\":9223372036854775807}")),
        DOC(KNOWN("\"direction\":\"back\"")),
        DOC(KNOWN("\"error\":\"x\"")),
        DOC(KNOWN("\"error\":{\"code\":1}")),
        DOC(KNOWN("\"dropped\":{\"effect\":\"much\"}")),
        DOC(KNOWN("\"attempts\":{}")),
        DOC(KNOWN("\"attempts\":[1]")),
        DOC(KNOWN("\"attempts\":[{\"attempt\":1,\"outcome\":\"failed\"}]")),
        DOC(KNOWN("\"input_payload\":1")),
        DOC(KNOWN("\"input_payload\":0")),
        "{\"payloads\":1,\"input_payload\":2,\"steps\":[" STEP("reserve") "," REST "}",
        "{\"stop\":\"now\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"cause\":{\"code\":\"x\"},\"steps\":[" STEP("reserve") "," REST "}", /* goes on */
        "{\"stop\":\"undo\",\"cause\":{\"step\":\"x\",\"code\":\"x\"},\"steps\":[" STEP(
            "reserve") "," REST "}",
        "{\"stop\":\"undo\",\"cause\":{\"code\":1},\"steps\":[" STEP("reserve") "," REST "}",
        "{\"content\":\"abc\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"content\":\"000000000000000G\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"sha256\":\"abc\",\"steps\":[" STEP("reserve") "," REST "}",
        "{\"sha256\":1,\"steps\":[" STEP("reserve") "," REST "}",
        "{\"deadline_passed\":1,\"steps\":[" STEP("reserve") "," REST "}",
        DOC(STEP("reserve")) "x",
    };
    struct error e = {0};
    (void)state;

    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK(decode_text(good[i], &e) == ERR_OK, "%s: %s", good[i], e.text);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK(decode_text(bad[i], &e) == ERR_CORRUPT, "%s", bad[i] ? bad[i] : "none");
}

/* The step by its name; and a task that stopped before causes were written down has its error. */
static void the_first_failure_is_found_in_the_document(void **state)
{
    static const struct {
        const char *doc, *code;
        int step;
    } docs[] = {
        {"{\"error\":{\"code\":\"late\"},\"cause\":{\"step\":\"charge\",\"code\":\"declined\"},"
         "\"stop\":\"undo\",\"steps\":[" STEP("reserve") "," REST "}",
         "declined", 1},
        {"{\"cause\":{\"code\":\"cancelled\"},\"stop\":\"undo\",\"steps\":[" STEP(
             "reserve") "," REST "}",
         "cancelled", -1},
        {"{\"error\":{\"code\":\"declined\"},\"stop\":\"undo\",\"steps\":[" STEP("reserve") "," REST
                                                                                            "}",
         "declined", -1},
        {"{\"error\":{\"code\":\"deadline\"},\"steps\":[" STEP("reserve") "," REST "}", NULL, 0},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(docs); i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        const struct task_row row = {.id = SLICE("x"),
                                     .workflow = SLICE("order"),
                                     .version = 3,
                                     .revision = 1,
                                     .submitted_at = 1,
                                     .doc = slice_of(docs[i].doc)};
        struct task t;
        struct error e = {0};
        CHECK(task_decode(&workflow, &row, &a, &t, &e) == ERR_OK, "%s", e.text);
        CHECK(slice_eq(t.cause.error.code, slice_of(docs[i].code)), "%s", docs[i].doc);
        CHECK(!docs[i].code || t.cause.step == docs[i].step, "%s", docs[i].doc);
    }
}

static void columns_out_of_range_are_corrupt(void **state)
{
    static const int64_t bad[] = {-1, INT64_MIN, INT64_MAX, INT64_MAX - 1000};
    const struct task_row good = {.id = SLICE("x"),
                                  .workflow = SLICE("order"),
                                  .version = 3,
                                  .revision = 1,
                                  .submitted_at = 1,
                                  .doc = SLICE(DOC(STEP("reserve")))};
    (void)state;

    for (size_t i = 0; i < 5 * COUNT_OF(bad) + 2; i++) {
        CLEANUP(arena_fini) struct arena a = {0};
        struct task_row row = good;
        int64_t *const times[] = {&row.submitted_at, &row.complete_by, &row.not_before,
                                  &row.started_at, &row.ended_at};
        struct task t;
        struct error e = {0};
        if (i < 5 * COUNT_OF(bad))
            *times[i % 5] = bad[i / 5];
        else if (i == 5 * COUNT_OF(bad))
            row.failure_count = UINT32_MAX;
        bool spoilt = i <= 5 * COUNT_OF(bad);
        enum err err = task_decode(&workflow, &row, &a, &t, &e);
        CHECK(err == (spoilt ? ERR_CORRUPT : ERR_OK), "%zu: %s", i, e.text);
    }
}

static void a_task_of_another_workflow_is_corrupt(void **state)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct task_row row = {.id = SLICE("x"),
                           .workflow = SLICE("order"),
                           .version = 4,
                           .revision = 1,
                           .submitted_at = 1,
                           .doc = SLICE(DOC(STEP("reserve")))};
    struct task t;
    struct error e;
    (void)state;

    CHECK(task_decode(&workflow, &row, &a, &t, &e) == ERR_CORRUPT, "another version");
    row.version = 3;
    row.workflow = SLICE("Order");
    CHECK(task_decode(&workflow, &row, &a, &t, &e) == ERR_CORRUPT, "another name");
}

/* Bytes changed, lost, doubled, swapped with others of the same document. */
static void damage(struct prng *p, struct slice doc, char *ret, size_t *ret_len)
{
    size_t len = doc.len;

    memcpy(ret, doc.ptr, len);
    for (uint32_t i = 1 + prng_below(p, 3); i > 0; i--) {
        size_t at = prng_below(p, (uint32_t)len);
        size_t from = prng_below(p, (uint32_t)len);
        size_t run = 1 + prng_below(p, 12);
        run = run < len - at ? run : len - at;
        run = run < len - from ? run : len - from;
        if (prng_chance(p, 30))
            ret[at] = (char)prng_next(p);
        else if (prng_chance(p, 30) && len > run + 1)
            memmove(ret + at, ret + at + run, (len -= run) - at);
        else
            memmove(ret + at, ret + from, run);
    }
    *ret_len = len;
}

static void damaged_documents_never_crash(void **state)
{
    size_t refused = 0;
    size_t taken = 0;
    (void)state;

    for (uint64_t seed = 0; seed < 300; seed++) {
        CLEANUP(arena_fini) struct arena a = {0};
        CLEANUP(buf_fini) struct buf doc = {0};
        struct prng p = {seed};
        struct task t = random_task(&workflow, &p, &a);
        struct task_row row;

        task_encode(&workflow, &t, &a, &doc, &row);
        for (unsigned i = 0; i < 40; i++) {
            CLEANUP(arena_fini) struct arena b = {0};
            struct task_row bad = row;
            char *text = arena_bytes(&b, row.doc.len);
            struct error e = {0};
            damage(&p, row.doc, text, &bad.doc.len);
            bad.doc.ptr = text;
            enum err err = task_decode(&workflow, &bad, &b, &t, &e);
            CHECK(err == ERR_OK || (err == ERR_CORRUPT && e.text[0]), "%s", err_text(err));
            CHECK(err != ERR_OK || task_valid(&workflow, &t), "what is taken is valid");
            *(err == ERR_OK ? &taken : &refused) += 1;
        }
    }
    CHECK(refused > 1000 && taken > 100, "refused %zu, taken %zu", refused, taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_comes_back_as_it_was_written),
        cmocka_unit_test(a_task_that_is_written_again_and_again_comes_back_as_it_is),
        cmocka_unit_test(a_task_read_without_its_payloads_keeps_their_numbers),
        cmocka_unit_test(the_document_is_json_with_the_names_of_the_api),
        cmocka_unit_test(who_resolved_what_is_read_back),
        cmocka_unit_test(documents_that_do_not_fit_are_corrupt),
        cmocka_unit_test(the_first_failure_is_found_in_the_document),
        cmocka_unit_test(columns_out_of_range_are_corrupt),
        cmocka_unit_test(a_task_of_another_workflow_is_corrupt),
        cmocka_unit_test(damaged_documents_never_crash),
    };
    return cmocka_run_group_tests_name("codec", tests, NULL, NULL);
}
