/* Tests of what only the SQLite store has: its file, folder, locks, permissions, full disks and
 * syncs, and what a plain SQL shell shows. fdatasync is replaced here, to count and refuse syncs.
 * store_contract.c has what all stores promise. */

#include "shell.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/prng.h"
#include "base/when.h"
#include "store/codec/codec.h"
#include "store/sqlite/body.h"

enum { NOBODY = 65534 };

/* SQLite calls this one instead of the C library's. The disk gets to see it all the same. */
static unsigned syncs;

int fdatasync(int fd)
{
    syncs++;
    return (int)syscall(SYS_fdatasync, fd);
}

static struct slice file_bytes(struct world *w, const char *path)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return SLICE_NONE;
    CHECK(fstat(fd, &st) == 0, "%s", path);
    char *bytes = arena_bytes(&w->a, (size_t)st.st_size);
    CHECK(read(fd, bytes, (size_t)st.st_size) == st.st_size, "%s", path);
    (void)close(fd);
    return (struct slice){bytes, (size_t)st.st_size};
}

/* Opening fails with that error and with that in its story; the file is as it was. */
static void refused(struct world *w, enum err want, const char *story)
{
    const char *path = path_of(w, "intact.db");
    struct slice before = file_bytes(w, path);
    struct store *s = NULL;

    enum err err = sqlite_store_open(w->dir, &s, &w->e);
    CHECK(err == want && !s, "%s: %s", err_text(err), err == ERR_OK ? "opened" : w->e.text);
    CHECK(strstr(w->e.text, story), "the story is: %s", w->e.text);
    CHECK(strstr(w->e.text, w->dir), "the story says where: %s", w->e.text);
    CHECK(slice_eq(before, file_bytes(w, path)), "the file was changed");
}

static const char letter[] =
    "A letter to my dear aunt, who lives far away and has not heard from me for a long time. "
    "It has more than a hundred bytes, as letters to aunts do.";

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct world *w = *state;
    static const char *const texts[] = {"hello", "SQLite format 3", letter};

    stop_store(w);
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        FILE *f = fopen(path_of(w, "intact.db"), "we");
        CHECK(f && fputs(texts[i], f) >= 0 && fclose(f) == 0, "written");
        refused(w, ERR_NOT_A_STORE, "choose another --data");
    }
}

static void the_database_of_another_program_is_refused(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");

    stop_store(w);
    CHECK(unlink(path) == 0, "removed");
    shell_exec(path,
               "PRAGMA journal_mode = WAL; CREATE TABLE task (x); INSERT INTO task VALUES (1)");
    refused(w, ERR_NOT_A_STORE, "of another program");
    CHECK(access(path_of(w, "intact.db-wal"), F_OK) != 0, "nothing was put beside it");
}

static void the_store_of_a_newer_version_is_refused(void **state)
{
    struct world *w = *state;

    must(insert_row(w, a_row("x")), "insert");
    stop_store(w);
    sqlite3 *db = shell_open(path_of(w, "intact.db")); /* leaves its change in the WAL */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    CHECK(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL) == SQLITE_OK, "set");
    (void)sqlite3_close(db);
    refused(w, ERR_NEWER, "start the newer program");
    CHECK(file_bytes(w, path_of(w, "intact.db-wal")).len > 0, "the WAL is where it was");
    char text[40];
    (void)snprintf(text, sizeof text, "PRAGMA user_version = %d", schema_version);
    shell_exec(path_of(w, "intact.db"), text);
    start_store(w);
    CHECK(exists(w, "x"), "nothing was lost");
}

static void a_store_without_its_schema_is_refused(void **state)
{
    struct world *w = *state;

    stop_store(w);
    shell_exec(path_of(w, "intact.db"), "DELETE FROM meta");
    CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_CORRUPT, "its secret is gone");
    CHECK(strstr(w->e.text, "backup"), "%s", w->e.text);
}

static void a_folder_in_use_is_refused(void **state)
{
    struct world *w = *state;
    char pid[40];
    struct store *second = NULL;

    (void)snprintf(pid, sizeof pid, "(pid %ld)", (long)getpid());
    CHECK(sqlite_store_open(w->dir, &second, &w->e) == ERR_LOCKED, "a second time");
    CHECK(strstr(w->e.text, pid) && strstr(w->e.text, "stop it"), "%s", w->e.text);
    pid_t child = fork();
    if (child == 0)
        _exit(sqlite_store_open(w->dir, &second, &w->e) == ERR_LOCKED ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "from another process");
    must(insert_row(w, a_row("x")), "the first one goes on");
}

/* As that of a server that was killed is, for a moment. */
static void a_lock_that_is_given_up_soon_is_waited_for(void **state)
{
    struct world *w = *state;
    int ready[2];
    char byte;

    stop_store(w);
    CHECK(pipe(ready) == 0, "pipe");
    pid_t child = fork();
    if (child == 0) {
        int fd = open(path_of(w, "lock"), O_RDWR);
        bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && write(ready[1], "x", 1) == 1;
        (void)usleep(300000);
        _exit(held ? 0 : 1);
    }
    CHECK(read(ready[0], &byte, 1) == 1, "the child has the lock");
    start_store(w);
    must(insert_row(w, a_row("x")), "insert");
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child had the lock");
    (void)close(ready[0]);
    (void)close(ready[1]);
}

static void files_belong_to_their_owner_alone(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"intact.db", "intact.db-wal", "lock"};
    struct stat st;

    (void)snprintf(w->dir + strlen(w->dir), 8, "/new");
    stop_store(w);
    mode_t old = umask(0);
    start_store(w);
    must(insert_row(w, a_row("x")), "insert");
    (void)umask(old);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CHECK(stat(path_of(w, names[i]), &st) == 0, "%s", names[i]);
        CHECK((st.st_mode & 0777) == 0600, "%s has mode %o", names[i], st.st_mode & 0777);
    }
    CHECK(stat(w->dir, &st) == 0 && (st.st_mode & 0777) == 0700, "the folder");
    stop_store(w);
    *strrchr(w->dir, '/') = 0;
}

/* Runs `body` in a child that is not root, in a folder of its own. */
static void as_nobody(struct world *w, int (*body)(struct world *w))
{
    int status = -1;

    stop_store(w);
    CHECK(chown(w->dir, NOBODY, NOBODY) == 0, "the folder is theirs");
    CHECK(unlink(path_of(w, "intact.db")) == 0 && unlink(path_of(w, "lock")) == 0, "emptied");
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? body(w) : 99);
    CHECK(waitpid(child, &status, 0) == child, "ended");
    CHECK(status == 0, "line %d said no", WEXITSTATUS(status) + 200);
}

/* In a child: the test's own means to fail would not be heard. The line is told by the status. */
#define SAY(cond)                  \
    do {                           \
        if (!(cond))               \
            return __LINE__ - 200; \
    } while (0)

static int in_an_unwritable_folder(struct world *w)
{
    struct store *s = NULL;

    SAY(chmod(w->dir, 0500) == 0);
    SAY(sqlite_store_open(w->dir, &s, &w->e) == ERR_IO);
    SAY(strstr(w->e.text, "Permission denied") && strstr(w->e.text, w->dir));
    SAY(strstr(w->e.text, "--data"));
    SAY(chmod(w->dir, 0700) == 0);
    SAY(sqlite_store_open(w->dir, &s, &w->e) == ERR_OK);
    s->ops->close(s);
    SAY(chmod(path_of(w, "intact.db"), 0400) == 0);
    SAY(sqlite_store_open(w->dir, &s, &w->e) == ERR_IO);
    SAY(strstr(w->e.text, "Permission denied"));
    return 0;
}

static void a_folder_or_file_without_permission_is_refused(void **state)
{
    if (geteuid() != 0) {
        (void)fprintf(stderr, "not root: cannot become somebody else\n");
        skip();
    }
    as_nobody(*state, in_an_unwritable_folder);
}

static enum err plain_insert(struct store *s, const char *id, struct error *e)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct change c = {.kind = CHANGE_INSERT, .row = a_row(id)};
    struct batch b = {.changes = &c, .change_count = 1};
    enum err err = s->ops->commit(s, &b, &a, e);

    return err == ERR_OK ? c.outcome : err;
}

/* Files that are open stay open; it is when they must be opened again that permission counts. */
static int with_permissions_that_come_and_go(struct world *w)
{
    struct store *s = NULL;
    static const char *const names[] = {"", "intact.db"};

    SAY(sqlite_store_open(w->dir, &s, &w->e) == ERR_OK);
    SAY(plain_insert(s, "1", &w->e) == ERR_OK);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *path = path_of(w, names[i]);
        char id[] = {(char)('a' + i), '1', 0};
        SAY(chmod(path, i ? 0400 : 0500) == 0);
        SAY(plain_insert(s, id, &w->e) == ERR_OK);
        fault_plan = (struct fault_plan){.fire = 1};
        id[1]++;
        SAY(err_is_transient(plain_insert(s, id, &w->e)));
        fault_plan = (struct fault_plan){0};
        enum err err = plain_insert(s, id, &w->e);
        SAY(err == ERR_OK || err == ERR_IO);
        SAY(err == ERR_OK || strstr(w->e.text, "permissions"));
        SAY(chmod(path, 0700) == 0);
        err = plain_insert(s, id, &w->e);
        SAY(err == ERR_OK || err == ERR_CONFLICT);
        id[1]++;
        SAY(plain_insert(s, id, &w->e) == ERR_OK);
    }
    s->ops->close(s);
    return 0;
}

static void permission_lost_and_found_is_no_harm(void **state)
{
    if (geteuid() != 0) {
        (void)fprintf(stderr, "not root: cannot become somebody else\n");
        skip();
    }
    as_nobody(*state, with_permissions_that_come_and_go);
}

/* Inserts until the disk is full; how many were accepted. */
static unsigned fill(struct world *w, const char *prefix)
{
    static char text[8000];
    char id[32];

    memset(text, 'x', sizeof text);
    for (unsigned n = 0; n < 10000; n++) {
        (void)snprintf(id, sizeof id, "%s-%u", prefix, n);
        struct task_row row = a_row(id);
        row.doc = (struct slice){text, sizeof text};
        enum err err = insert_row(w, row);
        if (err == ERR_OK)
            continue;
        CHECK(err == ERR_FULL, "%s: %s", err_text(err), w->e.text);
        CHECK(strstr(w->e.text, "free some space"), "%s", w->e.text);
        CHECK(!exists(w, id), "what was refused is not there");
        return n;
    }
    fail_msg("never full");
    return 0;
}

static void all_there(struct world *w, const char *prefix, unsigned count)
{
    char id[32];

    for (unsigned n = 0; n < count; n++) {
        (void)snprintf(id, sizeof id, "%s-%u", prefix, n);
        CHECK(exists(w, id), "%s is lost", id);
    }
}

static void a_database_at_its_maximum_refuses_and_recovers(void **state)
{
    struct world *w = *state;
    struct db *d = &sqlite_store_of(w->s)->writer;

    CHECK(db_exec(d, "PRAGMA max_page_count = 110") == SQLITE_OK, "limited");
    unsigned count = fill(w, "t");
    CHECK(count > 10, "%u", count);
    struct change c[2] = {{.kind = CHANGE_UPDATE, .row = fetch(w, "t-0")},
                          {.kind = CHANGE_INSERT, .row = fetch(w, "t-1")}};
    c[0].row.revision = 2;
    c[1].row.id = SLICE("new");
    struct batch b = {.changes = c, .change_count = 2};
    CHECK(w->s->ops->commit(w->s, &b, &w->a, &w->e) == ERR_FULL, "full");
    CHECK(c[0].outcome == ERR_FULL && c[1].outcome == ERR_FULL, "as a whole");
    CHECK(fetch(w, "t-0").revision == 1, "rolled back");
    CHECK(db_exec(d, "PRAGMA max_page_count = 100000") == SQLITE_OK, "raised");
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "space came back");
    all_there(w, "t", count);
}

static void make_ballast(const char *path, size_t size)
{
    static char text[1 << 20];
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, text, size) == (ssize_t)size, "ballast");
    (void)close(fd);
}

static void on_a_small_disk(struct world *w)
{
    const char *ballast = path_of(w, "ballast");
    const char *rest = path_of(w, "rest");

    start_store(w);
    make_ballast(ballast, 1 << 20);
    make_ballast(rest, 256 << 10);
    unsigned first = fill(w, "first");
    (void)sqlite_store_maintain(w->s, true); /* has no room either */
    unsigned second = fill(w, "second");     /* what a checkpoint makes room for, if it could */
    all_there(w, "first", first);
    all_there(w, "second", second);
    CHECK(unlink(ballast) == 0, "made room");
    unsigned third = fill(w, "third");
    CHECK(third > 0, "it goes on by itself");
    CHECK(unlink(rest) == 0,
          "a start writes, too"); /* whether a full disk has room for that is chance */
    world_restart(w);
    all_there(w, "first", first);
    all_there(w, "second", second);
    all_there(w, "third", third);
    stop_store(w);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
    struct world *w = *state;

    (void)snprintf(w->dir + strlen(w->dir), 8, "/small");
    stop_store(w);
    CHECK(mkdir(w->dir, 0700) == 0, "made");
    if (mount("tmpfs", w->dir, "tmpfs", 0, "size=3m") != 0) {
        *strrchr(w->dir, '/') = 0;
        (void)fprintf(stderr, "cannot mount a small disk here\n");
        skip();
    }
    on_a_small_disk(w);
    CHECK(umount(w->dir) == 0, "unmounted");
    *strrchr(w->dir, '/') = 0;
}

/* Writes until it is killed; each number is told when it is durable. */
static void write_for_ever(const char *dir, int tell)
{
    struct store *s = NULL;
    struct error e;
    char id[32];

    if (sqlite_store_open(dir, &s, &e) != ERR_OK)
        _exit(1);
    for (uint32_t n = 0;; n++) {
        (void)snprintf(id, sizeof id, "%" PRIu64 "-%u", s->ops->boot(s), n);
        if (plain_insert(s, id, &e) != ERR_OK || write(tell, id, sizeof id) != sizeof id)
            _exit(2);
        if (n % 16 == 15)
            (void)sqlite_store_maintain(s, true);
    }
}

/* A kill loses nothing that was written; only a power cut tells whether it was synced too. */
static void what_is_acknowledged_was_synced(void **state)
{
    struct world *w = *state;
    static const char *const ids[] = {"a", "b", "c"};

    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        unsigned before = syncs;
        must(insert_row(w, a_row(ids[i])), "insert");
        CHECK(syncs > before, "the commit of %s was not synced", ids[i]);
    }
}

/* By its own count, which is what the metric tells, as by ours. */
static void each_sync_is_counted(void **state)
{
    struct world *w = *state;
    char id[16];
    unsigned before = syncs;
    uint64_t counted = w->s->ops->syncs(w->s);

    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof id, "t%d", i);
        must(insert_row(w, a_row(id)), "insert");
        (void)sqlite_store_maintain(w->s, i % 5 == 4);
    }
    CHECK(syncs - before >= 20, "%u", syncs - before);
    CHECK(w->s->ops->syncs(w->s) - counted == syncs - before, "%u syncs, %" PRIu64 " counted",
          syncs - before, w->s->ops->syncs(w->s) - counted);
}

/* One that is lost comes once more. Nothing else may be: not what comes after it, either. */
static void only_what_was_delivered_waits_for_no_sync(void **state)
{
    struct world *w = *state;
    struct message m[2] = {{.name = SLICE("1/a"), .target = SLICE("u"), .body = SLICE("{}")}};
    struct outbox_read r = {.limit = 9, .bytes_max = SIZE_MAX};

    m[1] = m[0];
    must(put_change(w, (struct change){.kind = CHANGE_INSERT,
                                       .row = a_row("a"),
                                       .messages = m,
                                       .message_count = 2}),
         "insert");
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read");
    struct settlement done = {.seq = r.messages[0].seq, .kind = SETTLE_DELETE};
    unsigned before = syncs;
    must(w->s->ops->outbox->settle(w->s, &done, 1, NULL, &w->e), "delivered");
    CHECK(syncs == before, "nobody needs to wait for it");
    must(insert_row(w, a_row("b")), "insert");
    CHECK(syncs > before, "the next commit was not synced");
    done = (struct settlement){.seq = r.messages[1].seq, .kind = SETTLE_ASIDE};
    before = syncs;
    must(w->s->ops->outbox->settle(w->s, &done, 1, NULL, &w->e), "set aside");
    CHECK(syncs > before, "what was set aside was not synced");
    shell_says(path_of(w, "intact.db"), "SELECT count(*) FROM outbox", "0\n");
    shell_says(path_of(w, "intact.db"), "SELECT count(*) FROM outbox_settled", "0\n");
}

static void what_was_acknowledged_survives_a_kill(void **state)
{
    struct world *w = *state;
    struct prng p = {1};
    char ids[400][32];
    unsigned count = 0;

    stop_store(w);
    for (unsigned round = 0; round < 8; round++) {
        int ends[2];
        CHECK(pipe(ends) == 0, "pipe");
        pid_t child = fork();
        if (child == 0)
            write_for_ever(w->dir, ends[1]);
        (void)close(ends[1]);
        for (unsigned k = 1 + prng_below(&p, 40); k > 0; k--)
            CHECK(read(ends[0], ids[count++], 32) == 32, "an acknowledgement");
        CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child, "killed");
        while (count < COUNT_OF(ids) && read(ends[0], ids[count], 32) == 32)
            count++;
        (void)close(ends[0]);
    }
    start_store(w);
    for (unsigned i = 0; i < count; i++)
        CHECK(exists(w, ids[i]), "%s is lost", ids[i]);
    CHECK(w->s->ops->boot(w->s) == 10, "ten starts");
}

static void a_row_that_was_tampered_with_hurts_nobody_else(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");

    must(insert_row(w, a_row("good")), "insert");
    must(insert_row(w, a_row("bad")), "insert");
    shell_exec(path, "UPDATE task SET doc = 'nonsense' WHERE id = 'bad'");
    CHECK(slice_is(fetch(w, "bad").doc, "nonsense"), "the store does not look into documents");
    shell_exec(path, "UPDATE task SET revision = 0 WHERE id = 'bad'");
    struct task_row row;
    CHECK(w->s->ops->get(w->s, SLICE("bad"), &w->a, &row, &w->e) == ERR_CORRUPT, "bad");
    CHECK(exists(w, "good"), "good");
    must(insert_row(w, a_row("next")), "and it goes on");
    struct claim c = {.kind = CLAIM_AGENT,
                      .agent = a_row("x").waiting_for,
                      .locked_by = SLICE("n1/1"),
                      .now = 1,
                      .limit = 10};
    struct batch b = {.claims = &c, .claim_count = 1};
    must(w->s->ops->commit(w->s, &b, &w->a, &w->e), "a claim that meets it");
    CHECK(c.row_count == 3, "claimed %zu", c.row_count);
    for (size_t i = 0; i < c.row_count; i++)
        CHECK(slice_is(c.rows[i].id, "bad") == !c.rows[i].doc.ptr, "the bad one has no document");
}

static void another_writer_makes_it_busy_for_a_while(void **state)
{
    struct world *w = *state;
    sqlite3 *db = shell_open(path_of(w, "intact.db"));

    CHECK(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "locked");
    CHECK(insert_row(w, a_row("x")) == ERR_BUSY, "busy");
    CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK, "unlocked");
    (void)sqlite3_close(db);
    must(insert_row(w, a_row("x")), "again");
}

/* --- the WAL --- */

static int64_t file_size(struct world *w, const char *name)
{
    struct stat st;

    return stat(path_of(w, name), &st) == 0 ? st.st_size : -1;
}

static void the_wal_is_used_again_after_a_checkpoint(void **state)
{
    struct world *w = *state;
    static char text[100000];
    char id[32];
    int64_t most = 0;

    memset(text, 'x', sizeof text);
    for (unsigned n = 0; n < 600; n++) {
        (void)snprintf(id, sizeof id, "t-%u", n);
        struct task_row row = a_row(id);
        row.doc = (struct slice){text, sizeof text};
        must(insert_row(w, row), id);
        (void)sqlite_store_maintain(w->s, false);
        most = max_i64(most, file_size(w, "intact.db-wal"));
    }
    CHECK(most < 20 << 20, "60 MB went through a WAL of %" PRId64, most);
    CHECK(file_size(w, "intact.db") > 40 << 20, "into the file");
}

static struct slice all_bytes(struct world *w)
{
    CLEANUP(buf_fini) struct buf b = {0};
    static const char *const names[] = {"intact.db", "intact.db-wal", "intact.db-shm", "lock"};

    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct stat st;
        CHECK(stat(path_of(w, names[i]), &st) == 0, "%s", names[i]);
        buf_fmt(&b, "%s %ld %ld.%09ld\n", names[i], (long)st.st_size, (long)st.st_mtim.tv_sec,
                st.st_mtim.tv_nsec);
    }
    return arena_copy(&w->a, buf_view(&b));
}

static void a_store_where_nothing_happens_writes_nothing(void **state)
{
    struct world *w = *state;
    struct lease l;
    struct row_page page;
    int64_t version;
    bool is_new;

    must(insert_row(w, a_row("x")), "insert");
    must(w->s->ops->workflow_put(w->s, SLICE("o"), SLICE("A"), 1, NULL, &version, &is_new, &w->e),
         "put");
    CHECK(sqlite_store_maintain(w->s, false), "something is left to do");
    CHECK(!sqlite_store_maintain(w->s, true), "idle: it is done");
    struct slice before = all_bytes(w);
    for (unsigned i = 0; i < 5; i++) {
        CHECK(!sqlite_store_maintain(w->s, i % 2), "nothing is left");
        struct claim c = claim_of(w, CLAIM_AGENT, "nobody", 5, 5);
        claim_commit(w, &c);
        c = claim_of(w, CLAIM_BOOT, NULL, 5, 5);
        claim_commit(w, &c);
        CHECK(insert_row(w, a_row("x")) == ERR_CONFLICT, "refused");
        const struct lease_try want = {.name = SLICE("s"),
                                       .holder = SLICE("n1/1"),
                                       .now = 1,
                                       .length_ms = 1};
        must(w->s->ops->lease(w->s, &want, &w->a, &l, &w->e), "lease");
        must(w->s->ops->overdue(w->s, 9, 0, 0, 9, &w->a, &page, &w->e), "overdue");
        must(w->s->ops->workflow_put(w->s, SLICE("o"), SLICE("A"), 1, NULL, &version, &is_new,
                                     &w->e),
             "put");
        CHECK(exists(w, "x"), "get");
    }
    struct slice after = all_bytes(w);
    CHECK(slice_eq(before, after), "before:\n%safter:\n%s", before.ptr, after.ptr);
}

/* --- people --- */

static const struct workflow_step two_steps[] = {
    {.name = {"reserve", 7}, .undo_kind = UNDO_CALL},
    {.name = {"charge", 6}, .undo_kind = UNDO_NONE},
};
static const struct workflow two = {.name = {"order", 5},
                                    .version = 1,
                                    .steps = two_steps,
                                    .step_count = 2};

static struct task_row shown_row(struct world *w, struct buf *doc, struct slice longer)
{
    static struct attempt attempts[] = {
        {.number = 1,
         .outcome = OUTCOME_TIMED_OUT,
         .effect = EFFECT_UNKNOWN,
         .started_at = 1000,
         .ended_at = 1769853600123,
         .complete_by = 3000,
         .tries = 4,
         .instance = {"p-1", 3},
         .error = {{"timeout", 7}, {"no answer", 9}}},
        {.number = 2,
         .outcome = OUTCOME_OPEN,
         .effect = EFFECT_UNKNOWN,
         .started_at = 4000,
         .complete_by = 5000,
         .resent = 2,
         .elsewhere = true,
         .instance = {"p-2", 3}},
    };
    static struct step steps[] = {{.state = STEP_RUNNING,
                                   .attempt = 2,
                                   .failure_count = 1,
                                   .attempts = attempts,
                                   .attempt_count = 2,
                                   .attempt_cap = 2,
                                   .error = {{"timeout", 7}, {"no answer", 9}},
                                   .resume = {"{\"page\": 7}", 11}},
                                  {.state = STEP_WAITING, .wait_until = 1}};
    struct task t = {.id = SLICE("o-1"),
                     .locked_by = SLICE("n1/1"),
                     .revision = 1,
                     .state = TASK_PROCESSING,
                     .priority = 5,
                     .submitted_at = 1,
                     .input = {SLICE("{\"sku\":\"A\"}"), 0},
                     .tags = SLICE("{\"city\":\"Bonn\",\"n\":1.5,\"b\":true}"),
                     .steps = steps,
                     .step_count = 2};
    struct task_row row;

    steps[0].input = (struct value){longer, 0};
    task_encode(&two, &t, &w->a, doc, &row);
    return row;
}

static void people_see_steps_and_attempts_in_a_plain_shell(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf doc = {0};
    const char *path = path_of(w, "intact.db");
    char longer[PAYLOAD_INLINE_MAX + 1];

    memset(longer, '7', sizeof longer);
    struct slice text = {longer, sizeof longer};
    must(insert_row(w, shown_row(w, &doc, text)), "insert");
    shell_says(path,
               "SELECT task, position, name, state, direction, attempt, failure_count, in_doubt, "
               "wait_until, length(input), error_code, error_message FROM task_step",
               "o-1|0|reserve|running|forward|2|1|1|NULL|2049|timeout|no answer\n"
               "o-1|1|charge|waiting|forward|0|0|0|1970-01-01T00:00:00.001Z|NULL|NULL|NULL\n");
    shell_says(path,
               "SELECT task, step, attempt, direction, outcome, effect, instance, started_at, "
               "ended_at, complete_by, error_code FROM task_attempt",
               "o-1|reserve|1|forward|timed_out|unknown|p-1|1970-01-01T00:00:01.000Z|"
               "2026-01-31T10:00:00.123Z|1970-01-01T00:00:03.000Z|timeout\n"
               "o-1|reserve|2|forward|open|unknown|p-2|1970-01-01T00:00:04.000Z|NULL|"
               "1970-01-01T00:00:05.000Z|NULL\n");
    shell_says(path, "SELECT name, resume, resume ->> '$.page' FROM task_step",
               "reserve|{\"page\":7}|7\ncharge|NULL|NULL\n");
    shell_says(path, "SELECT attempt, resent, tries, elsewhere, spared FROM task_attempt",
               "1|0|4|0|0\n2|2|0|1|0\n");
    shell_says(path, "SELECT id, state, submitted_at, started_at, input FROM task_view",
               "o-1|processing|1970-01-01T00:00:00.001Z|NULL|{\"sku\":\"A\"}\n");
    shell_says(path, "SELECT key, value, t.id FROM tag JOIN task AS t ON t.seq = tag.task",
               "b|true|o-1\ncity|Bonn|o-1\nn|1.5|o-1\n");
    shell_says(path, "SELECT task, number, length(json) FROM payload", "1|1|2049\n");
}

/* What wakes the server is seen before what it tells of. */
static void who_is_about_to_commit_is_waited_for(void **state)
{
    struct world *w = *state;
    struct submission_take t = {.limit = 10};
    sqlite3 *app = shell_open(path_of(w, "intact.db"));

    CHECK(sqlite3_exec(app,
                       "BEGIN IMMEDIATE; INSERT INTO submit (workflow, id) VALUES ('w', 'o-1')",
                       NULL, NULL, NULL)
              == SQLITE_OK,
          "%s", sqlite3_errmsg(app));
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), w->e.text);
    CHECK(t.count == 0 && t.unsettled, "it may be there at once");
    CHECK(sqlite3_exec(app, "COMMIT", NULL, NULL, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(app));
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), w->e.text);
    CHECK(t.count == 1 && !t.unsettled, "it is there");
    CHECK(sqlite3_close(app) == SQLITE_OK, "close");
}

static void every_time_of_a_view_is_exact(void **state)
{
    struct world *w = *state;
    struct prng p = {3};

    for (unsigned i = 0; i < 300; i++) {
        CLEANUP(buf_fini) struct buf sql = {0};
        CLEANUP(buf_fini) struct buf want = {0};
        int64_t at = 1 + (int64_t)(prng_next(&p) % UINT64_C(4102444800000));
        buf_fmt(&sql,
                "SELECT strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', %" PRId64 " / 1000.0, 'unixepoch')",
                at);
        time_write(&want, at);
        buf_byte(&want, '\n');
        shell_says(path_of(w, "intact.db"), sql.ptr, want.ptr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(a_file_that_is_no_database_is_refused),
        ON_SQLITE(the_database_of_another_program_is_refused),
        ON_SQLITE(the_store_of_a_newer_version_is_refused),
        ON_SQLITE(a_store_without_its_schema_is_refused),
        ON_SQLITE(a_folder_in_use_is_refused),
        ON_SQLITE(a_lock_that_is_given_up_soon_is_waited_for),
        ON_SQLITE(files_belong_to_their_owner_alone),
        ON_SQLITE(a_folder_or_file_without_permission_is_refused),
        ON_SQLITE(permission_lost_and_found_is_no_harm),
        ON_SQLITE(a_database_at_its_maximum_refuses_and_recovers),
        ON_SQLITE(a_full_disk_refuses_and_recovers),
        ON_SQLITE(what_is_acknowledged_was_synced),
        ON_SQLITE(each_sync_is_counted),
        ON_SQLITE(only_what_was_delivered_waits_for_no_sync),
        ON_SQLITE(what_was_acknowledged_survives_a_kill),
        ON_SQLITE(a_row_that_was_tampered_with_hurts_nobody_else),
        ON_SQLITE(another_writer_makes_it_busy_for_a_while),
        ON_SQLITE(the_wal_is_used_again_after_a_checkpoint),
        ON_SQLITE(a_store_where_nothing_happens_writes_nothing),
        ON_SQLITE(people_see_steps_and_attempts_in_a_plain_shell),
        ON_SQLITE(who_is_about_to_commit_is_waited_for),
        ON_SQLITE(every_time_of_a_view_is_exact),
    };
    return cmocka_run_group_tests_name("store in SQLite", tests, NULL, NULL);
}
