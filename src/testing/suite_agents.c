/* Reads what actions do in a test file, `agents`: their answers, attempt by attempt, and their
 * effects on the world. agent_player.c acts accordingly. */

#include "testing/suite_reader.h"

enum { CHANGES_MAX = 100, KEYS_MAX = 5000, CODE_MAX = 100, MESSAGE_MAX = 1000 };

/* ---- effects ---- */

static void read_change(struct reader *r, const struct json *j, const struct path *path,
                        struct world_change *c)
{
    c->name = j->key;
    c->at = j->key_at;
    if (j->type == JSON_STRING)
        read_test_expression(r, j, path, &c->value);
    else
        c->constant = j->raw;
}

static void read_effect(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct effect_spec *e = target;

    if (j->type != JSON_OBJECT || j->count == 0 || j->count > CHANGES_MAX) {
        mistake_in(r, path, j, "an object: members of the world, and an expression for each");
        return;
    }
    e->is_given = true;
    e->at = j->at;
    e->list = arena_alloc(r->arena, j->count * sizeof *e->list);
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        read_change(r, m, &at, &e->list[e->count++]);
    }
}

/* ---- errors ---- */

static void read_code(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0 || j->text.len > CODE_MAX)
        mistake_in(r, path, j, "the code of an error, of 1 to %d bytes", CODE_MAX);
    else
        *(struct slice *)target = j->text;
}

static void read_message(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    if (j->type != JSON_STRING || j->text.len > MESSAGE_MAX)
        mistake_in(r, path, j, "a text of at most %d bytes", MESSAGE_MAX);
    else
        *(struct slice *)target = j->text;
}

static void read_error_effect(struct reader *r, const struct json *j, const struct path *path,
                              void *target)
{
    struct played_answer *a = target;

    if (j->type == JSON_STRING && slice_is(j->text, "none"))
        a->effect = EFFECT_NONE;
    else if (j->type == JSON_STRING && slice_is(j->text, "unknown"))
        a->effect = EFFECT_UNKNOWN;
    else
        mistake_in(r, path, j, "none or unknown: what the agent knows of the effect");
}

static void read_fault(struct reader *r, const struct json *j, const struct path *path,
                       struct played_answer *a)
{
    static const struct field fields[] = {
        REQUIRED("code", read_code, offsetof(struct played_answer, code)),
        FIELD("message", read_message, offsetof(struct played_answer, message)),
        FIELD("effect", read_error_effect, 0),
        FIELD("took_effect", read_bool, offsetof(struct played_answer, takes_effect)),
        FIELD("retry_after", read_duration, offsetof(struct played_answer, retry_after_ms)),
    };
    struct path at_took = {path, SLICE("took_effect"), 0};

    if (j->type == JSON_STRING) {
        read_code(r, j, path, &a->code);
        return;
    }
    read_object(r, j, path, fields, COUNT_OF(fields), a);
    if (a->takes_effect && (a->effect == EFFECT_NONE || !json_get(j, "effect")))
        mistake_in(r, &at_took, json_get(j, "took_effect"),
                   "effect: unknown beside it: an agent that says none has none");
}

/* ---- answers ---- */

/* An answer while it is read: what it is, and where that is said. */
struct answer_draft {
    struct played_answer a;
    const struct json *kind;
};

static void is_of_kind(struct reader *r, struct answer_draft *d, const struct json *j,
                       const struct path *path, enum played_kind kind)
{
    if (d->kind)
        mistake_in(r, path, j, "one of output, refuse, fail and silent");
    d->kind = j;
    d->a.kind = kind;
}

static void read_output(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct answer_draft *d = target;

    is_of_kind(r, d, j, path, PLAYED_COMPLETED);
    if (j->type != JSON_NULL)
        read_tree(r, j, path, &d->a.output);
}

static void read_refuse(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct answer_draft *d = target;

    is_of_kind(r, d, j, path, PLAYED_REFUSED);
    read_fault(r, j, path, &d->a);
}

static void read_fail(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct answer_draft *d = target;

    is_of_kind(r, d, j, path, PLAYED_FAILED);
    d->a.effect = EFFECT_UNKNOWN; /* what a server takes it for if the agent does not say */
    read_fault(r, j, path, &d->a);
}

static void read_silent(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct answer_draft *d = target;

    is_of_kind(r, d, j, path, PLAYED_SILENT);
    d->a.takes_effect = j->type == JSON_STRING && slice_is(j->text, "after effect");
    if (!d->a.takes_effect && !(j->type == JSON_STRING && slice_is(j->text, "before effect")))
        mistake_in(r, path, j, "\"before effect\" or \"after effect\"");
}

static void read_times(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    (void)read_whole(r, j, path, 1, 1000000, target);
}

static void read_promise(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    bool is_kept = true;

    read_bool(r, j, path, &is_kept);
    *(enum promise *)target = is_kept ? PROMISE_KEPT : PROMISE_BROKEN;
}

#define OF_ANSWER(member) offsetof(struct answer_draft, a.member)

static const struct field answer_fields[] = {
    FIELD("output", read_output, 0),
    FIELD("refuse", read_refuse, 0),
    FIELD("fail", read_fail, 0),
    FIELD("silent", read_silent, 0),
    FIELD("takes", read_duration, OF_ANSWER(takes_ms)),
    FIELD("times", read_times, OF_ANSWER(times)),
    FIELD("if", read_test_expression, OF_ANSWER(condition)),
    FIELD("effect", read_effect, OF_ANSWER(does)),
    FIELD("undone", read_effect, OF_ANSWER(undone)),
    FIELD("idempotent", read_promise, OF_ANSWER(idempotent)),
    FIELD("barrier", read_promise, OF_ANSWER(barrier)),
};

static void read_answer(struct reader *r, const struct json *j, const struct path *path,
                        struct played_answer *ret)
{
    struct answer_draft d = {.a = {.takes_ms = -1, .times = 1, .at = j->at}};

    read_object(r, j, path, answer_fields, COUNT_OF(answer_fields), &d);
    *ret = d.a;
}

static void read_list(struct reader *r, const struct json *j, const struct path *path,
                      struct play *p)
{
    size_t i = 0;

    if (j->count == 0 || j->count > SUITE_ANSWERS_MAX) {
        mistake_in(r, path, j, "1 to %d answers, attempt by attempt", SUITE_ANSWERS_MAX);
        return;
    }
    p->answers = arena_alloc(r->arena, j->count * sizeof *p->answers);
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        read_answer(r, one, &at, &p->answers[p->count++]);
    }
}

static void read_play(struct reader *r, const struct json *j, const struct path *path,
                      struct plays *plays)
{
    struct play p = {.key = j->key, .at = j->key_at};

    if (j->type == JSON_ARRAY) {
        read_list(r, j, path, &p);
    } else {
        p.answers = arena_alloc(r->arena, sizeof *p.answers);
        p.count = 1;
        read_answer(r, j, path, p.answers);
    }
    plays->list[plays->count++] = p;
}

void read_agents(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct plays *plays = target;

    if (j->type != JSON_OBJECT || j->count > KEYS_MAX) {
        mistake_in(r, path, j, "an object: an answer, or a list of them, for each AGENT.ACTION");
        return;
    }
    plays->list = arena_alloc(r->arena, (j->count + 1) * sizeof *plays->list);
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        read_play(r, m, &at, plays);
    }
}
