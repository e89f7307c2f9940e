/*
 * Every statement of the SQLite body. What lists columns is made of the tables in store/rows; a
 * parameter that is a column has its name, others have numbers. enum sql (body.h) names the
 * statements; sqlite_statements.c in tests/contract checks how SQLite runs them.
 */
#include "store/sqlite/columns.h"

#include "store/row.h"
#include "store/sqlite/sql_stopped.h"

#define QUALIFIED(name, ...) "task." #name

/* In the order of enum task_column. */
#define COLUMNS "task.seq, task.id, " TASK_COLUMNS(QUALIFIED, ", ")

/* A column that an index covers is named in a SET only if it moves: SQLite opens that index, and
 * mostly deletes and inserts its entry, whatever the value is. Most changes leave state, owner and
 * the columns of claims and ends as they are: then they are conditions in the WHERE instead, and
 * the indexes are left alone. A row is found by its number, where it is known (:seq), without the
 * index of the ids. */
/* clang-format off */
#define SET(name) ", " #name " = :" #name
#define IS(name)  " AND " #name " IS :" #name

#define UPDATE "UPDATE task SET revision = :revision" TASK_CHANGING_COLUMNS(SET_PLAIN, )
#define SET_PLAIN(name, type, how) SET_PLAIN_##how(name)
#define SET_PLAIN_REVISION(name)
#define SET_PLAIN_PLAIN(name)      SET(name)
#define SET_PLAIN_REQUESTED(name)  SET(name)
#define SET_PLAIN_INDEXED(name)
#define SET_PLAIN_RELEASED(name)
#define SET_PLAIN_WAKE(name)

#define MOVE TASK_CHANGING_COLUMNS(SET_INDEXED, )
#define STAY TASK_CHANGING_COLUMNS(IS_INDEXED, )
#define SET_INDEXED(name, type, how) INDEXED_##how(SET, name)
#define IS_INDEXED(name, type, how)  INDEXED_##how(IS, name)
#define INDEXED_REVISION(F, name)
#define INDEXED_PLAIN(F, name)
#define INDEXED_REQUESTED(F, name)
#define INDEXED_INDEXED(F, name)     F(name)
#define INDEXED_RELEASED(F, name)    F(name)
#define INDEXED_WAKE(F, name)
/* clang-format on */

#define SET_WAKE ", wake_at = :wake_at"
#define FENCE                                                           \
    " WHERE seq = ifnull(:seq, (SELECT seq FROM task WHERE id = :id)) " \
    "AND id = :id AND revision = :revision - 1"

/* ?4: the document is wanted, too; ?5: whether it is a child; ?6: whose. What is not read costs
 * nothing, and the type of a value is known without reading what lies before it. */
#define SCAN                                                                                   \
    "SELECT t.seq, t.state, t.workflow, t.submitted_at, t.version, t.ended_at, "               \
    "iif(?4, t.waiting_for, NULL), iif(?4, t.doc, NULL), t.paused_at, t.closed_at, "           \
    "iif(?5, typeof(t.parent) <> 'null', 0), iif(?6, t.parent, NULL), iif(?6, t.root, NULL), " \
    "iif(?7, t.id, NULL) "
#define AUDIT     "SELECT seq, " AUDIT_COLUMNS(NAME, ", ") " FROM audit WHERE seq < ?1"
#define OPERATION "SELECT seq, " OPERATION_COLUMNS(NAME, ", ") ", id FROM operation WHERE "
#define PAGE      " ORDER BY seq DESC LIMIT ?2"
/* Whether its run waits to become a task, or is one that has not ended. */
#define RUN_OPEN                                                                        \
    "(s.run IS NOT NULL AND (EXISTS (SELECT 1 FROM submission AS b WHERE b.source = "   \
    "'" SCHEDULE_SOURCE                                                                 \
    "' AND b.key = s.run AND b.refused_at IS NULL) OR EXISTS (SELECT 1 FROM task AS t " \
    "WHERE t.id = s.run AND t.state NOT IN ('processed', 'compensated') "               \
    "AND t.closed_at IS NULL)))"
#define OF_S(name, ...) "s." #name
#define SCHEDULE \
    "SELECT s.seq, s.name, " SCHEDULE_COLUMNS(OF_S, ", ") ", " RUN_OPEN " FROM schedule AS s "

/* Without its document, which may lie on pages of its own. */
#define RETIRE_LOOK                                                                              \
    "SELECT seq, state, ended_at, submitted_at, locked_by IS NOT NULL OR (state = 'error' "      \
    "AND EXISTS (SELECT 1 FROM lock_holder AS h WHERE h.task = task.seq)), "                     \
    "revision, id, workflow, "                                                                   \
    "closed_at, CASE WHEN ended_at IS NULL THEN 0 ELSE EXISTS (SELECT 1 FROM outbox_aside AS o " \
    "WHERE o.task = task.id AND +o.state = 'waiting') END, "                                     \
    "(SELECT created_at FROM outbox ORDER BY seq LIMIT 1), typeof(root) <> 'null' "
/* The roots whose last child is gone. */
#define CHILDLESS                                                                               \
    "(SELECT o.root FROM orphaned AS o WHERE NOT EXISTS (SELECT 1 FROM task AS t WHERE t.root " \
    "= o.root) ORDER BY o.root LIMIT ?1)"

/* The tags of a task, one by one. */
#define TAGS                                                                       \
    "SELECT j.key, CASE j.type WHEN 'true' THEN 'true' WHEN 'false' THEN 'false' " \
    "WHEN 'null' THEN 'null' ELSE CAST(j.value AS TEXT) END, t.seq "               \
    "FROM task AS t, json_each(t.tags) AS j WHERE "

#define MESSAGE_ASIDE   "seq, " MESSAGE_COLUMNS(NAME, ", ") ", " MESSAGE_ASIDE_COLUMNS(NAME, ", ")
#define ASIDE           "SELECT " MESSAGE_ASIDE " FROM outbox_aside WHERE "
#define OLDEST          " ORDER BY seq LIMIT ?2"

#define ALERT           "SELECT seq, " ALERT_COLUMNS(NAME, ", ") " FROM alert WHERE "

#define OF_N(name, ...) "n." #name

/* What applications put in as texts, whatever it is. */
#define SUBMISSION "SELECT seq, source, " SUBMISSION_COLUMNS(AS_PUT_IN, ", ") " FROM submission "
/* By the type of the column. */
#define AS_PUT_IN(name, type)  AS_PUT_IN_##type(#name)
#define AS_PUT_IN_any(name)    "CAST(" name " AS TEXT)"
#define AS_PUT_IN_text(name)   name
#define AS_PUT_IN_number(name) name
#define AS_PUT_IN_time(name)   name
/* Instead of what may be long. */
#define NOTHING(name, ...) "NULL"
/* The newest first. */
#define SUBMISSION_PAGE " AND seq < ?1 AND (?3 IS NULL OR source = ?3) ORDER BY seq DESC LIMIT ?2"
#define SUBMISSIONS_MEANT                                                                       \
    "seq IN (SELECT seq FROM submission WHERE refused_at IS NOT NULL AND (?1 = 0 OR seq = ?1) " \
    "AND (?2 IS NULL OR source = ?2) AND seq <= ?3 ORDER BY seq LIMIT ?4)"

/* Whether a task that waits for its lock replaces older ones, and may be replaced itself. */
#define REPLACES(t)                                                                             \
    t ".lock_mode = 1 AND " t ".waiting_for IS NOT NULL AND " t ".waiting_for = '" WAITING_LOCK \
      "' || " t ".lock AND " t ".state = 'pending' AND " t ".locked_by IS NULL AND " t          \
      ".direction = 'forward'"

/* The place of a lock that is to be looked at, behind all others. */
#define LOOK_LAST "(SELECT ifnull(max(n.look), 0) + 1 FROM lock_key AS n WHERE n.look <> 0)"

/* The holders of locks, and how many tasks wait for each. */
#define HOLDERS                                                                             \
    "SELECT h.lock, t.id, h.task, h.since, (SELECT count(*) FROM (SELECT 1 FROM task AS w " \
    "WHERE w.state = 'pending' AND w.locked_by IS NULL AND w.waiting_for = '" WAITING_LOCK  \
    "' || h.lock LIMIT ?3)) FROM lock_holder AS h CROSS JOIN task AS t ON t.seq = h.task "
#define HOLDERS_ORDER "ORDER BY h.task LIMIT ?2"

/* Those of a list. */
#define ITEMS_OF                                                          \
    "FROM item AS i WHERE i.task = (SELECT seq FROM task WHERE id = ?1) " \
    "AND i.step = ?2 AND i.generation = ?3 "
#define ITEMS "SELECT i.task, i.number, i.state, i.in_doubt, i.needs_undo, i.doc " ITEMS_OF "AND "

#define STATE(s)                                                  \
    "(SELECT count(*) FROM (SELECT 1 FROM task WHERE state = '" s \
    "' AND state <> 'processed' LIMIT ?1))"

const char *sql_text(enum sql which) /* NOLINT(readability-function-size): a table */
{
    /* clang-format off */
    static const char *const texts[] = {
        [SQL_BEGIN] = "BEGIN IMMEDIATE",
        [SQL_BEGIN_READING] = "BEGIN",
        [SQL_COMMIT] = "COMMIT",
        [SQL_MARK] = "SAVEPOINT change",
        [SQL_MARK_END] = "RELEASE change",
        [SQL_MARK_UNDO] = "ROLLBACK TO change",
        /* An id that is reserved becomes NULL, and that is ignored as one that is there. Not by a
         * SELECT: then SQLite would keep what each page was before, lest some of many rows fail. */
        [SQL_INSERT] =
            "INSERT OR IGNORE INTO task (id, " TASK_COLUMNS(NAME, ", ") ") VALUES ("
            "iif(ifnull((SELECT until FROM reserved WHERE id = :id), 0) "
            "<= ifnull(:submitted_at, 0), :id, NULL), " TASK_COLUMNS(PARAM, ", ") ")",
        [SQL_UPDATE] = UPDATE FENCE STAY,
        [SQL_UPDATE_WAKE] = UPDATE SET_WAKE FENCE STAY,
        [SQL_UPDATE_MOVE] = UPDATE MOVE FENCE,
        [SQL_UPDATE_MOVE_WAKE] = UPDATE MOVE SET_WAKE FENCE,
        [SQL_REQUEST] = "UPDATE task SET revision = ?2, request = ?3, wake_at = ?4 "
            "WHERE id = ?1 AND revision = ?2 - 1",
        [SQL_RELEASE] = "UPDATE task SET revision = ?2, request = ?3, wake_at = ?4, "
            "state = 'pending', locked_by = NULL, waiting_for = ?5, rank = ?6 "
            "WHERE id = ?1 AND revision = ?2 - 1",
        [SQL_PAYLOAD_INSERT] = "INSERT INTO payload (key, json) "
            "SELECT seq * 1048576 + ?2, ?3 FROM task WHERE id = ?1",
        [SQL_PAYLOAD_DELETE] = "DELETE FROM payload "
            "WHERE key = (SELECT seq FROM task WHERE id = ?1) * 1048576 + ?2",
        [SQL_ITEM_PUT] = "INSERT INTO item (task, step, generation, number, state, in_doubt, "
            "needs_undo, doc) VALUES (ifnull(?1, (SELECT seq FROM task WHERE id = ?9)), "
            "?2, ?3, ?4, ?5, ?6, ?7, ?8) "
            "ON CONFLICT (task, step, generation, number) DO UPDATE SET state = excluded.state, "
            "in_doubt = excluded.in_doubt, needs_undo = excluded.needs_undo, doc = excluded.doc",
        [SQL_ITEM_UPDATE] = "UPDATE item SET state = ?5, in_doubt = ?6, needs_undo = ?7, doc = ?8 "
            "WHERE task = ifnull(?1, (SELECT seq FROM task WHERE id = ?9)) AND step = ?2 "
            "AND generation = ?3 AND number = ?4",
        [SQL_ITEMS_UP] = ITEMS "i.number >= ?4 ORDER BY i.number LIMIT ?5",
        [SQL_ITEMS_DOWN] = ITEMS "i.number < ?4 ORDER BY i.number DESC LIMIT ?5",
        [SQL_ITEMS_FAILED] = ITEMS "i.number >= ?4 AND i.state = 'failed' "
                                   "ORDER BY i.number LIMIT ?5",
        [SQL_ITEMS_TO_UNDO] = ITEMS "i.number < ?4 AND i.needs_undo = 1 "
            "ORDER BY i.number DESC LIMIT ?5",
        [SQL_ITEMS_OUTPUTS] = "SELECT i.number, i.doc -> '$.output' "
            ITEMS_OF "ORDER BY i.number",
        [SQL_TAG_INSERT] = "INSERT OR IGNORE INTO tag (key, value, task) "
            TAGS "t.id = ?1",
        [SQL_CLAIM_WAITING] = "SELECT " COLUMNS " FROM task WHERE state = 'pending' "
            "AND locked_by IS NULL AND waiting_for = ?1 AND rank >= ?3 AND rank < ?4 "
            "ORDER BY rank, seq LIMIT ?2",
        /* In the order of the waits: CROSS JOIN keeps the planner from another one. */
        [SQL_CLAIM_AMONG] = "SELECT " COLUMNS ", w.rank FROM wait AS w "
            "CROSS JOIN task ON seq = w.task WHERE w.agent = ?1 AND w.rank >= ?3 AND w.rank < ?4 "
            "AND state = 'pending' AND locked_by IS NULL ORDER BY w.rank, w.task LIMIT ?2",
        [SQL_WAITS_INSERT] = "INSERT OR IGNORE INTO wait (agent, rank, task) "
            "SELECT ?2, ?3, seq FROM task WHERE id = ?1",
        [SQL_WAITS_DELETE] = "DELETE FROM wait WHERE task = (SELECT seq FROM task WHERE id = ?1)",
        [SQL_CLAIM_OWNED] = "SELECT " COLUMNS " FROM task WHERE locked_by > ?1 "
            "AND locked_by < ?2 AND CAST(substr(locked_by, ?3) AS INTEGER) < ?4 "
            "ORDER BY locked_by, seq LIMIT ?5",
        [SQL_TAKE] = "UPDATE task SET revision = ?2, state = ?3, locked_by = ?4, started_at = ?5, "
            "waiting_for = NULL WHERE seq = ?1",
        [SQL_GET] = "SELECT " COLUMNS " FROM task WHERE id = ?1",
        [SQL_GLANCE] = "SELECT revision, state FROM task WHERE id = ?1",
        [SQL_PAYLOADS] = "SELECT key & 1048575, json FROM payload "
            "WHERE key > ?1 * 1048576 AND key < (?1 + 1) * 1048576 ORDER BY key",
        [SQL_PAYLOAD] = "SELECT json FROM payload WHERE key = ?1 * 1048576 + ?2",
        [SQL_OVERDUE] = "SELECT " COLUMNS " FROM task WHERE wake_at = ?2 AND wake_at <= ?1 "
            "AND seq > ?3 UNION ALL SELECT " COLUMNS " FROM task WHERE wake_at > ?2 "
            "AND wake_at <= ?1 ORDER BY wake_at, seq LIMIT ?4",
        [SQL_SCAN] = SCAN "FROM task AS t WHERE t.seq < ?1 ORDER BY t.seq DESC",
        [SQL_SCAN_STATE] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.state = ?2 "
            "AND t.state <> 'processed' ORDER BY t.seq DESC",
        [SQL_SCAN_WORKFLOW] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.workflow = ?2 "
            "ORDER BY t.seq DESC",
        [SQL_SCAN_TAG] = SCAN "FROM tag AS g CROSS JOIN task AS t ON t.seq = g.task "
            "WHERE g.key = ?2 AND g.value = ?3 AND g.task < ?1 ORDER BY g.task DESC",
        [SQL_SCAN_ASKED] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.asked IS NOT NULL "
            "ORDER BY t.seq DESC",
        [SQL_SCAN_PARENT] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.parent = ?2 "
            "ORDER BY t.seq DESC",
        [SQL_SCAN_ROOT] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.root = ?2 "
            "ORDER BY t.seq DESC",
        [SQL_SCAN_ID] = SCAN "FROM task AS t WHERE t.seq < ?1 AND t.id = ?2",
        [SQL_SCAN_PREFIX] = SCAN "FROM task AS t WHERE t.seq IN (SELECT seq FROM task "
            "WHERE id >= ?2 AND id < ?2 || char(127)) AND t.seq < ?1 ORDER BY t.seq DESC",
        [SQL_COUNT_PREFIX] = "SELECT count(*) FROM (SELECT 1 FROM task WHERE id >= ?1 "
            "AND id < ?1 || char(127) LIMIT ?2)",
        [SQL_HAS_TAG] = "SELECT 1 FROM tag WHERE key = ?1 AND value = ?2 AND task = ?3",
        [SQL_SEQ_BELOW] = "SELECT seq, submitted_at FROM task WHERE seq < ?1 "
            "ORDER BY seq DESC LIMIT 1",
        [SQL_ROW] = "SELECT " COLUMNS " FROM task WHERE seq = ?1",
        [SQL_RETIRE_SCAN] = RETIRE_LOOK "FROM task WHERE seq > ?1 ORDER BY seq LIMIT ?2",
        [SQL_RETIRE_SCAN_WORKFLOW] = RETIRE_LOOK "FROM task WHERE workflow = ?3 AND seq > ?1 "
            "ORDER BY seq LIMIT ?2",
        [SQL_RETIRE_SCAN_ORPHANS] = RETIRE_LOOK ", orphaned.root, orphaned.archive "
            "FROM orphaned CROSS JOIN task USING (root) WHERE orphaned.root >= ifnull(?3, '') "
            "AND (orphaned.root <> ifnull(?3, '') OR seq > ?1) "
            "ORDER BY orphaned.root, seq LIMIT ?2",
        [SQL_RETIRE_STILL] = "SELECT tags IS NULL, root IS NOT NULL, "
            "EXISTS (SELECT 1 FROM task AS c WHERE c.root = task.id) FROM task "
            "WHERE seq = ?1 AND revision = ?2 AND locked_by IS NULL AND (root IS NULL "
            "OR NOT EXISTS (SELECT 1 FROM task AS r WHERE r.id = task.root))",
        /* a document that is none has no content */
        [SQL_RESERVE] = "INSERT OR REPLACE INTO reserved (id, content, workflow, version, state, "
            "ended_at, until, sha256, owner) SELECT id, CASE WHEN json_valid(doc) THEN "
            "doc ->> '$.content' END, workflow, version, state, ended_at, ?2, "
            "CASE WHEN json_valid(doc) THEN doc ->> '$.sha256' END, "
            "CASE WHEN json_valid(doc) THEN doc ->> '$.owner' END FROM task WHERE seq = ?1",
        [SQL_RESERVED] = "SELECT content, workflow, version, state, ended_at, until, sha256, "
            "owner FROM reserved WHERE id = ?1",
        [SQL_RESERVED_SWEEP] = "DELETE FROM reserved WHERE id IN (SELECT id FROM reserved "
            "WHERE until <= ?1 ORDER BY until LIMIT ?2)",
        [SQL_ORPHANED] = "INSERT OR REPLACE INTO orphaned (root, until, archive) "
            "SELECT id, ?2, ?3 FROM task WHERE seq = ?1",
        [SQL_ORPHANED_FREE] = "UPDATE reserved SET until = (SELECT o.until FROM orphaned AS o "
            "WHERE o.root = reserved.id) WHERE id IN " CHILDLESS,
        [SQL_ORPHANED_END] = "DELETE FROM orphaned WHERE root IN " CHILDLESS,
        [SQL_NEWEST] = "SELECT max(seq) FROM task",
        [SQL_TAGS_DELETE] = "DELETE FROM tag WHERE (key, value, task) IN (" TAGS "t.seq = ?1)",
        [SQL_PAYLOADS_DELETE] = "DELETE FROM payload "
            "WHERE key > ?1 * 1048576 AND key < (?1 + 1) * 1048576",
        [SQL_ITEMS_DELETE] = "DELETE FROM item WHERE task = ?1",
        [SQL_TASK_DELETE] = "DELETE FROM task WHERE seq = ?1",
        [SQL_CENSUS] = "SELECT " STATE("pending") ", " STATE("processing") ", "
            STATE("compensating") ", " STATE("compensated") ", " STATE("error") ", "
            "(SELECT count(*) FROM (SELECT 1 FROM task WHERE wake_at <= ?2 LIMIT ?1)), "
            "(SELECT min(wake_at) FROM task WHERE wake_at <= ?2), "
            "(SELECT count(*) FROM (SELECT 1 FROM task WHERE state = 'pending' "
            "AND locked_by IS NULL AND waiting_for >= '" WAITING_LOCK "' "
            "AND waiting_for < '" CENSUS_BEHIND_LOCKS "' LIMIT ?1))",
        [SQL_CENSUS_AGENT] = "SELECT waiting_for, submitted_at FROM task WHERE state = 'pending' "
            "AND locked_by IS NULL AND waiting_for > ?1 ORDER BY waiting_for, rank LIMIT 1",
        [SQL_CENSUS_WAITING] = "SELECT count(*) FROM (SELECT 1 FROM task WHERE state = 'pending' "
            "AND locked_by IS NULL AND waiting_for = ?1 LIMIT ?2)",
        [SQL_CENSUS_AGENT_AMONG] = "SELECT w.agent, (SELECT submitted_at FROM task "
            "WHERE seq = w.task) FROM wait AS w WHERE w.agent > ?1 "
            "ORDER BY w.agent, w.rank LIMIT 1",
        [SQL_CENSUS_AMONG] = "SELECT count(*) FROM (SELECT 1 FROM wait WHERE agent = ?1 LIMIT ?2)",
        [SQL_OWNERS] = "SELECT seq, CASE WHEN json_valid(doc) THEN doc ->> '$.owner' END "
            "FROM task WHERE state = ?1 AND state <> 'processed' AND seq > ?2 "
            "ORDER BY seq LIMIT ?3",
        [SQL_WORKFLOW_NEWEST] = "SELECT version, text FROM workflow WHERE name = ?1 "
            "ORDER BY version DESC LIMIT 1",
        [SQL_WORKFLOW_INSERT] = "INSERT INTO workflow (" WORKFLOW_COLUMNS(NAME, ", ") ") "
            "VALUES (" WORKFLOW_COLUMNS(PARAM, ", ") ")",
        [SQL_WORKFLOW_GET] = "SELECT " WORKFLOW_COLUMNS(NAME, ", ") ", inputs IS NOT NULL "
            "FROM workflow WHERE name = ?1 AND (?2 = 0 OR version = ?2) "
            "ORDER BY version DESC LIMIT 1",
        [SQL_WORKFLOW_DESCRIBE] = "UPDATE workflow SET inputs = ?3 "
            "WHERE name = ?1 AND version = ?2 AND inputs IS NULL",
        [SQL_SUBMISSION_TAKE] = SUBMISSION "WHERE refused_at IS NULL ORDER BY seq LIMIT ?1",
        [SQL_SUBMISSION_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM submission "
            "WHERE refused_at IS NOT NULL LIMIT ?1)",
        [SQL_SUBMISSION_DELETE] = "DELETE FROM submission WHERE seq = ?1 AND refused_at IS NULL",
        [SQL_SUBMISSION_REFUSE] = "UPDATE submission SET refused_at = ?2, reason = ?3 "
            "WHERE seq = ?1 AND refused_at IS NULL",
        [SQL_SUBMISSION_INSERT] = "INSERT INTO submission (source, key, "
            SUBMISSION_COLUMNS(NAME, ", ") ") VALUES (:source, :key, "
            SUBMISSION_COLUMNS(PARAM, ", ") ") "
            "ON CONFLICT (source, key) WHERE key IS NOT NULL DO NOTHING",
        [SQL_SUBMISSION_REFUSED] = SUBMISSION "WHERE refused_at IS NOT NULL" SUBMISSION_PAGE,
        /* what may be long is not read, nor what lies behind it */
        [SQL_SUBMISSION_REFUSED_BRIEF] = "SELECT seq, source, "
            SUBMISSION_COLUMNS(NOTHING, ", ") " FROM submission WHERE refused_at IS NOT NULL"
            SUBMISSION_PAGE,
        [SQL_SUBMISSION_WAITING] = SUBMISSION "WHERE refused_at IS NULL" SUBMISSION_PAGE,
        [SQL_SUBMISSION_RETRY] = "UPDATE submission SET refused_at = NULL, reason = NULL WHERE "
            SUBMISSIONS_MEANT,
        [SQL_SUBMISSION_DROP] = "DELETE FROM submission WHERE " SUBMISSIONS_MEANT,
        [SQL_NOTICE_READ] = "SELECT n.seq, " NOTICE_COLUMNS(OF_N, ", ") ", t.locked_by, "
            "t.seq IS NOT NULL, CASE WHEN t.seq IS NULL THEN EXISTS (SELECT 1 FROM submission AS s "
            "WHERE s.refused_at IS NULL AND s.id = n.task) ELSE 0 END "
            "FROM notice AS n LEFT JOIN task AS t ON t.id = n.task "
            "WHERE n.refused_at IS NULL AND n.seq > ?1 AND (?1 = 0 OR NOT EXISTS "
            "(SELECT 1 FROM notice AS m WHERE m.refused_at IS NULL AND m.task = n.task "
            "AND m.seq <= ?1)) ORDER BY n.seq LIMIT ?2",
        [SQL_NOTICE_REFUSED] = "SELECT n.seq, " NOTICE_COLUMNS(OF_N, ", ") ", NULL, 0, 0 "
            "FROM notice AS n WHERE n.refused_at IS NOT NULL AND n.seq > ?1 "
            "ORDER BY n.seq LIMIT ?2",
        [SQL_NOTICE_ANY] = "SELECT EXISTS (SELECT 1 FROM notice WHERE refused_at IS NULL), "
            "(SELECT count(*) FROM (SELECT 1 FROM notice WHERE refused_at IS NOT NULL LIMIT ?1))",
        [SQL_NOTICE_TOLD] = "SELECT min(at) FROM notice WHERE task = ?1 AND refused_at IS NULL",
        [SQL_NOTICE_DELETE] = "DELETE FROM notice WHERE seq = ?1 AND refused_at IS NULL",
        [SQL_NOTICE_REFUSE] = "UPDATE notice SET refused_at = ?2, reason = ?3 "
            "WHERE seq = ?1 AND refused_at IS NULL",
        [SQL_NOTICE_INSERT] = "INSERT INTO notice (" NOTICE_COLUMNS(NAME, ", ") ") VALUES ("
            NOTICE_COLUMNS(PARAM, ", ") ")",
        [SQL_DATA_VERSION] = "PRAGMA data_version",
        [SQL_WORKFLOW_LIST] = "SELECT " WORKFLOW_COLUMNS(NAME, ", ") ", inputs IS NOT NULL "
            "FROM workflow ORDER BY name, version",
        [SQL_TOKEN_INSERT] = "INSERT INTO token (" TOKEN_COLUMNS(NAME, ", ") ", name) VALUES ("
            TOKEN_COLUMNS(PARAM, ", ") ", :name)",
        [SQL_TOKEN_CHANGE] = "UPDATE token SET " TOKEN_COLUMNS(SET_TO, ", ")
            " WHERE name = :name AND hash = :was",
        [SQL_TOKEN_DELETE] = "DELETE FROM token WHERE name = ?1",
        [SQL_TOKEN_LAST_ADMIN] = "SELECT 1 FROM token WHERE name = ?1 AND admin = 1 "
            "AND NOT EXISTS (SELECT 1 FROM token WHERE name <> ?1 AND admin = 1 "
            "AND (expires_at IS NULL OR expires_at > ?2))",
        [SQL_TOKEN_LIST] = "SELECT " TOKEN_COLUMNS(NAME, ", ") ", name FROM token ORDER BY name",
        [SQL_SESSION_SWEEP] = "DELETE FROM session WHERE expires_at <= ?1 OR id IN (SELECT id "
            "FROM session WHERE token_hash = ?2 AND is_code = ?3 "
            "ORDER BY created_at DESC, id LIMIT -1 OFFSET ?4)",
        [SQL_SESSION_CODE] = "DELETE FROM session WHERE hash = ?1 AND is_code = 1",
        [SQL_SESSION_INSERT] = "INSERT INTO session (" SESSION_COLUMNS(NAME, ", ") ") VALUES ("
            SESSION_COLUMNS(PARAM, ", ") ")",
        [SQL_SESSION_DELETE] = "DELETE FROM session WHERE id = ?1",
        [SQL_SESSION_LIST] = "SELECT " SESSION_COLUMNS(NAME, ", ") " FROM session "
            "ORDER BY created_at, id",
        [SQL_AUDIT_INSERT] = "INSERT INTO audit (" AUDIT_COLUMNS(NAME, ", ") ") VALUES ("
            AUDIT_COLUMNS(PARAM, ", ") ")",
        [SQL_AUDIT_LIST] = AUDIT PAGE,
        [SQL_AUDIT_TASK] = AUDIT " AND task = ?3" PAGE,
        [SQL_AGENT_PUT] = "INSERT INTO agent AS a (name, settings, breaker) "
            "VALUES (?1, iif(?2, NULL, ?3), iif(?2, ?3, NULL)) ON CONFLICT (name) DO UPDATE SET "
            "settings = iif(?2, a.settings, ?3), breaker = iif(?2, ?3, a.breaker) "
            "WHERE NOT ?4 OR iif(?2, a.breaker, a.settings) IS ?5",
        [SQL_OUTBOX_INSERT] = "INSERT INTO outbox "
            "(seq, count, target, source, created_at, messages) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        [SQL_OUTBOX_LAST] = "SELECT max("
            "coalesce((SELECT seq + count - 1 FROM outbox ORDER BY seq DESC LIMIT 1), 0), "
            "coalesce((SELECT max(seq) FROM outbox_settled), 0), "
            "coalesce((SELECT max(seq) FROM outbox_aside), 0))",
        [SQL_OUTBOX_READ] = "SELECT seq, count, target, source, messages FROM outbox WHERE seq >= "
            "coalesce((SELECT max(seq) FROM outbox WHERE seq <= ?1), 0) "
            "AND (?2 IS NULL OR target = ?2) ORDER BY seq",
        [SQL_OUTBOX_READ_TARGET] = ASIDE "seq > ?1 AND state = 'waiting' AND target = ?3" OLDEST,
        [SQL_OUTBOX_DELETE] = "DELETE FROM outbox WHERE seq >= ?1 AND seq <= ?2 "
            "AND seq + count - 1 <= ?2",
        [SQL_OUTBOX_HOLDS] = "SELECT seq, count FROM outbox WHERE seq <= ?1 "
            "ORDER BY seq DESC LIMIT 1",
        [SQL_OUTBOX_SETTLE] = "INSERT OR IGNORE INTO outbox_settled (seq) VALUES (?1)",
        [SQL_OUTBOX_SETTLED] = "SELECT seq FROM outbox_settled WHERE seq >= ?1 AND seq <= ?2 "
            "ORDER BY seq",
        [SQL_OUTBOX_SETTLED_COUNT] = "SELECT count(*) FROM outbox_settled "
            "WHERE seq >= ?1 AND seq <= ?2",
        [SQL_OUTBOX_SETTLED_DELETE] = "DELETE FROM outbox_settled WHERE seq >= ?1 AND seq <= ?2",
        [SQL_OUTBOX_DELETE_ASIDE] = "DELETE FROM outbox_aside WHERE seq >= ?1 AND seq <= ?2",
        [SQL_OUTBOX_SET_ASIDE] = "INSERT OR IGNORE INTO outbox_aside (" MESSAGE_ASIDE ") "
            "VALUES (?1, ?6, ?7, ?8, ?9, ?10, ?2, ?3, ?4, ?10, ?5)",
        [SQL_OUTBOX_UPDATE] = "UPDATE outbox_aside SET state = ?2, tries = ?3, retry_at = ?4, "
            "story = coalesce(?5, story) WHERE seq = ?1",
        [SQL_OUTBOX_UPDATE_SAME] = "UPDATE outbox_aside SET tries = ?3, retry_at = ?4, "
            "story = coalesce(?5, story) WHERE seq = ?1 AND state = ?2",
        [SQL_OUTBOX_TARGET] = "SELECT target, created_at, story FROM outbox_aside "
            "WHERE state = ?1 AND target > ?2 ORDER BY target, seq LIMIT 1",
        [SQL_OUTBOX_TARGET_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM outbox_aside "
            "WHERE state = ?1 AND target = ?2 LIMIT ?3)",
        [SQL_OUTBOX_LIST] = ASIDE "seq > ?1 AND state = ?3" OLDEST,
        [SQL_OUTBOX_LIST_TARGET] = ASIDE "seq > ?1 AND state = ?3 AND target = ?4" OLDEST,
        [SQL_OUTBOX_LIST_TASK] = ASIDE "seq > ?1 AND state = ?3 AND task = ?5" OLDEST,
        [SQL_OUTBOX_REVIVE] = "UPDATE outbox_aside SET since = iif(state = 'dead', ?2, since), "
            "state = 'waiting', retry_at = NULL WHERE seq = ?1",
        [SQL_OUTBOX_CENSUS] = "SELECT (SELECT max(count(*), coalesce(sum(count), 0) - "
            "(SELECT count(*) FROM outbox_settled)) FROM (SELECT count FROM outbox LIMIT ?1)), "
            "(SELECT count(*) FROM (SELECT 1 FROM outbox_aside WHERE state = 'waiting' LIMIT ?1)), "
            "(SELECT count(*) FROM (SELECT 1 FROM outbox_aside WHERE state = 'dead' LIMIT ?1)), "
            "(SELECT created_at FROM outbox ORDER BY seq LIMIT 1), "
            "(SELECT created_at FROM outbox_aside WHERE state = 'waiting' ORDER BY seq LIMIT 1)",
        [SQL_OPERATION_PUT] = "INSERT INTO operation (" OPERATION_COLUMNS(NAME, ", ") ", id) "
            "VALUES (" OPERATION_COLUMNS(PARAM, ", ") ", :id) ON CONFLICT (id) DO NOTHING",
        [SQL_OPERATION_UPDATE] = "UPDATE operation SET " OPERATION_COLUMNS(SET_TO, ", ")
            " WHERE id = :id AND revision = :revision - 1",
        [SQL_OPERATION_LIST] = OPERATION "seq < ?1" PAGE,
        [SQL_OPERATION_OPEN] = OPERATION "seq < ?1 AND open" PAGE,
        [SQL_OPERATION_GET] = OPERATION "seq < ?1 AND id = ?3 AND (open OR NOT ?4)" PAGE,
        [SQL_SCHEDULE_PUT] = "INSERT INTO schedule (" SCHEDULE_COLUMNS(NAME, ", ") ", name) "
            "VALUES (" SCHEDULE_COLUMNS(PARAM, ", ") ", :name) ON CONFLICT (name) DO NOTHING",
        [SQL_SCHEDULE_UPDATE] = "UPDATE schedule SET " SCHEDULE_COLUMNS(SET_TO, ", ")
            " WHERE seq = :seq AND revision = :revision - 1",
        [SQL_SCHEDULE_DUE] = SCHEDULE "WHERE s.next_at <= ?1 ORDER BY s.next_at, s.seq LIMIT ?2",
        /* one that is due by time, too, is found by that */
        [SQL_SCHEDULE_WAITS] = SCHEDULE "WHERE s.waits AND (s.next_at IS NULL OR s.next_at > ?1) "
            "AND NOT " RUN_OPEN " ORDER BY s.seq LIMIT ?2",
        [SQL_SCHEDULE_NEXT] = "SELECT min(next_at) FROM schedule WHERE next_at > ?1",
        [SQL_SCHEDULE_WAIT_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM schedule WHERE waits "
            "LIMIT ?1)",
        [SQL_SCHEDULE_LIST] = SCHEDULE "WHERE s.name > ?1 ORDER BY s.name LIMIT ?2",
        [SQL_SCHEDULE_GET] = SCHEDULE "WHERE s.name = ?1 LIMIT ?2",
        [SQL_SCHEDULE_GAPS] = SCHEDULE "WHERE s.gap_at >= ?3 AND s.name > ?1 "
            "ORDER BY s.name LIMIT ?2",
        [SQL_SCHEDULE_DELETE] = "DELETE FROM schedule WHERE name = ?1",
        [SQL_SCHEDULE_VERSION_PUT] = "INSERT INTO schedule_version ("
            SCHEDULE_VERSION_COLUMNS(NAME, ", ") ") VALUES ("
            SCHEDULE_VERSION_COLUMNS(PARAM, ", ") ")",
        [SQL_SCHEDULE_VERSION_GET] = "SELECT " SCHEDULE_VERSION_COLUMNS(NAME, ", ")
            " FROM schedule_version WHERE name = ?1 AND version = ?2",
        [SQL_SCHEDULE_VERSIONS_DELETE] = "DELETE FROM schedule_version WHERE name = ?1",
        [SQL_AGENT_LIST] = "SELECT " AGENT_COLUMNS(NAME, ", ") " FROM agent ORDER BY name",
        [SQL_OVERRUN_RAISE] = "INSERT INTO overrun AS o (task, times, at) VALUES (?1, 1, ?2) "
            "ON CONFLICT (task) DO UPDATE SET times = o.times + 1, at = excluded.at",
        [SQL_OVERRUN_LOWER] = "UPDATE overrun SET times = times - 1 WHERE task = ?1",
        [SQL_OVERRUN_SWEEP] = "DELETE FROM overrun WHERE at < ?1 AND NOT EXISTS "
            "(SELECT 1 FROM task AS t WHERE t.id = overrun.task "
            "AND t.state NOT IN ('processed', 'compensated'))",
        [SQL_OVERRUN_CLEAN] = "DELETE FROM overrun WHERE times <= 0",
        [SQL_OVERRUN_DELETE] = "DELETE FROM overrun WHERE task = ?1",
        [SQL_OVERRUN_LIST] = "SELECT task, times, at FROM overrun ORDER BY at DESC, task LIMIT ?1",
        [SQL_STOPPED] = "SELECT t.seq, t.ended_at, t.id, t.workflow, t.direction = 'undo', "
            "t.doc ->> '$.error.code', t.doc ->> '$.error.message', "
            "(SELECT s.value ->> '$.name' FROM json_each(t.doc, '$.steps') AS s "
            "WHERE coalesce(s.value ->> '$.direction', 'forward') = t.direction "
            "AND s.value ->> '$.error.code' = t.doc ->> '$.error.code' "
            "ORDER BY s.value ->> '$.state' <> 'failed', s.key LIMIT 1), "
            "iif(t.doc ->> '$.error.code' IN ('child', 'pivot'), " STOPPED_OF_CHILD ", 0) "
            "FROM task AS t WHERE t.state = 'error' AND t.closed_at IS NULL AND t.ended_at >= ?1 "
            "AND (t.ended_at > ?1 OR t.seq > ?2) ORDER BY t.ended_at, t.seq LIMIT ?3",
        [SQL_ALERT_PUT] = "INSERT INTO alert AS a (" ALERT_PUT_COLUMNS(NAME, ", ") ") "
            "VALUES (" ALERT_PUT_COLUMNS(PARAM, ", ") ") ON CONFLICT (id) DO UPDATE SET "
            "doc = :doc, resolved_at = :resolved_at, live = :live, "
            "acknowledged_at = iif(:lift, NULL, a.acknowledged_at), "
            "acknowledged_by = iif(:lift, NULL, a.acknowledged_by), "
            "acknowledged_why = iif(:lift, NULL, a.acknowledged_why)",
        [SQL_ALERT_TRIM] = "DELETE FROM alert WHERE NOT live "
            "AND seq <= (SELECT max(seq) FROM alert) - ?1",
        [SQL_ALERT_LIST] = ALERT "seq < ?1 ORDER BY seq DESC LIMIT ?2",
        [SQL_ALERT_LIVE] = ALERT "live AND seq < ?1 ORDER BY seq DESC LIMIT ?2",
        [SQL_ALERT_GET] = "SELECT resolved_at, acknowledged_at FROM alert WHERE id = ?1",
        [SQL_LOCK_KEY] = "INSERT INTO lock_key (lock, held, look) VALUES (?1, 0, 0) "
            "ON CONFLICT (lock) DO NOTHING",
        [SQL_LOCK_LOOK] = "INSERT INTO lock_key (lock, held, look) VALUES (?1, 0, " LOOK_LAST ") "
            "ON CONFLICT (lock) DO UPDATE SET look = excluded.look WHERE lock_key.look = 0",
        [SQL_LOCK_RAISE] = "UPDATE lock_key SET held = held + 1 WHERE lock = ?1 AND held < ?2",
        [SQL_LOCK_LOWER] = "UPDATE lock_key SET held = held - 1, "
            "look = iif(look <> 0, look, " LOOK_LAST ") WHERE lock = ?1",
        [SQL_LOCK_SEEN] = "UPDATE lock_key SET look = 0 WHERE lock = ?1",
        [SQL_LOCK_LATER] = "UPDATE lock_key SET look = " LOOK_LAST " WHERE lock = ?1",
        [SQL_LOCK_DELETE] = "DELETE FROM lock_key WHERE lock = ?1 AND held = 0",
        [SQL_LOCK_HOLD] = "INSERT INTO lock_holder (lock, task, since) "
            "SELECT ?1, seq, ?3 FROM task WHERE id = ?2",
        [SQL_LOCK_LEAVE] = "DELETE FROM lock_holder WHERE lock = ?1 "
            "AND task = (SELECT seq FROM task WHERE id = ?2)",
        [SQL_LOCK_FIRST] = "SELECT t.id, h.since, "
            "(SELECT k.held FROM lock_key AS k WHERE k.lock = h.lock) FROM lock_holder AS h "
            "CROSS JOIN task AS t ON t.seq = h.task WHERE h.lock = ?1 "
            "ORDER BY h.since, h.task LIMIT 1",
        [SQL_LOCK_SINCE] = "UPDATE task SET lock_since = ?2 WHERE seq = ?1",
        [SQL_LOCK_REPLACES] = "INSERT INTO lock_replaces (lock, workflow, task) "
            "SELECT lock, workflow, seq FROM task WHERE id = ?1 ON CONFLICT DO NOTHING",
        [SQL_LOCK_REPLACED] = "SELECT " COLUMNS " FROM lock_replaces AS r "
            "CROSS JOIN task ON task.seq = r.task WHERE r.lock = ?1 AND " REPLACES("task")
            " AND EXISTS (SELECT 1 FROM lock_replaces AS m CROSS JOIN task AS n ON n.seq = m.task "
            "WHERE m.lock = r.lock AND m.workflow = r.workflow AND m.task > r.task AND "
            REPLACES("n") ") ORDER BY r.workflow, r.task LIMIT ?2",
        [SQL_LOCK_REPLACE] = "UPDATE task SET lock_mode = 2 WHERE seq = ?1",
        [SQL_LOCK_FORGET] = "DELETE FROM lock_replaces WHERE lock = ?1 AND NOT EXISTS "
            "(SELECT 1 FROM task WHERE task.seq = lock_replaces.task AND " REPLACES("task") ")",
        [SQL_LOCKS_LOOK] = "SELECT lock FROM lock_key WHERE look <> 0 ORDER BY look LIMIT ?1",
        [SQL_LOCKS_LIST] = HOLDERS "WHERE h.task > ?1 " HOLDERS_ORDER,
        [SQL_LOCK_LIST] = HOLDERS "WHERE h.lock = ?4 AND h.task > ?1 " HOLDERS_ORDER,
        [SQL_ALERT_ACKNOWLEDGE] = "UPDATE alert SET acknowledged_at = ?2, acknowledged_by = ?3, "
            "acknowledged_why = ?4 WHERE id = ?1",
    };
    /* clang-format on */
    _Static_assert(COUNT_OF(texts) == SQL_COUNT, "every statement has a text");
    return texts[which];
}
