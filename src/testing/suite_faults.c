/* Reads what a test file says for simulation: the `faults` of a test, and the rules `always` and
 * `at_end` of the file. fault.h and src/simulation use them. */

#include "testing/suite_reader.h"

enum { FAULTS_MAX = 100, RULES_MAX = 50, NAME_MAX_BYTES = 300 };

/* ---- faults ---- */

/* Where an entry says that it strikes. */
static const struct place_word {
    const char *key;
    enum fault_place place;
    bool is_undo;
} place_words[] = {
    {"request", PLACE_REQUEST, false}, {"undo", PLACE_REQUEST, true},
    {"commit", PLACE_COMMIT, false},   {"stop", PLACE_STOP, false},
    {"signal", PLACE_SIGNAL, false},   {"vote", PLACE_VOTE, false},
};

/* An entry while it is read. */
struct fault_draft {
    struct fault f;
    const struct place_word *place;
    const char *is;
};

static const struct place_word *place_of(const struct json *m)
{
    for (size_t i = 0; i < COUNT_OF(place_words); i++)
        if (slice_is(m->key, place_words[i].key))
            return &place_words[i];
    return NULL;
}

static void read_number(struct reader *r, const struct json *j, const struct path *path,
                        uint32_t *ret)
{
    int64_t number = 1;

    if (read_whole(r, j, path, 1, 1000000, &number))
        *ret = (uint32_t)number;
}

static void read_place(struct reader *r, const struct place_word *w, const struct json *m,
                       const struct path *path, struct fault_draft *d)
{
    bool is_counted = w->place == PLACE_COMMIT || w->place == PLACE_STOP;

    if (d->place)
        mistake_at(r, path, m->key_at, "a second place", "one of them");
    d->place = w;
    d->f.is_undo = w->is_undo;
    if (is_counted)
        read_number(r, m, path, &d->f.number);
    else if (m->type != JSON_STRING || m->text.len == 0 || m->text.len > NAME_MAX_BYTES)
        mistake_in(r, path, m, "the name of a %s", w->place == PLACE_SIGNAL ? "signal" : "step");
    else
        d->f.name = m->text;
}

static void read_is(struct reader *r, const struct json *m, const struct path *path,
                    struct fault_draft *d)
{
    CLEANUP(buf_fini) struct buf words = {0};

    for (int k = FAULT_NONE + 1; k < FAULT_KINDS && d->place; k++) {
        const struct fault_spec *s = fault_spec((enum fault_kind)k);
        if (s->place != d->place->place)
            continue;
        buf_fmt(&words, "%s\"%s\"", words.len > 0 ? ", " : "", s->word);
        if (m && m->type == JSON_STRING && slice_is(m->text, s->word))
            d->f.kind = (enum fault_kind)k;
    }
    if (d->place && d->f.kind == FAULT_NONE && m)
        mistake_in(r, path, m, "one of %s", words.ptr);
}

static void read_rest(struct reader *r, const struct json *j, const struct path *path,
                      struct fault_draft *d)
{
    const struct json *length = json_get(j, "for");
    struct path at_is = {path, SLICE("is"), 0};
    struct path at_for = {path, SLICE("for"), 0};
    struct path at_always = {path, SLICE("always"), 0};
    const struct json *always = json_get(j, "always");

    if (!d->place || !json_get(j, "is")) {
        mistake_at(r, path, j->at, d->place ? "no key \"is\"" : "no place",
                   d->place ? "what goes wrong, as is: \"answer lost\""
                            : "one of the keys request, undo, commit, stop, signal and vote");
        return;
    }
    read_is(r, json_get(j, "is"), &at_is, d);
    if (d->f.kind == FAULT_NONE)
        return;
    const struct fault_spec *s = fault_spec(d->f.kind);
    d->f.ms = max_i64(s->length_ms, 0);
    if (length && s->length_ms < 0)
        mistake_in(r, &at_for, length, "nothing: \"%s\" has no length", s->word);
    else if (length)
        read_length(r, length, &at_for, &d->f.ms);
    if (always && !s->may_last)
        mistake_in(r, &at_always, always, "nothing: \"%s\" strikes once", s->word);
    else if (always)
        read_bool(r, always, &at_always, &d->f.lasts);
}

static void read_fault(struct reader *r, const struct json *j, const struct path *path,
                       struct test_case *t)
{
    struct fault_draft d = {.f = {.number = 1, .at = j->at}};

    if (j->type != JSON_OBJECT) {
        mistake_in(r, path, j, "an object, as {request: STEP, is: \"answer lost\"}");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        const struct place_word *w = place_of(m);
        if (w)
            read_place(r, w, m, &at, &d);
        else if (slice_is(m->key, "number"))
            read_number(r, m, &at, &d.f.number);
        else if (!slice_is(m->key, "is") && !slice_is(m->key, "for") && !slice_is(m->key, "always"))
            mistake_at(r, &at, m->key_at, "an unknown key",
                       "request, undo, commit, stop, signal, vote, number, is, for or always");
    }
    read_rest(r, j, path, &d);
    t->faults.list[t->faults.count++] = d.f;
}

void read_faults(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct test_case *t = target;
    size_t i = 0;

    if (j->type != JSON_ARRAY || j->count > FAULTS_MAX) {
        mistake_in(r, path, j, "an array of at most %d faults", FAULTS_MAX);
        return;
    }
    t->faults.list = arena_alloc(r->arena, (j->count + 1) * sizeof *t->faults.list);
    for (const struct json *one = j->child; one; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        read_fault(r, one, &at, t);
    }
}

/* ---- rules ---- */

static void read_rule(struct reader *r, const struct json *j, const struct path *path,
                      struct suite_rules *rules)
{
    struct suite_rule rule = {.at = j->at};

    read_test_expression(r, j, path, &rule.expression);
    if (!rule.expression)
        return;
    rule.text = j->text;
    rules->list[rules->count++] = rule;
}

void read_rules(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct suite_rules *rules = target;
    size_t i = 0;

    rules->list = arena_alloc(r->arena, (j->count + 1) * sizeof *rules->list);
    if (j->type != JSON_ARRAY) {
        read_rule(r, j, path, rules);
        return;
    }
    if (j->count == 0 || j->count > RULES_MAX)
        mistake_in(r, path, j, "1 to %d expressions", RULES_MAX);
    for (const struct json *one = j->child; one && j->count <= RULES_MAX; one = one->next) {
        struct path at = {path, SLICE_NONE, i++};
        read_rule(r, one, &at, rules);
    }
}
