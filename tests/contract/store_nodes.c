/* The contract of every store for nodes and boots: takeovers, leases, fences, and what nodes see
 * of each other. Each test names one promise and runs on all stores (store_world.h). */

#include "base/uuid.h"
#include "store_world.h"

#include "base/buf.h"
#include <time.h>

static void insert_owned(struct world *w, const char *id, const char *owner)
{
    struct task_row row = a_row(id);

    row.state = TASK_COMPENSATING;
    row.direction = DIRECTION_UNDO;
    row.locked_by = slice_of(owner);
    row.started_at = 3;
    must(insert_row(w, row), id);
}

static void what_older_boots_held_is_taken_over_as_it_is(void **state)
{
    struct world *w = *state;

    while (w->s->ops->boot(w->s) < 10)
        world_restart(w);
    insert_owned(w, "of-9", "n1/9");
    insert_owned(w, "of-us", "n1/10");
    insert_owned(w, "of-2", "n1/2");
    insert_owned(w, "of-1", "n1/1");
    insert_owned(w, "newer", "n1/100");
    insert_owned(w, "neighbour", "n2/1");
    insert_owned(w, "alike", "n11/1");
    insert_ranked(w, "nobody's", "a", 1);

    struct claim c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-1", "of-2"}, 2, true);
    CHECK(c.rows[0].state == TASK_COMPENSATING && c.rows[0].started_at == 3, "as they are");
    CHECK(c.rows[0].revision == 2 && !c.rows[0].waiting_for.ptr, "but ours");
    struct task_row seen = fetch(w, "of-1");
    rows_equal(&seen, &c.rows[0], "the same in the store");
    c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-9"}, 1, false);
    c = claim_of(w, CLAIM_BOOT, NULL, 2, 777);
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    CHECK(fetch(w, "of-us").revision == 1, "ours were left alone");
}

/* --- fence and lease --- */

/* By the store's clock, or by the one that the test keeps for it. */
static int64_t now_of(struct world *w)
{
    return w->s->ops->now ? w->s->ops->now(w->s) : w->now;
}

static struct lease try_lease(struct world *w, const char *name, const char *holder,
                              int64_t length_ms)
{
    const struct lease_try want = {.name = slice_of(name),
                                   .holder = slice_of(holder),
                                   .now = now_of(w),
                                   .length_ms = length_ms};
    struct lease l;

    must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
    return l;
}

/* Until a lease that ends then has run out. What the store says of its clock may be off a little.
 */
static void wait_until(struct world *w, int64_t until)
{
    const struct timespec nap = {.tv_nsec = 1000000};

    w->now = max_i64(w->now, until);
    while (now_of(w) < until + (w->s->ops->now ? 100 : 0))
        (void)nanosleep(&nap, NULL);
}

static void a_batch_of_a_deposed_leader_does_nothing(void **state)
{
    struct world *w = *state;
    struct lease l;

    w->now = 100;
    l = try_lease(w, "supervisor", "n1/1", 100);
    CHECK(slice_is(l.holder, "n1/1") && l.epoch > 0, "taken");
    CHECK(w->s->ops->now || l.until == 200, "%" PRId64, l.until);
    struct fence fence = {SLICE("supervisor"), l.epoch};
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("x")};
    struct claim claim = claim_of(w, CLAIM_AGENT, "a", 1, 5);
    struct batch b = {
        .changes = &c, .change_count = 1, .claims = &claim, .claim_count = 1, .fence = &fence};

    fence.epoch++;
    CHECK(w->s->ops->commit(w->s, &b, &w->a, &w->e) == ERR_CONFLICT, "another epoch");
    CHECK(c.outcome == ERR_CONFLICT && claim.row_count == 0, "as a whole");
    CHECK(!exists(w, "x"), "nothing was stored");
    fence.epoch--;
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "its own epoch");
    CHECK(c.outcome == ERR_OK && claim.row_count == 1, "done");
}

static void a_lease_is_renewed_by_its_holder(void **state)
{
    struct world *w = *state;

    struct lease l = try_lease(w, "l", "n1/1", 30000);
    wait_until(w, now_of(w) + 50);
    struct lease again = try_lease(w, "l", "n1/1", 30000);
    CHECK(again.epoch == l.epoch && again.until > l.until, "the same epoch, and longer");
    if (!w->s->shared)
        return; /* a lock excludes everybody else */
    l = try_lease(w, "l", "n2/1", 100);
    CHECK(slice_is(l.holder, "n1/1") && l.until == again.until && l.epoch == again.epoch, "theirs");
    again = try_lease(w, "l", "n1/1", 1);
    CHECK(again.until < l.until, "it may become shorter");
    wait_until(w, again.until);
    l = try_lease(w, "l", "n2/1", 30000);
    CHECK(slice_is(l.holder, "n2/1") && l.epoch == again.epoch + 1, "another epoch");
    again = try_lease(w, "l", "n1/1", 30000);
    CHECK(slice_is(again.holder, "n2/1") && again.epoch == l.epoch, "too late");
    again = try_lease(w, "l", "n1/1", 0);
    CHECK(slice_is(again.holder, "n2/1") && again.until == l.until, "only a holder gives it up");
    (void)try_lease(w, "l", "n2/1", 0);
    again = try_lease(w, "l", "n1/1", 30000);
    CHECK(slice_is(again.holder, "n1/1") && again.epoch == l.epoch + 1, "it was given up");
    l = try_lease(w, "other", "n2/1", 30000);
    CHECK(slice_is(l.holder, "n2/1"), "leases have nothing to do with each other");
}

static void a_lease_lasts_for_its_length_by_the_stores_clock(void **state)
{
    struct world *w = *state;

    w->now = 1000;
    int64_t before = now_of(w);
    struct lease l = try_lease(w, "l", "n1/1", 20000);
    /* whatever a round trip may take on a busy machine: less than the length, and than an hour */
    CHECK(l.until >= before + 20000 - 1000 && l.until < before + 3600000, "%" PRId64,
          l.until - before);
}

static void who_is_wrong_about_the_time_cannot_steal_a_lease(void **state)
{
    struct world *w = *state;
    struct lease_try want = {.name = SLICE("l"), .holder = SLICE("n2/1"), .length_ms = 30000};
    struct lease l;

    if (!w->s->ops->now)
        return; /* it has no other clock than theirs */
    l = try_lease(w, "l", "n1/1", 30000);
    for (unsigned i = 0; i < 2; i++) {
        want.now = i ? 0 : l.until + 3600000;
        must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
        CHECK(slice_is(l.holder, "n1/1"), "%u", i);
    }
    want.holder = SLICE("n1/1"); /* nor keep one for longer than it may be */
    want.now = l.until + 3600000;
    must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
    CHECK(l.until < want.now, "%" PRId64, l.until);
}

static void a_lease_from_a_wrong_clock_has_run_out(void **state)
{
    struct world *w = *state;

    if (!w->s->shared)
        return;
    w->now = 3600000;
    struct lease l = try_lease(w, "l", "n1/1", LEASE_MAX_MS);
    w->now = 0; /* the clock was set right */
    if (w->s->ops->now)
        postgres_do(w, "UPDATE lease SET until = until + 3600000");
    struct lease taken = try_lease(w, "l", "n2/1", 1000);
    CHECK(slice_is(taken.holder, "n2/1") && taken.epoch == l.epoch + 1, "nobody waits for it");
}

static void the_stores_clock_goes_on(void **state)
{
    struct world *w = *state;

    if (!w->s->ops->now) {
        CHECK(!w->postgres, "the nodes of a database have to agree on one");
        return;
    }
    int64_t last = now_of(w);
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* the database is on this machine */
    CHECK(last > ((int64_t)ts.tv_sec - 60) * 1000 && last < ((int64_t)ts.tv_sec + 60) * 1000,
          "%" PRId64, last);
    for (unsigned i = 0; i < 100; i++) {
        (void)try_lease(w, "l", "n1/1", 1000);
        CHECK(now_of(w) >= last, "never backwards");
        last = now_of(w);
    }
    wait_until(w, last + 20);
}

/* ---- what others stored ---- */

static struct generations generations_of(struct world *w)
{
    struct generations told = try_lease(w, "l", "n1/1", 1000).generations;
    struct generations read = told;

    if (w->s->ops->nodes)
        must(w->s->ops->nodes->generations(w->s, &read, &w->e), "generations");
    CHECK(told.workflows == read.workflows, "workflows");
    CHECK(told.tokens == read.tokens, "tokens");
    CHECK(told.agents == read.agents, "agents");
    return told;
}

static void store_workflow(struct world *w, const char *name, const char *text)
{
    int64_t version = 0;
    bool is_new = false;

    must(w->s->ops->workflow_put(w->s, slice_of(name), slice_of(text), 1, NULL, &version, &is_new,
                                 &w->e),
         name);
}

/* "name version text" of what came after that generation; the one up to which that is all. */
static uint64_t workflows_since(struct world *w, uint64_t after, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct workflow_row *rows = NULL;
    uint64_t generation = 0;
    size_t count = 0;

    must(w->s->ops->nodes->workflow_since(w->s, after, &w->a, &rows, &count, &generation, &w->e),
         "since");
    for (size_t i = 0; i < count; i++)
        buf_fmt(&b, "%.*s %" PRId64 " %.*s\n", SLICE_ARG(rows[i].name), rows[i].version,
                SLICE_ARG(rows[i].text));
    CHECK(slice_is(buf_view(&b), want), "after %" PRIu64 " came\n%s", after, b.ptr ? b.ptr : "-");
    return generation;
}

static void what_others_stored_is_noticed_with_the_lease(void **state)
{
    struct world *w = *state;
    struct token_row t = {.name = SLICE("ann"), .roles = SLICE("[\"admin\"]"), .admin = true};

    if (!w->s->shared) {
        struct generations g = generations_of(w);
        CHECK(g.workflows == 0 && g.tokens == 0 && g.agents == 0, "nobody else stores anything");
        CHECK(!w->s->ops->nodes, "nor is there anything to be read or counted");
        return;
    }
    CHECK(workflows_since(w, 0, "") == 0, "nothing was stored yet");
    struct generations none = generations_of(w);
    store_workflow(w, "b", "B");
    store_workflow(w, "a", "A");
    struct generations two = generations_of(w);
    CHECK(two.workflows > none.workflows && two.tokens == none.tokens, "two definitions");
    CHECK(workflows_since(w, two.workflows, "") == two.workflows, "all is known");
    store_workflow(w, "b", "BB");
    struct generations three = generations_of(w);
    CHECK(three.workflows > two.workflows, "one more");
    CHECK(workflows_since(w, two.workflows, "b 2 BB\n") == three.workflows, "and no other");
    store_workflow(w, "b", "BB");
    CHECK(workflows_since(w, three.workflows, "") == generations_of(w).workflows, "the same again");

    must(w->s->ops->token_put(w->s, &t, false, NULL, &w->e), "token");
    struct generations put = generations_of(w);
    CHECK(put.tokens > two.tokens, "a token");
    t.name = SLICE("eve");
    t.hash[0] = 1;
    must(w->s->ops->token_put(w->s, &t, false, NULL, &w->e), "token");
    must(w->s->ops->token_delete(w->s, SLICE("eve"), 1, NULL, &w->e), "deleted");
    CHECK(generations_of(w).tokens > put.tokens + 1, "two changes");
    const struct agent_change c = {.name = SLICE("bank"), .text = SLICE("{}")};
    CHECK(generations_of(w).agents == 0, "no agent yet");
    must(w->s->ops->agent_put(w->s, &c, NULL, &w->e), "agent");
    must(w->s->ops->agent_put(w->s, &c, NULL, &w->e), "agent");
    CHECK(generations_of(w).agents == 2, "two changes of agents");
    world_restart(w);
    CHECK(generations_of(w).tokens > put.tokens + 1, "and they stay so");
    CHECK(generations_of(w).agents == 2, "and they stay so");
}

static void many_tasks_are_seen_at_a_glance(void **state)
{
    struct world *w = *state;
    struct slice ids[] = {SLICE("b"), SLICE("none"), SLICE("a"), SLICE("b"), {"\xff\0x", 3}};
    struct glance g[COUNT_OF(ids)];
    struct task_row row = a_row("b");

    must(insert_row(w, a_row("a")), "a");
    must(insert_row(w, row), "b");
    row.revision = 2;
    row.state = TASK_COMPENSATED;
    row.ended_at = 9;
    must(update_row(w, row), "b has ended");
    memset(g, 77, sizeof g);
    must(w->s->ops->glance(w->s, ids, COUNT_OF(ids), &w->a, g, &w->e), "glance");
    CHECK(g[0].revision == 2 && g[0].state == TASK_COMPENSATED, "b");
    CHECK(g[1].revision == 0, "there is none");
    CHECK(g[2].revision == 1 && g[2].state == TASK_PENDING, "a");
    CHECK(g[3].revision == 2 && g[3].state == TASK_COMPENSATED, "b again");
    CHECK(g[4].revision == 0, "no task can be called so");
    must(w->s->ops->glance(w->s, NULL, 0, &w->a, NULL, &w->e), "at nothing");
}

static void many_tasks_are_read_at_once(void **state)
{
    enum { MANY = 150 };
    struct world *w = *state;
    struct reading *r = NULL;
    char id[8];

    if (!w->s->ops->get_many)
        return;
    must(insert_row(w, a_row("a")), "a");
    must(insert_row(w, a_row("b")), "b");
    r = arena_alloc(&w->a, MANY * sizeof *r);
    memset(r, 77, MANY * sizeof *r);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(id, sizeof id, "t%zu", i);
        must(insert_row(w, a_row(id)), id);
        r[i].id = arena_copy(&w->a, slice_of(id));
    }
    r[3].id = SLICE("none");
    r[4].id = (struct slice){"\xff\0x", 3};
    r[5].id = r[6].id;
    must(w->s->ops->get_many(w->s, r, MANY, &w->a, &w->e), "many");
    for (size_t i = 0; i < MANY; i++) {
        bool none = i == 3 || i == 4;
        CHECK(r[i].err == (none ? ERR_NOT_FOUND : ERR_OK), "%zu: %s", i, err_text(r[i].err));
        CHECK(none || slice_eq(r[i].row.id, r[i].id), "%zu is another", i);
        CHECK(none || (r[i].row.doc.len > 0 && r[i].row.revision == 1), "%zu is whole", i);
    }
    must(w->s->ops->get_many(w->s, r, 0, &w->a, &w->e), "none");
}

static void a_lease_can_be_seized(void **state)
{
    struct world *w = *state;
    struct lease l = try_lease(w, "node/n1", "n1/1", 30000);
    struct lease_try want = {.name = SLICE("node/n1"),
                             .holder = SLICE("n1/2"),
                             .now = now_of(w),
                             .length_ms = 30000,
                             .seize = true};
    struct lease seized;

    must(w->s->ops->lease(w->s, &want, &w->a, &seized, &w->e), "seize");
    CHECK(slice_is(seized.holder, "n1/2"), "it is the newer boot's");
    CHECK(!w->s->shared || seized.epoch == l.epoch + 1, "under another epoch");
}

static void tasks_of_a_node_without_lease_are_claimed(void **state)
{
    struct world *w = *state;

    insert_owned(w, "of-us", "n1/10");
    insert_owned(w, "of-the-living", "n2/3");
    insert_owned(w, "of-its-older-boot", "n2/2");
    insert_owned(w, "of-the-late", "n3/1");
    insert_owned(w, "of-the-unknown", "n4/1");
    insert_ranked(w, "nobody's", "a", 1);
    (void)try_lease(w, "node/n2", "n2/3", 30000);
    wait_until(w, try_lease(w, "node/n3", "n3/1", 1).until);
    while (w->s->ops->boot(w->s) < 10)
        world_restart(w);
    struct claim c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    if (!w->s->shared) {
        claimed(&c, NULL, 0, false);
        return;
    }
    claimed(&c, (const char *const[]){"of-its-older-boot", "of-the-late"}, 2, true);
    CHECK(c.rows[0].state == TASK_COMPENSATING && c.rows[0].started_at == 3, "as they are");
    CHECK(c.rows[0].revision == 2 && slice_is(c.rows[0].locked_by, "n1/10"), "but ours");
    c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-the-unknown"}, 1, false);
    c = claim_of(w, CLAIM_NODE, NULL, 2, w->s->ops->now ? INT64_C(1) << 50 : now_of(w));
    claim_commit(w, &c);
    claimed(&c, NULL, 0, false);
    (void)try_lease(w, "node/n2", "n2/3", 0);
    c = claim_of(w, CLAIM_NODE, NULL, 2, now_of(w));
    claim_commit(w, &c);
    claimed(&c, (const char *const[]){"of-the-living"}, 1, false);
}

static void requests_of_others_are_found(void **state)
{
    struct world *w = *state;
    struct row_page page;

    insert_owned(w, "x", "n1/1");
    insert_owned(w, "quiet", "n1/1");
    insert_owned(w, "theirs", "n2/1");
    for (size_t i = 0; i < 2; i++) {
        struct task_row row = fetch(w, i ? "theirs" : "x");
        row.revision++;
        row.request = SLICE("[]");
        must(put_change(w, (struct change){.kind = CHANGE_REQUEST, .row = row}), "request");
    }
    must(w->s->ops->requested(w->s, SLICE("n1/1"), 0, 9, &w->a, &page, &w->e), "requested");
    CHECK(page.count == w->s->shared && !page.more, "%zu", page.count);
    if (page.count) {
        int64_t seq = page.rows[0].seq;
        CHECK(slice_is(page.rows[0].id, "x") && slice_is(page.rows[0].request, "[]"), "it");
        must(w->s->ops->requested(w->s, SLICE("n1/1"), seq, 9, &w->a, &page, &w->e), "requested");
        CHECK(page.count == 0, "nothing is behind it");
    }
}

static void every_start_has_its_number(void **state)
{
    struct world *w = *state;
    unsigned char secret[32];
    char installation[UUID_SIZE];
    char same[UUID_SIZE];

    CHECK(uuid_read(slice_of(w->s->ops->installation(w->s)), installation), "a UUID");
    memcpy(secret, w->s->ops->secret(w->s), sizeof secret);
    for (uint64_t boot = 1; boot < 5; boot++) {
        CHECK(w->s->ops->boot(w->s) == boot, "boot %" PRIu64, boot);
        CHECK(memcmp(secret, w->s->ops->secret(w->s), sizeof secret) == 0, "one secret for all");
        CHECK(uuid_read(slice_of(w->s->ops->installation(w->s)), same)
                  && strcmp(same, installation) == 0,
              "one installation for all: %s, then %s", installation, same);
        world_restart(w);
    }
}

static struct node_row node_of(struct world *w, uint64_t boot, int64_t started_at)
{
    (void)w;
    return (struct node_row){.name = SLICE("n1"),
                             .boot = boot,
                             .url = SLICE("http://one:1"),
                             .roles = NODE_SUPERVISOR,
                             .version = SLICE("1.2.3"),
                             .agents = SLICE("[\"bank\"]"),
                             .grammar = 7,
                             .started_at = started_at};
}

static size_t nodes_at(struct world *w, int64_t now, struct node_row **ret)
{
    size_t count = 0;

    must(w->s->ops->nodes->list(w->s, now, &w->a, ret, &count, &w->e), "list");
    return count;
}

static void nodes_are_listed_with_what_their_leases_tell(void **state)
{
    struct world *w = *state;
    const int64_t t = now_of(w) + 100 * NODE_FORGOTTEN_MS; /* by no clock, but one that is ahead */
    struct node_row *rows = NULL;
    struct node_row row = node_of(w, 1, t);

    CHECK(!w->s->shared == !w->s->ops->nodes, "where a lock excludes others, none is listed");
    if (!w->s->shared)
        return;
    must(w->s->ops->nodes->put(w->s, &row, &w->e), "put");
    CHECK(nodes_at(w, t, &rows) == 1, "it says that it is there");
    CHECK(slice_is(rows[0].name, "n1") && rows[0].boot == 1, "who it is");
    CHECK(slice_is(rows[0].url, "http://one:1") && slice_is(rows[0].version, "1.2.3"), "its texts");
    CHECK(slice_is(rows[0].agents, "[\"bank\"]"), "its agents");
    CHECK(rows[0].grammar == 7, "its grammar");
    CHECK(rows[0].roles == NODE_SUPERVISOR && rows[0].started_at == t, "the rest of it");
    CHECK(!rows[0].lease_until && !rows[0].alive && !rows[0].leads && !rows[0].draining,
          "no lease");
    row.started_at = 0;
    must(w->s->ops->nodes->put(w->s, &row, &w->e), "put with its leases");
    int64_t led = try_lease(w, "supervisor", "n1/1", 20000).until;
    int64_t until = try_lease(w, "node/n1", "n1/1", 50000).until;
    CHECK(nodes_at(w, led - 1, &rows) == 1 && rows[0].alive && rows[0].leads, "both leases");
    CHECK(rows[0].lease_until == until, "until %" PRId64, rows[0].lease_until);
    CHECK(nodes_at(w, led, &rows) == 1 && rows[0].alive && !rows[0].leads, "it led");
    CHECK(nodes_at(w, until, &rows) == 1 && !rows[0].alive, "it lived");
    row.draining = true;
    row.url = row.agents = SLICE_NONE;
    must(w->s->ops->nodes->put(w->s, &row, &w->e), "put again");
    CHECK(nodes_at(w, until, &rows) == 1 && rows[0].draining && !rows[0].url.ptr, "as said last");
    CHECK(!rows[0].agents.ptr, "it says nothing of its agents");
    CHECK(nodes_at(w, until - 1 + NODE_FORGOTTEN_MS, &rows) == 1, "still remembered");
    CHECK(nodes_at(w, until + NODE_FORGOTTEN_MS, &rows) == 0, "forgotten");
}

static void an_older_boot_says_nothing_of_a_node(void **state)
{
    struct world *w = *state;
    struct node_row *rows = NULL;
    struct node_row row = node_of(w, 2, 1000);

    if (!w->s->shared)
        return;
    world_restart(w);
    must(w->s->ops->nodes->put(w->s, &row, &w->e), "put");
    row = node_of(w, 1, 900);
    row.draining = true;
    must(w->s->ops->nodes->put(w->s, &row, &w->e), "put by the older boot");
    CHECK(nodes_at(w, 1000, &rows) == 1, "one node");
    CHECK(rows[0].boot == 2 && !rows[0].draining && rows[0].started_at == 1000, "the newer one");
}

/* ---- looking around ---- */

static struct survey survey_of(struct world *w, const struct slice *agents, size_t count)
{
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .leads = true,
                       .now = 100,
                       .length_ms = 1000,
                       .agents = agents,
                       .agent_count = count};

    must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
    return v;
}

static void a_survey_of_nothing_is_leases_alone(void **state)
{
    struct world *w = *state;

    CHECK(!w->s->shared == !w->s->ops->nodes, "where a lock excludes others, there is none");
    if (!w->s->shared)
        return;
    struct survey v = survey_of(w, NULL, 0);
    CHECK(slice_is(v.own.holder, "n1/1") && slice_is(v.lead.holder, "n1/1"), "both are ours");
    CHECK(v.own.until > 0 && v.lead.epoch > 0, "until, epoch");
    CHECK(!v.requested && !v.orphans && !v.due_at && !v.wake_at, "nothing to do");
    struct survey again = survey_of(w, NULL, 0);
    CHECK(again.own.epoch == v.own.epoch && again.lead.epoch == v.lead.epoch, "renewed");
    const struct lease_try theirs = {.name = SLICE("supervisor"),
                                     .holder = SLICE("n2/1"),
                                     .now = 100,
                                     .length_ms = 1000,
                                     .seize = true};
    const struct lease_try older = {.name = SLICE("node/n1"),
                                    .holder = SLICE("n1/0"),
                                    .now = 100,
                                    .length_ms = 1000,
                                    .seize = true};
    struct lease l;
    must(w->s->ops->lease(w->s, &theirs, &w->a, &l, &w->e), "seize");
    must(w->s->ops->lease(w->s, &older, &w->a, &l, &w->e), "seize");
    v = survey_of(w, NULL, 0);
    CHECK(slice_is(v.lead.holder, "n2/1") && v.lead.epoch == again.lead.epoch + 1, "they lead");
    CHECK(slice_is(v.own.holder, "n1/0"), "nothing is seized");
}

static void a_survey_sees_what_others_left_to_do(void **state)
{
    const struct slice agents[] = {SLICE("b"), SLICE("a"), SLICE("none"), SLICE("time")};
    struct world *w = *state;

    if (!w->s->shared)
        return;
    insert_ranked(w, "later", "time", 900);
    insert_ranked(w, "sooner", "time", 500);
    insert_ranked(w, "for-a", "a", 7);
    struct task_row row = a_row("wakes");
    row.waiting_for = SLICE("c");
    row.wake_at = 444;
    must(insert_row(w, row), "insert");
    insert_owned(w, "ours", "n1/1");
    struct survey v = survey_of(w, agents, COUNT_OF(agents));
    CHECK(!v.waiting[0] && v.waiting[1] && !v.waiting[2] && v.waiting[3], "who is waited for");
    CHECK(v.due_at == 500 && v.wake_at == 444, "%" PRId64 " %" PRId64, v.due_at, v.wake_at);
    CHECK(!v.requested && !v.orphans, "ours is ours");
    row = fetch(w, "ours");
    row.revision++;
    row.request = SLICE("[]");
    must(put_change(w, (struct change){.kind = CHANGE_REQUEST, .row = row}), "request");
    insert_owned(w, "orphan", "n3/1");
    v = survey_of(w, agents, COUNT_OF(agents));
    CHECK(v.requested && v.orphans, "of us, of nobody");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_older_boots_held_is_taken_over_as_it_is),
        ON_ALL(a_batch_of_a_deposed_leader_does_nothing),
        ON_ALL(a_lease_is_renewed_by_its_holder),
        ON_ALL(a_lease_lasts_for_its_length_by_the_stores_clock),
        ON_ALL(who_is_wrong_about_the_time_cannot_steal_a_lease),
        ON_ALL(a_lease_from_a_wrong_clock_has_run_out),
        ON_ALL(the_stores_clock_goes_on),
        ON_ALL(a_lease_can_be_seized),
        ON_ALL(what_others_stored_is_noticed_with_the_lease),
        ON_ALL(many_tasks_are_seen_at_a_glance),
        ON_ALL(many_tasks_are_read_at_once),
        ON_ALL(tasks_of_a_node_without_lease_are_claimed),
        ON_ALL(requests_of_others_are_found),
        ON_ALL(every_start_has_its_number),
        ON_ALL(nodes_are_listed_with_what_their_leases_tell),
        ON_ALL(an_older_boot_says_nothing_of_a_node),
        ON_ALL(a_survey_of_nothing_is_leases_alone),
        ON_ALL(a_survey_sees_what_others_left_to_do),
    };
    return cmocka_run_group_tests_name("store nodes", tests, NULL, NULL);
}
