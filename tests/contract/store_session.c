/* The contract of every store that has sessions of the console: a code becomes one session, what
 * has expired is deleted, and a token has not too many. Each test names one promise
 * (store_world.h). */

#include "store_world.h"

#include "base/buf.h"
#include "base/fault.h"

static struct audit an_audit(const char *verb)
{
    return (struct audit){.at = 1000,
                          .actor = SLICE("ann"),
                          .verb = slice_of(verb),
                          .reason = SLICE("s"),
                          .address = SLICE("192.0.2.7")};
}

static struct session_row a_session(const char *id, unsigned char hash, int64_t created_at)
{
    struct session_row s = {.id = slice_of(id),
                            .token = SLICE("ann"),
                            .created_at = created_at,
                            .expires_at = created_at + 1000,
                            .address = SLICE("192.0.2.7")};

    memset(s.hash, hash, sizeof s.hash);
    memset(s.token_hash, 7, sizeof s.token_hash);
    return s;
}

static struct session_row a_code(const char *id, unsigned char hash, int64_t created_at)
{
    struct session_row s = a_session(id, hash, created_at);

    s.is_code = true;
    return s;
}

static enum err put(struct world *w, struct session_row s, const unsigned char *code)
{
    const struct audit begun = an_audit("session.create");

    return w->s->ops->sessions->put(w->s, &s, code, s.is_code ? NULL : &begun, &w->e);
}

static enum err take_away(struct world *w, const char *id)
{
    const struct audit ended = an_audit("session.delete");

    return w->s->ops->sessions->remove(w->s, slice_of(id), &ended, &w->e);
}

static void tell(struct world *w, struct buf *b)
{
    struct session_row *rows = NULL;
    size_t count = 0;

    must(w->s->ops->sessions->list(w->s, &w->a, &rows, &count, &w->e), w->e.text);
    for (size_t i = 0; i < count; i++)
        buf_fmt(b, "%.*s%s %d %.*s %d %" PRId64 "-%" PRId64 " %.*s\n", SLICE_ARG(rows[i].id),
                rows[i].is_code ? "*" : "", rows[i].hash[31], SLICE_ARG(rows[i].token),
                rows[i].token_hash[31], rows[i].created_at, rows[i].expires_at,
                SLICE_ARG(rows[i].address));
}

static void sessions_are(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};

    tell(w, &b);
    CHECK(slice_is(buf_view(&b), want), "sessions are\n%s", b.ptr ? b.ptr : "none");
}

static int64_t audits(struct world *w, const char *verb)
{
    const struct audit_query q = {.limit = 100};
    struct audit_page p;
    int64_t count = 0;

    must(w->s->ops->audit_list(w->s, &q, &w->a, &p, &w->e), w->e.text);
    for (size_t i = 0; i < p.count; i++)
        count += slice_is(p.entries[i].verb, verb);
    return count;
}

static void sessions_are_kept(void **state)
{
    struct world *w = *state;

    sessions_are(w, "");
    must(put(w, a_session("b", 2, 200), NULL), "b");
    must(put(w, a_session("a", 1, 100), NULL), "a");
    must(put(w, a_code("c", 3, 300), NULL), "c");
    static const char all[] = "a 1 ann 7 100-1100 192.0.2.7\nb 2 ann 7 200-1200 192.0.2.7\n"
                              "c* 3 ann 7 300-1300 192.0.2.7\n";
    sessions_are(w, all);
    world_restart(w);
    sessions_are(w, all);
    assert_int_equal(audits(w, "session.create"), 2);
    must(take_away(w, "a"), "a");
    CHECK(take_away(w, "a") == ERR_NOT_FOUND, "it is gone");
    assert_int_equal(audits(w, "session.delete"), 1);
    sessions_are(w, "b 2 ann 7 200-1200 192.0.2.7\nc* 3 ann 7 300-1300 192.0.2.7\n");
}

static void a_code_becomes_one_session(void **state)
{
    struct world *w = *state;
    const struct session_row code = a_code("c", 3, 300);
    const struct session_row session = a_session("s", 4, 400);

    must(put(w, code, NULL), "the code");
    CHECK(put(w, session, session.hash) == ERR_NOT_FOUND, "there is no such code");
    sessions_are(w, "c* 3 ann 7 300-1300 192.0.2.7\n");
    must(put(w, session, code.hash), "the session");
    sessions_are(w, "s 4 ann 7 400-1400 192.0.2.7\n");
    CHECK(put(w, a_session("t", 5, 500), code.hash) == ERR_NOT_FOUND, "it was used");
    CHECK(put(w, a_session("t", 5, 500), session.hash) == ERR_NOT_FOUND, "it is no code");
    sessions_are(w, "s 4 ann 7 400-1400 192.0.2.7\n");
    assert_int_equal(audits(w, "session.create"), 1);
}

static uint64_t generation(struct world *w)
{
    struct generations now = {0};

    if (w->s->ops->nodes)
        must(w->s->ops->nodes->generations(w->s, &now, &w->e), w->e.text);
    return now.tokens;
}

/* A stranger can send any code: that neither deletes nor writes anything. */
static void an_unknown_code_changes_nothing(void **state)
{
    struct world *w = *state;
    const struct session_row session = a_session("s", 4, 5000);

    must(put(w, a_session("a", 1, 100), NULL), "one that has expired by then");
    uint64_t before = generation(w);
    CHECK(put(w, session, session.hash) == ERR_NOT_FOUND, "there is no such code");
    sessions_are(w, "a 1 ann 7 100-1100 192.0.2.7\n");
    CHECK(generation(w) == before, "other nodes read it again");
    must(put(w, session, NULL), "without one");
    CHECK(!w->s->ops->nodes || generation(w) != before, "other nodes do not learn of it");
}

static void what_has_expired_is_deleted(void **state)
{
    struct world *w = *state;
    const struct session_row code = a_code("c", 3, 300);

    must(put(w, a_session("a", 1, 100), NULL), "a");
    must(put(w, code, NULL), "c");
    must(put(w, a_session("b", 2, 1299), code.hash), "it has not expired yet");
    sessions_are(w, "b 2 ann 7 1299-2299 192.0.2.7\n");
    must(put(w, code, NULL), "c");
    CHECK(put(w, a_session("d", 4, 1300), code.hash) == ERR_NOT_FOUND, "it has expired");
    must(put(w, a_session("d", 4, 1301), NULL), "d");
    sessions_are(w, "b 2 ann 7 1299-2299 192.0.2.7\nd 4 ann 7 1301-2301 192.0.2.7\n");
}

static void a_token_has_not_too_many(void **state)
{
    struct world *w = *state;
    struct session_row other = a_session("other", 250, 1);
    struct session_row *rows = NULL;
    size_t count = 0;
    char id[8];

    memset(other.token_hash, 8, sizeof other.token_hash);
    must(put(w, other, NULL), "of another token");
    must(put(w, a_code("code", 251, 1), NULL), "a code");
    for (unsigned char i = 0; i < SESSIONS_OF_TOKEN + 3; i++) {
        (void)snprintf(id, sizeof id, "s-%02d", i);
        must(put(w, a_session(id, i, 10 + i), NULL), id);
    }
    must(w->s->ops->sessions->list(w->s, &w->a, &rows, &count, &w->e), w->e.text);
    assert_int_equal(count, SESSIONS_OF_TOKEN + 2);
    CHECK(slice_is(rows[2].id, "s-03"), "the oldest ones have ended: %.*s", SLICE_ARG(rows[2].id));
}

/* With a fault at the n-th place, for all n: it is done, or nothing is, and it can be done then. */
static void faults(void **state, enum err (*op)(struct world *w))
{
    struct world *w = *state;
    bool fired = true;

    for (uint32_t n = 0; fired; n++) {
        CLEANUP(buf_fini) struct buf before = {0};
        CLEANUP(buf_fini) struct buf after = {0};
        CHECK(n < 200, "it never ends");
        (void)take_away(w, "s");
        must(put(w, a_code("c", 3, 300), NULL), "the code");
        tell(w, &before);
        fault_plan = (struct fault_plan){.skip = n, .fire = 1};
        enum err err = op(w);
        fired = fault_plan.fired > 0;
        fault_plan = (struct fault_plan){0};
        world_settle(w);
        CHECK(err == ERR_OK || (fired && err_is_transient(err)), "call %u: %s", n, w->e.text);
        tell(w, &after);
        bool same = slice_eq(buf_view(&before), buf_view(&after));
        CHECK(err == ERR_OK || err == ERR_UNKNOWN || same, "call %u left\n%s", n, after.ptr);
        if (same)
            must(op(w), "afterwards");
        (void)take_away(w, "c");
    }
}

static enum err op_sign_in(struct world *w)
{
    const struct session_row code = a_code("c", 3, 300);

    return put(w, a_session("s", 4, 400), code.hash);
}

static enum err op_end(struct world *w)
{
    return take_away(w, "c");
}

static void a_sign_in_is_done_or_not(void **state)
{
    faults(state, op_sign_in);
}

static void an_end_is_done_or_not(void **state)
{
    faults(state, op_end);
}

#define ON_BOTH(f) ON_SQLITE(f), ON_POSTGRES(f)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_BOTH(sessions_are_kept),
        ON_BOTH(a_code_becomes_one_session),
        ON_BOTH(an_unknown_code_changes_nothing),
        ON_BOTH(what_has_expired_is_deleted),
        ON_BOTH(a_token_has_not_too_many),
        ON_BOTH(a_sign_in_is_done_or_not),
        ON_BOTH(an_end_is_done_or_not),
    };
    return cmocka_run_group_tests_name("store contract: sessions", tests, NULL, NULL);
}
