/* Reads what happens to the task of a test from outside: `operator`, `signals` and `approvals`.
 * acts.c does it. */

#include "tasks/ask.h"
#include "testing/suite_reader.h"

enum { GROUPS_MAX = 20, TEXT_MAX = 4096 };

/* What a verb of an operator takes. */
static const struct verb_word {
    const char *name;
    enum ask_kind kind;
    enum { TAKES_STEP, TAKES_ANY_STEP, TAKES_REASON } takes;
} verb_words[] = {
    {"retry", ASK_RETRY, TAKES_ANY_STEP},     {"skip", ASK_SKIP, TAKES_STEP},
    {"supply", ASK_SUPPLY, TAKES_STEP},       {"resolve", ASK_RESOLVE, TAKES_STEP},
    {"correct", ASK_CORRECT, TAKES_ANY_STEP}, {"undo", ASK_UNDO, TAKES_REASON},
    {"cancel", ASK_CANCEL, TAKES_REASON},     {"pause", ASK_PAUSE, TAKES_REASON},
    {"resume", ASK_RESUME, TAKES_REASON},     {"close", ASK_CLOSE, TAKES_REASON},
    {"reopen", ASK_REOPEN, TAKES_REASON},
};

static struct act *add(struct reader *r, struct test_case *t, const struct act *a)
{
    struct act *more = arena_alloc(r->arena, (t->act_count + 1) * sizeof *more);

    /* Lists are short: a copy for each is simple. */
    if (t->act_count > 0)
        memcpy(more, t->acts, t->act_count * sizeof *more);
    more[t->act_count] = *a;
    t->acts = more;
    return &t->acts[t->act_count++];
}

/* Reads the member `after` of each, which has a moment. */
static bool read_after(struct reader *r, const struct json *j, const struct path *path,
                       struct act *a)
{
    const struct json *after = json_get(j, "after");
    struct path at = {path, SLICE("after"), 0};

    a->after_ms = -1;
    if (!after)
        mistake_at(r, &at, j->at, "nothing", "a key \"after\": how long after the submission");
    else
        read_duration(r, after, &at, &a->after_ms);
    return a->after_ms >= 0;
}

typedef void read_act_fn(struct reader *r, const struct json *j, const struct path *path,
                         struct test_case *t);

static void read_each(struct reader *r, const struct json *j, const struct path *path,
                      struct test_case *t, read_act_fn *read)
{
    size_t i = 0;

    if (j->type != JSON_ARRAY || j->count > SUITE_ACTS_MAX) {
        mistake_in(r, path, j, "an array of at most %d objects with \"after\"", SUITE_ACTS_MAX);
        return;
    }
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        if (one->type != JSON_OBJECT)
            mistake_in(r, &at, one, "an object with \"after\"");
        else
            read(r, one, &at, t);
    }
}

/* ---- operators ---- */

static const struct verb_word *verb_of(const struct json *m)
{
    for (size_t i = 0; i < COUNT_OF(verb_words); i++)
        if (slice_is(m->key, verb_words[i].name))
            return &verb_words[i];
    return NULL;
}

static void read_verb_value(struct reader *r, const struct verb_word *v, const struct json *m,
                            const struct path *path, struct act *a)
{
    bool is_true = m->type == JSON_TRUE;
    bool is_text = m->type == JSON_STRING && m->text.len > 0 && m->text.len <= TEXT_MAX;

    a->verb = (int)v->kind;
    if (v->takes == TAKES_REASON && (is_true || is_text))
        a->reason = is_text ? m->text : SLICE("test");
    else if (v->takes != TAKES_REASON && is_text)
        a->step = m->text;
    else if (v->takes != TAKES_ANY_STEP || !is_true)
        mistake_in(r, path, m,
                   v->takes == TAKES_REASON     ? "true, or the reason"
                   : v->takes == TAKES_ANY_STEP ? "the name of a step, or true for the whole task"
                                                : "the name of a step");
}

static void read_verb(struct reader *r, const struct json *j, const struct path *path,
                      struct test_case *t)
{
    struct act a = {
        .kind = ACT_VERB, .what = "operator", .verb = -1, .at = j->at, .reason = SLICE("test")};

    if (!read_after(r, j, path, &a))
        return;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        const struct verb_word *v = verb_of(m);
        if (v && a.verb < 0)
            read_verb_value(r, v, m, &at, &a);
        else if (slice_is(m->key, "output") || slice_is(m->key, "input"))
            a.data = m->raw;
        else if (!slice_is(m->key, "after"))
            mistake_at(r, &at, m->key_at, v ? "a second verb" : "an unknown key",
                       "after, output, input and one of retry, skip, supply, resolve, correct, "
                       "undo, cancel, pause, resume, close, reopen");
    }
    if (a.verb < 0)
        mistake_at(r, path, j->at, "no verb", "a verb and a step, such as retry: ship");
    else if (!a.data.ptr && (a.verb == ASK_SUPPLY || a.verb == ASK_CORRECT))
        mistake_at(r, path, j->at, "nothing", "a key \"%s\"",
                   a.verb == ASK_SUPPLY ? "output" : "input");
    else
        (void)add(r, t, &a);
}

void read_operator(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    read_each(r, j, path, target, read_verb);
}

/* ---- signals ---- */

static void read_signal(struct reader *r, const struct json *j, const struct path *path,
                        struct test_case *t)
{
    struct act a = {.kind = ACT_SIGNAL, .what = "signals", .at = j->at};

    if (!read_after(r, j, path, &a))
        return;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        if (slice_is(m->key, "after"))
            continue;
        if (a.name.ptr)
            mistake_at(r, &at, m->key_at, "a second name", "one signal: its name and its data");
        a.name = m->key;
        a.data = m->raw;
        if (m->raw.len > SIGNAL_DATA_MAX)
            mistake_in(r, &at, m, "data of at most %d bytes", SIGNAL_DATA_MAX);
    }
    if (!a.name.ptr)
        mistake_at(r, path, j->at, "no signal", "its name and its data, such as paid: {amount: 5}");
    else
        (void)add(r, t, &a);
}

void read_signals(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    read_each(r, j, path, target, read_signal);
}

/* ---- people ---- */

static void read_text(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0 || j->text.len > TEXT_MAX)
        mistake_in(r, path, j, "a text of 1 to %d bytes", TEXT_MAX);
    else
        *(struct slice *)target = j->text;
}

static void read_groups(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct act *a = target;

    if (j->type != JSON_ARRAY || j->count > GROUPS_MAX) {
        mistake_in(r, path, j, "an array of at most %d names of groups", GROUPS_MAX);
        return;
    }
    a->groups = arena_alloc(r->arena, (j->count + 1) * sizeof *a->groups);
    for (const struct json *one = j->child; one; one = one->next)
        read_text(r, one, path, &a->groups[a->group_count++]);
}

static void read_vote(struct reader *r, const struct json *j, const struct path *path,
                      struct test_case *t)
{
    struct vote_draft {
        struct act a;
        struct slice approve, reject, after;
    } d = {.a = {.kind = ACT_VOTE, .what = "approvals", .at = j->at}};
    static const struct field fields[] = {
        FIELD("after", read_text, offsetof(struct vote_draft, after)),
        REQUIRED("step", read_text, offsetof(struct vote_draft, a.step)),
        FIELD("approve", read_text, offsetof(struct vote_draft, approve)),
        FIELD("reject", read_text, offsetof(struct vote_draft, reject)),
        FIELD("comment", read_text, offsetof(struct vote_draft, a.reason)),
        FIELD("groups", read_groups, offsetof(struct vote_draft, a)),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    if (!read_after(r, j, path, &d.a))
        return;
    d.a.agrees = d.approve.ptr;
    d.a.name = d.approve.ptr ? d.approve : d.reject;
    if (!d.approve.ptr == !d.reject.ptr)
        mistake_at(r, path, j->at, d.approve.ptr ? "both" : "neither",
                   "either approve or reject, and the name of a person");
    else if (d.reject.ptr && !d.a.reason.ptr)
        mistake_at(r, path, j->at, "no comment", "a comment: who rejects says why");
    else
        (void)add(r, t, &d.a);
}

void read_approvals(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    read_each(r, j, path, target, read_vote);
}
