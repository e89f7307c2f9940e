/* The contract of every store for families: what a change tells other tasks, and its new children,
 * are inserted with it or not at all. Each test names one promise and runs on all stores
 * (store_world.h). */

#include "contract/store_world.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "postgres/bouncer.h"
#include "store/postgres/body.h"

static struct notice_row a_tell(const char *task, const char *body)
{
    return (struct notice_row){.task = slice_of(task),
                               .sender = SLICE("one"),
                               .kind = NOTICE_CHILD,
                               .at = 7,
                               .body = slice_of(body)};
}

static struct submission_row a_child(const char *id)
{
    return (struct submission_row){.source = CHILD_SOURCE,
                                   .key = slice_of(id),
                                   .id = slice_of(id),
                                   .workflow = SLICE("w"),
                                   .input = SLICE("{\"a\":1}"),
                                   .child = SLICE("{\"parent\":\"one\"}"),
                                   .submitted_at = 5000};
}

/* A change that tells two tasks, and has a child. */
struct speech {
    struct notice_row tells[2];
    struct submission_row children[1];
};

static void let_speak(struct change *c, struct speech *s, const char *body, const char *child)
{
    s->tells[0] = a_tell("root", body);
    s->tells[1] = a_tell("other", body);
    s->children[0] = a_child(child);
    c->tells = s->tells;
    c->tell_count = 2;
    c->children = s->children;
    c->child_count = 1;
}

static struct change update_of(const char *id, uint64_t revision)
{
    struct change c = {.kind = CHANGE_UPDATE, .row = a_row(id)};

    c.row.revision = revision;
    return c;
}

static enum err speak(struct world *w, struct change c, const char *body, const char *child)
{
    struct speech s;

    let_speak(&c, &s, body, child);
    return put_change(w, c);
}

/* A notice as ">TASK:BODY", a submission as "+ID", each in the order of their numbers. */
static void said(struct world *w, struct buf *b)
{
    struct notice_read n = {.limit = 9999};
    struct submission_take t = {.limit = 9999};

    must(w->s->ops->notices->read(w->s, &n, &w->a, &w->e), "read");
    for (size_t i = 0; i < n.count; i++)
        buf_fmt(b, " >%.*s:%.*s", SLICE_ARG(n.rows[i].task), SLICE_ARG(n.rows[i].body));
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    for (size_t i = 0; i < t.count; i++)
        buf_fmt(b, " +%.*s", SLICE_ARG(t.rows[i].id));
}

static void stand(struct world *w, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};

    said(w, &b);
    CHECK(strcmp(b.ptr ? b.ptr : "", want) == 0, "there are:%s, expected:%s", b.ptr, want);
}

static void what_a_change_says_is_there_with_it(void **state)
{
    struct world *w = *state;
    struct notice_read n = {.limit = 9};
    struct submission_take t = {.limit = 9};
    int64_t before = clock_wall_ms();

    must(insert_row(w, a_row("one")), "one");
    must(speak(w, update_of("one", 2), "[1]", "one@a"), "it tells two, and has a child");
    must(w->s->ops->notices->read(w->s, &n, &w->a, &w->e), "read");
    CHECK(n.count == 2, "both");
    for (size_t i = 0; i < n.count; i++) {
        const struct notice_row *row = &n.rows[i];
        CHECK(slice_is(row->task, i ? "other" : "root") && slice_is(row->sender, "one")
                  && slice_eq(row->kind, NOTICE_CHILD) && slice_is(row->body, "[1]")
                  && !row->refused_at && !row->reason.ptr,
              "all columns of %zu", i);
        if (w->postgres)
            CHECK(row->at >= before - 1 && row->at <= clock_wall_ms() + 1, "by the database's");
        else
            CHECK(row->at == 7, "as it was given");
    }
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    CHECK(t.count == 1, "the child");
    const struct submission_row *row = &t.rows[0];
    CHECK(slice_eq(row->source, CHILD_SOURCE) && slice_is(row->id, "one@a")
              && slice_is(row->workflow, "w") && slice_is(row->input, "{\"a\":1}")
              && slice_is(row->child, "{\"parent\":\"one\"}") && row->submitted_at == 5000
              && !row->submitter.ptr,
          "all columns");
    world_restart(w);
    stand(w, " >root:[1] >other:[1] +one@a");
}

/* With each of the other reasons for which a change is not done. */
static void nothing_of_a_change_that_is_not_done_is_said(void **state)
{
    struct world *w = *state;
    struct change c = update_of("one", 2);
    struct payload twice[] = {{1, SLICE("1")}, {1, SLICE("2")}};

    must(insert_row(w, a_row("one")), "one");
    CHECK(speak(w, update_of("one", 3), "1", "c-1") == ERR_CONFLICT, "another revision");
    CHECK(speak(w, update_of("none", 2), "1", "c-2") == ERR_CONFLICT, "it is gone");
    c.notices = (int64_t[]){77};
    c.notice_count = 1;
    CHECK(speak(w, c, "1", "c-3") == ERR_CONFLICT, "its notice is gone");
    c = update_of("one", 2);
    c.row.payloads = twice;
    c.row.payload_count = 2;
    CHECK(speak(w, c, "1", "c-4") == ERR_INVALID, "it cannot be stored");
    c = (struct change){.kind = CHANGE_INSERT, .row = a_row("one")};
    CHECK(speak(w, c, "1", "c-5") == ERR_CONFLICT, "its id is taken");
    c = (struct change){.kind = CHANGE_INSERT, .row = a_row("two"), .submission = 77};
    CHECK(speak(w, c, "1", "c-6") == ERR_BUSY, "its submission is gone");
    c = (struct change){.kind = CHANGE_REQUEST, .row = a_row("one")};
    c.row.revision = 2;
    CHECK(speak(w, c, "1", "c-7") == ERR_INVALID, "a request says nothing");
    stand(w, "");
    CHECK(fetch(w, "one").revision == 1 && !exists(w, "two"), "nothing was done");
}

static struct change taker(const char *id)
{
    struct change c = {.kind = CHANGE_INSERT, .lock_move = LOCK_TAKE, .row = a_row(id)};

    c.row.lock = SLICE("l/k");
    c.row.lock_max = 1;
    c.row.lock_since = 5;
    return c;
}

static void nothing_is_said_if_the_lock_is_taken(void **state)
{
    struct world *w = *state;

    must(put_change(w, taker("one")), "one");
    CHECK(speak(w, taker("two"), "1", "c-1") == ERR_TAKEN, "it has no room");
    stand(w, "");
}

/* Every third update of the batch is not done. */
enum { MANY = 1000 };

static void each_of_many_speaks_for_itself(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf want = {0};
    CLEANUP(buf_fini) struct buf children = {0};
    CLEANUP(buf_fini) struct buf got = {0};
    struct change *list = arena_alloc(&w->a, MANY * sizeof *list);
    struct speech *says = arena_alloc(&w->a, MANY * sizeof *says);
    struct batch b = {.changes = list, .change_count = MANY};
    static char ids[MANY][16];

    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(ids[i], sizeof ids[i], "t-%zu", i);
        list[i] = (struct change){.kind = CHANGE_INSERT, .row = a_row(ids[i])};
    }
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "all of them");
    for (size_t i = 0; i < MANY; i++) {
        list[i] = update_of(ids[i], i % 3 == 0 ? 7 : 2);
        if (i % 5 != 0) /* some say nothing */
            let_speak(&list[i], &says[i], ids[i], ids[i]);
    }
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "a batch");
    for (size_t i = 0; i < MANY; i++) {
        CHECK(list[i].outcome == (i % 3 == 0 ? ERR_CONFLICT : ERR_OK), "outcome of %zu", i);
        if (i % 3 == 0 || i % 5 == 0)
            continue;
        buf_fmt(&want, " >root:%s >other:%s", ids[i], ids[i]);
        buf_fmt(&children, " +%s", ids[i]);
    }
    buf_slice(&want, buf_view(&children));
    said(w, &got);
    CHECK(slice_eq(buf_view(&got), buf_view(&want)), "in the order of the batch: %s", got.ptr);
}

/* With rows that are locked first; see commit.c. */
static void each_speaks_for_itself_where_batches_collide(void **state)
{
    struct world *w = *state;
    struct speech s[2];
    struct change c[] = {update_of("one", 2), update_of("two", 5)};
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};

    must(insert_row(w, a_row("one")), "one");
    must(insert_row(w, a_row("two")), "two");
    postgres_store_of(w->s)->contended_until = INT64_MAX;
    let_speak(&c[0], &s[0], "1", "c-1");
    let_speak(&c[1], &s[1], "2", "c-2");
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "batch");
    CHECK(c[0].outcome == ERR_OK && c[1].outcome == ERR_CONFLICT, "each for itself");
    stand(w, " >root:1 >other:1 +c-1");
    c[1] = update_of("two", 2);
    c[1].tells = s[1].tells;
    c[1].tell_count = 1;
    c[0] = update_of("one", 9);
    c[0].tells = s[0].tells;
    c[0].tell_count = 1;
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "batch");
    CHECK(c[0].outcome == ERR_CONFLICT && c[1].outcome == ERR_OK, "without children, too");
    stand(w, " >root:1 >other:1 >root:2 +c-1");
}

static void a_change_tells_without_children(void **state)
{
    struct world *w = *state;
    const struct notice_row tell = a_tell("root", "{}");
    struct change c = update_of("one", 2);

    c.tells = &tell;
    c.tell_count = 1;
    must(insert_row(w, a_row("one")), "one");
    must(put_change(w, c), "it tells one");
    stand(w, " >root:{}");
}

static void a_change_that_was_told_tells_others(void **state)
{
    struct world *w = *state;
    const struct notice_row told = a_tell("one", "0");
    struct change c = update_of("one", 2);
    struct notice_read n = {.limit = 9};

    must(insert_row(w, a_row("one")), "one");
    must(w->s->ops->notices->put(w->s, &told, 1, &w->e), "told");
    must(w->s->ops->notices->read(w->s, &n, &w->a, &w->e), "read");
    c.notices = &n.rows[0].seq;
    c.notice_count = 1;
    must(speak(w, c, "1", "c-1"), "on that");
    stand(w, " >root:1 >other:1 +c-1");
}

/* A key is kept once for a source, and the change that has it again is done nevertheless. */
static void a_child_that_is_there_is_not_inserted_again(void **state)
{
    struct world *w = *state;
    struct submission_row other = a_child("c-1");

    other.source = SLICE("sql");
    must(insert_row(w, a_row("one")), "one");
    must(speak(w, update_of("one", 2), "1", "c-1"), "a child");
    must(speak(w, update_of("one", 3), "2", "c-1"), "the same again");
    must(w->s->ops->submissions->put(w->s, &other, 1, &w->e), "of another source");
    stand(w, " >root:1 >other:1 >root:2 >other:2 +c-1 +c-1");
    CHECK(fetch(w, "one").revision == 3, "both were done");
}

static void a_child_becomes_a_task_and_speaks(void **state)
{
    struct world *w = *state;
    struct submission_take t = {.limit = 9};
    struct change c = {.kind = CHANGE_INSERT, .row = a_row("one@a")};

    must(insert_row(w, a_row("one")), "one");
    must(speak(w, update_of("one", 2), "1", "one@a"), "a child");
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    c.submission = t.rows[0].seq;
    c.row.parent = SLICE("one");
    c.row.root = SLICE("the root");
    must(speak(w, c, "2", "one@a@b"), "it is a task, and has a child");
    stand(w, " >root:1 >other:1 >root:2 >other:2 +one@a@b");
    const struct task_row row = fetch(w, "one@a");
    CHECK(slice_is(row.parent, "one") && slice_is(row.root, "the root"), "whose it is");
    CHECK(!fetch(w, "one").parent.ptr && !fetch(w, "one").root.ptr, "the other is none's");
}

/* Other changes of the batch are done. */
static void what_cannot_be_stored_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct speech s[4];
    struct change c[4];
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};
    static const char *const ids[] = {"one", "two", "three", "four"};

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        must(insert_row(w, a_row(ids[i])), ids[i]);
        c[i] = update_of(ids[i], 2);
        let_speak(&c[i], &s[i], "1", ids[i]);
    }
    s[0].tells[1].body = SLICE_NONE;
    s[1].children[0].key = SLICE_NONE;
    s[3].tells[0].body = (struct slice){s[3].tells[0].body.ptr, ROW_SIZE_MAX};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "batch");
    CHECK(c[0].outcome == ERR_INVALID, "a notice without a body");
    CHECK(c[1].outcome == ERR_INVALID, "a child without a key");
    CHECK(c[2].outcome == ERR_OK, "nothing is wrong with it");
    CHECK(c[3].outcome == ERR_TOO_BIG, "it is too long");
    stand(w, " >root:1 >other:1 +three");
}

/* PostgreSQL's texts are UTF-8. */
static void what_is_no_text_is_refused_alone(void **state)
{
    struct world *w = *state;
    struct speech s[3];
    struct change c[] = {update_of("one", 2), update_of("two", 2), update_of("three", 2)};
    struct batch b = {.changes = c, .change_count = COUNT_OF(c)};

    for (size_t i = 0; i < COUNT_OF(c); i++) {
        must(insert_row(w, a_row(c[i].row.id.ptr)), "a task");
        let_speak(&c[i], &s[i], "1", c[i].row.id.ptr);
    }
    s[0].tells[0].body = SLICE("\xff");
    s[1].children[0].input = SLICE("\xff");
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "batch");
    CHECK(c[0].outcome == ERR_INVALID && c[1].outcome == ERR_INVALID && c[2].outcome == ERR_OK,
          "each for itself");
    stand(w, " >root:1 >other:1 +three");
}

static void a_node_finds_what_was_said(void **state)
{
    struct world *w = *state;
    struct survey v = {.lease = SLICE("node/n1"),
                       .owner = SLICE("n1/1"),
                       .now = 1000,
                       .length_ms = 3000};
    struct submission_take t = {.limit = 10};

    must(insert_row(w, a_row("one")), "one");
    must(speak(w, update_of("one", 2), "1", "c-1"), "it speaks");
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    CHECK(t.count == 1, "the child");
    if (w->s->ops->nodes) {
        must(w->s->ops->nodes->survey(w->s, &v, &w->a, &w->e), "survey");
        CHECK(v.notices && v.submissions, "it tells of both");
    } else {
        CHECK(t.notices, "it tells of notices, too");
    }
}

static bool hears(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    char bytes[4096];
    bool heard = false;

    while (poll(&p, 1, ms) == 1) {
        heard = true;
        while (read(fd, bytes, sizeof bytes) > 0)
            ;
        ms = 100;
    }
    return heard;
}

/* And of what a change tells, in SQLite, whose readers of submissions report notices. */
static void who_waits_hears_of_children(void **state)
{
    struct world *w = *state;
    const struct notice_row tell = a_tell("root", "{}");
    struct change c = update_of("one", 3);
    int fd = w->s->ops->watch(w->s);

    CHECK(fd >= 0, "there is something to wait for");
    must(insert_row(w, a_row("one")), "one");
    (void)hears(fd, 1000);
    must(speak(w, update_of("one", 2), "1", "c-1"), "it speaks");
    CHECK(is_pooled() || hears(fd, 5000), "it is heard");
    c.tells = &tell;
    c.tell_count = 1;
    must(put_change(w, c), "it tells");
    CHECK(hears(fd, w->sqlite ? 5000 : 300) == w->sqlite, "nobody hears in vain");
}

/* ---- listings ---- */

enum { ROOTS = 4, CHILDREN = 5 };

/* r-0 to r-3 with children r-0@0 to r-3@4, of which the first has one itself, all in turn; some
 * children are asked, processed, tagged. */
static void insert_families(struct world *w)
{
    static char ids[ROOTS * (CHILDREN + 2)][16];
    size_t n = 0;

    for (size_t k = 0; k < CHILDREN + 2; k++)
        for (size_t i = 0; i < ROOTS; i++, n++) {
            struct task_row row = a_row(ids[n]);
            (void)snprintf(ids[n], sizeof ids[n], k == 0 ? "r-%zu" : "r-%zu@%zu%s", i,
                           k <= CHILDREN ? k - 1 : 0, k <= CHILDREN ? "" : "@x");
            row.id = slice_of(ids[n]);
            if (k > 0) {
                row.root = slice_of(ids[i]);
                row.parent = k <= CHILDREN ? row.root : slice_of(ids[ROOTS + i]);
            }
            if (k == 2) {
                row.asked = SLICE(",board,");
                row.tags = SLICE("{\"k\":\"v\"}");
            } else if (k == 3) {
                row.state = TASK_PROCESSED;
                row.ended_at = 2000;
                row.waiting_for = SLICE_NONE;
            }
            must(insert_row(w, row), ids[n]);
        }
}

/* All pages, as " ID ID", newest first. */
static void lists(struct world *w, struct list_query q, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct row_page page;

    q.limit = 2;
    do {
        must(w->s->ops->list(w->s, &q, &w->a, &page, &w->e), "list");
        for (size_t i = 0; i < page.count; i++)
            buf_fmt(&b, " %.*s", SLICE_ARG(page.rows[i].id));
        q.before_seq = page.next_seq;
    } while (page.more);
    CHECK(strcmp(b.ptr ? b.ptr : "", want) == 0, "listed:%s, expected:%s", b.ptr, want);
}

static void listings_show_families(void **state)
{
    struct world *w = *state;
    const struct tag tag = {SLICE("k"), SLICE("v")};
    const struct slice ids[] = {SLICE("r-0"), SLICE("r-1@0"), SLICE("r-0@0@x"), SLICE("r-2@0")};

    insert_families(w);
    lists(w, (struct list_query){.children = LIST_WITHOUT}, " r-3 r-2 r-1 r-0");
    lists(w, (struct list_query){.children = LIST_ONLY, .workflow = SLICE("order")},
          " r-3@0@x r-2@0@x r-1@0@x r-0@0@x r-3@4 r-2@4 r-1@4 r-0@4 r-3@3 r-2@3 r-1@3 r-0@3 r-3@2 "
          "r-2@2 r-1@2 r-0@2 r-3@1 r-2@1 r-1@1 r-0@1 r-3@0 r-2@0 r-1@0 r-0@0");
    lists(w, (struct list_query){.parent = SLICE("r-1")}, " r-1@4 r-1@3 r-1@2 r-1@1 r-1@0");
    lists(w, (struct list_query){.parent = SLICE("r-1@0")}, " r-1@0@x");
    lists(w, (struct list_query){.parent = SLICE("r-1@1")}, "");
    lists(w, (struct list_query){.root = SLICE("r-2")}, " r-2@0@x r-2@4 r-2@3 r-2@2 r-2@1 r-2@0");
    lists(w, (struct list_query){.root = SLICE("r-2@0")}, "");
    lists(w, (struct list_query){.root = SLICE("r-2"), .parent = SLICE("r-2@0")}, " r-2@0@x");
    lists(w, (struct list_query){.root = SLICE("r-1"), .parent = SLICE("r-2@0")}, "");
    lists(w, (struct list_query){.root = SLICE("r-1"), .children = LIST_WITHOUT}, "");
    lists(w, (struct list_query){.parent = SLICE("r-3"), .states = 1U << TASK_PROCESSED}, " r-3@2");
    lists(w, (struct list_query){.root = SLICE("r-3"), .states = 1U << TASK_PENDING},
          " r-3@0@x r-3@4 r-3@3 r-3@1 r-3@0");
    lists(w, (struct list_query){.children = LIST_WITHOUT, .states = 1U << TASK_PENDING},
          " r-3 r-2 r-1 r-0");
    lists(w, (struct list_query){.parent = SLICE("r-3"), .tags = &tag, .tag_count = 1}, " r-3@1");
    lists(w, (struct list_query){.children = LIST_WITHOUT, .tags = &tag, .tag_count = 1}, "");
    lists(w, (struct list_query){.root = SLICE("r-3"), .asked = true}, " r-3@1");
    lists(w, (struct list_query){.children = LIST_ONLY, .ids = ids, .id_count = 4},
          " r-0@0@x r-2@0 r-1@0");
    lists(w, (struct list_query){.root = SLICE("r-0"), .ids = ids, .id_count = 4}, " r-0@0@x");
}

/* However many others there are. */
static void a_family_is_found_without_looking_at_others(void **state)
{
    struct world *w = *state;
    const struct list_query by_parent = {.parent = SLICE("r-1"), .limit = 9, .scan_max = 9};
    const struct list_query by_root = {.root = SLICE("r-1"), .limit = 9, .scan_max = 9};
    struct row_page page;

    insert_families(w);
    must(w->s->ops->list(w->s, &by_parent, &w->a, &page, &w->e), "list");
    CHECK(page.count == CHILDREN && !page.more && page.scanned == CHILDREN, "%zu of %zu",
          page.count, page.scanned);
    must(w->s->ops->list(w->s, &by_root, &w->a, &page, &w->e), "list");
    CHECK(page.count == CHILDREN + 1 && !page.more && page.scanned == CHILDREN + 1, "%zu of %zu",
          page.count, page.scanned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(what_a_change_says_is_there_with_it),
        ON_ALL(nothing_of_a_change_that_is_not_done_is_said),
        ON_ALL(nothing_is_said_if_the_lock_is_taken),
        ON_ALL(each_of_many_speaks_for_itself),
        ON_POSTGRES(each_speaks_for_itself_where_batches_collide),
        ON_ALL(a_change_tells_without_children),
        ON_ALL(a_change_that_was_told_tells_others),
        ON_ALL(a_child_that_is_there_is_not_inserted_again),
        ON_ALL(a_child_becomes_a_task_and_speaks),
        ON_ALL(what_cannot_be_stored_is_refused_alone),
        ON_POSTGRES(what_is_no_text_is_refused_alone),
        ON_ALL(a_node_finds_what_was_said),
        ON_ALL(listings_show_families),
        ON_SQLITE(a_family_is_found_without_looking_at_others),
        ON_POSTGRES(a_family_is_found_without_looking_at_others),
        ON_SQLITE(who_waits_hears_of_children),
        ON_POSTGRES(who_waits_hears_of_children),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
