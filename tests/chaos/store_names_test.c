/*
 * The store's files lose their names: moved, removed or replaced, while it is open or before it
 * starts. Also the time of the last use, which the folder records.
 */

#include "../contract/store_world.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/when.h"
#include "store/sqlite/body.h"
#include "vfs.h"

static const char *path_of(struct world *w, const char *name)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%s/%s", w->dir, name);
    buf_byte(&b, 0);
    return arena_copy(&w->a, buf_view(&b)).ptr;
}

static void move(struct world *w, const char *from, const char *to)
{
    CHECK(rename(path_of(w, from), path_of(w, to)) == 0, "%s to %s", from, to);
}

static void copy(struct world *w, const char *from, const char *to)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "cp %s %s", path_of(w, from), path_of(w, to));
    CHECK(system(b.ptr) == 0, "%s", b.ptr); /* NOLINT: a name of our own */
}

/* As if it had been killed: locks and memory go, the files stay as they are. */
static void kill_store(struct world *w)
{
    static const char *const names[] = {"intact.db", "intact.db-wal"};
    char saved[32];

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)snprintf(saved, sizeof saved, "%s.saved", names[i]);
        if (access(path_of(w, names[i]), F_OK) == 0)
            copy(w, names[i], saved);
    }
    w->s->ops->close(w->s);
    w->s = NULL;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        (void)snprintf(saved, sizeof saved, "%s.saved", names[i]);
        if (access(path_of(w, saved), F_OK) != 0) {
            (void)unlink(path_of(w, names[i]));
            continue;
        }
        copy(w, saved, names[i]); /* into the same file: it is to know itself again */
        (void)unlink(path_of(w, saved));
    }
}

static void start_store(struct world *w)
{
    CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_OK, "%s", w->e.text);
}

static void refuses(struct world *w, enum err want, const char *story)
{
    struct task_row row;
    struct row_page page;
    int64_t version = 0;
    bool is_new = false;

    CHECK(insert_row(w, a_row("refused")) == want, "%s", w->e.text);
    CHECK(strstr(w->e.text, story) && strstr(w->e.text, w->dir), "%s", w->e.text);
    CHECK(w->s->ops->probe(w->s, &w->e) == want, "probe");
    CHECK(w->s->ops->workflow_put(w->s, SLICE("x"), SLICE("{}"), 1, NULL, &version, &is_new, &w->e)
              == want,
          "workflow_put");
    CHECK(w->s->ops->get(w->s, SLICE("a"), &w->a, &row, &w->e) == want, "get");
    CHECK(w->s->ops->overdue(w->s, 9, 0, 0, 9, &w->a, &page, &w->e) == want, "overdue");
}

/* ---- while it is open ---- */

static void nothing_is_accepted_until_the_file_is_back(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("a")), "before");
    move(w, "intact.db", "elsewhere");
    refuses(w, ERR_IO, "moved, removed or replaced");
    move(w, "elsewhere", "intact.db");
    must(insert_row(w, a_row("b")), "it is back");
    kill_store(w);
    start_store(w);
    CHECK(exists(w, "a") && exists(w, "b") && !exists(w, "refused"), "as it was said");
}

static void a_copy_in_its_place_is_not_taken_for_it(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("a")), "before");
    move(w, "intact.db", "elsewhere");
    copy(w, "elsewhere", "intact.db");
    refuses(w, ERR_IO, "moved, removed or replaced");
    sqlite_store_of(w->s)->broken = true; /* nor when it would have to be opened again */
    refuses(w, ERR_IO, "moved, removed or replaced");
    move(w, "elsewhere", "intact.db");
    must(insert_row(w, a_row("b")), "it is back");
    world_restart(w);
    CHECK(exists(w, "a") && exists(w, "b") && !exists(w, "refused"), "as it was said");
}

static void the_whole_folder_may_be_moved_and_come_back(void **state)
{
    struct world *w = *state;
    char away[80];

    must(insert_row(w, a_row("a")), "before");
    (void)snprintf(away, sizeof away, "%s-away", w->dir);
    CHECK(rename(w->dir, away) == 0, "moved");
    refuses(w, ERR_IO, "moved, removed or replaced");
    CHECK(rename(away, w->dir) == 0, "moved back");
    must(insert_row(w, a_row("b")), "it is back");
}

/* The VFS lets us act between the look before a commit and its end. */
static struct world *steered;
static const char *lost_name;

static void lose_the_name(void)
{
    vfs_steer = NULL;
    move(steered, lost_name, "elsewhere");
}

static void lost_in_the_middle_of_a_commit(struct world *w, const char *name)
{
    vfs_register(1, true);
    world_restart(w); /* on that VFS */
    must(insert_row(w, a_row("a")), "before");
    steered = w;
    lost_name = name;
    vfs_steer = lose_the_name;
    CHECK(insert_row(w, a_row("b")) == ERR_UNKNOWN, "%s", w->e.text);
    CHECK(!vfs_steer, "it was lost");
}

static void a_file_lost_in_the_middle_of_a_commit_leaves_it_unknown(void **state)
{
    struct world *w = *state;

    lost_in_the_middle_of_a_commit(w, "intact.db");
    refuses(w, ERR_IO, "moved, removed or replaced");
    move(w, "elsewhere", "intact.db");
    CHECK(exists(w, "a"), "it is back");
    must(insert_row(w, a_row("c")), "it is back");
}

static void a_wal_lost_in_the_middle_of_a_commit_leaves_it_unknown(void **state)
{
    struct world *w = *state;

    lost_in_the_middle_of_a_commit(w, "intact.db-wal");
    bool there = exists(w, "b"); /* what is read once must stay */
    must(insert_row(w, a_row("c")), "it goes on");
    kill_store(w);
    start_store(w);
    CHECK(exists(w, "a") && exists(w, "b") == there && exists(w, "c"), "nothing is lost");
}

static void what_a_lost_wal_holds_is_saved(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("a")), "before");
    CHECK(unlink(path_of(w, "intact.db-wal")) == 0, "removed");
    CHECK(insert_row(w, a_row("b")) == ERR_IO, "one is refused");
    CHECK(strstr(w->e.text, "saved in intact.db"), "%s", w->e.text);
    must(insert_row(w, a_row("b")), "then it goes on");
    kill_store(w);
    start_store(w);
    CHECK(exists(w, "a") && exists(w, "b"), "nothing is lost");
}

/* Somebody reads the file as it was, and so keeps the WAL from being emptied. */
static void a_lost_wal_that_cannot_be_saved_yet_is_kept_open(void **state)
{
    struct world *w = *state;
    sqlite3 *db = NULL;

    CHECK(sqlite3_open(path_of(w, "intact.db"), &db) == SQLITE_OK, "open");
    CHECK(sqlite3_exec(db, "BEGIN; SELECT * FROM task", NULL, NULL, NULL) == SQLITE_OK, "read");
    must(insert_row(w, a_row("a")), "before");
    move(w, "intact.db-wal", "elsewhere");
    for (unsigned i = 0; i < 2; i++) {
        CHECK(insert_row(w, a_row("b")) == ERR_IO, "refused");
        CHECK(strstr(w->e.text, "do not stop the server"), "%s", w->e.text);
        sqlite_store_of(w->s)->broken = true; /* not even then */
    }
    (void)sqlite3_close(db);
    CHECK(insert_row(w, a_row("b")) == ERR_IO, "saved now");
    must(insert_row(w, a_row("b")), "then it goes on");
    kill_store(w);
    start_store(w);
    CHECK(exists(w, "a") && exists(w, "b"), "nothing is lost");
}

/* ---- at the start ---- */

static void refused_at_start(struct world *w, const char *story, const char *companion)
{
    struct store *s = NULL;

    CHECK(sqlite_store_open(w->dir, &s, &w->e) == ERR_CORRUPT && !s, "%s", w->e.text);
    CHECK(strstr(w->e.text, story) && strstr(w->e.text, companion), "%s", w->e.text);
    CHECK(strstr(w->e.text, w->dir) && strstr(w->e.text, "backup"), "%s", w->e.text);
}

static void a_missing_file_whose_wal_is_there_is_not_made_anew(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("a")), "before");
    kill_store(w);
    move(w, "intact.db", "elsewhere");
    refused_at_start(w, "intact.db is missing", "intact.db-wal");
    CHECK(access(path_of(w, "intact.db"), F_OK) != 0, "nothing was made");
    FILE *f = fopen(path_of(w, "intact.db"), "we");
    CHECK(f && fclose(f) == 0, "an empty one");
    refused_at_start(w, "intact.db is empty", "intact.db-wal");
    move(w, "elsewhere", "intact.db");
    start_store(w);
    CHECK(exists(w, "a"), "it is back");
}

static void any_companion_tells_of_a_missing_file(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"intact.db-wal", "intact.db-shm", "intact.db-journal"};

    w->s->ops->close(w->s);
    w->s = NULL;
    CHECK(unlink(path_of(w, "intact.db")) == 0, "removed");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        FILE *f = fopen(path_of(w, names[i]), "we");
        CHECK(f && fclose(f) == 0, "%s", names[i]);
        refused_at_start(w, "intact.db is missing", names[i]);
        CHECK(unlink(path_of(w, names[i])) == 0, "removed");
    }
    start_store(w); /* without any of them there is nothing to lose */
}

/* ---- when it was last used ---- */

/* Also what a power cut or an older program may leave: no lock file, or no time in it. */
static void the_files_tell_when_it_was_used(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"intact.db", "intact.db-wal"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        int64_t at = 4000000000123 + (int64_t)i;
        struct timespec times[2] = {{0, UTIME_OMIT}, {at / 1000, at % 1000 * 1000000}};
        must(insert_row(w, a_row(names[i])), "so that there is a WAL");
        kill_store(w);
        CHECK(utimensat(AT_FDCWD, path_of(w, names[i]), times, 0) == 0, "%s", names[i]);
        CHECK(i > 0 || unlink(path_of(w, "lock")) == 0, "the lock");
        start_store(w);
        CHECK(w->s->ops->used_until(w->s) == at, "%" PRId64, w->s->ops->used_until(w->s));
    }
}

static void scan(struct world *w, int64_t now)
{
    struct row_page page;

    must(w->s->ops->overdue(w->s, now, 0, 0, 9, &w->a, &page, &w->e), "scan");
    (void)sqlite_store_maintain(w->s, false);
}

static void expect_used_until(struct world *w, int64_t at)
{
    kill_store(w);
    start_store(w);
    CHECK(w->s->ops->used_until(w->s) == at, "%" PRId64 ", not %" PRId64,
          w->s->ops->used_until(w->s), at);
}

static void the_time_of_the_last_change_is_kept(void **state)
{
    struct world *w = *state;
    const int64_t at = 4000000000000;

    scan(w, at);
    must(insert_row(w, a_row("a")), "a change");
    scan(w, at + 1020);
    expect_used_until(w, at + 1020);
    scan(w, at + 2000); /* the start was a change */
    scan(w, at + 5000);
    expect_used_until(w, at + 2000); /* nothing was changed, so nothing was written */
    must(insert_row(w, a_row("b")), "a change");
    scan(w, at + 9000);
    must(insert_row(w, a_row("c")), "a change");
    scan(w, at + 9900);
    expect_used_until(w, at + 9000); /* about once a second */
    must(insert_row(w, a_row("d")), "a change");
    scan(w, at - 900000000); /* they were not believed, and are forgotten */
    must(insert_row(w, a_row("e")), "a change");
    scan(w, at - 899000000);
    CHECK(w->s->ops->used_until(w->s) == at + 9000, "at the start it was so");
    expect_used_until(w, at - 899000000);
}

/* ---- scans that never end ---- */

static void scans_do_not_keep_the_wal_from_being_emptied(void **state)
{
    struct world *w = *state;
    const struct timespec pause = {.tv_nsec = 20000000};
    struct row_page page;

    must(insert_row(w, a_row("a")), "a change");
    for (unsigned i = 0;; i++) {
        CHECK(i < 1500, "it is never emptied");
        must(w->s->ops->overdue(w->s, 5, 0, 0, 9, &w->a, &page, &w->e), "scan");
        if (!sqlite_store_maintain(w->s, false))
            break;
        (void)nanosleep(&pause, NULL);
    }
    CHECK(sqlite_store_of(w->s)->wal_frames == 0, "emptied");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(nothing_is_accepted_until_the_file_is_back),
        ON_SQLITE(a_copy_in_its_place_is_not_taken_for_it),
        ON_SQLITE(the_whole_folder_may_be_moved_and_come_back),
        ON_SQLITE(what_a_lost_wal_holds_is_saved),
        ON_SQLITE(a_lost_wal_that_cannot_be_saved_yet_is_kept_open),
        ON_SQLITE(a_missing_file_whose_wal_is_there_is_not_made_anew),
        ON_SQLITE(any_companion_tells_of_a_missing_file),
        ON_SQLITE(the_files_tell_when_it_was_used),
        ON_SQLITE(the_time_of_the_last_change_is_kept),
        ON_SQLITE(scans_do_not_keep_the_wal_from_being_emptied),
        ON_SQLITE(a_file_lost_in_the_middle_of_a_commit_leaves_it_unknown),
        ON_SQLITE(a_wal_lost_in_the_middle_of_a_commit_leaves_it_unknown),
    };
    return cmocka_run_group_tests_name("names of the store's files", tests, NULL, NULL);
}
