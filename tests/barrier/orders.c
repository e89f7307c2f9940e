/* Enumerates the orders of orders.h: chooses the next session at each step, runs that step on a
 * body, and compares the result with the model. The databases are in orders_sqlite_test.c and
 * orders_postgres_test.c. */

#include "orders.h"

#include <stdio.h>
#include <string.h>

#include "base/test.h"

enum phase { AT_BEGIN, AT_ASK, AT_EFFECT, AT_RECORD, AT_END, OVER };
enum record { NONE, DONE, UNDONE, BARRED };

/* ---- every choice ---- */

/* Like base/every.h, but what can be chosen may differ from run to run: of two that wait for the
 * same lock a database lets in either. */
static struct {
    unsigned value[64], bound[64], len, at;
    bool begun;
} walk;

static bool next_walk(void)
{
    if (!walk.begun)
        return walk.begun = true;
    while (walk.len > 0 && walk.value[walk.len - 1] + 1 >= walk.bound[walk.len - 1])
        walk.len--;
    if (walk.len == 0)
        return walk.begun = false;
    walk.value[walk.len - 1]++;
    walk.at = 0;
    return true;
}

static unsigned pick(unsigned bound)
{
    CHECK(bound > 0 && walk.at < COUNT_OF(walk.value), "%u choices at %u", bound, walk.at);
    if (walk.at == walk.len)
        walk.value[walk.len++] = 0;
    walk.bound[walk.at] = bound;
    unsigned value = walk.value[walk.at++];
    return value < bound ? value : bound - 1;
}

/* ---- the model ---- */

static struct orders *o;
static struct session sessions[SESSIONS_MAX];
static enum phase phases[SESSIONS_MAX];
static bool waiting[SESSIONS_MAX], open_now[SESSIONS_MAX];
static unsigned seen_version[SESSIONS_MAX];
static bool changes[SESSIONS_MAX]; /* its verdict makes it change the record */
static unsigned tries_left[SESSIONS_MAX];
static char story[2000], key[OUTPUT_SIZE];

static struct {
    enum record record;
    char output[OUTPUT_SIZE], undo_output[OUTPUT_SIZE];
    unsigned version; /* counts commits */
    int holder;       /* who has changed it and is open; -1: nobody */
    int forward, undo;
    bool undo_ended; /* some undo was answered */
} m;

static const char *const verdict_names[] = {"do",   "repeat", "undone", "nothing",
                                            "late", "again",  "failed"};

static void tell(unsigned i, const char *what)
{
    size_t len = strlen(story);

    (void)snprintf(story + len, sizeof story - len, " %c%u:%s",
                   sessions[i].direction == INTACT_UNDO ? 'u' : 'f', i, what);
}

static enum intact_verdict model_verdict(enum intact_direction d, bool *ret_changes)
{
    *ret_changes = m.record == NONE || (d == INTACT_UNDO && m.record == DONE);
    if (d == INTACT_FORWARD)
        return m.record == NONE   ? INTACT_BARRIER_DO
               : m.record == DONE ? INTACT_BARRIER_REPEAT
                                  : INTACT_BARRIER_UNDONE;
    return m.record == DONE     ? INTACT_BARRIER_DO
           : m.record == UNDONE ? INTACT_BARRIER_REPEAT
                                : INTACT_BARRIER_NOTHING;
}

static void check_again(unsigned i)
{
    bool stale = o->body->snapshots && seen_version[i] != m.version;
    bool held = o->body->asking_holds && m.holder >= 0;

    CHECK(stale || held || o->body->may_refuse, "nobody was in the way of %u:%s", i, story);
    o->refusals++;
}

static void check_verdict(unsigned i)
{
    struct session *s = &sessions[i];
    enum intact_verdict said = intact_barrier_verdict(s->b);

    o->verdicts[said]++;
    tell(i, verdict_names[said]);
    phases[i] = AT_END;
    if (said == INTACT_BARRIER_AGAIN) {
        check_again(i);
        return;
    }
    bool changed = false;
    enum intact_verdict right = model_verdict(s->direction, &changed);
    CHECK(said == right, "%s (%s), and it had to be %s:%s", verdict_names[said],
          intact_barrier_why(s->b), verdict_names[right], story);
    CHECK(m.holder < 0, "%u is still at it:%s", (unsigned)m.holder, story);
    const char *output = said == INTACT_BARRIER_REPEAT && s->direction == INTACT_UNDO
                             ? m.undo_output
                         : said == INTACT_BARRIER_REPEAT
                                 || (said == INTACT_BARRIER_DO && s->direction == INTACT_UNDO)
                             ? m.output
                             : "null";
    CHECK(strcmp(intact_barrier_output(s->b), output) == 0, "output %s, not %s:%s",
          intact_barrier_output(s->b), output, story);
    changes[i] = changed;
    if (changed || o->body->asking_holds)
        m.holder = (int)i;
    if (said == INTACT_BARRIER_DO)
        phases[i] = o->fine ? AT_EFFECT : AT_END;
}

/* What its transaction did counts now. */
static void model_commit(unsigned i)
{
    struct session *s = &sessions[i];
    bool did = intact_barrier_verdict(s->b) == INTACT_BARRIER_DO;
    bool is_undo = s->direction == INTACT_UNDO;

    m.undo_ended |= is_undo;
    if (!changes[i])
        return;
    m.version++;
    m.record = !is_undo ? DONE : did ? UNDONE : BARRED;
    if (did) {
        (void)snprintf(is_undo ? m.undo_output : m.output, OUTPUT_SIZE, "%s", s->output);
        *(is_undo ? &m.undo : &m.forward) += 1;
    }
}

static void check_world(void)
{
    static const char *const names[] = {"", "done", "undone", "barred"};
    char outcome[OUTPUT_SIZE], output[OUTPUT_SIZE], undo_output[OUTPUT_SIZE];
    int forward = -1, undo = -1;

    o->body->look(outcome, output, undo_output, &forward, &undo);
    CHECK(strcmp(outcome, names[m.record]) == 0, "on record: %s, not %s:%s", outcome,
          names[m.record], story);
    CHECK(strcmp(output, m.output) == 0 && strcmp(undo_output, m.undo_output) == 0,
          "outputs %s and %s, not %s and %s:%s", output, undo_output, m.output, m.undo_output,
          story);
    CHECK(forward == m.forward && undo == m.undo, "%d effects and %d undone, not %d and %d:%s",
          forward, undo, m.forward, m.undo, story);
    /* What it is all about, whatever the model says. */
    CHECK(forward <= 1 && undo <= forward, "%d effects, %d undone:%s", forward, undo, story);
    CHECK(!m.undo_ended || forward == undo, "an effect stands after its undo:%s", story);
}

/* ---- the sessions' steps ---- */

static void begin(unsigned i)
{
    enum progress p = o->body->begin(&sessions[i]);

    if (p == REFUSED) {
        tell(i, "begin refused");
        CHECK(o->body->begin_is_waited && m.holder >= 0, "nobody was in its way:%s", story);
        return; /* and is tried again */
    }
    tell(i, "begin");
    CHECK(!o->body->begin_is_waited || m.holder < 0, "two at once:%s", story);
    if (o->body->begin_is_waited)
        m.holder = (int)i;
    seen_version[i] = m.version;
    open_now[i] = true;
    phases[i] = AT_ASK;
}

static void ask(unsigned i)
{
    if (o->body->begin_is_waited)
        m.holder = -1; /* it has the lock since it began */
    if (o->body->ask(&sessions[i]) == WAITS) {
        tell(i, "asks, waits");
        CHECK(m.holder >= 0, "it waits, and for nobody:%s", story);
        waiting[i] = true;
        o->waits++;
        return;
    }
    tell(i, "asks");
    check_verdict(i);
}

static bool takes_effect(unsigned i)
{
    bool ok = o->body->effect(&sessions[i]);

    tell(i, ok ? "effect" : "effect refused");
    CHECK(ok || o->body->may_refuse, "the effect fails: %s:%s", intact_barrier_why(sessions[i].b),
          story);
    return ok;
}

static bool records(unsigned i)
{
    struct session *s = &sessions[i];
    bool ok = o->body->record(s);

    tell(i, ok ? "record" : "record refused");
    CHECK(ok || o->body->may_refuse, "it is not recorded: %s:%s", intact_barrier_why(s->b), story);
    return ok;
}

static bool others_are_open(unsigned i)
{
    for (unsigned k = 0; k < o->count; k++)
        if (k != i && open_now[k])
            return true;
    return false;
}

static void check_failed_commit(unsigned i)
{
    bool readers = o->body->readers_hold_off_commits && others_are_open(i);

    CHECK(intact_barrier_verdict(sessions[i].b) == INTACT_BARRIER_AGAIN, "%s:%s",
          intact_barrier_why(sessions[i].b), story);
    CHECK(readers || o->body->may_refuse, "the commit fails (%s):%s",
          intact_barrier_why(sessions[i].b), story);
    o->refusals++;
}

/* A request comes to the session. */
static void asked(unsigned i)
{
    struct session *s = &sessions[i];

    intact_barrier_free(s->b);
    s->b = intact_barrier_new(key, s->direction);
    phases[i] = AT_BEGIN;
    waiting[i] = open_now[i] = changes[i] = false;
}

static void finish(unsigned i)
{
    static const char *const names[] = {"commit", "rollback", "crash"};
    struct session *s = &sessions[i];
    enum intact_verdict verdict = intact_barrier_verdict(s->b);
    bool given_up = verdict == INTACT_BARRIER_AGAIN;
    bool works = verdict == INTACT_BARRIER_DO && !o->fine;

    if (works)
        given_up = !takes_effect(i) || !records(i);
    enum ending how = changes[i] && !given_up ? (enum ending)pick(o->crashes ? 3 : 2) : END_COMMIT;
    tell(i, names[how]);
    bool ok = o->body->end(s, how);
    if (how == END_COMMIT && ok) {
        CHECK(!given_up, "what cannot be is committed:%s", story);
        model_commit(i);
    } else if (how == END_COMMIT && !given_up) {
        tell(i, "refused");
        check_failed_commit(i);
    }
    if (m.holder == (int)i)
        m.holder = -1;
    open_now[i] = false;
    phases[i] = OVER;
    if (!ok && tries_left[i] > 0) { /* it was not answered, so the server asks again */
        tries_left[i]--;
        asked(i);
    }
}

static void step(unsigned i)
{
    switch (phases[i]) {
    case AT_BEGIN:
        begin(i);
        break;
    case AT_ASK:
        ask(i);
        break;
    case AT_EFFECT:
        phases[i] = takes_effect(i) ? AT_RECORD : AT_END;
        break;
    case AT_RECORD:
        (void)records(i);
        phases[i] = AT_END;
        break;
    case AT_END:
    case OVER:
    default:
        finish(i);
    }
    unsigned done = o->body->settle ? o->body->settle() : 0;
    for (unsigned k = 0; k < o->count; k++) {
        if (!waiting[k] || !(done & BIT(k)))
            continue;
        waiting[k] = false;
        check_verdict(k);
    }
}

/* Those that can go on. Of equal ones that have not begun only the first, since the others would
 * come to the same. */
static unsigned able(unsigned ret[SESSIONS_MAX])
{
    unsigned count = 0;

    for (unsigned i = 0; i < o->count; i++) {
        bool twin_first = i > 0 && phases[i] == AT_BEGIN && phases[i - 1] == AT_BEGIN
                          && tries_left[i] == tries_left[i - 1]
                          && sessions[i].direction == sessions[i - 1].direction;
        /* It was refused, and nothing has changed since. */
        bool barred = o->body->begin_is_waited && phases[i] == AT_BEGIN && m.holder >= 0;
        if (phases[i] != OVER && !waiting[i] && !twin_first && !barred)
            ret[count++] = i;
    }
    return count;
}

static void check_refused_begins(void)
{
    for (unsigned i = 0; i < o->count; i++)
        if (o->body->begin_is_waited && phases[i] == AT_BEGIN && m.holder >= 0)
            begin(i);
}

static void play(void)
{
    unsigned choice[SESSIONS_MAX];

    story[0] = '\0';
    memset(&m, 0, sizeof m);
    m.holder = -1;
    if (o->done_before) {
        m.record = DONE;
        m.forward = 1;
        (void)snprintf(m.output, sizeof m.output, "\"before\"");
    }
    o->body->reset(o->done_before, key);
    for (unsigned i = 0; i < o->count; i++) {
        struct session *s = &sessions[i];
        s->number = i;
        s->direction = o->directions[i];
        (void)snprintf(s->output, sizeof s->output, "{\"by\": %u}", i);
        tries_left[i] = o->tries;
        asked(i);
    }
    for (unsigned count = 0; (count = able(choice)) > 0;) {
        step(choice[pick(count)]);
        check_refused_begins();
    }
    for (unsigned i = 0; i < o->count; i++)
        CHECK(phases[i] == OVER, "%u waits for ever:%s", i, story);
    check_world();
    for (unsigned i = 0; i < o->count; i++) {
        intact_barrier_free(sessions[i].b);
        sessions[i].b = NULL;
    }
    o->runs++;
}

void orders_play(struct orders *orders)
{
    o = orders;
    memset(&walk, 0, sizeof walk);
    while (next_walk())
        play();
}
