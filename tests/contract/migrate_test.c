/* Tests of migrations of the SQLite schema: stores of older versions are brought up to date, a
 * migration that fails leaves the old version, and the constraints of the schema hold.
 * tests/postgres/schema_test.c does this for PostgreSQL. */

#include "base/uuid.h"
#include "shell.h"

#include <sys/stat.h>
#include <unistd.h>

#include "store/sqlite/body.h"
#include "store/sqlite_migrations.h"

/* As version 1 of this program left it: its schema, and a row of most tables. */
static void make_version_1(struct world *w)
{
    const char *path = path_of(w, "intact.db");

    CHECK(unlink(path) == 0, "removed");
    shell_exec(path, "PRAGMA journal_mode = DELETE");
    shell_exec(path, schema_sqlite_0001);
    shell_exec(path,
               "INSERT INTO meta (name, value) VALUES ('secret', randomblob(32)); "
               "INSERT INTO node (name, boot) VALUES ('n1', 6); "
               "INSERT INTO workflow (name, version, text, created_at) VALUES ('o', 1, 'A', 5); "
               "INSERT INTO task (id, workflow, version, submitted_at, tags, revision, state, "
               "direction, priority, waiting_for, rank, failure_count, doc) "
               "VALUES ('old', 'o', 1, 7, '{\"k\":\"v\"}', 3, 'pending', 'forward', 5, 'a', 1, 2, "
               "'{\"steps\":[]}'); "
               "INSERT INTO payload (key, json) VALUES (1048577, '\"long\"'); "
               "INSERT INTO tag (key, value, task) VALUES ('k', 'v', 1); "
               "PRAGMA application_id = 0x496e7463; PRAGMA user_version = 1; "
               "PRAGMA journal_mode = WAL");
}

static void is_up_to_date(const char *path)
{
    char version[16];

    (void)snprintf(version, sizeof version, "%d\n", schema_version);
    shell_says(path, "PRAGMA user_version", version);
}

static void a_store_of_version_1_is_brought_up_to_date(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    const struct audit done = {.at = 1, .actor = SLICE("ann"), .verb = SLICE("retry")};
    struct token_row t = {.name = SLICE("admin"), .roles = SLICE("[]")};

    stop_store(w);
    make_version_1(w);
    start_store(w);
    is_up_to_date(path);
    shell_says(path, "SELECT count(*) FROM file WHERE inode > 0", "1\n");
    CHECK(w->s->ops->boot(w->s) == 7, "its starts are counted on");
    char installation[UUID_SIZE];
    CHECK(uuid_read(slice_of(w->s->ops->installation(w->s)), installation), "it has an id");
    struct task_row row = fetch(w, "old");
    CHECK(row.revision == 3 && row.failure_count == 2 && row.payload_count == 1, "the task");
    must(w->s->ops->token_put(w->s, &t, false, &done, &w->e), "a token");
    row.revision = 4;
    row.payload_count = 0;
    must(put_change(
             w,
             (struct change){.kind = CHANGE_UPDATE, .row = row, .audits = &done, .audit_count = 1}),
         "a change, and who did it");
    shell_says(path, "SELECT count(*) FROM audit_view WHERE actor = 'ann'", "2\n");
    stop_store(w);
    start_store(w);
    CHECK(fetch(w, "old").revision == 4, "and again");
    CHECK(strcmp(w->s->ops->installation(w->s), installation) == 0, "the same id");
}

/* From before there were such ids, and of the newest version all the same. */
static void a_store_without_an_installation_gets_one(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    char made[UUID_SIZE];
    char again[UUID_SIZE];

    CHECK(uuid_read(slice_of(w->s->ops->installation(w->s)), made), "it has one");
    stop_store(w);
    shell_exec(path, "DELETE FROM meta WHERE name = 'installation'");
    start_store(w);
    CHECK(uuid_read(slice_of(w->s->ops->installation(w->s)), again), "it has one again");
    CHECK(strcmp(made, again) != 0, "by chance");
    stop_store(w);
    shell_exec(path, "UPDATE meta SET value = x'00' WHERE name = 'installation'");
    CHECK(sqlite_store_open(w->dir, &w->s, &w->e) == ERR_CORRUPT, "what is none is not replaced");
    shell_exec(path, "DELETE FROM meta WHERE name = 'installation'");
    start_store(w);
}

/* It says that it is of version 6, and has nothing that version 5 had not. */
static void a_store_of_version_6_lacks_as_much_as_one_of_5(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    struct stat st;
    char text[100];

    for (int version = 5; version <= 6; version++) {
        stop_store(w);
        make_version_1(w);
        shell_exec(path, schema_sqlite_0002);
        shell_exec(path, schema_sqlite_0003);
        shell_exec(path, schema_sqlite_0004);
        shell_exec(path, schema_sqlite_0005);
        CHECK(stat(path, &st) == 0, "%s", path);
        (void)snprintf(text, sizeof text,
                       "PRAGMA user_version = %d; INSERT INTO file (one, inode) "
                       "VALUES (1, %ju)",
                       version, (uintmax_t)st.st_ino);
        shell_exec(path, text); /* it is no copy */
        start_store(w);
        is_up_to_date(path);
        CHECK(fetch(w, "old").revision == 3, "the task");
        shell_exec(path, "INSERT INTO submit (workflow, id) VALUES ('o', 'x')");
    }
}

/* A file of the version before, with messages that were not delivered yet. */
static void messages_of_version_7_are_still_there(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    struct outbox_read r = {.limit = 100, .bytes_max = SIZE_MAX};
    struct stat st;
    char text[100];

    stop_store(w);
    make_version_1(w);
    shell_exec(path, schema_sqlite_0002);
    shell_exec(path, schema_sqlite_0003);
    shell_exec(path, schema_sqlite_0004);
    shell_exec(path, schema_sqlite_0005);
    shell_exec(path, schema_sqlite_0006);
    shell_exec(path, "INSERT INTO outbox (seq, task, name, target, body, created_at) VALUES "
                     "(8, 'old', '1/received', 'u', '{\"id\":\"old/1/received\",\"n\":1.0}', 5), "
                     "(9, 'old', '2/started', 'v', '{}', 6); "
                     "INSERT INTO outbox_aside (seq, task, name, target, body, created_at, state, "
                     "tries, since) VALUES (7, 'old', '0/x', 'u', '{}', 5, 'dead', 1, 5)");
    CHECK(stat(path, &st) == 0, "%s", path);
    (void)snprintf(text, sizeof text,
                   "PRAGMA user_version = 7; INSERT INTO file (one, inode) VALUES (1, %ju)",
                   (uintmax_t)st.st_ino);
    shell_exec(path, text); /* it is no copy */
    start_store(w);
    shell_says(path, "SELECT seq, id, target, state, body, created_at FROM message ORDER BY seq",
               "7|old/0/x|u|dead|{}|1970-01-01T00:00:00.005Z\n"
               "8|old/1/received|u|waiting|{\"id\":\"old/1/received\",\"n\":1.0}|"
               "1970-01-01T00:00:00.005Z\n"
               "9|old/2/started|v|waiting|{}|1970-01-01T00:00:00.006Z\n");
    must(w->s->ops->outbox->read(w->s, &r, &w->a, &w->e), "read");
    CHECK(r.count == 2 && r.messages[0].seq == 8 && slice_is(r.messages[0].target, "u")
              && slice_is(r.messages[0].body, "{\"id\":\"old/1/received\",\"n\":1.0}")
              && r.messages[1].created_at == 6,
          "as they were");
    const struct settlement done = {.seq = 8, .kind = SETTLE_DELETE};
    must(w->s->ops->outbox->settle(w->s, &done, 1, NULL, &w->e), "delivered");
    shell_says(path, "SELECT seq FROM outbox", "9\n");
}

/* As an early version left it. */
static void a_store_of_version_3_gets_its_agents(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    const struct agent_change c = {.name = SLICE("bank"), .text = SLICE("{}")};
    struct stat st;
    char text[100];

    stop_store(w);
    make_version_1(w);
    shell_exec(path, schema_sqlite_0002);
    shell_exec(path, schema_sqlite_0003);
    shell_exec(path, "PRAGMA user_version = 3");
    CHECK(stat(path, &st) == 0, "%s", path);
    (void)snprintf(text, sizeof text, "INSERT INTO file (one, inode) VALUES (1, %ju)",
                   (uintmax_t)st.st_ino);
    shell_exec(path, text); /* it is no copy */
    start_store(w);
    is_up_to_date(path);
    must(w->s->ops->agent_put(w->s, &c, NULL, &w->e), "an agent");
    shell_says(path, "SELECT name, settings, breaker FROM agent", "bank|{}|NULL\n");
    CHECK(fetch(w, "old").revision == 3, "the task");
}

/* A power cut, a full disk or a kill in the middle leaves version 1, which the next start finds. */
/* A file of the version before, whose documents have all steps. */
static void steps_of_version_8_are_seen_as_before(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    struct stat st;
    char text[100];

    stop_store(w);
    make_version_1(w);
    shell_exec(path, schema_sqlite_0002);
    shell_exec(path, schema_sqlite_0003);
    shell_exec(path, schema_sqlite_0004);
    shell_exec(path, schema_sqlite_0005);
    shell_exec(path, schema_sqlite_0006);
    shell_exec(path, schema_sqlite_0007);
    shell_exec(path,
               "UPDATE task SET doc = '{\"steps\":[{\"name\":\"a\",\"state\":\"completed\","
               "\"output_payload\":1,\"attempts\":[{\"attempt\":1,\"outcome\":\"completed\"}]},"
               "{\"name\":\"b\",\"state\":\"waiting\"}]}'");
    CHECK(stat(path, &st) == 0, "%s", path);
    (void)snprintf(text, sizeof text,
                   "PRAGMA user_version = 8; INSERT INTO file (one, inode) VALUES (1, %ju)",
                   (uintmax_t)st.st_ino);
    shell_exec(path, text); /* it is no copy */
    start_store(w);
    is_up_to_date(path);
    shell_says(path, "SELECT task, position, name, state, output FROM task_step",
               "old|0|a|completed|\"long\"\nold|1|b|waiting|NULL\n");
    shell_says(path, "SELECT task, step, outcome FROM task_attempt", "old|a|completed\n");
}

/* A file of version 17, in which ids are reserved whose content is known by its hash alone. */
static void ids_reserved_under_version_17_are_known_by_the_hash(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    struct reservation kept;

    stop_store(w);
    shell_exec(path,
               "ALTER TABLE reserved DROP COLUMN sha256; ALTER TABLE reserved DROP COLUMN owner; "
               "DROP VIEW signal; DROP VIEW refused_signal; DROP TABLE notice; "
               "DROP INDEX submission_id; "
               "DROP VIEW schedule_view; DROP TABLE schedule; DROP TABLE schedule_version; "
               "DROP VIEW lock_view; DROP VIEW task_view; DROP TABLE lock_key; "
               "DROP TABLE lock_holder; DROP TABLE lock_replaces; "
               "ALTER TABLE task DROP COLUMN lock; ALTER TABLE task DROP COLUMN lock_mode; "
               "ALTER TABLE task DROP COLUMN lock_max; ALTER TABLE task DROP COLUMN lock_since; "
               "DROP VIEW task_vote; DROP INDEX task_asked; ALTER TABLE task DROP COLUMN asked; "
               "ALTER TABLE submission DROP COLUMN submitter; "
               "DROP VIEW task_item; DROP VIEW item_document; DROP TABLE item; "
               "DROP TABLE session; "
               "DROP INDEX task_parent; DROP INDEX task_root; DROP TABLE orphaned; "
               "ALTER TABLE task DROP COLUMN parent; ALTER TABLE task DROP COLUMN root; "
               "ALTER TABLE submission DROP COLUMN child; "
               "ALTER TABLE token DROP COLUMN person; ALTER TABLE token DROP COLUMN groups; "
               "PRAGMA user_version = 17; "
               "INSERT INTO reserved (id, content, workflow, version, state, ended_at, until) "
               "VALUES ('x', '00000000000000ab', 'o', 1, 'processed', 5, 9000)");
    start_store(w);
    is_up_to_date(path);
    must(w->s->ops->retention->reserved(w->s, SLICE("x"), &w->a, &kept, &w->e), w->e.text);
    CHECK(kept.content.hash == 0xab && !kept.content.sha256.ptr && kept.until == 9000
              && !kept.owner.ptr,
          "as it was");
}

/* A file of version 27, with tasks, a submission and an id that is kept. */
static void a_store_of_version_27_gets_families_and_items(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    struct submission_take t = {.limit = 9};
    struct reservation kept;
    struct stat st;
    char text[100];

    stop_store(w);
    CHECK(unlink(path) == 0, "removed");
    shell_exec(path, "PRAGMA journal_mode = DELETE");
    for (int i = 0; i < 27; i++)
        shell_exec(path, sqlite_migrations[i]);
    shell_exec(path,
               "INSERT INTO meta (name, value) VALUES ('secret', randomblob(32)); "
               "INSERT INTO task (id, workflow, version, submitted_at, revision, state, direction, "
               "priority, waiting_for, rank, failure_count, doc) VALUES ('old', 'o', 1, 7, 3, "
               "'pending', 'forward', 5, 'a', 1, 2, "
               "'{\"steps\":[{\"name\":\"a\",\"state\":\"waiting\"}]}'); "
               "INSERT INTO submit (workflow, id) VALUES ('o', 'x'); "
               "INSERT INTO reserved (id, content, workflow, version, state, ended_at, until) "
               "VALUES ('y', '00000000000000ab', 'o', 1, 'processed', 5, 9000); "
               "PRAGMA application_id = 0x496e7463; PRAGMA journal_mode = WAL");
    CHECK(stat(path, &st) == 0, "%s", path);
    (void)snprintf(text, sizeof text,
                   "PRAGMA user_version = 27; INSERT INTO file (one, inode) VALUES (1, %ju)",
                   (uintmax_t)st.st_ino);
    shell_exec(path, text); /* it is no copy */
    start_store(w);
    is_up_to_date(path);
    const struct task_row row = fetch(w, "old");
    CHECK(row.revision == 3 && !row.parent.ptr && !row.root.ptr, "the task is nobody's child");
    must(w->s->ops->submissions->take(w->s, &t, &w->a, &w->e), "take");
    CHECK(t.count == 1 && slice_is(t.rows[0].id, "x") && !t.rows[0].child.ptr, "what waits");
    must(w->s->ops->retention->reserved(w->s, SLICE("y"), &w->a, &kept, &w->e), w->e.text);
    CHECK(kept.until == 9000, "the id is kept as before");
    struct task_row child = a_row("old@a");
    child.parent = child.root = SLICE("old");
    child.doc = SLICE("{\"parent\":{\"step\":\"a\",\"number\":2},\"steps\":[{\"name\":\"b\","
                      "\"state\":\"waiting\",\"child\":{\"number\":3,\"state\":\"running\"}}]}");
    must(insert_row(w, child), "a child");
    shell_says(path, "SELECT id, parent, root, parent_step, parent_number FROM task_view",
               "old|NULL|NULL|NULL|NULL\nold@a|old|old|a|2\n");
    shell_says(path, "SELECT task, name, child_number, child_state, child_wish FROM task_step",
               "old|a|NULL|NULL|NULL\nold@a|b|3|running|NULL\n");
    const struct item_row item = {.step = SLICE("a"),
                                  .number = 4,
                                  .state = STEP_FAILED,
                                  .doc = SLICE("{\"state\":\"failed\"}")};
    struct task_row changed = row;
    changed.revision = 4;
    changed.items = &item;
    changed.item_count = 1;
    must(update_row(w, changed), "an item");
    shell_says(path, "SELECT task, step, number, state FROM task_item", "old|a|4|failed\n");
    shell_says(path, "SELECT name, items FROM task_step ORDER BY task", "a|NULL\nb|NULL\n");
}

static void a_migration_that_fails_leaves_the_old_version(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");

    stop_store(w);
    make_version_1(w);
    for (uint32_t n = 0;; n++) {
        fault_plan = (struct fault_plan){.skip = n, .fire = 1};
        enum err err = sqlite_store_open(w->dir, &w->s, &w->e);
        bool fired = fault_plan.fired > 0;
        fault_plan = (struct fault_plan){0};
        if (err != ERR_OK) {
            shell_says(path, "SELECT id, revision FROM task", "old|3\n");
            continue;
        }
        stop_store(w);
        if (!fired)
            break;
        make_version_1(w);
    }
    start_store(w);
    is_up_to_date(path);
}

static void the_audit_is_only_added_to(void **state)
{
    struct world *w = *state;
    const char *path = path_of(w, "intact.db");
    const struct audit done = {.at = 1769853600123,
                               .actor = SLICE("ann"),
                               .verb = SLICE("retry"),
                               .task = SLICE("x"),
                               .address = SLICE("192.0.2.7")};
    static const char *const tries[] = {
        "DELETE FROM audit",
        "UPDATE audit SET actor = 'bob'",
        "UPDATE OR REPLACE audit SET actor = 'bob'",
        "REPLACE INTO audit (seq, at, actor, verb) SELECT seq, at, 'bob', verb FROM audit",
    };

    must(put_change(w, (struct change){.kind = CHANGE_INSERT,
                                       .row = a_row("x"),
                                       .audits = &done,
                                       .audit_count = 1}),
         "insert");
    sqlite3 *db = shell_open(path);
    for (size_t i = 0; i < COUNT_OF(tries); i++)
        CHECK(sqlite3_exec(db, tries[i], NULL, NULL, NULL) == SQLITE_CONSTRAINT, "%s", tries[i]);
    (void)sqlite3_close(db);
    shell_says(path, "SELECT at, actor, verb, task, step, reason, address FROM audit_view",
               "2026-01-31T10:00:00.123Z|ann|retry|x|NULL|NULL|192.0.2.7\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SQLITE(a_store_of_version_1_is_brought_up_to_date),
        ON_SQLITE(a_store_of_version_3_gets_its_agents),
        ON_SQLITE(a_store_without_an_installation_gets_one),
        ON_SQLITE(a_store_of_version_6_lacks_as_much_as_one_of_5),
        ON_SQLITE(messages_of_version_7_are_still_there),
        ON_SQLITE(steps_of_version_8_are_seen_as_before),
        ON_SQLITE(ids_reserved_under_version_17_are_known_by_the_hash),
        ON_SQLITE(a_store_of_version_27_gets_families_and_items),
        ON_SQLITE(a_migration_that_fails_leaves_the_old_version),
        ON_SQLITE(the_audit_is_only_added_to),
    };
    return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
