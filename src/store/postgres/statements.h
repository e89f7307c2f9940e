#ifndef STORE_POSTGRES_STATEMENTS_H
#define STORE_POSTGRES_STATEMENTS_H

/* All statements of the body, by name: X(NAME). sql.c has their texts. The database knows those
 * that are prepared by the same names. */

/* clang-format off */
#define PG_STATEMENTS(X) \
    X(BEGIN) \
    X(COMMIT) \
    X(ROLLBACK) \
    X(FENCE) \
    X(INSERT) \
    X(INSERT_EXTRA) /* with payloads, audits, or messages */ \
    X(INSERT_WAITS) /* the same, and waits */ \
    X(INSERT_SUBMITTED) /* with them, and some come from table submission */ \
    X(INSERT_FAMILY) /* with all of these, and some tell others, or have children */ \
    X(UPDATE) \
    X(UPDATE_EXTRA) \
    X(UPDATE_LOCKED) /* which locks the rows first, in the order of their ids */ \
    X(UPDATE_LOCKED_EXTRA) \
    X(UPDATE_WAITS) \
    X(UPDATE_LOCKED_WAITS) \
    X(UPDATE_NOTICES) /* with all of these, and some were decided on notices */ \
    X(UPDATE_LOCKED_NOTICES) \
    X(UPDATE_ITEMS) /* with all of these, and items came to rest */ \
    X(UPDATE_LOCKED_ITEMS) \
    X(UPDATE_TELLS) /* with all of these, and some tell others */ \
    X(UPDATE_LOCKED_TELLS) \
    X(UPDATE_CHILDREN) /* with all of these, and some have new children, of which nodes hear */ \
    X(UPDATE_LOCKED_CHILDREN) \
    X(CLAIM_WAITING) \
    X(CLAIM_NEXT) \
    X(CLAIM_AMONG) \
    X(CLAIM_AMONG_NEXT) \
    X(WAITS_CLEAN) \
    X(CLAIM_BOOT) \
    X(CLAIM_NODE) \
    X(PROBE) \
    X(PROVE) \
    X(GET) \
    X(RECORDS) \
    X(GLANCE) \
    X(PAYLOADS) \
    X(ITEMS_UP) \
    X(ITEMS_DOWN) \
    X(ITEMS_TO_UNDO) \
    X(ITEMS_FAILED) \
    X(ITEMS_OUTPUTS) \
    X(OVERDUE) \
    X(REQUESTED) \
    X(SCAN) \
    X(SCAN_STATE) \
    X(SCAN_WORKFLOW) \
    X(SCAN_TAG) \
    X(SCAN_ASKED) \
    X(SCAN_PARENT) \
    X(SCAN_ROOT) \
    X(SCAN_ID) \
    X(SCAN_PREFIX) \
    X(COUNT_PREFIX) \
    X(SEQ_BELOW) \
    X(ROWS) \
    X(CENSUS) \
    X(CENSUS_AGENTS) \
    X(CENSUS_AMONG) \
    X(OWNERS) \
    X(INSERT_CHECK) \
    X(RETIRE_LOOK) \
    X(RETIRE_LOOK_WORKFLOW) \
    X(RETIRE_LOOK_ORPHANS) \
    X(RETIRE) \
    X(RESERVED) \
    X(ORPHANED_END) \
    X(RESERVED_SWEEP) \
    X(WORKFLOW_LOCK) \
    X(WORKFLOW_PUT) \
    X(WORKFLOW_GET) \
    X(WORKFLOW_LIST) \
    X(WORKFLOW_SINCE) \
    X(WORKFLOW_DESCRIBE) \
    X(SUBMISSION_TAKE) \
    X(SUBMISSION_COUNT) /* of those that were refused */ \
    X(SUBMISSION_SETTLE) \
    X(SUBMISSION_PUT) \
    X(SUBMISSION_REFUSED) \
    X(SUBMISSION_REFUSED_BRIEF) \
    X(SUBMISSION_WAITING) \
    X(SUBMISSION_RETRY) \
    X(SUBMISSION_DROP) \
    X(NOTICE_READ) \
    X(NOTICE_REFUSED) \
    X(NOTICE_TOLD) \
    X(NOTICE_SETTLE) \
    X(NOTICE_PUT) \
    X(GENERATIONS) \
    X(TOKEN_LOCK) \
    X(TOKEN_PUT) \
    X(TOKEN_CHANGE) \
    X(TOKEN_DELETE) \
    X(TOKEN_LAST_ADMIN) \
    X(TOKEN_LIST) \
    X(SESSION_LOCK) \
    X(SESSION_SWEEP) \
    X(SESSION_PUT) \
    X(SESSION_DELETE) \
    X(SESSION_LIST) \
    X(AUDIT_LIST) \
    X(AUDIT_TASK) \
    X(AUDIT_PUT) \
    X(OPERATIONS) /* the latest entries of each of several tasks */ \
    X(OPERATION_PUT) \
    X(OPERATION_UPDATE) \
    X(OPERATION_LIST) \
    X(OPERATION_OPEN) \
    X(OPERATION_GET) \
    X(SCHEDULE_PUT) \
    X(SCHEDULE_UPDATE) \
    X(SCHEDULE_DUE) \
    X(SCHEDULE_WAITS) \
    X(SCHEDULE_NEXT) \
    X(SCHEDULE_LIST) \
    X(SCHEDULE_GET) \
    X(SCHEDULE_GAPS) \
    X(SCHEDULE_DELETE) \
    X(SCHEDULE_VERSION_GET) \
    X(AGENT_LOCK) \
    X(AGENT_PUT) \
    X(AGENT_SINCE) \
    X(OVERRUN_RAISE) \
    X(OVERRUN_LOWER) \
    X(OVERRUN_SWEEP) \
    X(OVERRUN_CLEAN) \
    X(OVERRUN_DELETE) \
    X(OVERRUN_LIST) \
    X(OUTBOX_READ) \
    X(OUTBOX_READ_TARGET) \
    X(OUTBOX_DELETE) \
    X(OUTBOX_DELETE_ASIDE) \
    X(OUTBOX_SET_ASIDE) \
    X(OUTBOX_UPDATE) \
    X(OUTBOX_TARGETS) \
    X(OUTBOX_LIST_FRESH) \
    X(OUTBOX_LIST) \
    X(OUTBOX_LIST_TARGET) \
    X(OUTBOX_LIST_TASK) \
    X(OUTBOX_LOCK) \
    X(OUTBOX_REVIVE) \
    X(OUTBOX_DROP) \
    X(OUTBOX_CENSUS) \
    X(STOPPED) \
    X(ALERT_PUT) \
    X(ALERT_TRIM) \
    X(ALERT_LIST) \
    X(ALERT_LIVE) \
    X(ALERT_ACKNOWLEDGE) \
    X(LEASE) \
    X(SURVEY) \
    X(BOOT) \
    X(NODE_PUT) \
    X(NODE_LIST) \
    X(SECRET_MAKE) \
    X(SECRET_GET) \
    X(INSTALLATION_MAKE) \
    X(INSTALLATION_GET) \
    X(LOCK_KEYS) /* of changes */ \
    X(LOCK_MOVE) \
    X(LOCK_CHECK) \
    X(LOCK_ROOM) \
    X(LOCK_LOOK) /* of claims */ \
    X(LOCK_TAKE) \
    X(LOCK_SEEN) \
    X(LOCK_LEFT) \
    X(LOCK_HELD) /* for people */ \
    X(LOCKS_LIST) \
    X(LOCK_LIST)
/* clang-format on */

#endif
