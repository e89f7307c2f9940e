/*
 * Every statement of the PostgreSQL body. What lists columns is made of the tables in store/rows.
 * "~" stands for the schema. The parameters of a statement have either numbers or names, as
 * "$name": the first one that it names is $1, and so on (pg_sql_expand in query.c). Code binds them
 * in that order. enum pg_sql (body.h) names the statements; plans_test.c tests how they are run.
 */
#include "store/postgres/columns.h"

#include "store/postgres/item_sql.h"
#include "store/postgres/sql_stopped.h"
#include "store/postgres/sql_update.h"
#include "store/row.h"

#define OF_T(name, ...)              "t." #name
#define OF_U(name, ...)              "u." #name
#define OF_N(name, ...)              "n." #name
#define OF_W(name, ...)              "w." #name
#define UNNEST_TASK(name, type, how) UNNEST(name, type)
#define SQL_state                    "text"
#define SQL_direction                "text"

/* In the order of enum task_column. */
#define COLUMNS_T "t.seq, t.id, " TASK_COLUMNS(OF_T, ", ")
#define COLUMNS_U "u.seq, u.id, " TASK_COLUMNS(OF_U, ", ")
#define COLUMNS_N "n.seq, n.id, " TASK_COLUMNS(OF_N, ", ")
#define PAYLOADS(t)                                                                          \
    ", ARRAY(SELECT p.number FROM ~payload AS p WHERE p.task = " t ".seq ORDER BY p.number)" \
    ", ARRAY(SELECT p.json FROM ~payload AS p WHERE p.task = " t ".seq ORDER BY p.number)"

/* What goes with a change that was done, where there is any such: `d` has its ord and its task's
 * seq. */
#define PAYLOADS_INSERT                                                               \
    "p AS (INSERT INTO ~payload (task, number, json) SELECT d.seq, p.number, p.json " \
    "FROM unnest($p_ord::int8[], $p_number::int8[], $p_json::text[]) "                \
    "AS p(ord, number, json) JOIN d USING (ord)), "
#define AUDITS_INSERT                                                                              \
    "a AS (INSERT INTO ~audit (" AUDIT_COLUMNS(NAME, ", ") ") SELECT " AUDIT_COLUMNS(              \
        OF_A,                                                                                      \
        ", ") " FROM unnest($a_ord::int8[], " AUDIT_COLUMNS(UNNEST_AUDIT,                          \
                                                            ", ") ") WITH ORDINALITY AS "          \
                                                                  "a(ord, " AUDIT_COLUMNS(         \
                                                                      NAME,                        \
                                                                      ", ") ", nth) JOIN d USING " \
                                                                            "(ord) ORDER BY "      \
                                                                            "a.nth) "
#define OF_A(name, ...)          "a." #name
#define UNNEST_AUDIT(name, type) "$a_" #name "::" SQL_##type "[]"
#define MESSAGES_INSERT(tasks)                                                          \
    ", o AS (INSERT INTO ~outbox (task, name, target, body, created_at) SELECT " tasks  \
    ".id, m.name, m.target, m.body, m.at FROM unnest($m_ord::int8[], $m_name::text[], " \
    "$m_target::text[], $m_body::text[], $m_at::int8[]) WITH ORDINALITY "               \
    "AS m(ord, name, target, body, "                                                    \
    "at, nth) JOIN d USING (ord) JOIN " tasks " USING (ord) ORDER BY m.nth) "

#define EXTRAS_INSERT(tasks) ", " PAYLOADS_INSERT AUDITS_INSERT MESSAGES_INSERT(tasks)

/* Waits of tasks that wait for several: new and previous. */
#define WAITS_INSERT                                                                           \
    ", v AS (INSERT INTO ~wait (agent, rank, task) SELECT v.agent, v.rank, d.seq FROM unnest(" \
    "$w_ord::int8[], $w_agent::text[], $w_rank::int8[]) AS v(ord, agent, rank) "               \
    "JOIN d USING (ord)) "
#define WAITS_DELETE                                                                \
    ", y AS (DELETE FROM ~wait AS w WHERE w.task = ANY (ARRAY(SELECT d.seq FROM d " \
    "WHERE d.ord = ANY ($w_dropped::int8[])))) "

/* A change that is no whole one ('q', 'r': a request, with or without release) keeps this column.
 */
#define KEEP(name) #name " = CASE WHEN u.kind IN ('q', 'r') THEN t." #name " ELSE u." #name " END, "
/* Those that a request changes, too, are in UPDATE_OF. */
#define KEPT(name, type, how) KEPT_##how(name)
#define KEPT_PLAIN(name)      KEEP(name)
#define KEPT_INDEXED(name)    KEEP(name)
#define KEPT_REVISION(name)
#define KEPT_RELEASED(name)
#define KEPT_REQUESTED(name)
#define KEPT_WAKE(name)

/* For locked rows (c): unchanged between snapshot and lock? A row that is locked is as it is by
 * then, its payloads come as of that moment: what was added to them meanwhile would be missing.
 * Whoever claims next finds it. A subquery, since a join may be done by reading all tasks. */
#define UNCHANGED "WHERE c.revision = (SELECT o.revision FROM ~task AS o WHERE o.seq = c.seq)"

/* The audit entry that goes with a change, if there is one, and if `if` is not empty. */
#define AUDIT_INSERT(if)                                                                    \
    "INSERT INTO ~audit (" AUDIT_BRIEF_COLUMNS(NAME, ", ") ") SELECT " AUDIT_BRIEF_COLUMNS( \
        AUDIT_PARAM, ", ") if " $a_actor::text IS NOT NULL"
#define AUDIT_PARAM(name, ...) "$a_" #name

/* Takes what `c` found, up to the limit; how much that was is in the last column. */
#define TAKE(state, started, limit) TAKE_AND(state, started, limit, "")
#define TAKE_AND(state, started, limit, more)                                                 \
    "u AS (UPDATE ~task AS t SET revision = t.revision + 1, waiting_for = NULL, locked_by = " \
    "$1, state = " state ", started_at = " started " FROM c WHERE t.seq = c.seq "             \
    "AND c.place <= " limit " RETURNING " COLUMNS_T ", c.place) " more                        \
    "SELECT " COLUMNS_U PAYLOADS("u") ", (SELECT count(*) FROM c) FROM u ORDER BY u.place"

/* A task that lacks its lock does not start. */
#define STARTED                                                                                    \
    "coalesce(t.started_at, CASE WHEN t.lock IS NULL OR t.lock_since IS NOT NULL THEN $2::bigint " \
    "END)"

/* The database's clock. Leases go by it alone. */
#define CLOCK           "(extract(epoch FROM clock_timestamp()) * 1000)::int8"
#define RUNS(until)     until " - " CLOCK " BETWEEN 1 AND 60000"
#define REFUSED_COUNTED "10000"
/* One reading of the clock for the whole statement: excluded.until less the length. */
#define MAY_TAKE(seize)                                                                        \
    "(" seize " OR l.holder = excluded.holder OR l.until <= excluded.until - $3 OR l.until > " \
    "excluded.until - $3 + 60000)"
/* What is done to a lease that has a holder. */
#define TAKE_LEASE(seize)                                            \
    "ON CONFLICT (name) DO UPDATE SET "                              \
    "holder = CASE WHEN " MAY_TAKE(                                  \
        seize) " THEN excluded.holder ELSE l.holder END, "           \
               "epoch = l.epoch + (" MAY_TAKE(                       \
                   seize) " AND l.holder <> excluded.holder)::int, " \
                          "until = CASE WHEN " MAY_TAKE(             \
                              seize) " THEN excluded.until ELSE l.until END "

/* The owners of tasks (o) that have no lease (gone): owners come from the index, one step for each.
 * Behind WITH RECURSIVE. */
#define GONE(me)                                                                                \
    "o(owner) AS ((SELECT locked_by FROM ~task WHERE locked_by IS NOT NULL ORDER BY locked_by " \
    "LIMIT 1) UNION ALL SELECT (SELECT t.locked_by FROM ~task AS t WHERE t.locked_by > "        \
    "o.owner ORDER BY t.locked_by LIMIT 1) FROM o WHERE o.owner IS NOT NULL), "                 \
    "gone AS MATERIALIZED (SELECT o.owner FROM o WHERE o.owner IS NOT NULL AND o.owner <> " me  \
    " AND NOT EXISTS (SELECT 1 FROM ~lease AS l WHERE l.name = 'node/' || "                     \
    "regexp_replace(o.owner, '/[^/]*$', '') AND l.holder = o.owner AND " RUNS("l.until") ")), "

/* How many other nodes live that schedule, or have not written their roles yet; by their names. */
#define SCHEDULERS(me, order)                                                                      \
    "(SELECT count(*) FROM ~lease AS l JOIN ~node AS n ON l.name = 'node/' || n.name WHERE " RUNS( \
        "l.until") " AND (n.said_by IS NULL OR n.schedules) AND n.name " order                     \
                   " regexp_replace(" me ", '/[^/]*$', ''))"

#define CLAIMABLE \
    "~task AS t WHERE t.state = 'pending' AND t.locked_by IS NULL AND t.waiting_for = "

/* The same of one that waits for several. */
#define AMONG "t.state = 'pending' AND t.locked_by IS NULL AND left(t.waiting_for, 1) = ',' "

/* Where an index leads to the rows, no other way is left to the planner: a bound for each column,
 * and its order. With "column = value ORDER BY seq" it may walk over all tasks by seq and drop
 * those that are of another kind, which is cheap by its statistics and endless where they mislead.
 */

/* How many entries a range has, up to a limit. */
#define COUNT_TO(limit, from) "(SELECT count(*) FROM (SELECT 1 FROM " from " LIMIT " limit ") AS n)"
#define COUNT_STATE(s)                                                      \
    COUNT_TO("$1", "~task AS t WHERE t.state >= '" s "' AND t.state <= '" s \
                   "' AND t.state <> 'processed' ORDER BY t.state, t.seq")

#define OPERATION "SELECT seq, " OPERATION_COLUMNS(NAME, ", ") ", id FROM ~operation WHERE "
/* Where nothing else determines the type of a parameter. */
#define PARAM_TYPED(name, type) "$" #name "::" SQL_##type
#define OPERATION_PAGE          " ORDER BY seq DESC LIMIT $2"
#define OPERATION_AUDIT         "x AS (" AUDIT_INSERT(" FROM o WHERE") ") SELECT count(*) FROM o"

/* Whether its run waits to become a task, or is one that has not ended. */
#define RUN_OPEN                                                                          \
    "(s.run IS NOT NULL AND (EXISTS (SELECT 1 FROM ~submission AS b WHERE b.key = s.run " \
    "AND b.source = '" SCHEDULE_SOURCE "' AND b.refused_at IS NULL) "                     \
    "OR EXISTS (SELECT 1 FROM ~task AS t WHERE t.id = s.run AND t.closed_at IS NULL "     \
    "AND t.state NOT IN ('processed', 'compensated'))))"
#define SCHEDULE            "SELECT s.seq, s.name, " SCHEDULE_COLUMNS(OF_S, ", ") SCHEDULE_FROM
#define SCHEDULE_FROM       ", " RUN_OPEN " FROM ~schedule AS s "
#define OF_S(name, ...)     "s." #name
#define SET_OF_U(name, ...) #name " = u." #name
#define SCHEDULE_VERSION \
    "v AS (INSERT INTO ~schedule_version (" SCHEDULE_VERSION_COLUMNS(NAME, ", ") ") SELECT "
#define UNNEST_SUBMISSION(name, type) "$b_" #name "::" SQL_##type "[]"

/* See struct generations. */
#define GENERATIONS        \
    GENERATION("workflow") \
    ", " GENERATION("token") ", " GENERATION("agent") ", " GENERATION("outbox")
#define GENERATION(of) "(SELECT g.number FROM ~generation AS g WHERE g.name = '" of "')"
#define GENERATION_RAISE(of) \
    "INSERT INTO ~generation AS g (name, number) VALUES ('" of "', 1)" GENERATION_ONE_MORE
#define GENERATION_ONE_MORE " ON CONFLICT (name) DO UPDATE SET number = g.number + 1"

/* The code that is to become a session has not expired; NULL: none is needed. */
#define CODE_IS_THERE(code, now)                                                    \
    "(" code "::bytea IS NULL OR EXISTS (SELECT 1 FROM ~session AS c WHERE c.hash " \
    "= " code " AND c.is_code AND c.expires_at > " now "))"

/* By the statement's own snapshot; a name of NULL: always true. */
#define LEADS(name, epoch)                                                              \
    "(" name "::text IS NULL OR EXISTS (SELECT 1 FROM ~lease AS l WHERE l.name = " name \
    " AND l.epoch = " epoch ")) "

/* Messages; those set aside are in a table of their own. */
#define FRESH_COLUMNS                                                           \
    "o.seq, " MESSAGE_COLUMNS(OF_O, ", ") ", NULL::text, 0::int8, NULL::int8, " \
                                          "o.created_at, NULL::text"
#define ASIDE_COLUMNS                                                        \
    "SELECT o.seq, " MESSAGE_COLUMNS(OF_O, ", ") ", " MESSAGE_ASIDE_COLUMNS( \
        OF_O, ", ") " FROM ~outbox_aside AS o "
#define OF_O(name, ...) "o." #name
#define OF_M(name, ...) "m." #name

#define ALERT           "SELECT seq, " ALERT_COLUMNS(NAME, ", ") " FROM ~alert WHERE "

#define SUBMISSION      "SELECT seq, source, " SUBMISSION_COLUMNS(NAME, ", ") " FROM ~submission "
/* Instead of what may be long. */
#define NOTHING(name, ...) "NULL"
#define SQL_any            "text"
/* The size of what applications inserted. */
#define SUBMISSION_BYTES  "0::int8" SUBMISSION_COLUMNS(BYTES, )
#define BYTES(name, type) BYTES_##type(#name)
#define BYTES_any(name)   " + coalesce(octet_length(" name "), 0)"
#define BYTES_text(name)
#define BYTES_number(name)
#define BYTES_time(name)
#define SUBMISSION_PAGE \
    " AND seq < $1 AND ($3::text IS NULL OR source = $3) ORDER BY seq DESC LIMIT $2"
#define SUBMISSIONS_MEANT                                                                 \
    "WITH m AS MATERIALIZED (SELECT seq FROM ~submission WHERE refused_at IS NOT NULL "   \
    "AND ($seq::int8 = 0 OR seq = $seq) AND ($source::text IS NULL OR source = $source) " \
    "AND seq <= $up_to_seq ORDER BY seq LIMIT $limit FOR UPDATE), "
#define SUBMISSIONS_DONE \
    "a AS (" AUDIT_INSERT(" WHERE EXISTS (SELECT 1 FROM d) AND") ") SELECT count(*) FROM d"

/* Is it the last admin's? No other one's would be good at that time. */
#define LAST_ADMIN(now)                                                                       \
    "SELECT 1 FROM ~token WHERE name = $name AND admin AND NOT EXISTS (SELECT 1 FROM ~token " \
    "WHERE name <> $name AND admin AND (expires_at IS NULL OR expires_at > " now "))"

/* made of what is above */
#include "store/postgres/list_sql.h"
#include "store/postgres/lock_sql.h"
#include "store/postgres/notice_sql.h"
#include "store/postgres/retire_sql.h"

/* What is too long for one text: ISO C has 4095 bytes. */
const char *pg_sql_end(enum pg_sql which)
{
    static const char *const ends[PG_COUNT] = {
        [PG_INSERT_FAMILY] = ITEMS_PUT TELLS_INSERT CHILDREN_INSERT SUBMITTED_DONE,
        [PG_UPDATE_ITEMS] = ITEMS_PUT DONE,
        [PG_UPDATE_LOCKED_ITEMS] = ITEMS_PUT DONE,
        [PG_UPDATE_TELLS] = ITEMS_PUT TELLS_INSERT DONE,
        [PG_UPDATE_LOCKED_TELLS] = ITEMS_PUT TELLS_INSERT DONE,
        [PG_UPDATE_CHILDREN] = ITEMS_PUT TELLS_INSERT CHILDREN_INSERT DONE,
        [PG_UPDATE_LOCKED_CHILDREN] = ITEMS_PUT TELLS_INSERT CHILDREN_INSERT DONE,
    };

    return ends[which] ? ends[which] : "";
}

const char *pg_sql_text(enum pg_sql which) /* NOLINT(readability-function-size): a table */
{
    /* clang-format off */
    static const char *const texts[] = {
        /* whatever the role's default: what follows a lock has to see what was done before it */
        [PG_BEGIN] = "BEGIN ISOLATION LEVEL READ COMMITTED",
        [PG_COMMIT] = "COMMIT",
        [PG_ROLLBACK] = "ROLLBACK",
        /* Fails where the lease has another epoch: then all that follows is not done. */
        [PG_FENCE] = "WITH l AS MATERIALIZED (SELECT 1 FROM ~lease WHERE name = $1 AND epoch = $2 "
            "FOR SHARE) SELECT 1 / count(*) FROM l",
        [PG_INSERT] = INSERT DONE,
        [PG_INSERT_EXTRA] = INSERT EXTRAS_INSERT("n") DONE,
        [PG_INSERT_WAITS] = INSERT EXTRAS_INSERT("n") WAITS_INSERT
            DONE,
        [PG_INSERT_SUBMITTED] = INSERT_SUBMITTED SUBMITTED_DONE,
        [PG_INSERT_FAMILY] = INSERT_SUBMITTED,
        [PG_UPDATE] = UPDATE DONE,
        [PG_UPDATE_LOCKED] = UPDATE_LOCKED DONE,
        [PG_UPDATE_LOCKED_EXTRA] = UPDATE_LOCKED EXTRAS_INSERT("u") DONE,
        [PG_UPDATE_EXTRA] = UPDATE EXTRAS_INSERT("u") DONE,
        [PG_UPDATE_LOCKED_WAITS] = UPDATE_LOCKED EXTRAS_INSERT("u")
            WAITS_INSERT WAITS_DELETE DONE,
        [PG_UPDATE_WAITS] = UPDATE EXTRAS_INSERT("u")
            WAITS_INSERT WAITS_DELETE DONE,
        [PG_UPDATE_NOTICES] = UPDATE_ON_NOTICES DONE,
        [PG_UPDATE_LOCKED_NOTICES] = UPDATE_LOCKED_ON_NOTICES DONE,
        [PG_UPDATE_ITEMS] = UPDATE_ON_NOTICES,
        [PG_UPDATE_LOCKED_ITEMS] = UPDATE_LOCKED_ON_NOTICES,
        [PG_UPDATE_TELLS] = UPDATE_ON_NOTICES,
        [PG_UPDATE_LOCKED_TELLS] = UPDATE_LOCKED_ON_NOTICES,
        [PG_UPDATE_CHILDREN] = UPDATE_ON_NOTICES,
        [PG_UPDATE_LOCKED_CHILDREN] = UPDATE_LOCKED_ON_NOTICES,
        [PG_CLAIM_WAITING] = "WITH c AS MATERIALIZED (SELECT c.seq, row_number() OVER "
            "(ORDER BY c.rank, c.seq) AS place FROM (SELECT t.seq, t.rank, t.revision FROM "
            CLAIMABLE "$3 AND t.rank >= $6 AND t.rank <= $4 ORDER BY t.rank, t.seq LIMIT $5 "
            "FOR UPDATE SKIP LOCKED) AS c " UNCHANGED "), "
            TAKE("CASE t.direction WHEN 'undo' THEN 'compensating' ELSE 'processing' END",
                 STARTED, "$5"),
        [PG_CLAIM_NEXT] = "SELECT t.rank FROM " CLAIMABLE "$1 "
            "AND t.rank >= $2 AND t.rank <= $3 ORDER BY t.rank, t.seq LIMIT 1",
        /* A subquery that locks is run for each wait, in their order, until there are enough. */
        [PG_CLAIM_AMONG] = "WITH c AS MATERIALIZED (SELECT c.seq, row_number() OVER "
            "(ORDER BY c.rank, c.seq) AS place FROM (SELECT t.seq, w.rank, t.revision FROM "
            "(SELECT w.rank, w.task FROM ~wait AS w WHERE w.agent >= $3 AND w.agent <= $3 "
            "AND w.rank >= $6 AND w.rank <= $4 ORDER BY w.agent, w.rank, w.task OFFSET 0) AS w "
            "CROSS JOIN LATERAL (SELECT t.seq, t.revision FROM ~task AS t "
            "WHERE t.seq = w.task AND " AMONG
            "FOR UPDATE SKIP LOCKED) AS t LIMIT $5) AS c " UNCHANGED "), "
            TAKE_AND("CASE t.direction WHEN 'undo' THEN 'compensating' ELSE 'processing' END",
                     STARTED, "$5",
                     ", x AS (DELETE FROM ~wait AS w WHERE w.task = ANY (ARRAY(SELECT u.seq "
                     "FROM u))) "),
        [PG_CLAIM_AMONG_NEXT] = "SELECT w.rank FROM ~wait AS w WHERE w.agent >= $1 "
            "AND w.agent <= $1 AND w.rank >= $2 AND w.rank <= $3 AND (SELECT true FROM ~task AS t "
            "WHERE t.seq = w.task AND " AMONG ") ORDER BY w.agent, w.rank, w.task LIMIT 1",
        /* What a program of a version before left behind that knew of no waits. Not all of it at
         * once, since a node cannot start before it is done. */
        [PG_WAITS_CLEAN] = "DELETE FROM ~wait AS w USING (SELECT o.agent, o.rank, o.task "
            "FROM (SELECT o.agent, o.rank, o.task FROM ~wait AS o ORDER BY o.task LIMIT 10000) "
            "AS o WHERE (SELECT true FROM ~task AS t WHERE t.seq = o.task AND " AMONG ") "
            "IS NULL) AS s "
            "WHERE w.agent = s.agent AND w.rank = s.rank AND w.task = s.task",
        [PG_CLAIM_BOOT] = "WITH c AS MATERIALIZED (SELECT c.seq, row_number() OVER "
            "(ORDER BY c.locked_by, c.seq) AS place FROM (SELECT t.seq, t.locked_by, t.revision "
            "FROM ~task AS t WHERE t.locked_by > $2 AND t.locked_by < $3 AND t.locked_by <> $1 "
            "AND CASE WHEN substr(t.locked_by, $4::int) ~ '^[0-9]{1,18}$' "
            "THEN substr(t.locked_by, $4::int)::int8 < $5 ELSE true END "
            "ORDER BY t.locked_by, t.seq LIMIT $6 + 1 FOR UPDATE SKIP LOCKED) AS c " UNCHANGED "), "
            TAKE("t.state", "t.started_at", "$6"),
        [PG_CLAIM_NODE] = "WITH RECURSIVE " GONE("$1")
            "c AS MATERIALIZED (SELECT c.seq, row_number() OVER (ORDER BY c.locked_by, c.seq) "
            "AS place FROM (SELECT t.seq, t.locked_by, t.revision FROM ~task AS t JOIN gone "
            "ON t.locked_by = gone.owner ORDER BY t.locked_by, t.seq LIMIT $2 + 1 "
            "FOR UPDATE OF t SKIP LOCKED) AS c " UNCHANGED "), "
            TAKE("t.state", "t.started_at", "$2"),
        [PG_PROBE] = "INSERT INTO ~meta (name, value) VALUES ('probe', $1) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        /* Changes nothing, but is written: durable as all that was committed before it. Should the
         * row have been deleted, it comes back: what writes nothing proves nothing. */
        [PG_PROVE] = "INSERT INTO ~node AS n (name, boot) VALUES ($1, $2) "
            "ON CONFLICT (name) DO UPDATE SET boot = n.boot RETURNING " CLOCK,
        [PG_GET] = "SELECT " COLUMNS_T PAYLOADS("t") " FROM ~task AS t WHERE t.id = $1",
        /* Those that do not fit into so many bytes come without their columns; the first one always
         * comes with them. */
        [PG_RECORDS] = "WITH i AS MATERIALIZED (SELECT i.nth, t.seq, octet_length(t.doc) "
            "+ coalesce((SELECT sum(octet_length(p.json)) FROM ~payload AS p "
            "WHERE p.task = t.seq), 0) AS bytes FROM unnest($1::text[]) WITH ORDINALITY "
            "AS i(id, nth) JOIN ~task AS t ON t.id = i.id), "
            "n AS (SELECT nth, seq, sum(bytes) OVER (ORDER BY nth) - bytes AS before FROM i) "
            "SELECT " COLUMNS_T PAYLOADS("t") ", n.nth FROM n LEFT JOIN LATERAL "
            "(SELECT * FROM ~task AS t WHERE t.seq = n.seq AND n.before < $2 OFFSET 0) AS t "
            "ON true ORDER BY n.nth",
        [PG_GLANCE] = "SELECT i.nth, t.revision, t.state FROM unnest($1::text[]) WITH ORDINALITY "
            "AS i(id, nth) JOIN ~task AS t ON t.id = i.id",
        /* one by one by their key, whatever the planner believes of them */
        [PG_PAYLOADS] = "SELECT (SELECT p.json FROM ~payload AS p WHERE p.task = w.task "
            "AND p.number = w.number) FROM unnest($1::int8[], $2::int8[]) WITH ORDINALITY "
            "AS w(task, number, nth) ORDER BY w.nth",
        [PG_ITEMS_UP] = ITEMS("i.number >= $4 ", ""),
        [PG_ITEMS_DOWN] = ITEMS("i.number < $4 ", "DESC"),
        [PG_ITEMS_FAILED] = ITEMS("i.number >= $4 AND i.state = 'failed' ", ""),
        [PG_ITEMS_TO_UNDO] = ITEMS("i.number < $4 AND i.needs_undo ", "DESC"),
        [PG_ITEMS_OUTPUTS] = ITEMS_OUTPUTS,
        [PG_OVERDUE] = "SELECT " COLUMNS_T " FROM ~task AS t WHERE t.wake_at <= $1 "
            "AND (t.wake_at, t.seq) > ($2, $3) ORDER BY t.wake_at, t.seq LIMIT $4",
        [PG_REQUESTED] = "SELECT " COLUMNS_T " FROM ~task AS t WHERE t.request IS NOT NULL "
            "AND (t.locked_by, t.seq) > ($1, $2) AND t.locked_by <= $1 "
            "ORDER BY t.locked_by, t.seq LIMIT $3",
        [PG_SCAN] = SCAN("FROM ~task AS t WHERE t.seq < $1", "t.seq DESC"),
        [PG_SCAN_STATE] = SCAN("FROM ~task AS t WHERE t.state <> 'processed' "
            "AND (t.state, t.seq) < (($3::text[])[1], $1) AND t.state >= ($3::text[])[1]",
            "t.state DESC, t.seq DESC"),
        [PG_SCAN_WORKFLOW] = SCAN("FROM ~task AS t WHERE (t.workflow, t.seq) < ($4, $1) "
            "AND t.workflow >= $4", "t.workflow DESC, t.seq DESC"),
        [PG_SCAN_TAG] = SCAN("FROM ~tag AS h JOIN ~task AS t ON t.seq = h.task "
            "WHERE (h.key, h.value, h.task) < (($7::text[])[1], ($8::text[])[1], $1) "
            "AND (h.key, h.value) >= (($7::text[])[1], ($8::text[])[1])",
            "h.key DESC, h.value DESC, h.task DESC"),
        [PG_SCAN_ASKED] = SCAN("FROM ~task AS t WHERE asked NOTNULL AND t.seq < $1", "t.seq DESC"),
        [PG_SCAN_PARENT] = SCAN("FROM ~task AS t WHERE (t.parent, t.seq) < ($23, $1) "
            "AND t.parent >= $23", "t.parent DESC, t.seq DESC"),
        [PG_SCAN_ROOT] = SCAN("FROM ~task AS t WHERE (t.root, t.seq) < ($24, $1) "
            "AND t.root >= $24", "t.root DESC, t.seq DESC"),
        [PG_SCAN_ID] = SCAN("FROM ~task AS t WHERE t.id = ANY ($18::text[]) AND t.seq < $1",
            "t.seq DESC"),
        /* Used after no more than half as many were counted (has_few in list.c). */
        [PG_SCAN_PREFIX] = SCAN("FROM ~task AS t WHERE t.seq = ANY (ARRAY(SELECT p.seq FROM "
            "~task AS p WHERE p.id >= $25 AND p.id < $25 || chr(127) ORDER BY p.id LIMIT 40000)) "
            "AND t.seq < $1", "t.seq DESC"),
        [PG_COUNT_PREFIX] = "SELECT count(*) FROM (SELECT 1 FROM ~task WHERE id >= $1 "
            "AND id < $1 || chr(127) ORDER BY id LIMIT $2) AS p",
        [PG_SEQ_BELOW] = "SELECT seq, submitted_at FROM ~task WHERE seq < $1 "
            "ORDER BY seq DESC LIMIT 1",
        [PG_ROWS] = "SELECT " COLUMNS_T " FROM ~task AS t WHERE t.seq = ANY ($1::int8[]) "
            "ORDER BY t.seq DESC",
        [PG_CENSUS] = "SELECT " COUNT_STATE("pending") ", " COUNT_STATE("processing") ", "
            COUNT_STATE("compensating") ", " COUNT_STATE("compensated") ", " COUNT_STATE("error")
            ", " COUNT_TO("$1", "~task AS t WHERE t.wake_at <= $2 ORDER BY t.wake_at, t.seq") ", "
            "(SELECT min(t.wake_at) FROM ~task AS t WHERE t.wake_at <= $2), "
            COUNT_TO("$1", "~task AS t WHERE t.state = 'pending' AND t.locked_by IS NULL "
            "AND t.waiting_for >= '" WAITING_LOCK "' AND t.waiting_for < '" CENSUS_BEHIND_LOCKS "' "
            "ORDER BY t.waiting_for, t.rank, t.seq"),
        /* The agents that there are come from the index, one step for each; they share $1. */
        [PG_CENSUS_AGENTS] = "WITH RECURSIVE g(agent, at, place) AS ("
            "(SELECT t.waiting_for, t.submitted_at, 1 FROM " CLAIMABLE "t.waiting_for "
            "AND t.waiting_for > '" CENSUS_BEFORE "' "
            "ORDER BY t.waiting_for, t.rank, t.seq LIMIT 1) UNION ALL "
            "SELECT n.waiting_for, n.submitted_at, g.place + 1 FROM g CROSS JOIN LATERAL ("
            "SELECT t.waiting_for, t.submitted_at FROM ~task AS t WHERE t.state = 'pending' "
            "AND t.locked_by IS NULL AND t.waiting_for > CASE WHEN "
            "starts_with(g.agent, '" WAITING_LOCK "') THEN '" CENSUS_BEHIND_LOCKS "' "
            "ELSE g.agent END "
            "ORDER BY t.waiting_for, t.rank, t.seq LIMIT 1) AS n WHERE g.place < $2), "
            "s AS MATERIALIZED (SELECT greatest(1, ($1 + count(*) - 1) / greatest(1, count(*))) "
            "AS most FROM g) "
            "SELECT g.agent, g.at, " COUNT_TO("(SELECT most FROM s)",
            "~task AS t WHERE t.state = 'pending' AND t.locked_by IS NULL AND t.waiting_for >= "
            "g.agent AND t.waiting_for <= g.agent ORDER BY t.waiting_for, t.rank, t.seq")
            ", (SELECT most FROM s) FROM g ORDER BY g.agent",
        [PG_CENSUS_AMONG] = "WITH RECURSIVE g(agent, task, place) AS ("
            "(SELECT w.agent, w.task, 1 FROM ~wait AS w ORDER BY w.agent, w.rank, w.task LIMIT 1) "
            "UNION ALL SELECT n.agent, n.task, g.place + 1 FROM g CROSS JOIN LATERAL ("
            "SELECT w.agent, w.task FROM ~wait AS w WHERE w.agent > g.agent "
            "ORDER BY w.agent, w.rank, w.task LIMIT 1) AS n WHERE g.place < $2), "
            "s AS MATERIALIZED (SELECT greatest(1, ($1 + count(*) - 1) / greatest(1, count(*))) "
            "AS most FROM g) SELECT g.agent, "
            "(SELECT t.submitted_at FROM ~task AS t WHERE t.seq = g.task), "
            COUNT_TO("(SELECT most FROM s)", "~wait AS w WHERE w.agent >= g.agent "
            "AND w.agent <= g.agent ORDER BY w.agent, w.rank, w.task")
            " FROM g ORDER BY g.agent",
        [PG_OWNERS] = "SELECT t.seq, t.doc::json ->> 'owner' FROM ~task AS t "
            "WHERE t.state = $1 AND t.state <> 'processed' AND t.seq > $2 "
            "ORDER BY t.state, t.seq LIMIT $3",
        /* Two statements of one batch see different moments: a task that was deleted between them
         * is neither there nor, for the first, reserved. Then nothing of the batch is done. */
        [PG_INSERT_CHECK] = "SELECT 1 / (1 - least(1, count(*))) "
            "FROM unnest($1::text[], $2::int8[]) AS n(id, at) "
            "WHERE (SELECT r.until FROM ~reserved AS r WHERE r.id = n.id) > n.at "
            "AND (SELECT t.submitted_at FROM ~task AS t WHERE t.id = n.id) = n.at",
        [PG_RETIRE_LOOK] = RETIRE_LOOK " FROM ~task AS t WHERE t.seq > $1 ORDER BY t.seq LIMIT $2",
        [PG_RETIRE_LOOK_WORKFLOW] = RETIRE_LOOK " FROM ~task AS t "
            "WHERE (t.workflow, t.seq) > ($3, $1) "
            "AND t.workflow <= $3 ORDER BY t.workflow, t.seq LIMIT $2",
        [PG_RETIRE_LOOK_ORPHANS] = RETIRE_LOOK_ORPHANS,
        [PG_RETIRE] = RETIRE,
        [PG_RESERVED] = "SELECT content, workflow, version, state, ended_at, until, "
            "CASE WHEN left(sha256, 16) = content THEN substr(sha256, 17) END, "
            "CASE WHEN left(owner, 16) = content THEN substr(owner, 17) END "
            "FROM ~reserved WHERE id = $1",
        [PG_ORPHANED_END] = ORPHANED_END,
        [PG_RESERVED_SWEEP] = "DELETE FROM ~reserved "
            "WHERE id = ANY (ARRAY(SELECT id FROM ~reserved WHERE until <= $1 "
            "ORDER BY until LIMIT $2)) RETURNING 1",
        /* One at a time: both wait for the row of the generation, whose numbers so are seen in
         * their order. */
        [PG_WORKFLOW_LOCK] = GENERATION_RAISE("workflow"),
        [PG_WORKFLOW_PUT] = "WITH o AS (SELECT w.version, w.text FROM ~workflow AS w "
            "WHERE w.name = $name ORDER BY w.version DESC LIMIT 1), "
            "n AS (INSERT INTO ~workflow (name, version, text, created_at, generation) "
            "SELECT $name, coalesce((SELECT version FROM o), 0) + 1, $text, $created_at, "
            GENERATION("workflow") " "
            "WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.text = $text) RETURNING version), "
            "a AS (INSERT INTO ~audit (at, actor, verb, task, step, reason, address) "
            "SELECT $a_at, $a_actor, $a_verb, $a_task, $a_step, "
            "$name || ', version ' || n.version, $a_address FROM n "
            "WHERE $a_actor::text IS NOT NULL) "
            "SELECT coalesce((SELECT version FROM n), (SELECT version FROM o)), "
            "EXISTS (SELECT 1 FROM n)",
        [PG_WORKFLOW_GET] = "SELECT " WORKFLOW_COLUMNS(NAME, ", ") " FROM ~workflow "
            "WHERE name = $1 AND ($2::int8 = 0 OR version = $2) ORDER BY version DESC LIMIT 1",
        [PG_WORKFLOW_DESCRIBE] = "UPDATE ~workflow AS w SET inputs = n.inputs FROM "
            "unnest($1::text[], $2::int8[], $3::text[]) AS n(name, version, inputs) "
            "WHERE w.name = n.name AND w.version = n.version AND w.inputs IS NULL",
        /* of what does not fit into so many bytes, the first; who reads it leaves it away */
        [PG_SUBMISSION_TAKE] = "WITH t AS MATERIALIZED (SELECT seq, " SUBMISSION_BYTES " AS bytes "
            "FROM ~submission WHERE refused_at IS NULL AND ($2::int8 <= 1 "
            "OR seq % $2 = $3 OR submitted_at <= " CLOCK " - $4) ORDER BY seq LIMIT $1), "
            "n AS (SELECT seq, bytes, sum(bytes) OVER (ORDER BY seq) AS sum, "
            "row_number() OVER (ORDER BY seq) AS number FROM t) "
            "SELECT * FROM (" SUBMISSION "WHERE seq IN (SELECT seq FROM n "
            "WHERE $5::int8 = 0 OR number <= 2 OR sum - bytes <= $5) ORDER BY seq) AS s",
        [PG_SUBMISSION_COUNT] = "SELECT count(*) FROM (SELECT 1 FROM ~submission "
            "WHERE refused_at IS NOT NULL LIMIT $1) AS r",
        [PG_SUBMISSION_SETTLE] = "WITH v AS MATERIALIZED (SELECT v.* "
            "FROM unnest($1::int8[], $2::int8[], $3::text[]) AS v(seq, refused_at, reason) "
            "JOIN ~submission AS s USING (seq) WHERE s.refused_at IS NULL ORDER BY s.seq "
            "FOR UPDATE OF s), d AS (DELETE FROM ~submission AS s USING v WHERE s.seq = v.seq "
            "AND v.refused_at IS NULL) UPDATE ~submission AS s SET refused_at = v.refused_at, "
            "reason = v.reason FROM v WHERE s.seq = v.seq AND v.refused_at IS NOT NULL",
        [PG_SUBMISSION_PUT] = "INSERT INTO ~submission (source, key, "
            SUBMISSION_COLUMNS(NAME, ", ") ") SELECT * FROM unnest($source::text[], $key::text[], "
            SUBMISSION_COLUMNS(UNNEST, ", ") ") "
            "ON CONFLICT (source, key) WHERE key IS NOT NULL DO NOTHING",
        [PG_SUBMISSION_REFUSED] = SUBMISSION "WHERE refused_at IS NOT NULL" SUBMISSION_PAGE,
        [PG_SUBMISSION_REFUSED_BRIEF] = "SELECT seq, source, "
            SUBMISSION_COLUMNS(NOTHING, ", ") " FROM ~submission WHERE refused_at IS NOT NULL"
            SUBMISSION_PAGE,
        [PG_SUBMISSION_WAITING] = SUBMISSION "WHERE refused_at IS NULL" SUBMISSION_PAGE,
        [PG_SUBMISSION_RETRY] = SUBMISSIONS_MEANT "d AS (UPDATE ~submission AS s "
            "SET refused_at = NULL, reason = NULL FROM m WHERE s.seq = m.seq RETURNING s.seq), "
            SUBMISSIONS_DONE,
        [PG_SUBMISSION_DROP] = SUBMISSIONS_MEANT "d AS (DELETE FROM ~submission AS s USING m "
            "WHERE s.seq = m.seq RETURNING s.seq), " SUBMISSIONS_DONE,
        [PG_NOTICE_READ] = NOTICE_READ,
        [PG_NOTICE_REFUSED] = "SELECT seq, " NOTICE_COLUMNS(NAME, ", ")
            ", NULL, false, false, false FROM ~notice "
            "WHERE refused_at IS NOT NULL AND seq > $1 ORDER BY seq LIMIT $2",
        [PG_NOTICE_TOLD] = "SELECT (SELECT min(n.at) FROM ~notice AS n WHERE n.task = i.id "
            "AND n.refused_at IS NULL) FROM unnest($1::text[]) WITH ORDINALITY AS i(id, nth) "
            "ORDER BY i.nth",
        [PG_NOTICE_SETTLE] = "WITH v AS MATERIALIZED (SELECT v.* "
            "FROM unnest($1::int8[], $2::int8[], $3::text[]) AS v(seq, refused_at, reason) "
            "JOIN ~notice AS n USING (seq) WHERE n.refused_at IS NULL ORDER BY n.seq "
            "FOR UPDATE OF n), d AS (DELETE FROM ~notice AS n USING v WHERE n.seq = v.seq "
            "AND v.refused_at IS NULL) UPDATE ~notice AS n SET refused_at = v.refused_at, "
            "reason = v.reason FROM v WHERE n.seq = v.seq AND v.refused_at IS NOT NULL",
        [PG_NOTICE_PUT] = "INSERT INTO ~notice (" NOTICE_COLUMNS(NAME, ", ") ") "
            "SELECT * FROM unnest(" NOTICE_COLUMNS(UNNEST, ", ") ")",
        [PG_WORKFLOW_LIST] = "SELECT " WORKFLOW_COLUMNS(NAME, ", ") ", inputs IS NOT NULL "
            "FROM ~workflow ORDER BY name, version",
        [PG_WORKFLOW_SINCE] = "SELECT g.number, " WORKFLOW_COLUMNS(OF_W, ", ") " "
            "FROM ~generation AS g LEFT JOIN ~workflow AS w ON w.generation > $1 "
            "WHERE g.name = 'workflow' ORDER BY w.generation",
        [PG_GENERATIONS] = "SELECT " GENERATIONS,
        [PG_TOKEN_LOCK] = GENERATION_RAISE("token"),
        [PG_TOKEN_PUT] = "WITH t AS (INSERT INTO ~token (" TOKEN_COLUMNS(NAME, ", ") ", name) "
            "VALUES (" TOKEN_COLUMNS(PARAM, ", ") ", $name) RETURNING name) "
            AUDIT_INSERT(" FROM t WHERE"),
        [PG_TOKEN_CHANGE] = "WITH t AS (UPDATE ~token SET " TOKEN_COLUMNS(SET_TO, ", ")
            " WHERE name = $name AND hash = $was RETURNING name), "
            "a AS (" AUDIT_INSERT(" FROM t WHERE") ") SELECT count(*) FROM t",
        [PG_TOKEN_DELETE] = "WITH t AS (DELETE FROM ~token WHERE name = $name AND ($anyway "
            "OR NOT EXISTS (" LAST_ADMIN("$now") ")) RETURNING name), "
            "a AS (" AUDIT_INSERT(" FROM t WHERE") ") SELECT count(*) FROM t",
        [PG_TOKEN_LAST_ADMIN] = LAST_ADMIN("$now"),
        [PG_TOKEN_LIST] = "SELECT " TOKEN_COLUMNS(NAME, ", ") ", name FROM ~token ORDER BY name",
        [PG_SESSION_LOCK] = "INSERT INTO ~generation AS g (name, number) SELECT 'token', 1 "
            "WHERE " CODE_IS_THERE("$code", "$now") GENERATION_ONE_MORE,
        [PG_SESSION_SWEEP] = "DELETE FROM ~session WHERE " CODE_IS_THERE("$5", "$1") " AND "
            "(expires_at <= $1 OR id IN (SELECT id FROM ~session WHERE token_hash = $2 "
            "AND is_code = $3 ORDER BY created_at DESC, id OFFSET $4))",
        [PG_SESSION_PUT] = "WITH c AS (DELETE FROM ~session WHERE hash = $code::bytea "
            "AND is_code AND expires_at > $now RETURNING 1), "
            "t AS (INSERT INTO ~session (" SESSION_COLUMNS(NAME, ", ") ") SELECT "
            SESSION_COLUMNS(PARAM, ", ") " WHERE $code IS NULL OR EXISTS (SELECT 1 FROM c) "
            "RETURNING id), a AS (" AUDIT_INSERT(" FROM t WHERE") ") SELECT count(*) FROM t",
        [PG_SESSION_DELETE] = "WITH t AS (DELETE FROM ~session WHERE id = $id RETURNING id), "
            "a AS (" AUDIT_INSERT(" FROM t WHERE") ") SELECT count(*) FROM t",
        [PG_SESSION_LIST] = "SELECT " SESSION_COLUMNS(NAME, ", ") " FROM ~session "
            "ORDER BY created_at, id",
        [PG_AUDIT_LIST] = "SELECT seq, " AUDIT_COLUMNS(NAME, ", ") " FROM ~audit "
            "WHERE seq < $1 ORDER BY seq DESC LIMIT $2",
        [PG_AUDIT_TASK] = "SELECT seq, " AUDIT_COLUMNS(NAME, ", ") " FROM ~audit "
            "WHERE (task, seq) < ($3, $1) AND task >= $3 ORDER BY task DESC, seq DESC LIMIT $2",
        [PG_AUDIT_PUT] = AUDIT_INSERT(" WHERE"),
        [PG_OPERATIONS] = "SELECT i.ord, a.* FROM unnest($1::int8[], $2::text[]) AS i(ord, id) "
            "CROSS JOIN LATERAL (SELECT seq, " AUDIT_COLUMNS(NAME, ", ") " FROM ~audit "
            "WHERE (task, seq) < (i.id, 9223372036854775807) AND task >= i.id "
            "ORDER BY task DESC, seq DESC LIMIT $3) AS a ORDER BY i.ord, a.seq DESC",
        [PG_OPERATION_PUT] = "WITH o AS (INSERT INTO ~operation (" OPERATION_COLUMNS(NAME, ", ")
            ", id) SELECT " OPERATION_COLUMNS(PARAM_TYPED, ", ") ", $id::text "
            "ON CONFLICT (id) DO NOTHING RETURNING 1), " OPERATION_AUDIT,
        [PG_OPERATION_UPDATE] = "WITH o AS (UPDATE ~operation SET "
            OPERATION_COLUMNS(SET_TO, ", ")
            " WHERE id = $id AND revision = $revision - 1 RETURNING 1), " OPERATION_AUDIT,
        [PG_OPERATION_LIST] = OPERATION "seq < $1" OPERATION_PAGE,
        [PG_OPERATION_OPEN] = OPERATION "seq < $1 AND open" OPERATION_PAGE,
        [PG_OPERATION_GET] = OPERATION "seq < $1 AND id = $3 AND (open OR NOT $4)" OPERATION_PAGE,
        [PG_SCHEDULE_PUT] = "WITH d AS (INSERT INTO ~schedule (" SCHEDULE_COLUMNS(NAME, ", ")
            ", name) SELECT " SCHEDULE_COLUMNS(PARAM_TYPED, ", ") ", $name::text "
            "ON CONFLICT (name) DO NOTHING RETURNING *), " SCHEDULE_VERSION
            SCHEDULE_VERSION_COLUMNS(NAME, ", ") " FROM d), a AS ("
            AUDIT_INSERT(" FROM d WHERE") ") SELECT 0::int8 FROM d",
        [PG_SCHEDULE_UPDATE] = "WITH u AS MATERIALIZED (SELECT * FROM unnest($ord::int8[], "
            "$seq::int8[], " SCHEDULE_COLUMNS(UNNEST, ", ") ") "
            "AS u(ord, seq, " SCHEDULE_COLUMNS(NAME, ", ") ")), "
            "d AS (UPDATE ~schedule AS s SET " SCHEDULE_COLUMNS(SET_OF_U, ", ") " FROM u "
            "WHERE s.seq = u.seq AND s.revision = u.revision - 1 RETURNING u.ord, s.*), "
            SCHEDULE_VERSION SCHEDULE_VERSION_COLUMNS(NAME, ", ")
            " FROM d WHERE ord = ANY ($version_ord::int8[])), "
            "b AS (INSERT INTO ~submission (source, key, " SUBMISSION_COLUMNS(NAME, ", ") ") "
            "SELECT n.source, n.key, " SUBMISSION_COLUMNS(OF_N, ", ") " FROM unnest("
            "$b_ord::int8[], $b_source::text[], $b_key::text[], "
            SUBMISSION_COLUMNS(UNNEST_SUBMISSION, ", ") ") AS n(ord, source, key, "
            SUBMISSION_COLUMNS(NAME, ", ") ") JOIN d USING (ord) "
            "ON CONFLICT (source, key) WHERE key IS NOT NULL DO NOTHING), a AS ("
            AUDIT_INSERT(" FROM d WHERE") ") SELECT ord FROM d",
        [PG_SCHEDULE_DUE] = SCHEDULE "WHERE s.next_at <= $1 ORDER BY s.next_at, s.seq LIMIT $2",
        [PG_SCHEDULE_WAITS] = SCHEDULE "WHERE s.waits AND (s.next_at IS NULL OR s.next_at > $1) "
            "AND NOT " RUN_OPEN " ORDER BY s.seq LIMIT $2",
        [PG_SCHEDULE_NEXT] = "SELECT (SELECT min(next_at) FROM ~schedule WHERE next_at > $1), "
            "(SELECT count(*) FROM (SELECT 1 FROM ~schedule WHERE waits LIMIT $2) AS w)",
        [PG_SCHEDULE_LIST] = SCHEDULE "WHERE s.name > $1 ORDER BY s.name LIMIT $2",
        [PG_SCHEDULE_GET] = SCHEDULE "WHERE s.name = $1 LIMIT $2",
        [PG_SCHEDULE_GAPS] = SCHEDULE "WHERE s.gap_at >= $3 AND s.name > $1 "
            "ORDER BY s.name LIMIT $2",
        [PG_SCHEDULE_DELETE] = "WITH d AS (DELETE FROM ~schedule WHERE name = $name RETURNING "
            "name), v AS (DELETE FROM ~schedule_version AS v USING d WHERE v.name = d.name), "
            "a AS (" AUDIT_INSERT(" FROM d WHERE") ") SELECT count(*) FROM d",
        [PG_SCHEDULE_VERSION_GET] = "SELECT " SCHEDULE_VERSION_COLUMNS(NAME, ", ")
            " FROM ~schedule_version WHERE name = $1 AND version = $2",
        [PG_AGENT_LOCK] = GENERATION_RAISE("agent"),
        [PG_AGENT_PUT] = "WITH t AS (INSERT INTO ~agent AS a (name, settings, breaker, generation) "
            "VALUES ($name, CASE WHEN $breaker THEN NULL ELSE $text::text END, "
            "CASE WHEN $breaker THEN $text::text END, "
            GENERATION("agent") ") ON CONFLICT (name) DO UPDATE SET "
            "settings = CASE WHEN $breaker THEN a.settings ELSE $text::text END, "
            "breaker = CASE WHEN $breaker THEN $text::text ELSE a.breaker END, "
            "generation = EXCLUDED.generation "
            "WHERE NOT $fenced OR CASE WHEN $breaker THEN a.breaker ELSE a.settings END "
            "IS NOT DISTINCT FROM $was::text RETURNING 1), "
            "x AS (" AUDIT_INSERT(" FROM t WHERE") ") SELECT count(*) FROM t",
        [PG_AGENT_SINCE] = "SELECT g.number, " AGENT_COLUMNS(OF_A, ", ") " FROM ~generation AS g "
            "LEFT JOIN ~agent AS a ON a.generation > $1 WHERE g.name = 'agent' ORDER BY a.name",
        [PG_OVERRUN_RAISE] = "INSERT INTO ~overrun AS o (task, times, at) VALUES ($1, 1, $2) "
            "ON CONFLICT (task) DO UPDATE SET times = o.times + 1, at = EXCLUDED.at",
        [PG_OVERRUN_LOWER] = "UPDATE ~overrun SET times = times - 1 WHERE task = $1",
        [PG_OVERRUN_SWEEP] = "DELETE FROM ~overrun AS o WHERE o.at < $1 AND NOT EXISTS "
            "(SELECT 1 FROM ~task AS t WHERE t.id = o.task "
            "AND t.state NOT IN ('processed', 'compensated'))",
        [PG_OVERRUN_CLEAN] = "DELETE FROM ~overrun WHERE times <= 0",
        /* of those changes that were done */
        [PG_OVERRUN_DELETE] = "DELETE FROM ~overrun AS o "
            "USING unnest($1::text[], $2::int8[]) AS c(id, revision) "
            "JOIN ~task AS t ON t.id = c.id AND t.revision = c.revision WHERE o.task = c.id",
        [PG_OVERRUN_LIST] = "SELECT o.task, o.times, o.at FROM ~overrun AS o "
            "ORDER BY o.at DESC, o.task LIMIT $1",
        /* Numbers do not become visible in their order: what is older than the newest that was read
         * is what the reader has, or news. */
        [PG_OUTBOX_READ] = "(SELECT " FRESH_COLUMNS " FROM ~outbox AS o WHERE o.seq > $1 "
            "AND " LEADS("$4", "$5") "ORDER BY o.seq LIMIT $2) UNION ALL "
            "(SELECT " FRESH_COLUMNS " FROM ~outbox AS o WHERE o.seq <= $1 "
            "AND " LEADS("$4", "$5") "AND o.seq NOT IN (SELECT unnest($3::int8[])) "
            "ORDER BY o.seq LIMIT $2) ORDER BY 1 LIMIT $2",
        [PG_OUTBOX_READ_TARGET] = ASIDE_COLUMNS "WHERE (o.state, o.target, o.seq) > "
            "('waiting', $3, $1) AND (o.state, o.target) <= ('waiting', $3) AND " LEADS("$4", "$5")
            "ORDER BY o.state, o.target, o.seq LIMIT $2",
        [PG_OUTBOX_DELETE] = "DELETE FROM ~outbox WHERE seq = ANY ($1::int8[])",
        [PG_OUTBOX_DELETE_ASIDE] = "DELETE FROM ~outbox_aside WHERE seq = ANY ($1::int8[])",
        [PG_OUTBOX_SET_ASIDE] = "WITH s AS MATERIALIZED (SELECT * FROM unnest($1::int8[], "
            "$2::text[], $3::int8[], $4::int8[], $5::text[]) AS s(seq, state, tries, retry_at, "
            "story)), m AS (DELETE FROM ~outbox AS o WHERE o.seq = ANY ($1::int8[]) "
            "RETURNING o.seq, " MESSAGE_COLUMNS(OF_O, ", ") ") "
            "INSERT INTO ~outbox_aside (seq, " MESSAGE_COLUMNS(NAME, ", ") ", "
            MESSAGE_ASIDE_COLUMNS(NAME, ", ") ") SELECT m.seq, " MESSAGE_COLUMNS(OF_M, ", ") ", "
            "s.state, s.tries, s.retry_at, m.created_at, s.story FROM m JOIN s USING (seq) "
            "ON CONFLICT (seq) DO NOTHING",
        [PG_OUTBOX_UPDATE] = "WITH s AS MATERIALIZED (SELECT * FROM unnest($1::int8[], "
            "$2::text[], $3::int8[], $4::int8[], $5::text[]) AS s(seq, state, tries, retry_at, "
            "story)) UPDATE ~outbox_aside AS o SET state = s.state, tries = s.tries, "
            "retry_at = s.retry_at, story = coalesce(s.story, o.story) FROM s "
            "WHERE o.seq = ANY ($1::int8[]) AND o.seq = s.seq",
        [PG_OUTBOX_TARGETS] = "WITH RECURSIVE g(target, at, story, place) AS ("
            "(SELECT o.target, o.created_at, o.story, 1 FROM ~outbox_aside AS o "
            "WHERE (o.state, o.target) > ($1, $2) AND o.state <= $1 "
            "ORDER BY o.state, o.target, o.seq LIMIT 1) UNION ALL "
            "SELECT n.target, n.created_at, n.story, g.place + 1 FROM g CROSS JOIN LATERAL ("
            "SELECT o.target, o.created_at, o.story FROM ~outbox_aside AS o "
            "WHERE (o.state, o.target) > ($1, g.target) AND o.state <= $1 "
            "ORDER BY o.state, o.target, o.seq LIMIT 1) AS n WHERE g.place < $3) "
            "SELECT g.target, g.at, g.story, " COUNT_TO("$4", "~outbox_aside AS o "
            "WHERE (o.state, o.target) >= ($1, g.target) AND (o.state, o.target) <= ($1, g.target) "
            "ORDER BY o.state, o.target, o.seq") " FROM g ORDER BY g.target",
        [PG_OUTBOX_LIST_FRESH] = "SELECT " FRESH_COLUMNS " FROM ~outbox AS o WHERE o.seq > $1 "
            "AND ($3::text IS NULL OR o.target = $3) AND ($4::text IS NULL OR o.task = $4) "
            "ORDER BY o.seq LIMIT $2",
        [PG_OUTBOX_LIST] = ASIDE_COLUMNS "WHERE (o.state, o.seq) > ($3, $1) AND o.state <= $3 "
            "ORDER BY o.state, o.seq LIMIT $2",
        [PG_OUTBOX_LIST_TARGET] = ASIDE_COLUMNS "WHERE (o.state, o.target, o.seq) > ($3, $4, $1) "
            "AND (o.state, o.target) <= ($3, $4) ORDER BY o.state, o.target, o.seq LIMIT $2",
        [PG_OUTBOX_LIST_TASK] = ASIDE_COLUMNS "WHERE (o.task, o.seq) > ($4, $1) AND o.task <= $4 "
            "AND o.state = $3 ORDER BY o.task, o.seq LIMIT $2",
        [PG_OUTBOX_LOCK] = GENERATION_RAISE("outbox"),
        [PG_OUTBOX_REVIVE] = "WITH t AS (UPDATE ~outbox_aside SET since = "
            "CASE state WHEN 'dead' THEN $now ELSE since END, state = 'waiting', retry_at = NULL "
            "WHERE seq = ANY ($seq::int8[]) RETURNING 1), "
            "a AS (" AUDIT_INSERT(" WHERE EXISTS (SELECT 1 FROM t) AND") ") "
            "SELECT count(*) FROM t",
        [PG_OUTBOX_DROP] = "WITH t AS (DELETE FROM ~outbox_aside WHERE $now::int8 IS NOT NULL "
            "AND seq = ANY ($seq::int8[]) AND state = 'dead' RETURNING 1), "
            "a AS (" AUDIT_INSERT(" WHERE EXISTS (SELECT 1 FROM t) AND") ") "
            "SELECT count(*) FROM t",
        [PG_OUTBOX_CENSUS] = "SELECT " COUNT_TO("$1", "~outbox AS o ORDER BY o.seq") ", "
            COUNT_TO("$1", "~outbox_aside AS o WHERE o.state >= 'waiting' "
            "AND o.state <= 'waiting' ORDER BY o.state, o.seq") ", "
            COUNT_TO("$1", "~outbox_aside AS o WHERE o.state >= 'dead' AND o.state <= 'dead' "
            "ORDER BY o.state, o.seq") ", "
            "(SELECT o.created_at FROM ~outbox AS o ORDER BY o.seq LIMIT 1), "
            "(SELECT o.created_at FROM ~outbox_aside AS o WHERE o.state >= 'waiting' "
            "AND o.state <= 'waiting' ORDER BY o.state, o.seq LIMIT 1)",
        [PG_STOPPED] = "SELECT t.seq, t.ended_at, t.id, t.workflow, t.direction = 'undo', "
            "d.doc -> 'error' ->> 'code', d.doc -> 'error' ->> 'message', "
            "(SELECT s.value ->> 'name' FROM json_array_elements(d.doc -> 'steps') "
            "WITH ORDINALITY AS s(value, nth) "
            "WHERE coalesce(s.value ->> 'direction', 'forward') = t.direction "
            "AND s.value -> 'error' ->> 'code' = d.doc -> 'error' ->> 'code' "
            "ORDER BY s.value ->> 'state' <> 'failed', s.nth LIMIT 1), "
            "CASE WHEN d.doc -> 'error' ->> 'code' IN ('child', 'pivot') "
            "THEN " STOPPED_OF_CHILD " ELSE false END "
            "FROM (SELECT t.* FROM ~task AS t WHERE t.state = 'error' AND t.closed_at IS NULL "
            "AND (t.ended_at, t.seq) > ($1, $2) ORDER BY t.ended_at, t.seq LIMIT $3) AS t "
            "CROSS JOIN LATERAL (SELECT t.doc::json AS doc) AS d ORDER BY t.ended_at, t.seq",
        [PG_ALERT_PUT] = "INSERT INTO ~alert AS a (" ALERT_PUT_COLUMNS(NAME, ", ") ") "
            "VALUES (" ALERT_PUT_COLUMNS(PARAM, ", ") ") ON CONFLICT (id) DO UPDATE SET "
            "doc = excluded.doc, resolved_at = excluded.resolved_at, live = excluded.live, "
            "acknowledged_at = CASE WHEN $lift THEN NULL ELSE a.acknowledged_at END, "
            "acknowledged_by = CASE WHEN $lift THEN NULL ELSE a.acknowledged_by END, "
            "acknowledged_why = CASE WHEN $lift THEN NULL ELSE a.acknowledged_why END",
        [PG_ALERT_TRIM] = "DELETE FROM ~alert WHERE NOT live "
            "AND seq <= (SELECT max(seq) FROM ~alert) - $1",
        [PG_ALERT_LIST] = ALERT "seq < $1 ORDER BY seq DESC LIMIT $2",
        [PG_ALERT_LIVE] = ALERT "live AND seq < $1 ORDER BY seq DESC LIMIT $2",
        /* Found; resolved; acknowledged by this. */
        [PG_ALERT_ACKNOWLEDGE] = "WITH o AS MATERIALIZED (SELECT seq, resolved_at, "
            "acknowledged_at FROM ~alert WHERE id = $1 FOR UPDATE), "
            "n AS (UPDATE ~alert AS a SET acknowledged_at = $2, acknowledged_by = $3, "
            "acknowledged_why = $7 FROM o WHERE a.seq = o.seq AND o.resolved_at IS NULL "
            "AND o.acknowledged_at IS NULL RETURNING 1), "
            "w AS (INSERT INTO ~audit (at, actor, verb, task, step, reason, address) "
            "SELECT $2, $3, $4, $5, $6, $7, $8 FROM n) "
            "SELECT (SELECT count(*) FROM o), "
            "(SELECT count(*) FROM o WHERE o.resolved_at IS NOT NULL)",
        /* A lease of another holder that has not expired is only read. Otherwise the row is taken;
         * if that had to wait for another node that took it meanwhile, it stays with that node, and
         * is returned as it is. */
        [PG_LEASE] = "WITH r AS MATERIALIZED (SELECT l.holder, l.epoch, l.until FROM ~lease AS l "
            "WHERE l.name = $1 AND NOT $4 AND l.holder <> $2 AND " RUNS("l.until") "), "
            "t AS (INSERT INTO ~lease AS l (name, holder, epoch, until) "
            "SELECT $1, $2, 1, " CLOCK " + $3 WHERE NOT EXISTS (SELECT 1 FROM r) "
            TAKE_LEASE("$4")
            "RETURNING l.holder, l.epoch, l.until) "
            "SELECT holder, epoch, until, " CLOCK ", "
            GENERATIONS " FROM t "
            "UNION ALL SELECT holder, epoch, until, " CLOCK ", "
            GENERATIONS " FROM r",
        [PG_SURVEY] = "WITH RECURSIVE q AS (SELECT q.name FROM unnest($1::text[]) AS q(name)), "
            "r AS MATERIALIZED (SELECT l.name, l.holder, l.epoch, l.until FROM ~lease AS l "
            "JOIN q ON q.name = l.name WHERE l.holder <> $2 AND " RUNS("l.until") "), "
            "t AS (INSERT INTO ~lease AS l (name, holder, epoch, until) "
            "SELECT q.name, $2, 1, " CLOCK " + $3 FROM q "
            "WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.name = q.name) ORDER BY q.name "
            TAKE_LEASE("false")
            "RETURNING l.name, l.holder, l.epoch, l.until), "
            GONE("$2")
            "x AS (SELECT * FROM t UNION ALL SELECT * FROM r) "
            "SELECT x.holder, x.epoch, x.until, " CLOCK ", "
            GENERATIONS ", "
            "EXISTS (SELECT 1 FROM ~task WHERE request IS NOT NULL AND locked_by = $2), "
            "EXISTS (SELECT 1 FROM gone), "
            "(SELECT t.rank FROM " CLAIMABLE "'time' ORDER BY t.rank, t.seq LIMIT 1), "
            "(SELECT wake_at FROM ~task WHERE wake_at IS NOT NULL ORDER BY wake_at, seq LIMIT 1), "
            "ARRAY(SELECT w.nth FROM unnest($4::text[]) WITH ORDINALITY AS w(agent, nth) "
            /* OFFSET: a look into the index for each agent, and no join with all that waits. The
             * order keeps the planner from reading all tasks where most wait for one agent. */
            "WHERE EXISTS (SELECT 1 FROM " CLAIMABLE "w.agent "
            "ORDER BY t.waiting_for, t.rank, t.seq LIMIT 1 OFFSET 0)), "
            SCHEDULERS("$2", "<>") ", " SCHEDULERS("$2", "<") ", "
            "EXISTS (SELECT 1 FROM (SELECT seq FROM ~outbox ORDER BY seq LIMIT 1) AS o), "
            "EXISTS (SELECT 1 FROM ~submission WHERE refused_at IS NULL), "
            "ARRAY(SELECT a.nth FROM unnest($4::text[]) WITH ORDINALITY AS a(agent, nth) "
            "WHERE EXISTS (SELECT 1 FROM ~wait AS w "
            "WHERE w.agent >= a.agent AND w.agent <= a.agent "
            "ORDER BY w.agent, w.rank, w.task LIMIT 1)), "
            "(SELECT rank FROM ~wait WHERE agent >= 'time' AND agent <= 'time' "
            "ORDER BY agent, rank, task LIMIT 1), "
            "EXISTS (SELECT 1 FROM ~overrun), "
            "(SELECT t.rank FROM " CLAIMABLE "'@wait' ORDER BY t.rank, t.seq LIMIT 1), "
            "EXISTS (SELECT 1 FROM ~lock_key WHERE look IS NOT NULL), "
            "EXISTS (SELECT 1 FROM ~notice WHERE refused_at IS NULL), (SELECT count(*) FROM "
            "(SELECT 1 FROM ~notice WHERE refused_at IS NOT NULL LIMIT " REFUSED_COUNTED ") AS r) "
            "FROM x ORDER BY x.name",
        [PG_LOCK_KEYS] = LOCK_KEYS_SQL,
        [PG_LOCK_MOVE] = LOCK_MOVE_SQL,
        [PG_LOCK_CHECK] = LOCK_CHECK_SQL,
        [PG_LOCK_ROOM] = LOCK_ROOM_SQL,
        [PG_LOCK_LOOK] = LOCK_LOOK_SQL,
        [PG_LOCK_TAKE] = LOCK_TAKE_SQL,
        [PG_LOCK_SEEN] = LOCK_SEEN_SQL,
        [PG_LOCK_LEFT] = LOCK_LEFT_SQL,
        [PG_LOCK_HELD] = LOCK_HELD_SQL,
        [PG_LOCKS_LIST] = LOCK_HOLDERS("h.task > $1 ORDER BY h.task"),
        [PG_LOCK_LIST] = LOCK_HOLDERS("(h.lock, h.task) > ($4, $1) AND h.lock <= $4 "
            "ORDER BY h.lock, h.task"),
        [PG_BOOT] = "INSERT INTO ~node AS n (name, boot) VALUES ($1, 1) "
            "ON CONFLICT (name) DO UPDATE SET boot = n.boot + 1 RETURNING boot, " CLOCK,
        [PG_NODE_PUT] = "UPDATE ~node SET " NODE_COLUMNS(SET_TO, ", ")
            " WHERE name = $name AND coalesce(said_by, 0) <= $said_by",
        [PG_NODE_LIST] = "SELECT n.name, " NODE_COLUMNS(OF_N, ", ") ", l.until, "
            "EXISTS (SELECT 1 FROM ~lease AS s WHERE s.name = "
            "'" SUPERVISOR_LEASE "' AND s.holder = n.name || '/' || n.said_by AND s.until > $1) "
            "FROM ~node AS n LEFT JOIN ~lease AS l ON l.name = '" NODE_LEASE "' || n.name "
            "WHERE n.said_by IS NOT NULL AND coalesce(l.until, n.started_at) > $2 ORDER BY n.name",
        [PG_SECRET_MAKE] = "INSERT INTO ~meta (name, value) VALUES ('secret', $1) "
            "ON CONFLICT (name) DO NOTHING",
        [PG_SECRET_GET] = "SELECT value FROM ~meta WHERE name = 'secret'",
        [PG_INSTALLATION_MAKE] = "INSERT INTO ~meta (name, value) "
            "VALUES ('installation', $1) ON CONFLICT (name) DO NOTHING",
        [PG_INSTALLATION_GET] = "SELECT value FROM ~meta WHERE name = 'installation'",
    };
    /* clang-format on */
    _Static_assert(COUNT_OF(texts) == PG_COUNT, "every statement has a text");
    return texts[which];
}
