/*
 * Plays a task into every kind of reason. The kinds are the list in docs/why.md, their texts those
 * of why_texts.md, which this test compares, or writes with WHY_WRITE=1 in the environment.
 */

#include "why/why.h"

#include <errno.h>
#include <stdlib.h>

#include "base/when.h"
#include "core/core_test_kit.h"

#define LIST_BEGIN "<!-- from here on written by src/why/why_test.c -->\n"

struct example {
    enum reason_kind kind;
    const char *graph, *script; /* steps a, b, c, d are reserve, charge, ship, tell */
    struct facts facts;         /* differences from an idle server */
    struct agent_view agent;
    struct attempt_view attempt;
    int64_t not_before_ms;
    int64_t shown_max;
    const char *lock; /* that it waits for */
};

#define FREE   .agent = {.connected = true, .free = true}
#define ABSENT .agent = {0}

/* clang-format off */
static const struct example examples[] = {
    {REASON_PROCESSED, "a", "claim, start a, ok a, wait 30s", FREE},
    {REASON_COMPENSATED, "a b<a",
     "claim, start a, ok a, start b, fail b, start a, ok a, wait 5m", FREE},
    {REASON_CLOSED, "a b#<a", "claim, start a, ok a, start b, fail b, wait 3h, close, wait 1m", FREE},
    {REASON_PIVOT_UNCLEAR, "a b!<a", "claim, start a, ok a, start b, timeout b, wait 2h", FREE},
    {REASON_UNDO_FAILED, "a b<a",
     "claim, start a, ok a, start b, fail b, start a, fail a, wait 10s", FREE},
    {REASON_FAILED, "a b#<a", "claim, start a, ok a, start b, fail b, wait 3h", FREE},
    {REASON_CHILD_STOPPED, "a b:<a", "claim, start a, ok a, begin b, wait 3h, error b, wait 1m", FREE},
    {REASON_DEADLINE, "by=15s hold a b<a", "claim, start a, ok a, deadline, wait 1m", FREE},
    {REASON_STOPPED, "a b#<a", "claim, start a, ok a, start b, fail b, wait 1m", FREE},
    {REASON_PAUSED, "by=15s a b<a", "claim, start a, wait 5s, pause, wait 1m", FREE},
    {REASON_STORE, "a", "wait 1m", FREE, .facts = {.store_failed = true, .store_failed_since = -20000,
     .trouble = {"the disk is full", 16}}},
    {REASON_DRAINING, "a", "wait 1m", FREE, .facts = {.draining = true}},
    {REASON_OWNER_GONE, "a", "claim, wait 1m", FREE,
     .facts = {.owner = OWNER_OTHER, .owner_name = {"n2/4", 4}, .owner_lease_until = -3000}},
    {REASON_TAKING_OVER, "a", "claim, wait 1m", FREE,
     .facts = {.owner = OWNER_BEFORE_US, .owner_name = {"n1/3", 4}}},
    {REASON_ELSEWHERE, "a", "claim, wait 1m", FREE,
     .facts = {.owner = OWNER_OTHER, .owner_name = {"n2/4", 4},
               .owner_url = {"http://10.0.0.2:7420", 20}}},
    {REASON_FULL, "a", "wait 1m", FREE, .facts = {.full = true}},
    {REASON_DEADLINE_DUE, "by=15s a b<a", "claim, start a, ok a, wait 16s", FREE},
    {REASON_OVERDUE, "a2", "claim, start a, wait 10s", FREE},
    {REASON_HOLDING, "a# b", "claim, start a, start b, fail a, wait 4s", FREE},
    {REASON_PIVOT_HOLDS, "a! b", "claim, start a, start b, fail b, wait 4s", FREE},
    {REASON_NO_AGENT, "a b<a", "claim, start a, ok a, wait 4m", .agent = {.alike = {"paymnet", 7},
     .seen_at = -250000, .seen = {"payment-1", 9}}},
    {REASON_BREAKER, "a b<a", "claim, start a, ok a, wait 4s", .agent = {.connected = true,
     .free = true, .held = HELD_BY_BREAKER, .held_since = -3000, .held_until = -1,
     .held_why = {"17 of 20 attempts failed", 24}}},
    {REASON_TRIALS, "a", "wait 1m", .agent = {.connected = true, .free = true,
     .held = HELD_BY_TRIALS, .held_since = -100}},
    {REASON_LIMIT, "a", "wait 1m", .agent = {.connected = true, .free = true,
     .held = HELD_BY_LIMIT, .held_why = {"action charge runs at most 5 at a time", 38}}},
    {REASON_HEALTH, "a", "wait 1m", .agent = {.connected = true, .free = true,
     .held = HELD_BY_HEALTH}},
    {REASON_AGENT_AWAY, "a", "wait 1m", .agent = {.nodes = {"b (http://10.0.0.2:7420), c", 27},
     .url = {"http://10.0.0.2:7420", 20}}, .facts = {.here = {"a", 1}}},
    {REASON_IN_DOUBT, "a b<a", "claim, start a, ok a, start b, doubt b, wait 4s", FREE},
    {REASON_DEFERRED, "defers=3 a2",
     "claim, start a, again a, wait 1s, start a, again a, wait 10s", FREE},
    {REASON_BETWEEN, "a3", "claim, start a, again a, wait 100ms", FREE},
    {REASON_NOT_BEFORE, "a", "wait 1m", FREE, .not_before_ms = 7200000},
    {REASON_LOCK, "a", "wait 4m", FREE, .lock = "order/anna", .facts = {
     .lock_holder = {"o-12", 4}, .lock_held_since = -3600000, .lock_others = 1}},
    {REASON_WAIT, "a b~<a", "claim, start a, ok a, begin b, wait 2s", FREE},
    {REASON_ROUND, "a%", "claim, start a, ok a, no a, wait 1s", FREE},
    {REASON_SIGNAL, "a b$<a", "claim, start a, ok a, begin b, wait 2s", FREE},
    {REASON_APPROVAL, "a b*<a", "claim, start a, ok a, begin b, wait 2s, agree b A, wait 4s", FREE},
    {REASON_CHILD, "a b|<a", "claim, start a, ok a, begin b, wait 2s", FREE},
    {REASON_NO_PLACE, "a", "claim, wait 12s", .agent = {.connected = true, .places = 4, .taken = 4,
     .who = {"stock-1 (3), stock-2 (1)", 24}}},
    {REASON_QUEUED, "a", "claim, wait 12s", .agent = {.connected = true, .places = 4, .taken = 4,
     .who = {"stock-1 (4)", 11}, .ahead = 17, .ahead_at_least = true}},
    {REASON_GRACE, "a2", "claim, start a, wait 10s", FREE,
     .facts = {.lost = {-5000, -1000, 10000, 0, 0}}},
    {REASON_STOPPING, "a b", "claim, start a, start b, fail a = stop, wait 3s", FREE},
    {REASON_UNDOING, "a b<a", "claim, start a, ok a, start b, fail b, start a, wait 3s", FREE},
    {REASON_ITEMS, "a{2}", "claim, begin a 5, start a.0, ok a.0, start a.1, wait 3s", FREE},
    {REASON_RUNNING, "a3", "claim, start a, again a, wait 1s, start a, wait 3s", FREE,
     .attempt = {.heartbeat_at = -1200, .message = {"half way", 8},
                 .progress = {"{\"parts\":3}", 11}}},
    {REASON_STARTING, "a", "claim", FREE},
    {REASON_UNDO_AFTER, "a b<a c<b",
     "claim, start a, ok a, start b, ok b, start c, fail c, start b, wait 3s", FREE},
    {REASON_AFTER, "a b c<ab", "claim, start a, start b, wait 1s", FREE},
    {REASON_LATE, "by=15s a! b<a", "claim, start a, ok a, deadline = alert, wait 5s", FREE},
    {REASON_COMPLETE_BY, "by=15s a", "claim, start a, wait 3s", FREE},
    {REASON_MORE, "a b c d", "claim, start a, start b, start c, wait 3s", FREE, .shown_max = 2},
};
/* clang-format on */

/* ---- a task from an example ---- */

struct stage {
    struct kit kit;
    struct example example;
    struct facts facts;
    struct reasons reasons;
    struct why why;
};

static int64_t from(const struct stage *g, int64_t at)
{
    return at < 0 ? g->kit.now + at : at;
}

static void see_agent(void *arg, int step, struct slice name, struct agent_view *ret)
{
    const struct stage *g = arg;
    (void)step;
    (void)name;

    *ret = g->example.agent;
    ret->seen_at = from(g, ret->seen_at);
    ret->held_since = from(g, ret->held_since);
    if (ret->held_until) /* 2 s from now */
        ret->held_until = g->kit.now + 2000;
}

static void see_attempt(void *arg, int step, const struct attempt *a, struct attempt_view *ret)
{
    const struct stage *g = arg;
    (void)step;
    (void)a;

    *ret = g->example.attempt;
    ret->heartbeat_at = from(g, ret->heartbeat_at);
    if (ret->silent_by)
        ret->silent_by += g->kit.now;
}

static void name_all(struct kit *k)
{
    static const char *const names[][2] = {{"reserve", "stock"},
                                           {"charge", "payment"},
                                           {"ship", "shipping"},
                                           {"tell", "mail"}};

    k->t.id = SLICE("o-17");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        k->g.steps[i].name = slice_of(names[i][0]);
        k->g.steps[i].call.agent = k->g.steps[i].undo.agent = slice_of(names[i][1]);
    }
    for (uint16_t u = k->t.step_count; u < task_unit_count(&k->t); u++) {
        const struct workflow_step *ws = &k->g.steps[unit_step(&k->g.w, u)];
        k->g.steps[u].name = ws->name;
        k->g.steps[u].call.agent = k->g.steps[u].undo.agent = ws->call.agent;
    }
}

/* Replaces the kit's errors by those of the agents. */
static void word_errors(struct kit *k)
{
    for (size_t i = 0; i < task_unit_count(&k->t); i++) {
        struct step *s = &k->steps[i];
        for (size_t n = 0; n < s->attempt_count; n++)
            s->attempts[n].instance = SLICE("payment-1");
        if (s->error.code.ptr && !slice_is(s->error.code, "timeout"))
            s->error = (struct fault_note){SLICE("declined"), SLICE("the card is blocked")};
    }
    if (k->t.error.code.ptr && !slice_is(k->t.error.code, "timeout")
        && !slice_is(k->t.error.code, "deadline"))
        k->t.error = (struct fault_note){SLICE("declined"), SLICE("the card is blocked")};
}

/* A task that stopped for a reason that no step shows: impossible, but stored tasks may be odd. */
static void set_up_stopped(struct kit *k)
{
    k->steps[1].state = STEP_SKIPPED;
}

static void stage_make(struct stage *g, const struct example *e)
{
    struct facts *f = &g->facts;

    g->example = *e;
    kit_make(&g->kit, reason_word(e->kind), e->graph);
    g->kit.t.not_before = e->not_before_ms ? g->kit.now + e->not_before_ms : 0;
    kit_play(&g->kit, e->script);
    g->kit.t.lock = slice_of(e->lock);
    name_all(&g->kit);
    word_errors(&g->kit);
    if (e->kind == REASON_STOPPED)
        set_up_stopped(&g->kit);
    g->facts = e->facts;
    f->now = g->kit.now;
    f->scan_ms = 1000;
    f->agent = see_agent;
    f->attempt = see_attempt;
    f->arg = g;
    f->owner_lease_until = from(g, f->owner_lease_until);
    f->lock_held_since = from(g, f->lock_held_since);
    f->store_failed_since = from(g, f->store_failed_since);
    f->lost.from = from(g, f->lost.from);
    f->lost.until = from(g, f->lost.until);
    reasons_find(&g->kit.g.w, &g->kit.t, f, &g->reasons);
    reasons_limit(&g->reasons, e->shown_max ? (size_t)e->shown_max : 50);
    g->why = (struct why){&g->kit.g.w, &g->kit.t, &g->facts, &g->reasons};
}

static const struct reason *stage_reason(const struct stage *g, enum reason_kind kind)
{
    for (size_t i = 0; i < g->reasons.count; i++)
        if (g->reasons.list[i].kind == kind)
            return &g->reasons.list[i];
    return NULL;
}

/* ---- the list ---- */

static void write_times(struct buf *b, const struct stage *g, const struct reason *r)
{
    if (r->since) {
        buf_str(b, "since ");
        duration_tell(b, g->kit.now - r->since);
        buf_str(b, " ago");
    }
    if (r->until) {
        buf_str(b, r->since ? ", until in " : "until in ");
        duration_tell(b, r->until - g->kit.now);
    }
    if (r->since || r->until)
        buf_str(b, "  \n> ");
}

static void write_moves(struct buf *b, const struct slice moves)
{
    bool code = false;

    for (size_t i = 0; i < moves.len; i++) {
        if (moves.ptr[i] != '\n') {
            buf_byte(b, moves.ptr[i]);
            continue;
        }
        buf_str(b, code ? "\n>     " : "\n>\n>     ");
        code = true;
    }
    buf_str(b, "\n");
}

static void write_example(struct buf *b, struct stage *g, const struct example *e)
{
    CLEANUP(buf_fini) struct buf moves = {0};

    stage_make(g, e);
    const struct reason *r = stage_reason(g, e->kind);
    CHECK(r, "%s: it is not so, but %s", reason_word(e->kind),
          reason_word(g->reasons.list[0].kind));
    if (!r)
        return; /* the compiler does not know that CHECK does not return */
    buf_fmt(b, "\n## %s\n\n> ", reason_word(e->kind));
    why_text(b, &g->why, r);
    buf_str(b, "  \n> ");
    write_times(b, g, r);
    why_moves(&moves, &g->why, r);
    CHECK(!strstr(moves.ptr, "/v1/"), "%s: a verb is named, not a route: %s", reason_word(e->kind),
          moves.ptr);
    write_moves(b, buf_view(&moves));
}

static const char *document, *openapi, *texts;

static void read_file(struct buf *ret, const char *path)
{
    FILE *f = fopen(path, "re");

    CHECK(f, "%s: %s", path, strerror(errno));
    for (int c = 0; (c = fgetc(f)) != EOF;)
        buf_byte(ret, (char)c);
    (void)fclose(f);
}

/* Is this what follows LIST_BEGIN in the file? With WHY_WRITE it is written there. */
static void compare(const char *path, const char *list)
{
    CLEANUP(buf_fini) struct buf is = {0};

    read_file(&is, path);
    char *begin = strstr(is.ptr, LIST_BEGIN);
    CHECK(begin, "%s has no line %s", path, LIST_BEGIN);
    if (strcmp(begin, list) == 0)
        return;
    if (!getenv("WHY_WRITE")) {
        size_t n = 0;
        while (begin[n] == list[n])
            n++;
        CHECK(false,
              "%s says something else: \"%.60s\" instead of \"%.60s\"; WHY_WRITE=1 writes it", path,
              begin + n, list + n);
    }
    FILE *f = fopen(path, "we");
    CHECK(f, "%s: %s", path, strerror(errno));
    fprintf(f, "%.*s%s", (int)(begin - is.ptr), is.ptr, list);
    (void)fclose(f);
}

static void the_document_lists_every_kind(void **state)
{
    CLEANUP(buf_fini) struct buf list = {0};
    (void)state;

    buf_str(&list, LIST_BEGIN "\n| kind | when |\n|---|---|\n");
    for (size_t i = 0; i < COUNT_OF(examples); i++)
        buf_fmt(&list, "| `%s` | %s |\n", reason_word(examples[i].kind),
                reason_when(examples[i].kind));
    compare(document, list.ptr);
}

static void every_kind_has_its_words(void **state)
{
    static struct stage stage;
    CLEANUP(buf_fini) struct buf list = {0};
    (void)state;

    buf_str(&list, LIST_BEGIN);
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        CHECK(examples[i].kind == i, "an example of %s is missing",
              reason_word((enum reason_kind)i));
        write_example(&list, &stage, &examples[i]);
    }
    CHECK(COUNT_OF(examples) == REASON_KINDS, "an example is missing");
    compare(texts, list.ptr);
}

static void the_api_names_the_same_kinds(void **state)
{
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf want = {0};
    (void)state;

    read_file(&text, openapi);
    for (enum reason_kind k = 0; k < REASON_KINDS; k++)
        buf_fmt(&want, "            * `%s`: %s\n", reason_word(k), reason_when(k));
    buf_str(&want, "          type: string\n          enum:\n");
    for (enum reason_kind k = 0; k < REASON_KINDS; k++)
        buf_fmt(&want, "            - %s\n", reason_word(k));
    CHECK(strstr(text.ptr, want.ptr), "%s does not list the kinds as they are:\n%s", openapi,
          want.ptr);
}

/* A reason that stops the whole task comes before one of a single step. */
static void what_a_person_can_do_something_about_comes_first(void **state)
{
    static struct stage g;
    static const struct example both = {REASON_NO_AGENT, "by=1m a b c<ab",
                                        "claim, start a, wait 2s", ABSENT};
    static const enum reason_kind want[] = {REASON_NO_AGENT, REASON_RUNNING, REASON_AFTER,
                                            REASON_COMPLETE_BY};
    CLEANUP(buf_fini) struct buf summary = {0};
    (void)state;

    stage_make(&g, &both);
    assert_int_equal(g.reasons.count, COUNT_OF(want));
    for (size_t i = 0; i < COUNT_OF(want); i++)
        assert_int_equal(g.reasons.list[i].kind, want[i]);
    why_summary(&summary, &g.why);
    assert_string_equal(summary.ptr,
                        "Task o-17 is being processed. Step charge is ready, but no instance of "
                        "agent payment is connected. None has connected since this server "
                        "started.");
}

/* Where the queue is another node's, or the store fails, nothing is said about places. */
static void of_what_is_not_known_nothing_is_said(void **state)
{
    static struct stage g;
    static const struct example cases[] = {
        {REASON_ELSEWHERE, "a", "claim, wait 1s", ABSENT,
         .facts = {.owner = OWNER_OTHER, .owner_name = {"n2/4", 4}}},
        {REASON_TAKING_OVER, "a", "claim, wait 1s", ABSENT,
         .facts = {.owner = OWNER_BEFORE_US, .owner_name = {"n1/3", 4}}},
        {REASON_STORE, "a", "claim", FREE,
         .facts = {.store_failed = true, .trouble = {"the disk is full", 16}}},
        {REASON_DRAINING, "a", "claim", FREE, .facts = {.draining = true}},
    };
    (void)state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        stage_make(&g, &cases[i]);
        CHECK(g.reasons.count == 1 && g.reasons.list[0].kind == cases[i].kind, "%s: %zu reasons",
              reason_word(cases[i].kind), g.reasons.count);
    }
}

/* With several nodes, each reports its agents; older nodes do not. */
static void a_node_tells_that_it_is_not_the_only_one(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_NO_AGENT, "a", "wait 1m", ABSENT,
                                     .facts = {.here = {"a", 1},
                                               .others = {"b (http://10.0.0.2:7420), c", 27},
                                               .unknown = {"d", 1}}};
    static const struct example unreached = {REASON_ELSEWHERE, "a", "claim, wait 1m", FREE,
                                             .facts = {.owner = OWNER_OTHER,
                                                       .owner_name = {"n2/4", 4}}};
    CLEANUP(buf_fini) struct buf text = {0};
    CLEANUP(buf_fini) struct buf moves = {0};
    CLEANUP(buf_fini) struct buf ask = {0};
    (void)state;

    stage_make(&g, &e);
    why_text(&text, &g.why, &g.reasons.list[0]);
    assert_string_equal(text.ptr, "Step reserve is ready, but no instance of agent stock is "
                                  "connected to this node, a. None has connected since this "
                                  "server started. Other nodes have no instance either: b "
                                  "(http://10.0.0.2:7420), c. These nodes do not publish their "
                                  "agents: d.");
    why_moves(&moves, &g.why, &g.reasons.list[0]);
    assert_string_equal(moves.ptr, "Start an instance of agent stock. The step starts when the "
                                   "instance asks for work, at any node.");
    stage_make(&g, &unreached);
    why_moves(&ask, &g.why, &g.reasons.list[0]);
    assert_string_equal(ask.ptr, "Ask that node. To find its address:\nintact node list");
}

static void check_texts(const struct example *e, const char *const *want, size_t count)
{
    static struct stage g;
    CLEANUP(buf_fini) struct buf text = {0};

    stage_make(&g, e);
    CHECK(g.reasons.count == count, "%s: %zu reasons", e->script, g.reasons.count);
    for (size_t i = 0; i < count; i++) {
        buf_clear(&text);
        why_text(&text, &g.why, &g.reasons.list[i]);
        assert_string_equal(text.ptr, want[i]);
    }
}

/* One reason tells of all items; another one of the first that needs something. */
static void an_item_is_told_of_by_its_number(void **state)
{
    static const struct example absent = {REASON_NO_AGENT, "a{2}",
                                          "claim, begin a 4, start a.0, ok a.0", ABSENT};
    static const struct example waits = {REASON_BETWEEN, "a2{2}",
                                         "claim, begin a 2, start a.0, start a.1, again a.1", FREE};
    static const struct example failed = {
        REASON_FAILED, "a#{1}", "claim, begin a 2, start a.0, ok a.0, start a.1, fail a.1", FREE};
    static const struct example stuck = {REASON_UNDO_FAILED, "a{1} b#<a",
                                         "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, "
                                         "undo, bring a, start a.1, fail a.1",
                                         FREE};
    static const struct example back = {
        REASON_ITEMS, "a{1} b#<a",
        "claim, begin a 2, start a.0, ok a.0, start a.1, ok a.1, undo, bring a, start a.1", FREE};
    (void)state;

    check_texts(
        &absent,
        (const char *[]){"Step reserve.1 is ready, but no instance of agent stock is "
                         "connected. None has connected since this server started.",
                         "Step reserve works through a list: 1 of 4 items have ended, 0 are "
                         "running, and 3 have not begun."},
        2);
    check_texts(
        &waits,
        (const char *[]){"Step reserve.1 failed (declined: the card is blocked) and waits for "
                         "its next attempt, 2 of 2.",
                         "Step reserve works through a list: 0 of 2 items have ended, 1 is "
                         "running, and 0 have not begun."},
        2);
    check_texts(&failed,
                (const char *[]){
                    "Step reserve.1 failed for good after 1 attempt: declined: the card is "
                    "blocked."},
                1);
    check_texts(&stuck,
                (const char *[]){
                    "The compensation of step reserve.1 failed for good after 1 attempt: "
                    "declined: the card is blocked."},
                1);
    check_texts(&back,
                (const char *[]){
                    "The compensation of step reserve goes through its items, the last "
                    "first: 2 of 2 are still to be undone, 1 is running."},
                1);
}

static void an_item_is_repaired_by_its_number(void **state)
{
    static struct stage g;
    static const struct example failed = {
        REASON_FAILED, "a#{1}", "claim, begin a 2, start a.0, ok a.0, start a.1, fail a.1", FREE};
    CLEANUP(buf_fini) struct buf moves = {0};
    (void)state;

    stage_make(&g, &failed);
    why_moves(&moves, &g.why, &g.reasons.list[0]);
    CHECK(strstr(moves.ptr, "\nintact retry o-17 --step reserve.1 --reason"), "%s", moves.ptr);
    CHECK(strstr(moves.ptr, "\nintact skip o-17 --step reserve.1 --reason"), "%s", moves.ptr);
}

/* A wait begins with the operator's act that caused it. */
static void acts_are_where_waits_begin(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_NO_AGENT, "a b# c<b",
                                     "claim, start b, fail b, wait 1m, skip b, wait 5s", ABSENT};
    const struct intervention acts[] = {{KIT_BEGIN + 60000, 1}};
    (void)state;

    stage_make(&g, &e);
    g.facts.acts = acts;
    g.facts.act_count = 1;
    reasons_find(&g.kit.g.w, &g.kit.t, &g.facts, &g.reasons);
    for (size_t i = 0; i < g.reasons.count; i++) {
        const struct reason *r = &g.reasons.list[i];
        CHECK(r->kind == REASON_NO_AGENT, "%s", reason_word(r->kind));
        assert_int_equal(r->since, r->step == 2 ? KIT_BEGIN + 60000 : KIT_BEGIN);
    }
    assert_int_equal(g.reasons.count, 2);
}

/* A retry after the task's complete-by does not happen. */
static void a_complete_by_before_the_next_try_is_told(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_DEFERRED, "by=30s defers=3 a",
                                     "claim, start a, again a", FREE};
    CLEANUP(buf_fini) struct buf moves = {0};
    (void)state;

    stage_make(&g, &e);
    const struct reason *r = stage_reason(&g, REASON_DEFERRED);
    CHECK(r && r->capped, "it is not capped");
    why_moves(&moves, &g.why, r);
    CHECK(strncmp(moves.ptr, "The task's complete-by comes before that. Then the task is undone. ",
                  67)
              == 0,
          "%s", moves.ptr);
}

/* Found by the simulator: the text was that of a step. */
static void the_complete_by_of_a_task_may_be_put_off(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_GRACE, "by=15s a b<a", "claim, start a, ok a, wait 16s",
                                     FREE, .facts = {.lost = {-5000, -500, 10000, 0, 0}}};
    CLEANUP(buf_fini) struct buf words = {0};
    (void)state;

    stage_make(&g, &e);
    const struct reason *r = stage_reason(&g, REASON_GRACE);
    CHECK(r && r->step < 0 && r->until == g.kit.now + 9500, "no grace");
    why_text(&words, &g.why, r);
    assert_string_equal(words.ptr, "The task's complete-by passed while the server was down, and "
                                   "was extended.");
    buf_clear(&words);
    why_moves(&words, &g.why, r);
    assert_string_equal(words.ptr, "If the task has not ended by then, the task is undone.");
}

/* Until its next heartbeat or its complete-by, whichever comes first. */
static void a_silence_that_is_too_long_is_told_before_it_is(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_RUNNING, "beat=4s a", "claim, start a, wait 3s", FREE,
                                     .attempt = {.heartbeat_at = -1000, .silent_by = 3000}};
    CLEANUP(buf_fini) struct buf words = {0};
    (void)state;

    stage_make(&g, &e);
    const struct reason *r = stage_reason(&g, REASON_RUNNING);
    CHECK(r && r->until == g.kit.now + 3000 && r->complete_by == g.kit.now + 7000, "until");
    why_moves(&words, &g.why, r);
    assert_string_equal(
        words.ptr,
        "The task waits for the agent's result. If neither it nor a heartbeat arrives by "
        "then, the attempt is ended, and the task is undone. Its complete-by is in 7.0s.");
}

static void what_is_elsewhere_is_ended_by_its_token(void **state)
{
    static struct stage g;
    static const struct example e = {REASON_RUNNING, "a2", "claim, start a, away a, wait 3s", FREE};
    CLEANUP(buf_fini) struct buf words = {0};
    (void)state;

    stage_make(&g, &e);
    const struct reason *r = stage_reason(&g, REASON_RUNNING);
    CHECK(r && r->until == g.kit.now + 7000, "until");
    why_text(&words, &g.why, r);
    assert_string_equal(words.ptr, "Step reserve waits for a result from elsewhere: instance "
                                   "payment-1 of agent stock has finished its part, attempt 1.");
    buf_clear(&words);
    why_moves(&words, &g.why, r);
    assert_string_equal(
        words.ptr, "The task waits for a result sent with the attempt's token. If none arrives by "
                   "then, the attempt is ended, and the step is retried.");
}

/* An agent's error text is shown on one line and shortened. */
static void words_of_agents_are_kept_short(void **state)
{
    static struct stage g;
    static char words[1000];
    static const struct example e = {REASON_FAILED, "a#", "claim, start a, fail a", FREE};
    CLEANUP(buf_fini) struct buf text = {0};
    (void)state;

    memset(words, '\n', sizeof words);
    stage_make(&g, &e);
    g.kit.steps[0].error.message = (struct slice){words, sizeof words};
    why_text(&text, &g.why, &g.reasons.list[0]);
    assert_true(text.len < 400);
    assert_null(strchr(text.ptr, '\n'));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_lists_every_kind),
        cmocka_unit_test(every_kind_has_its_words),
        cmocka_unit_test(the_api_names_the_same_kinds),
        cmocka_unit_test(what_a_person_can_do_something_about_comes_first),
        cmocka_unit_test(of_what_is_not_known_nothing_is_said),
        cmocka_unit_test(a_node_tells_that_it_is_not_the_only_one),
        cmocka_unit_test(an_item_is_told_of_by_its_number),
        cmocka_unit_test(an_item_is_repaired_by_its_number),
        cmocka_unit_test(acts_are_where_waits_begin),
        cmocka_unit_test(a_complete_by_before_the_next_try_is_told),
        cmocka_unit_test(the_complete_by_of_a_task_may_be_put_off),
        cmocka_unit_test(a_silence_that_is_too_long_is_told_before_it_is),
        cmocka_unit_test(what_is_elsewhere_is_ended_by_its_token),
        cmocka_unit_test(words_of_agents_are_kept_short),
    };
    if (argc != 4) {
        fputs("usage: why_test docs/why.md docs/openapi.yaml why_texts.md\n", stderr);
        return 2;
    }
    document = argv[1];
    openapi = argv[2];
    texts = argv[3];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
