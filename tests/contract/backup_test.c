/* Tests of the SQLite store's backups (backup.c, offline.c, restore.c): made while everything
 * goes on, used in another folder, and copies that are no backups. Faults, kills and file
 * permissions included. */

#include "base/uuid.h"
#include "shell.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "store/sqlite/body.h"

enum { BIG = 300 * 1024 };

static const struct audit by_ann = {.at = 1, .actor = {"ann", 3}, .verb = {"backup", 6}};

static bool is_there(struct world *w, const char *name)
{
    return access(path_of(w, name), F_OK) == 0;
}

static void insert_many(struct world *w, const char *prefix, int count)
{
    char id[32];

    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "%s%d", prefix, i);
        must(insert_row(w, a_row(arena_copy(&w->a, slice_of(id)).ptr)), id);
    }
}

/* A document of that many bytes takes the place of the one that is there. */
static void rewrite(struct world *w, const char *id, size_t size)
{
    struct task_row row = fetch(w, id);
    char *doc = arena_bytes(&w->a, size + 64);

    int len = snprintf(doc, size + 64, "{\"steps\":[],\"x\":\"%0*d\"}", (int)size, 7);
    row.doc = (struct slice){doc, (size_t)len};
    row.revision++;
    row.payload_count = 0;
    must(update_row(w, row), id);
}

static void step_once(struct world *w, struct backup_step *b)
{
    b->budget_us = 0;
    CHECK(w->s->ops->backup->step(w->s, b, &w->e) == ERR_OK, "%s", w->e.text);
}

static void save_as(struct world *w, int fd, const char *name)
{
    static char bytes[65536];
    ssize_t n;
    int to = open(path_of(w, name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(to >= 0 && lseek(fd, 0, SEEK_SET) == 0, "%s", name);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        CHECK(write(to, bytes, (size_t)n) == n, "written");
    CHECK(n == 0, "read to its end");
    (void)close(to);
    (void)close(fd);
}

static void backup_as(struct world *w, const char *name)
{
    struct backup_step b = {.fd = -1};

    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    while (b.fd < 0)
        step_once(w, &b);
    save_as(w, b.fd, name);
}

/* All rows of all tables that clients fill, as one text. */
static const char *content(struct world *w, const char *name)
{
    static const char sql[] =
        "SELECT id || revision || doc FROM task UNION ALL SELECT key || json FROM payload "
        "UNION ALL SELECT name || hex(hash) FROM token UNION ALL SELECT actor || verb FROM audit "
        "UNION ALL SELECT hex(value) FROM meta";
    CLEANUP(buf_fini) struct buf b = {0};
    sqlite3 *db = shell_open(path_of(w, name));
    sqlite3_stmt *q = NULL;

    CHECK(sqlite3_prepare_v2(db, sql, -1, &q, NULL) == SQLITE_OK, "%s", sqlite3_errmsg(db));
    while (sqlite3_step(q) == SQLITE_ROW)
        buf_fmt(&b, "%s\n", (const char *)sqlite3_column_text(q, 0));
    (void)sqlite3_finalize(q);
    (void)sqlite3_close(db);
    return arena_copy(&w->a, buf_view(&b)).ptr;
}

static void is_sound(struct world *w, const char *name)
{
    CHECK(sqlite_file_check(path_of(w, name), &w->e) == ERR_OK, "%s", w->e.text);
    CHECK(strcmp(content(w, name), content(w, "intact.db")) == 0, "it is the store as it was last");
}

/* ---- while the store is in use ---- */

static void a_backup_is_the_store_as_it_is_at_its_end(void **state)
{
    struct world *w = *state;
    struct backup_step b = {.fd = -1};
    char id[16];
    struct stat st;
    int steps = 0;

    insert_many(w, "before", 100);
    rewrite(w, "before5", 20 * BIG);
    must(w->s->ops->backup->begin(w->s, &by_ann, &w->e), w->e.text);
    CHECK(stat(path_of(w, "backup.part"), &st) == 0 && (st.st_mode & 0777) == 0600, "its mode");
    for (; b.fd < 0; steps++) {
        (void)snprintf(id, sizeof id, "while%d", steps);
        must(insert_row(w, a_row(arena_copy(&w->a, slice_of(id)).ptr)), id);
        rewrite(w, "before1", (size_t)(1000 + steps));
        (void)sqlite_store_maintain(w->s, steps % 7 == 0);
        step_once(w, &b);
        CHECK(b.whole > 0 && b.left >= 0 && b.left <= b.whole, "how far it is");
    }
    CHECK(steps > 20, "it took %d steps", steps);
    CHECK(!is_there(w, "backup.part"), "it has no name any more");
    save_as(w, b.fd, "copy.db");
    shell_says(path_of(w, "copy.db"), "PRAGMA journal_mode", "delete\n");
    shell_says(path_of(w, "copy.db"), "SELECT actor FROM audit WHERE verb = 'backup'", "ann\n");
    is_sound(w, "copy.db");
    CHECK(!is_there(w, "copy.db-wal"), "nothing beside it");
}

static void the_wal_does_not_grow_with_a_backup(void **state)
{
    struct world *w = *state;
    struct backup_step b = {.fd = -1};
    int64_t written = 0;
    struct stat st;

    insert_many(w, "t", 2);
    rewrite(w, "t0", 32 * BIG);
    rewrite(w, "t1", BIG);
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    while (b.fd < 0) {
        rewrite(w, "t1", BIG);
        written += BIG;
        (void)sqlite_store_maintain(w->s, false);
        step_once(w, &b);
        CHECK(stat(path_of(w, "intact.db-wal"), &st) == 0, "the WAL");
        CHECK(st.st_size < 24 << 20, "the WAL is %" PRId64 " bytes", (int64_t)st.st_size);
    }
    CHECK(written > 40 << 20, "only %" PRId64 " bytes written", written);
    save_as(w, b.fd, "copy.db");
    is_sound(w, "copy.db");
}

static void a_transaction_that_is_undone_does_not_harm_it(void **state)
{
    struct world *w = *state;
    struct token_row t = {.name = SLICE("admin"), .roles = SLICE("[]"), .admin = true};
    struct backup_step b = {.fd = -1};

    insert_many(w, "t", 2);
    rewrite(w, "t0", 10 * BIG);
    must(w->s->ops->token_put(w->s, &t, false, NULL, &w->e), "a token");
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    for (int i = 0; i < 10; i++)
        step_once(w, &b);
    CHECK(w->s->ops->token_delete(w->s, SLICE("admin"), 5, &by_ann, &w->e) == ERR_CONFLICT,
          "it is the last admin's: undone");
    while (b.fd < 0)
        step_once(w, &b);
    save_as(w, b.fd, "copy.db");
    is_sound(w, "copy.db");
}

static void a_store_that_is_opened_again_ends_it(void **state)
{
    struct world *w = *state;
    struct backup_step b = {.fd = -1};

    insert_many(w, "t", 1);
    rewrite(w, "t0", 10 * BIG);
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    step_once(w, &b);
    CHECK(b.fd < 0, "it is not ready");
    sqlite_store_of(w->s)->broken = true;
    insert_many(w, "u", 1);
    CHECK(w->s->ops->backup->step(w->s, &b, &w->e) == ERR_IO, "given up");
    CHECK(strstr(w->e.text, "given up"), "%s", w->e.text);
    CHECK(!is_there(w, "backup.part"), "nothing is left");
    backup_as(w, "copy.db");
    is_sound(w, "copy.db");
}

/* An application that commits between any two steps: from some moment on it has to wait. */
static void an_application_that_writes_all_the_time_does_not_keep_it_from_ending(void **state)
{
    struct world *w = *state;
    struct backup_step b = {.fd = -1};
    int waited = 0;

    insert_many(w, "before", 100);
    rewrite(w, "before5", 20 * BIG);
    sqlite3 *app = shell_open(path_of(w, "intact.db"));
    (void)sqlite3_busy_timeout(app, 0);
    CHECK(sqlite3_exec(app, "CREATE TABLE app (x)", NULL, NULL, NULL) == SQLITE_OK, "a table");
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    for (int steps = 0; b.fd < 0; steps++) {
        int rc = sqlite3_exec(app, "INSERT INTO app VALUES (1)", NULL, NULL, NULL);
        CHECK(rc == SQLITE_OK || rc == SQLITE_BUSY, "%s", sqlite3_errmsg(app));
        waited += rc == SQLITE_BUSY;
        CHECK(waited > 0 || steps < 100, "it begins anew each time, and never holds them");
        rewrite(w, "before1", (size_t)(1000 + steps)); /* the server itself goes on */
        step_once(w, &b);
    }
    CHECK(waited > 0, "it had to wait");
    CHECK(sqlite3_exec(app, "INSERT INTO app VALUES (2)", NULL, NULL, NULL) == SQLITE_OK, "%s",
          sqlite3_errmsg(app));
    (void)sqlite3_close(app);
    save_as(w, b.fd, "copy.db");
    CHECK(sqlite_file_check(path_of(w, "copy.db"), &w->e) == ERR_OK, "%s", w->e.text);
    shell_says(path_of(w, "copy.db"), "SELECT count(*) > 0 FROM app", "1\n");
}

static void one_that_is_given_up_leaves_nothing(void **state)
{
    struct world *w = *state;
    struct backup_step b = {.fd = -1};

    insert_many(w, "t", 1);
    rewrite(w, "t0", 10 * BIG);
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    step_once(w, &b);
    CHECK(is_there(w, "backup.part"), "it is being made");
    w->s->ops->backup->end(w->s);
    CHECK(!is_there(w, "backup.part"), "nothing is left");
    must(w->s->ops->backup->begin(w->s, NULL, &w->e), w->e.text);
    world_restart(w);
    CHECK(!is_there(w, "backup.part"), "closing ends it, too");
    w->s->ops->backup->end(w->s);
}

static void what_a_kill_left_is_removed_at_the_start(void **state)
{
    struct world *w = *state;

    stop_store(w);
    shell_exec(path_of(w, "backup.part"), "CREATE TABLE half (x)");
    shell_exec(path_of(w, "restore.part"), "CREATE TABLE half (x)");
    start_store(w);
    CHECK(!is_there(w, "backup.part") && !is_there(w, "restore.part"), "both are gone");
}

/* ---- restoring ---- */

static enum err restore_to(struct world *w, const char *name, const char *dir, bool replace)
{
    struct sqlite_restore r = {.dir = path_of(w, dir), .name = name, .replace = replace};

    r.fd = open(path_of(w, name), O_RDONLY | O_CLOEXEC);
    CHECK(r.fd >= 0, "%s", name);
    enum err err = sqlite_folder_restore(&r, &w->e);
    (void)close(r.fd);
    return err;
}

static void what_is_restored_is_what_was_backed_up(void **state)
{
    struct world *w = *state;
    struct stat st;

    insert_many(w, "t", 50);
    rewrite(w, "t0", BIG);
    uint64_t boot = w->s->ops->boot(w->s);
    backup_as(w, "copy.db");
    const char *before = content(w, "copy.db");
    insert_many(w, "later", 1);
    CHECK(restore_to(w, "copy.db", "r", false) == ERR_OK, "%s", w->e.text);
    CHECK(strcmp(before, content(w, "r/intact.db")) == 0, "the same");
    CHECK(stat(path_of(w, "r/intact.db"), &st) == 0 && (st.st_mode & 0777) == 0600, "its mode");
    CHECK(!is_there(w, "r/restore.part") && !is_there(w, "r/intact.db-journal"), "nothing else");

    char installation[UUID_SIZE];
    memcpy(installation, w->s->ops->installation(w->s), UUID_SIZE);
    stop_store(w);
    CHECK(sqlite_store_open(path_of(w, "r"), &w->s, &w->e) == ERR_OK, "%s", w->e.text);
    CHECK(strcmp(w->s->ops->installation(w->s), installation) == 0, "the same installation");
    CHECK(exists(w, "t49") && !exists(w, "later"), "as it was");
    CHECK(w->s->ops->boot(w->s) > boot + 1000, "no start of the original has this number");
}

static void a_folder_with_a_store_is_not_restored_into_by_mistake(void **state)
{
    struct world *w = *state;
    struct stat st;

    insert_many(w, "old", 1);
    backup_as(w, "copy.db");
    CHECK(restore_to(w, "copy.db", ".", false) == ERR_LOCKED, "a server has it");
    insert_many(w, "newer", 1);
    stop_store(w);
    CHECK(restore_to(w, "copy.db", ".", false) == ERR_CONFLICT, "there is one");
    CHECK(strstr(w->e.text, "--force"), "%s", w->e.text);
    start_store(w);
    CHECK(exists(w, "newer0"), "it is as it was");
    stop_store(w);

    CHECK(stat(path_of(w, "intact.db"), &st) == 0, "it is there");
    struct sqlite_restore r = {.dir = w->dir, .name = "copy", .replace = true};
    r.fd = open(path_of(w, "copy.db"), O_RDONLY | O_CLOEXEC);
    CHECK(sqlite_folder_restore(&r, &w->e) == ERR_OK, "%s", w->e.text);
    (void)close(r.fd);
    start_store(w);
    CHECK(exists(w, "old0") && !exists(w, "newer0"), "restored");
    stop_store(w);
    char aside[sizeof w->dir + sizeof r.aside];
    (void)snprintf(aside, sizeof aside, "%s/%s", w->dir, r.aside);
    CHECK(sqlite_store_open(aside, &w->s, &w->e) == ERR_OK, "%s", w->e.text);
    CHECK(exists(w, "newer0"), "the old one is there, and is no copy");
}

static void what_is_no_sound_backup_is_refused(void **state)
{
    struct world *w = *state;
    static const char bytes[4096] = {1, 2, 3};

    insert_many(w, "t", 100);
    rewrite(w, "t0", BIG);
    backup_as(w, "copy.db");
    backup_as(w, "newer.db");
    backup_as(w, "torn.db");
    shell_exec(path_of(w, "newer.db"), "PRAGMA user_version = 99");
    shell_exec(path_of(w, "other.db"), "CREATE TABLE x (y)");
    int fd = open(path_of(w, "torn.db"), O_WRONLY | O_CLOEXEC);
    for (int page = 2; page < 20; page++)
        CHECK(pwrite(fd, bytes, sizeof bytes, page * 4096) == sizeof bytes, "damaged");
    (void)close(fd);
    fd = open(path_of(w, "letter"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(write(fd, "hello", 5) == 5, "written");
    (void)close(fd);
    CHECK(truncate(path_of(w, "copy.db"), 40960) == 0, "cut short");

    static const struct {
        const char *name, *story;
        enum err err;
    } cases[] = {
        {"newer.db", "use the newer program", ERR_NEWER},
        {"other.db", "not a state store", ERR_NOT_A_STORE},
        {"letter", "not a backup", ERR_NOT_A_STORE},
        {"torn.db", "damaged", ERR_CORRUPT},
        {"copy.db", "damaged", ERR_CORRUPT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum err err = restore_to(w, cases[i].name, "r", false);
        CHECK(err == cases[i].err, "%s: %s: %s", cases[i].name, err_text(err), w->e.text);
        CHECK(strstr(w->e.text, cases[i].story), "%s", w->e.text);
        CHECK(!is_there(w, "r/intact.db") && !is_there(w, "r/restore.part"), "nothing is left");
    }
}

/* Into a folder with a store whose WAL still holds what it accepted last. */
static void make_old(struct world *w, const char *dir)
{
    struct store *s = NULL;
    struct world old = {.sqlite = true};

    CHECK(sqlite_store_open(path_of(w, dir), &s, &w->e) == ERR_OK, "%s", w->e.text);
    old.s = s;
    insert_many(&old, "old", 3);
    s->ops->close(s);
    arena_fini(&old.a);
}

static void a_restore_that_fails_leaves_the_old_store_or_none(void **state)
{
    struct world *w = *state;
    char dir[32];
    struct error e;

    insert_many(w, "new", 3);
    backup_as(w, "copy.db");
    for (unsigned kind = 0; kind < 2; kind++) {
        bool fired = true;
        for (uint32_t n = 0; fired; n++) {
            CHECK(n < 200, "never ends");
            (void)snprintf(dir, sizeof dir, "r%u-%u", kind, n);
            make_old(w, dir);
            fault_plan = (struct fault_plan){.skip = n, .fire = kind ? UINT32_MAX : 1};
            enum err err = restore_to(w, "copy.db", dir, true);
            fired = fault_plan.fired > 0;
            fault_plan = (struct fault_plan){0};
            CHECK(fired || err == ERR_OK, "call %u: %s", n, w->e.text);
            struct world again = {.sqlite = true};
            enum err opened = sqlite_store_open(path_of(w, dir), &again.s, &e);
            CHECK(opened == ERR_OK || (err != ERR_OK && opened == ERR_CORRUPT), "call %u: %s", n,
                  e.text);
            if (opened == ERR_OK) {
                CHECK(exists(&again, err == ERR_OK ? "new2" : "old2")
                          || (err != ERR_OK && exists(&again, "new2")),
                      "call %u: the one or the other", n);
                again.s->ops->close(again.s);
            }
            CHECK(restore_to(w, "copy.db", dir, true) == ERR_OK, "call %u: again: %s", n,
                  w->e.text);
            CHECK(sqlite_store_open(path_of(w, dir), &again.s, &e) == ERR_OK, "%s", e.text);
            CHECK(exists(&again, "new2") && !exists(&again, "old2"), "call %u: afterwards", n);
            again.s->ops->close(again.s);
            arena_fini(&again.a);
        }
    }
}

/* Without a start in between: the old store has one name afterwards, wherever that is. */
static void a_restore_that_is_run_again_moves_the_old_store_once(void **state)
{
    struct world *w = *state;
    char pattern[200];
    char dir[32];
    glob_t found;
    struct stat st;

    insert_many(w, "new", 3);
    backup_as(w, "copy.db");
    bool fired = true;
    for (uint32_t n = 0; fired; n++) {
        CHECK(n < 200, "never ends");
        (void)snprintf(dir, sizeof dir, "again%u", n);
        make_old(w, dir);
        fault_plan = (struct fault_plan){.skip = n, .fire = UINT32_MAX};
        (void)restore_to(w, "copy.db", dir, true);
        fired = fault_plan.fired > 0;
        fault_plan = (struct fault_plan){0};
        CHECK(restore_to(w, "copy.db", dir, true) == ERR_OK, "call %u: %s", n, w->e.text);
        (void)snprintf(pattern, sizeof pattern, "%s/before-restore-*/intact.db", path_of(w, dir));
        CHECK(glob(pattern, 0, NULL, &found) == 0, "call %u: the old one is gone", n);
        for (size_t i = 0; i < found.gl_pathc; i++)
            CHECK(stat(found.gl_pathv[i], &st) == 0 && st.st_nlink == 1,
                  "call %u: %s has %ld names", n, found.gl_pathv[i], (long)st.st_nlink);
        globfree(&found);
    }
}

/* A service's folder is its user's, and who restores into it is root. */
static void what_root_restores_belongs_to_the_folders_owner(void **state)
{
    static const char *const made[] = {"r/intact.db", "r/lock"};
    struct world *w = *state;
    struct stat st;

    if (geteuid() != 0)
        skip();
    insert_many(w, "t", 3);
    backup_as(w, "copy.db");
    CHECK(mkdir(path_of(w, "r"), 0700) == 0 && chown(path_of(w, "r"), 65534, 65533) == 0, "made");
    for (int round = 0; round < 2; round++) {
        struct sqlite_restore r = {.dir = path_of(w, "r"), .name = "copy", .replace = true};
        char aside[100];
        r.fd = open(path_of(w, "copy.db"), O_RDONLY | O_CLOEXEC);
        CHECK(sqlite_folder_restore(&r, &w->e) == ERR_OK, "%s", w->e.text);
        (void)close(r.fd);
        for (size_t i = 0; i < COUNT_OF(made); i++)
            CHECK(stat(path_of(w, made[i]), &st) == 0 && st.st_uid == 65534 && st.st_gid == 65533,
                  "%s", made[i]);
        (void)snprintf(aside, sizeof aside, "r/%s", r.aside);
        CHECK(round == 0 || (stat(path_of(w, aside), &st) == 0 && st.st_uid == 65534), "%s", aside);
    }
}

/* ---- a folder that nobody uses ---- */

static void touch(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0, "%s", path);
    (void)close(fd);
}

static void a_folder_is_backed_up_without_a_server(void **state)
{
    struct world *w = *state;
    const char *copy = path_of(w, "copy.db");

    touch(copy);
    CHECK(sqlite_folder_backup(w->dir, copy, NULL, &w->e) == ERR_LOCKED, "a server has it");
    insert_many(w, "t", 30);
    stop_store(w);
    sqlite3 *db = shell_open(path_of(w, "intact.db")); /* leaves its change in the WAL */
    (void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    CHECK(sqlite3_exec(db, "UPDATE task SET revision = 77 WHERE id = 't3'", NULL, NULL, NULL) == 0,
          "set");
    (void)sqlite3_close(db);

    bool fired = true;
    for (uint32_t n = 0; fired; n++) {
        touch(copy);
        fault_plan = (struct fault_plan){.skip = n, .fire = 1};
        enum err err = sqlite_folder_backup(w->dir, copy, NULL, &w->e);
        fired = fault_plan.fired > 0;
        fault_plan = (struct fault_plan){0};
        CHECK(fired || err == ERR_OK, "call %u: %s", n, w->e.text);
        CHECK(is_there(w, "intact.db-wal"), "the folder is as it was");
    }
    shell_says(copy, "SELECT revision FROM task WHERE id = 't3'", "77\n");
    is_sound(w, "copy.db");
    CHECK(sqlite_folder_backup(path_of(w, "none"), copy, NULL, &w->e) == ERR_NOT_FOUND, "none");
    CHECK(!is_there(w, "none"), "and none is made");
    start_store(w);
}

/* ---- copies ---- */

static void shell(const char *command, const char *a, const char *b)
{
    CLEANUP(buf_fini) struct buf cmd = {0};

    buf_fmt(&cmd, "%s %s %s", command, a, b);
    CHECK(system(cmd.ptr) == 0, "%s", cmd.ptr); /* NOLINT: names of our own */
}

static void a_copied_folder_is_refused_until_it_is_adopted(void **state)
{
    struct world *w = *state;
    struct store *s = NULL;
    bool was_copy = true;
    char installation[UUID_SIZE];

    insert_many(w, "t", 20);
    stop_store(w);
    CLEANUP(buf_fini) struct buf name = {0};
    buf_fmt(&name, "%s-copied", w->dir);
    const char *copy = name.ptr;
    shell("cp -r", w->dir, copy);
    for (int i = 0; i < 2; i++) {
        CHECK(sqlite_store_open(copy, &s, &w->e) == ERR_COPIED && !s, "%s", w->e.text);
        CHECK(strstr(w->e.text, "--adopt") && strstr(w->e.text, copy), "%s", w->e.text);
    }
    CHECK(sqlite_store_adopt(copy, &was_copy, &w->e) == ERR_OK && was_copy, "%s", w->e.text);
    CHECK(sqlite_store_open(copy, &s, &w->e) == ERR_OK, "%s", w->e.text);
    CHECK(s->ops->boot(s) > 1000, "the original had no start of this number");
    memcpy(installation, s->ops->installation(s), UUID_SIZE);
    s->ops->close(s);
    CHECK(sqlite_store_adopt(copy, &was_copy, &w->e) == ERR_OK && !was_copy, "it is the one now");
    start_store(w); /* so is the original */
    CHECK(strcmp(w->s->ops->installation(w->s), installation) == 0, "it takes its place");
    CHECK(sqlite_store_adopt(w->dir, &was_copy, &w->e) == ERR_LOCKED, "in use");
    shell("rm -r", copy, "");
}

static void a_folder_that_moved_is_no_copy(void **state)
{
    struct world *w = *state;
    CLEANUP(buf_fini) struct buf moved = {0};
    struct store *s = NULL;

    insert_many(w, "t", 1);
    stop_store(w);
    buf_fmt(&moved, "%s-moved", w->dir);
    CHECK(rename(w->dir, moved.ptr) == 0, "moved");
    CHECK(sqlite_store_open(moved.ptr, &s, &w->e) == ERR_OK, "%s", w->e.text);
    s->ops->close(s);
    CHECK(rename(moved.ptr, w->dir) == 0, "moved back");
    shell_exec(path_of(w, "intact.db"), "VACUUM");
    start_store(w);
}

static void a_damaged_copy_is_not_adopted(void **state)
{
    struct world *w = *state;
    static const char bytes[4096] = {1, 2, 3};
    bool was_copy = true;

    insert_many(w, "t", 400);
    rewrite(w, "t0", BIG);
    stop_store(w);
    shell("cp", path_of(w, "intact.db"), path_of(w, "x"));
    shell("mv", path_of(w, "x"), path_of(w, "intact.db"));
    int fd = open(path_of(w, "intact.db"), O_WRONLY | O_CLOEXEC);
    off_t middle =
        lseek(fd, 0, SEEK_END) / 8192 * 4096; /* of the tasks; the schema lies in front */
    CHECK(pwrite(fd, bytes, sizeof bytes, middle) == sizeof bytes, "damaged");
    (void)close(fd);
    CHECK(sqlite_store_adopt(w->dir, &was_copy, &w->e) == ERR_CORRUPT && !was_copy, "%s",
          w->e.text);
    CHECK(strstr(w->e.text, "intact backup"), "%s", w->e.text);
    CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_COPIED, "and still refused");
}

static void an_adoption_that_fails_changes_nothing(void **state)
{
    struct world *w = *state;
    bool fired = true;
    bool was_copy = false;

    insert_many(w, "t", 3);
    stop_store(w);
    for (uint32_t n = 0; fired; n++) {
        shell("cp", path_of(w, "intact.db"), path_of(w, "x"));
        shell("mv", path_of(w, "x"), path_of(w, "intact.db"));
        (void)unlink(path_of(w, "intact.db-wal"));
        (void)unlink(path_of(w, "intact.db-shm"));
        fault_plan = (struct fault_plan){.skip = n, .fire = 1};
        enum err err = sqlite_store_adopt(w->dir, &was_copy, &w->e);
        fired = fault_plan.fired > 0;
        fault_plan = (struct fault_plan){0};
        CHECK(fired || err == ERR_OK, "call %u: %s", n, w->e.text);
        CHECK((err == ERR_OK) == was_copy, "call %u", n);
        if (err != ERR_OK)
            CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_COPIED, "call %u: %s", n,
                  w->e.text);
        /* what the next copy is made of has to have it in the file, not in the WAL */
        shell_exec(path_of(w, "intact.db"), "PRAGMA wal_checkpoint(TRUNCATE)");
    }
    start_store(w);
}

/* ---- who may write a store that is there ---- */

enum { NOBODY = 65534 };

/* One who is neither the server's user nor root, with the group that was let in, or another one. */
static int submits(struct world *w, gid_t group)
{
    int status = -1;
    pid_t child = fork();

    if (child == 0) {
        sqlite3 *db = NULL;
        if (setgroups(0, NULL) != 0 || setgid(group) != 0 || setuid(NOBODY) != 0
            || sqlite3_open(path_of(w, "intact.db"), &db) != SQLITE_OK)
            _exit(1);
        (void)sqlite3_busy_timeout(db, 60000);
        _exit(sqlite3_exec(db, "INSERT INTO submit (workflow, id, input) VALUES ('w', 'g', '{}')",
                           NULL, NULL, NULL)
                      == SQLITE_OK
                  ? 0
                  : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status), "ended");
    return WEXITSTATUS(status);
}

/* Whoever may write the file is an admin: so nobody but its owner, until he lets a group in. */
static void a_group_may_be_let_in_and_nobody_else_is(void **state)
{
    enum { GROUP = 54321 };
    struct world *w = *state;
    static const char *const names[] = {"intact.db", "intact.db-wal", "intact.db-shm"};
    struct stat st;

    if (geteuid() != 0) {
        (void)fprintf(stderr, "not root: cannot become somebody else\n");
        skip();
    }
    must(insert_row(w, a_row("x")), "insert");
    CHECK(submits(w, GROUP) == 1, "before it is let in");
    stop_store(w);
    CHECK(chown(w->dir, 0, GROUP) == 0 && chmod(w->dir, 02770) == 0, "the folder");
    CHECK(chown(path_of(w, "intact.db"), 0, GROUP) == 0
              && chmod(path_of(w, "intact.db"), 0660) == 0,
          "the file");
    mode_t old = umask(077); /* as the server has it */
    start_store(w);
    must(insert_row(w, a_row("y")), "insert");
    (void)umask(old);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CHECK(stat(path_of(w, names[i]), &st) == 0, "%s", names[i]);
        CHECK((st.st_mode & 0777) == 0660 && st.st_gid == GROUP, "%s has mode %o, group %u",
              names[i], st.st_mode & 0777, (unsigned)st.st_gid);
    }
    CHECK(stat(path_of(w, "lock"), &st) == 0 && (st.st_mode & 0777) == 0600, "the lock");
    CHECK(submits(w, GROUP) == 0, "a member of the group");
    CHECK(submits(w, GROUP + 1) == 1, "somebody else");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(a_backup_is_the_store_as_it_is_at_its_end),
        ON_SQLITE(the_wal_does_not_grow_with_a_backup),
        ON_SQLITE(a_transaction_that_is_undone_does_not_harm_it),
        ON_SQLITE(a_store_that_is_opened_again_ends_it),
        ON_SQLITE(an_application_that_writes_all_the_time_does_not_keep_it_from_ending),
        ON_SQLITE(one_that_is_given_up_leaves_nothing),
        ON_SQLITE(what_a_kill_left_is_removed_at_the_start),
        ON_SQLITE(what_is_restored_is_what_was_backed_up),
        ON_SQLITE(a_folder_with_a_store_is_not_restored_into_by_mistake),
        ON_SQLITE(what_is_no_sound_backup_is_refused),
        ON_SQLITE(a_restore_that_fails_leaves_the_old_store_or_none),
        ON_SQLITE(a_restore_that_is_run_again_moves_the_old_store_once),
        ON_SQLITE(what_root_restores_belongs_to_the_folders_owner),
        ON_SQLITE(a_group_may_be_let_in_and_nobody_else_is),
        ON_SQLITE(a_folder_is_backed_up_without_a_server),
        ON_SQLITE(a_copied_folder_is_refused_until_it_is_adopted),
        ON_SQLITE(a_folder_that_moved_is_no_copy),
        ON_SQLITE(a_damaged_copy_is_not_adopted),
        ON_SQLITE(an_adoption_that_fails_changes_nothing),
    };
    return cmocka_run_group_tests_name("backup", tests, NULL, NULL);
}
