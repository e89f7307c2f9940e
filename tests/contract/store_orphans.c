/* The contract of every store for the deletion of families: the root goes first, by the rules, then
 * its children, which are found without looking at others, and its id is kept until they are gone.
 * Each test names one promise and runs on all stores (store_world.h). */

#include "store_world.h"

#include <stdio.h>

#include "base/buf.h"

static const struct retire_rule let_go = {.states = RETIRE_STATES, .ended_before = 5000};

static struct task_row ended_row(const char *id, const char *root)
{
    struct task_row row = a_row(id);

    row.state = TASK_PROCESSED;
    row.ended_at = 2000;
    row.waiting_for = SLICE_NONE;
    row.tags = SLICE("{\"k\":\"v\"}");
    row.doc = SLICE("{\"content\":\"00000000000000ab\",\"steps\":[]}");
    if (root)
        row.parent = row.root = slice_of(root);
    return row;
}

static void insert_ended(struct world *w, const char *id, const char *root)
{
    must(insert_row(w, ended_row(id, root)), id);
}

static struct retire_look look(struct world *w, struct retire_look l)
{
    l.rules = &let_go;
    l.rule_count = 1;
    l.scan_max = l.scan_max ? l.scan_max : 99;
    must(w->s->ops->retention->look(w->s, &l, &w->a, &w->e), w->e.text);
    return l;
}

/* " ID ID"; of orphans with their root and whether that was archived: " ID<ROOT+". */
static void finds(struct world *w, const struct retire_look *l, const char *want)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < l->found_count; i++) {
        const struct retired *t = &l->found[i];
        buf_fmt(&b, " %.*s", SLICE_ARG(t->id));
        if (t->root.ptr)
            buf_fmt(&b, "<%.*s%s", SLICE_ARG(t->root), t->archive ? "+" : "");
        CHECK(t->revision == fetch(w, arena_copy(&w->a, t->id).ptr).revision, "as it is");
        CHECK(slice_is(t->workflow, "order") && (t->rule == SIZE_MAX) == l->orphans, "all of it");
    }
    CHECK(strcmp(b.ptr ? b.ptr : "", want) == 0, "found:%s, expected:%s", b.ptr, want);
}

static size_t retire(struct world *w, const struct retire_look *l, struct retire r)
{
    size_t gone = 0;

    if (l->found_count == 0)
        return 0;
    r.tasks = l->found;
    r.task_count = l->found_count;
    r.gone = arena_alloc(&w->a, l->found_count);
    must(w->s->ops->retention->retire(w->s, &r, &w->e), w->e.text);
    for (size_t i = 0; i < r.dealt_with; i++)
        gone += r.gone[i];
    return gone;
}

/* What the rules let go, or orphans; how many went. */
static size_t let_all_go(struct world *w, bool orphans, int64_t reserve_until)
{
    const struct retire_look l = look(w, (struct retire_look){.orphans = orphans});

    return retire(w, &l, (struct retire){.reserve_until = reserve_until});
}

static size_t sweep(struct world *w, int64_t now)
{
    size_t count = 0;

    must(w->s->ops->retention->sweep(w->s, now, 99, &count, &w->e), w->e.text);
    return count;
}

/* 0: the id is not reserved. */
static int64_t reserved_until(struct world *w, const char *id)
{
    struct reservation r = {0};
    enum err err = w->s->ops->retention->reserved(w->s, slice_of(id), &w->a, &r, &w->e);

    CHECK(err == ERR_OK || err == ERR_NOT_FOUND, "%s", w->e.text);
    return err == ERR_OK ? r.until : 0;
}

static void a_family_goes_root_first(void **state)
{
    struct world *w = *state;

    insert_ended(w, "r", NULL);
    insert_ended(w, "r@a", "r");
    insert_ended(w, "r@b", "r");
    insert_ended(w, "alone", NULL);
    must(insert_row(w, a_row("newest")), "newest");
    struct retire_look l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, "");
    l = look(w, (struct retire_look){0});
    finds(w, &l, " r alone");
    CHECK(retire(w, &l, (struct retire){.reserve_until = 9000}) == 2, "both went");
    CHECK(exists(w, "r@a") && exists(w, "r@b"), "children are left");
    l = look(w, (struct retire_look){0});
    finds(w, &l, "");
    l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, " r@a<r r@b<r");
    CHECK(retire(w, &l, (struct retire){.reserve_until = 9000}) == 2, "both went");
    l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, "");
    CHECK(!exists(w, "r@a") && !exists(w, "r@b") && exists(w, "newest"), "nothing else went");
    CHECK(!reserved_until(w, "r@a"), "children reserve no ids");
    must(insert_row(w, a_row("r@a")), "which others may have");
}

/* Until its children are gone, and then as any other. */
static void the_id_of_a_root_is_kept_for_its_children(void **state)
{
    struct world *w = *state;
    struct task_row again = a_row("r");

    again.submitted_at = 9500;
    insert_ended(w, "r", NULL);
    insert_ended(w, "r@a", "r");
    insert_ended(w, "r@b", "r");
    must(insert_row(w, a_row("newest")), "newest");
    CHECK(let_all_go(w, false, 9000) == 1, "the root");
    CHECK(reserved_until(w, "r") == RESERVED_FOR_CHILDREN, "beyond all times");
    world_restart(w);
    CHECK(sweep(w, 9500) == 0, "it does not expire");
    CHECK(insert_row(w, again) == ERR_CONFLICT, "it is not given to others");
    struct retire_look l = look(w, (struct retire_look){.orphans = true, .scan_max = 1});
    CHECK(l.found_count == 1 && l.more, "one of them");
    CHECK(retire(w, &l, (struct retire){0}) == 1, "it went");
    CHECK(sweep(w, 9500) == 0 && insert_row(w, again) == ERR_CONFLICT, "there is another one");
    CHECK(let_all_go(w, true, 9000) == 1, "the last one");
    CHECK(insert_row(w, again) == ERR_CONFLICT, "nobody has looked yet");
    CHECK(sweep(w, 8000) == 1, "it expires from now on");
    CHECK(reserved_until(w, "r") == 9000, "at its time");
    again.submitted_at = 8500;
    CHECK(insert_row(w, again) == ERR_CONFLICT, "which has not come");
    CHECK(sweep(w, 9500) == 1 && !reserved_until(w, "r"), "now it has");
    must(insert_row(w, again), "it is free");
}

static void without_reservations_it_is_kept_for_them_alone(void **state)
{
    struct world *w = *state;

    insert_ended(w, "r", NULL);
    insert_ended(w, "alone", NULL);
    insert_ended(w, "r@a", "r");
    must(insert_row(w, a_row("newest")), "newest");
    CHECK(let_all_go(w, false, 0) == 2, "the roots");
    CHECK(reserved_until(w, "r") == RESERVED_FOR_CHILDREN, "there is a child");
    CHECK(!reserved_until(w, "alone"), "there is none");
    CHECK(insert_row(w, a_row("r")) == ERR_CONFLICT, "it is kept");
    CHECK(let_all_go(w, true, 0) == 1, "the child");
    CHECK(sweep(w, 1) == 1, "that was all");
    must(insert_row(w, a_row("r")), "it is free");
}

static void a_child_stays_with_its_root(void **state)
{
    struct world *w = *state;

    insert_ended(w, "r", NULL);
    insert_ended(w, "r@a", "r");
    must(insert_row(w, a_row("newest")), "newest");
    const struct task_row row = fetch(w, "r@a");
    struct retired found = {.seq = row.seq,
                            .revision = row.revision,
                            .id = row.id,
                            .root = SLICE("r")};
    const struct retire_look l = {.found = &found, .found_count = 1};
    CHECK(retire(w, &l, (struct retire){.reserve_until = 9000}) == 0, "whoever asks for it");
    CHECK(exists(w, "r@a"), "it is there");
}

/* And those that are not do not keep others. */
static void orphans_go_when_they_are_over(void **state)
{
    struct world *w = *state;
    struct task_row row;
    static const char *const ids[] = {"r@0", "r@1", "r@2", "r@3", "r@4", "r@5"};

    insert_ended(w, "r", NULL);
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        row = ended_row(ids[i], "r");
        row.state = i == 0   ? TASK_COMPENSATED
                    : i == 1 ? TASK_ERROR
                    : i == 2 ? TASK_ERROR
                    : i == 3 ? TASK_PROCESSING
                             : TASK_PROCESSED;
        row.closed_at = i == 2 ? 2500 : 0;
        row.ended_at = i == 3 ? 0 : 7000; /* later than any rule has it */
        row.locked_by = i == 3 || i == 4 ? SLICE("n1/1") : SLICE_NONE;
        must(insert_row(w, row), ids[i]);
    }
    must(insert_row(w, a_row("newest")), "newest");
    CHECK(let_all_go(w, false, 9000) == 1, "the root");
    struct retire_look l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, " r@0<r r@2<r r@5<r");
    CHECK(retire(w, &l, (struct retire){0}) == 3, "those that are over");
    CHECK(sweep(w, 9500) == 0, "its id is kept for the others");
    row = ended_row("r@1", "r");
    row.revision = 2;
    must(update_row(w, row), "it is over");
    l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, " r@1<r");
}

/* A message that is to be delivered would be lost with its task. */
static void an_orphan_that_is_to_be_told_of_stays(void **state)
{
    struct world *w = *state;
    const struct message m = {.name = SLICE("1/processed"),
                              .target = SLICE("u"),
                              .body = SLICE("{}"),
                              .created_at = 7};
    struct change c = {.kind = CHANGE_INSERT, .row = ended_row("r@a", "r")};

    insert_ended(w, "r", NULL);
    must(insert_row(w, a_row("newest")), "newest");
    CHECK(let_all_go(w, false, 9000) == 1, "the root has none by now");
    c.row.submitted_at = 1000;
    c.messages = &m;
    c.message_count = 1;
    must(put_change(w, c), "it has");
    must(insert_row(w, a_row("newer")), "newer");
    const struct retire_look l = look(w, (struct retire_look){.orphans = true});
    finds(w, &l, "");
}

/* Family by family, in parts; `archive` is what the root was. */
static void orphans_are_found_in_parts(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf all = {0};
    struct retire_look l = {.orphans = true, .scan_max = 3};
    static char ids[40][16];
    size_t n = 0;

    for (size_t k = 0; k < 6; k++)
        for (size_t i = 0; i < 4; i++, n++) {
            (void)snprintf(ids[n], sizeof ids[n], k ? "f%zu@%zu" : "f%zu", i, k);
            insert_ended(w, ids[n], k ? ids[i] : NULL);
        }
    must(insert_row(w, a_row("newest")), "newest");
    struct retire_look roots = look(w, (struct retire_look){0});
    CHECK(roots.found_count == 4, "the roots");
    for (size_t i = 0; i < 3; i++) { /* of the last one nothing goes */
        const struct retire_look one = {.found = &roots.found[i], .found_count = 1};
        CHECK(retire(w, &one, (struct retire){.archived = i == 1}) == 1, "root %zu", i);
    }
    do {
        l = look(w, l);
        CHECK(l.found_count <= 3, "a part");
        for (size_t i = 0; i < l.found_count; i++)
            buf_fmt(&all, " %.*s%s", SLICE_ARG(l.found[i].id), l.found[i].archive ? "+" : "");
    } while (l.more);
    CHECK(slice_is(buf_view(&all), " f0@1 f0@2 f0@3 f0@4 f0@5 f1@1+ f1@2+ f1@3+ f1@4+ f1@5+ "
                                   "f2@1 f2@2 f2@3 f2@4 f2@5"),
          "%s", all.ptr);
}

static void nothing_else_is_left_of_a_family(void **state)
{
    struct world *w = *state;
    const struct tag tag = {SLICE("k"), SLICE("v")};
    const struct list_query tagged = {.tags = &tag, .tag_count = 1, .limit = 9};
    const struct list_query family = {.root = SLICE("r"), .limit = 9};
    const struct audit a = {.actor = SLICE("ann"), .verb = SLICE("retire")};
    const struct audit_query all = {.limit = 9};
    struct row_page page;
    struct audit_page audits;

    insert_ended(w, "r", NULL);
    insert_ended(w, "r@a", "r");
    must(insert_row(w, a_row("newest")), "newest");
    CHECK(let_all_go(w, false, 0) == 1, "the root");
    const struct retire_look l = look(w, (struct retire_look){.orphans = true});
    CHECK(retire(w, &l, (struct retire){.audit = &a}) == 1, "the child");
    must(w->s->ops->list(w->s, &tagged, &w->a, &page, &w->e), "list");
    CHECK(page.count == 0, "no tags");
    must(w->s->ops->list(w->s, &family, &w->a, &page, &w->e), "list");
    CHECK(page.count == 0, "no family");
    must(w->s->ops->audit_list(w->s, &all, &w->a, &audits, &w->e), "audit");
    CHECK(audits.count == 1, "who did it");
    CHECK(sweep(w, 9500) == 1 && sweep(w, 9500) == 0, "no id");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_ALL(a_family_goes_root_first),
        ON_ALL(the_id_of_a_root_is_kept_for_its_children),
        ON_ALL(without_reservations_it_is_kept_for_them_alone),
        ON_ALL(a_child_stays_with_its_root),
        ON_ALL(orphans_go_when_they_are_over),
        ON_ALL(an_orphan_that_is_to_be_told_of_stays),
        ON_ALL(orphans_are_found_in_parts),
        ON_ALL(nothing_else_is_left_of_a_family),
    };
    return cmocka_run_group_tests_name("orphans", tests, NULL, NULL);
}
