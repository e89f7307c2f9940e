/*
 * Tasks drawn at random, and their comparison, by the table of fields that is made of core/task.h
 * when the tests are built. A field is drawn by its type: what has another meaning than its type
 * says (a text that is JSON, an owner) is known here by its name, and is drawn wrongly, which the
 * tests tell, until it is.
 */

#include "store/codec/test_kit.h"

#include <stddef.h>
#include <stdio.h>

enum { STEPS = 4 };

enum field_kind { FIELD_NUMBER, FIELD_WORD, FIELD_TEXT, FIELD_PART, FIELD_ONE, FIELD_LIST };

struct field {
    const char *name; /* "task.id"; NULL ends a table */
    enum field_kind kind;
    unsigned number; /* of all fields */
    size_t offset, size;
    uint64_t last;          /* the greatest that it may be; 0: any */
    const struct field *of; /* of a part, or of what it points to, or a list has */
    size_t of_size, count_offset;
};

/* The last value of each enum that a field has. */
enum {
    LAST_task_state = TASK_ERROR,
    LAST_step_state = STEP_UNDONE,
    LAST_outcome = OUTCOME_LATE,
    LAST_effect = EFFECT_HAPPENED,
    LAST_direction = DIRECTION_UNDO,
    LAST_stop = STOP_HOLD,
    LAST_lock_mode = LOCK_REPLACED,
    LAST_signal_state = SIGNAL_DROPPED,
    LAST_child_state = CHILD_COMPENSATED,
    LAST_child_wish = WISH_CLOSE,
    LAST_slot_state = SLOT_RESTING,
};

#include "task_fields.h"

/* --- workflows --- */

static const struct workflow_step steps[STEPS] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"charge", 6}, .undo_kind = UNDO_CALL},
    {.name = {"ship", 4}, .undo_kind = UNDO_PIVOT},
    {.name = {"tell", 4}, .undo_kind = UNDO_NONE, .on_failure = ON_FAILURE_CONTINUE},
};

const struct workflow kit_workflow = {.name = {"order", 5},
                                      .version = 3,
                                      .steps = steps,
                                      .step_count = STEPS};

static const struct slice asked_groups[] = {{"finance", 7}, {"board", 5}};

static const struct slice signal_names[] = {{"payment", 7}, {"refusal", 7}};

static const struct workflow_step steps_wait[] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"cool", 4}, .kind = KIND_WAIT, .wait_ms = 1000, .undo_kind = UNDO_NONE},
    {.name = {"until", 5}, .kind = KIND_WAIT, .undo_kind = UNDO_NONE},
    {.name = {"poll", 4}, .undo_kind = UNDO_NONE, .repeat = {.for_ms = 1000}},
    {.name = {"parcel", 6},
     .kind = KIND_TASK,
     .child = {.workflow = {"ship-one", 8}},
     .undo_kind = UNDO_CHILD},
    {.name = {"paid", 4},
     .kind = KIND_SIGNAL,
     .signal = {.names = signal_names, .count = COUNT_OF(signal_names)},
     .undo_kind = UNDO_NONE},
    {.name = {"allow", 5},
     .kind = KIND_APPROVE,
     .approve = {.by = asked_groups, .by_count = COUNT_OF(asked_groups), .people = 3},
     .undo_kind = UNDO_NONE},
};

const struct workflow kit_workflow_wait = {.name = {"wait", 4},
                                           .version = 3,
                                           .steps = steps_wait,
                                           .step_count = COUNT_OF(steps_wait),
                                           .child_step_count = 1};

static const struct workflow_step steps_back[] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"ship", 4}, .undo_kind = UNDO_PIVOT},
    {.name = {"tell", 4}, .undo_kind = UNDO_NONE, .on_failure = ON_FAILURE_HOLD, .on_undo = true},
    {.name = {"note", 4}, .undo_kind = UNDO_NONE, .on_undo = true},
};

/* Two of its steps run when a task goes back. */
const struct workflow kit_workflow_back = {.name = {"back", 4},
                                           .version = 3,
                                           .steps = steps_back,
                                           .step_count = COUNT_OF(steps_back)};

enum { LONG = STEPS_FEW + 4, LONG_SLOTS = 7, LONG_EACH = 2 };

const struct workflow *kit_workflow_long(void)
{
    static char names[LONG][24];
    static struct workflow_step of_long[LONG + LONG_SLOTS];
    static struct workflow w = {.name = {"long", 4},
                                .version = 3,
                                .steps = of_long,
                                .step_count = LONG,
                                .slot_count = LONG_SLOTS,
                                .child_step_count = 1};

    for (size_t i = 0; i < LONG; i++) {
        of_long[i] = i == 7    ? steps_wait[1]
                     : i == 3  ? steps_wait[3]
                     : i == 5  ? steps_wait[4]
                     : i == 9  ? steps_wait[5]
                     : i == 10 ? steps_wait[6]
                               : steps[i % STEPS];
        (void)snprintf(names[i], sizeof names[i], "%.*s-%zu", SLICE_ARG(of_long[i].name), i);
        of_long[i].name = slice_of(names[i]);
    }
    of_long[LONG_EACH] = kit_workflow_items.steps[0];
    of_long[LONG_EACH].each.slots_at = LONG;
    for (size_t i = LONG; i < LONG + LONG_SLOTS; i++) {
        of_long[i] = kit_workflow_items.steps[kit_workflow_items.steps[0].each.slots_at];
        of_long[i].each.step = LONG_EACH;
    }
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

struct value random_value(struct prng *p, struct arena *a)
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

/* The next one may not have begun. */
static void random_rounds(struct prng *p, struct step *s)
{
    bool begun = prng_chance(p, 50);
    uint32_t round = 1;

    s->corrected = prng_chance(p, 20);
    for (uint16_t i = 0; i < s->attempt_count; i++) {
        round += prng_below(p, 3);
        s->attempts[i].round = round;
    }
    if (s->attempt_count == 0)
        return;
    s->round = begun ? round : round + 1;
    s->round_at = begun ? random_time(p) : 0;
    s->repeat_until = begun || prng_chance(p, 80) ? random_time(p) : 0;
}

/* One that has begun has a child, which has an input. */
static void random_child(struct prng *p, struct arena *a, struct step *s)
{
    bool begun = prng_chance(p, 70);

    s->wait_until = 0;
    s->child.number = begun ? 1 + prng_below(p, 3) : prng_below(p, 3);
    if (!begun) {
        s->begun_at = s->complete_by = 0;
        return;
    }
    s->begun_at = random_time(p);
    s->child.state = (enum child_state)(1 + prng_below(p, CHILD_COMPENSATED));
    s->child.wish = (enum child_wish)prng_below(p, WISH_CLOSE + 1);
    while (!s->input.json.ptr)
        s->input = random_value(p, a);
}

static struct step random_step(struct prng *p, struct arena *a, const struct workflow_step *ws)
{
    struct step s = {
        .state = (enum step_state)prng_below(p, STEP_UNDONE + 1),
        .direction = (enum direction)prng_below(p, 2),
        .failure_count = (uint32_t)prng_next(p) >> (2 + prng_below(p, 30)),
        .begun_at = prng_chance(p, 50) ? random_time(p) : 0,
        .wait_until = prng_chance(p, 50) ? random_time(p) : 0,
        .complete_by = prng_chance(p, 50) ? random_time(p) : 0,
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
    if (step_is_repeated(ws))
        random_rounds(p, &s);
    if (ws->kind != KIND_CALL) { /* it has none */
        s.attempt = s.attempt_count = 0;
        s.dropped_count = s.resolved = 0;
        if (ws->kind == KIND_TASK) {
            random_child(p, a, &s);
            return s;
        }
        s.input = (struct value){0};
        if (ws->kind == KIND_APPROVE && s.begun_at != 0)
            s.input = (struct value){SLICE("\"Pay \\u20ac 80?\""), 0};
        return s;
    }
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
struct step valid_step(struct prng *p, struct arena *a, const struct workflow_step *ws,
                       enum direction d)
{
    const struct workflow one = {.steps = ws, .step_count = 1};

    for (;;) {
        struct step s = random_step(p, a, ws);
        struct task t = {.state = TASK_PENDING,
                         .direction = DIRECTION_UNDO,
                         .submitted_at = 1,
                         .steps = &s,
                         .step_count = 1};
        if (task_valid(&one, &t) && s.direction <= d)
            return s;
    }
}

static struct signal random_signal(const struct workflow *w, const struct task *t, struct prng *p,
                                   struct arena *a, uint32_t number)
{
    static const char *const keys[] = {"k-1", "k-2", "\"k\" \n3"};
    uint16_t last = (uint16_t)(w->step_count - 2);
    bool taken = w->steps[last].kind == KIND_SIGNAL && t->steps[last].state == STEP_COMPLETED
                 && t->steps[last].begun_at != 0 && !t->steps[last].supplied && number == 0;
    struct signal s = {
        .key = slice_of(keys[number]),
        .name = signal_names[prng_below(p, COUNT_OF(signal_names))],
        .content = SLICE(KIT_SHA256),
        .at = random_time(p),
        .state = taken                ? SIGNAL_TAKEN
                 : prng_chance(p, 30) ? SIGNAL_DROPPED
                                      : SIGNAL_KEPT,
        .step = taken ? last : -1,
    };

    while (s.state != SIGNAL_DROPPED && !s.data.json.ptr)
        s.data = random_value(p, a);
    return s;
}

static void random_signals(const struct workflow *w, struct task *t, struct prng *p,
                           struct arena *a)
{
    uint32_t count = prng_chance(p, 80) ? 1 + prng_below(p, 3) : 0;

    t->signal_cap = 3;
    t->signals = arena_alloc(a, t->signal_cap * sizeof *t->signals);
    for (uint32_t i = 0; i < count; i++)
        t->signals[t->signal_count++] = random_signal(w, t, p, a, i);
}

static void random_votes(const struct workflow *w, struct task *t, struct prng *p, struct arena *a)
{
    static const char *const persons[] = {"ann", "eve@example.org", "bob"};

    t->vote_cap = COUNT_OF(persons);
    t->votes = arena_alloc(a, t->vote_cap * sizeof *t->votes);
    for (uint16_t i = 0; i < w->step_count; i++) {
        if (w->steps[i].kind != KIND_APPROVE || t->steps[i].begun_at == 0)
            continue;
        uint32_t count = prng_below(p, COUNT_OF(persons) + 1);
        for (uint32_t k = 0; k < count; k++)
            t->votes[t->vote_count++] = (struct vote){.person = slice_of(persons[k]),
                                                      .comment = random_text(p),
                                                      .at = random_time(p),
                                                      .step = i,
                                                      .agrees = prng_chance(p, 80)};
        return;
    }
}

/* Some are children, which need no lock, and some have a family. */
static void random_family(const struct workflow *w, struct task *t, struct prng *p)
{
    static const char *const ids[] = {"n-1", "\"quoted\\\"", "gr\xc3\xbc\xc3\x9f"};

    if (w->child_step_count > 0 || prng_chance(p, 30))
        t->family = SLICE("{\"ship-one\":7}");
    if (prng_chance(p, 60))
        return;
    t->lock = SLICE_NONE;
    t->lock_since = 0;
    t->lock_mode = LOCK_WAITS;
    t->parent = slice_of(ids[prng_below(p, COUNT_OF(ids))]);
    t->root = slice_of(ids[prng_below(p, COUNT_OF(ids))]);
    t->parent_step = slice_of(ids[prng_below(p, COUNT_OF(ids))]);
    t->parent_number = 1 + prng_below(p, 3);
    t->asked = (enum child_wish)prng_below(p, WISH_CLOSE + 1);
}

struct task random_task(const struct workflow *w, struct prng *p, struct arena *a)
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
                        prng_chance(p, 70) ? SLICE(KIT_SHA256) : SLICE_NONE},
            .input = random_value(p, a),
            .output = random_value(p, a),
            .error = random_note(p),
            .reply_to = random_text(p),
            .tags = prng_chance(p, 50) ? SLICE("{\"k\":\"v\"}") : SLICE_NONE,
            .trace = random_text(p),
            .owner = random_text(p),
            .lock = random_text(p),
            .lock_mode = (enum lock_mode)prng_below(p, LOCK_REPLACED + 1),
            .lock_since = prng_chance(p, 30) ? random_time(p) : 0,
            .submitter = random_text(p),
            .paused_at = prng_chance(p, 30) ? random_time(p) : 0,
            .steps = arena_alloc(a, ((size_t)w->step_count + w->slot_count) * sizeof(struct step)),
            .step_count = w->step_count,
            .slot_count = w->slot_count,
        };
        if (t.state == TASK_ERROR && prng_chance(p, 50)) {
            t.closed_at = random_time(p);
            t.closed_reason = random_text(p);
        }
        if (t.direction == DIRECTION_UNDO || t.stop != STOP_NONE || t.state == TASK_ERROR)
            t.cause = (struct cause){{SLICE("declined"), random_text(p)},
                                     (int)prng_below(p, w->step_count + 1u) - 1};
        for (size_t i = 0; i < w->step_count; i++)
            if (w->steps[i].kind == KIND_EACH)
                random_each(w, &t, (uint16_t)i, p, a);
            else
                t.steps[i] = valid_step(p, a, &w->steps[i], t.direction);
        random_family(w, &t, p);
        random_signals(w, &t, p, a);
        random_votes(w, &t, p, a);
        if (task_valid(w, &t))
            return t;
    }
}

/* --- any field --- */

static bool is_named(const struct field *f, const char *name)
{
    return strcmp(f->name, name) == 0;
}

static bool is_excepted(const struct field *f, const struct field_except *except)
{
    for (; except && except->name; except++)
        if (is_named(f, except->name))
            return true;
    return false;
}

static uint16_t list_count(const struct field *f, const void *owner)
{
    uint16_t count;

    memcpy(&count, (const char *)owner + f->count_offset, sizeof count);
    if (is_named(f, "task.steps"))
        count = (uint16_t)(count + ((const struct task *)owner)->slot_count);
    return count;
}

/* What a field points to; NULL: nothing. */
static char *pointed_to(const struct field *f, const void *owner)
{
    char *one;

    memcpy(&one, (const char *)owner + f->offset, sizeof one);
    return one;
}

static char *list_item(const struct field *f, const void *owner, uint16_t i)
{
    return pointed_to(f, owner) + i * f->of_size;
}

struct place {
    const struct field *field; /* NULL: a list is empty */
    char *at;
    int step;
};

/* What a test of its own looks at: numbers that have to fit something else. */
static const struct field_except not_drawn[] = {
    {"value.payload", "the codec gives it to a long text"},
    {"task.payload_count", "the codec counts what it gave"},
    {"step.attempt_count", "of those that are there"},
    {"step.attempt_cap", "of those that there is room for"},
    {"task.step_count", "as the workflow has it"},
    {"task.signal_count", "of those that are there"},
    {"task.signal_cap", "of those that there is room for"},
    {"task.vote_count", "of those that are there"},
    {"task.vote_cap", "of those that there is room for"},
    {"task.slot_count", "as the workflow has it"},
    {"step.slot", "by the sums of its step"},
    {"step.item", "each item is in one slot"},
    {"items.list", "a list never changes"},
    {"items.tally", "counted of what is in the slots"},
    {NULL, NULL},
};

/* Steps and attempts have most of the fields, and there are many of them. */
static const struct field *pick_field(struct prng *p, const struct field *table)
{
    uint32_t count = 0;

    while (table[count].name)
        count++;
    for (uint32_t i = 0; i < count; i++)
        if (table[i].kind == FIELD_LIST && prng_chance(p, 55))
            return &table[i];
    return &table[prng_below(p, count)];
}

static struct place pick_place(struct prng *p, struct task *t)
{
    const struct field *table = fields_of_task;
    struct place place = {.at = (char *)t, .step = -1};

    for (;;) {
        const struct field *f = pick_field(p, table);
        if (is_excepted(f, not_drawn))
            return (struct place){.field = NULL};
        if (f->kind == FIELD_ONE) {
            place.at = pointed_to(f, place.at);
            if (!place.at)
                return (struct place){.field = NULL};
        } else if (f->kind == FIELD_LIST) {
            uint16_t count = list_count(f, place.at);
            if (count == 0)
                return (struct place){.field = NULL};
            uint16_t i = (uint16_t)prng_below(p, count);
            place.step = table == fields_of_task ? i : place.step;
            place.at = list_item(f, place.at, i);
        } else {
            place.at += f->offset;
        }
        if (!f->of) {
            place.field = f;
            return place;
        }
        table = f->of;
    }
}

static uint64_t random_number(struct prng *p, const struct field *f)
{
    if (f->last)
        return prng_below(p, (uint32_t)f->last + 1);
    switch (prng_below(p, 4)) {
    case 0:
        return prng_below(p, 5);
    case 1:
        return prng_below(p, 1000);
    case 2:
        return 0;
    default:
        return f->size == 8 ? (uint64_t)random_time(p) : prng_below(p, 1U << 30);
    }
}

static struct slice random_words(struct prng *p, struct arena *a, const struct field *f)
{
    static const char *const owners[] = {NULL, "n1/7", "node-2/4000000000", "n1/8"};
    static const char *const digests[] = {NULL, KIT_SHA256,
                                          "abcdefghijklmnopqrstuvwxyz-0123456789_ABCDE"};
    static const char *const families[] = {NULL, "{\"ship-one\":7}", "{\"a\": 1, \"b\": 2}"};
    static const char *const tags[] = {NULL, "{\"k\":\"v\"}", "{\"a\":\"\",\"b\":\"\\u00e9\"}"};

    if (is_named(f, "value.json") || is_named(f, "step.resume"))
        return random_value(p, a).json;
    if (is_named(f, "task.locked_by"))
        return slice_of(owners[prng_below(p, COUNT_OF(owners))]);
    if (is_named(f, "content.sha256"))
        return slice_of(digests[prng_below(p, COUNT_OF(digests))]);
    if (is_named(f, "signal.key"))
        return slice_of(prng_chance(p, 50) ? "k-1" : "k-9");
    if (is_named(f, "task.family"))
        return slice_of(families[prng_below(p, COUNT_OF(families))]);
    if (is_named(f, "task.tags"))
        return slice_of(tags[prng_below(p, COUNT_OF(tags))]);
    return random_text(p);
}

/* A cause exists if its code is set; a task that stopped has one. */
static bool cause_is_whole(const struct task *t)
{
    const struct cause *c = &t->cause;
    bool stopped = t->direction == DIRECTION_UNDO || t->stop != STOP_NONE || t->state == TASK_ERROR;

    return c->error.code.ptr ? stopped : !stopped && !c->error.message.ptr && c->step == 0;
}

/* A text that is new has no number yet. */
static size_t place_size(const struct field *f)
{
    return is_named(f, "value.json") ? sizeof(struct value) : f->size;
}

static void place_set(struct prng *p, struct arena *a, struct place place)
{
    if (place.field->kind == FIELD_TEXT) {
        struct slice text = random_words(p, a, place.field);
        memset(place.at, 0, place_size(place.field));
        memcpy(place.at, &text, sizeof text);
    } else {
        uint64_t number = random_number(p, place.field);
        ASSERT(place.field->size <= sizeof number);
        memcpy(place.at, &number, place.field->size); /* the lowest bytes come first */
    }
}

/* Nothing is stored of a slot without an item, and an item at rest does not change. */
static bool is_at_rest(const struct workflow *w, const struct task *t, int unit)
{
    return unit >= 0 && unit_is_slot(w, unit)
           && (t->steps[unit].slot == SLOT_FREE || t->steps[unit].slot == SLOT_RESTING);
}

bool change_a_field(const struct workflow *w, struct prng *p, struct arena *a,
                    const struct field_except *except, struct task *t, int *ret_step)
{
    struct place place = pick_place(p, t);
    char old[sizeof(struct value)];

    if (!place.field || is_excepted(place.field, except) || is_at_rest(w, t, place.step))
        return false;
    size_t size = place_size(place.field);
    ASSERT(size <= sizeof old);
    memcpy(old, place.at, size);
    place_set(p, a, place);
    *ret_step = place.step;
    slots_tally(w, t);
    if (task_valid(w, t) && cause_is_whole(t))
        return true;
    memcpy(place.at, old, size);
    slots_tally(w, t);
    return false;
}

/* --- comparison --- */

/* By the field that it is a part of, and its own number. */
static unsigned seen[FIELDS_TOTAL + 1][FIELDS_TOTAL];

/* A reader of the document has room for as many as there are, and one more. */
static const struct field_except not_stored[] = {
    {"step.attempt_cap", "how much room there is in memory"},
    {"task.signal_cap", "how much room there is in memory"},
    {"task.vote_cap", "how much room there is in memory"},
    {"items.tally", "counted by the reader"},
    {NULL, NULL},
};

struct comparison {
    const struct field_except *but;
    unsigned within; /* number of the field that the table is of; FIELDS_TOTAL: the task itself */
};

static void structs_equal(struct comparison c, const struct field *table, const char *x,
                          const char *y);

static void texts_equal(struct slice x, struct slice y, const char *name)
{
    CHECK(slice_eq(x, y), "%s is %.*s and %.*s", name, SLICE_ARG(x), SLICE_ARG(y));
}

static void numbers_equal(const struct field *f, const char *x, const char *y)
{
    uint64_t a = 0;
    uint64_t b = 0;

    memcpy(&a, x, f->size);
    memcpy(&b, y, f->size);
    CHECK(a == b, "%s is %" PRIu64 " and %" PRIu64, f->name, a, b);
}

static void lists_equal(struct comparison c, const struct field *f, const char *x, const char *y)
{
    uint16_t count = list_count(f, x);

    CHECK(count == list_count(f, y), "%s: %u and %u", f->name, count, list_count(f, y));
    for (uint16_t i = 0; i < count; i++)
        structs_equal(c, f->of, list_item(f, x, i), list_item(f, y, i));
}

static void ones_equal(struct comparison c, const struct field *f, const char *x, const char *y)
{
    CHECK(!x == !y, "%s: only one has it", f->name);
    if (x)
        structs_equal(c, f->of, x, y);
}

static bool is_empty(const struct field *f, const char *at)
{
    for (size_t i = 0; i < f->size; i++)
        if (at[i])
            return false;
    return true;
}

static void fields_equal(struct comparison c, const struct field *f, const char *x, const char *y)
{
    struct comparison within = {c.but, f->number};

    if (!is_empty(f, x + f->offset))
        seen[c.within][f->number]++;
    switch (f->kind) {
    case FIELD_NUMBER:
    case FIELD_WORD:
        numbers_equal(f, x + f->offset, y + f->offset);
        break;
    case FIELD_TEXT:
        texts_equal(*(const struct slice *)(const void *)(x + f->offset),
                    *(const struct slice *)(const void *)(y + f->offset), f->name);
        break;
    case FIELD_PART:
        structs_equal(within, f->of, x + f->offset, y + f->offset);
        break;
    case FIELD_ONE:
        ones_equal(within, f, pointed_to(f, x), pointed_to(f, y));
        break;
    case FIELD_LIST:
        lists_equal(within, f, x, y);
        break;
    }
}

static void structs_equal(struct comparison c, const struct field *table, const char *x,
                          const char *y)
{
    for (const struct field *f = table; f->name; f++)
        if (!is_excepted(f, c.but) && !is_excepted(f, not_stored))
            fields_equal(c, f, x, y);
}

/* Where nothing stopped the task there is no cause, whatever the rest of it says. */
void tasks_equal_but(const struct task *x, const struct task *y, const struct field_except *but)
{
    static const struct cause none = {.step = 0};
    struct task a = *x;
    struct task b = *y;

    if (!a.cause.error.code.ptr)
        a.cause = none;
    if (!b.cause.error.code.ptr)
        b.cause = none;
    structs_equal((struct comparison){but, FIELDS_TOTAL}, fields_of_task, (const char *)&a,
                  (const char *)&b);
}

void items_equal(const struct step *x, const struct step *y)
{
    static const struct field_except but[] = {{"step.slot", "it is in none"}, {NULL, NULL}};

    structs_equal((struct comparison){but, FIELDS_TOTAL}, fields_of_step, (const char *)x,
                  (const char *)y);
}

void tasks_equal(const struct task *x, const struct task *y)
{
    tasks_equal_but(x, y, NULL);
}

/* Returns how many of `but` it found. */
static unsigned were_compared(unsigned within, const struct field *table, unsigned least,
                              const struct field_except *but)
{
    unsigned found = 0;

    for (const struct field *f = table; f->name; f++) {
        if (is_excepted(f, but)) {
            found++;
            continue;
        }
        if (is_excepted(f, not_stored))
            continue;
        CHECK(seen[within][f->number] >= least, "%s, of field %u: compared %u times", f->name,
              within, seen[within][f->number]);
        if (f->of)
            found += were_compared(f->number, f->of, least, but);
    }
    return found;
}

void all_fields_were_compared(unsigned least, const struct field_except *but)
{
    unsigned excepted = 0;

    for (const struct field_except *e = but; e && e->name; e++)
        excepted++;
    CHECK(were_compared(FIELDS_TOTAL, fields_of_task, least, but) >= excepted,
          "what is left out is a field");
    memset(seen, 0, sizeof seen);
}
