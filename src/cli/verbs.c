/* The table of all verbs, in the order of --help. Each verb is described in the file that runs it,
 * in verbs/. */

#include "cli/verbs.h"

#include "base/base.h"

/* clang-format off */
const struct verb *const verbs[] = {
    &verb_serve,
    &verb_backup,
    &verb_restore,
    &verb_compact,
    &verb_retire,
    &verb_archive_list,
    &verb_archive_get,
    &verb_archive_cat,

    &verb_submit,
    &verb_get,
    &verb_list,
    &verb_watch,
    &verb_why,

    &verb_retry,
    &verb_correct,
    &verb_supply,
    &verb_resolve,
    &verb_skip,
    &verb_undo,
    &verb_cancel,
    &verb_signal_drop,
    &verb_signal,
    &verb_approval_list,
    &verb_approval_link,
    &verb_approve,
    &verb_reject,
    &verb_pause,
    &verb_resume,
    &verb_close,
    &verb_reopen,

    &verb_submission_list,
    &verb_submission_retry,
    &verb_submission_drop,

    &verb_operation_start,
    &verb_operation_list,
    &verb_operation_get,
    &verb_operation_stop,
    &verb_operation_continue,

    &verb_workflow_put,
    &verb_workflow_get,
    &verb_workflow_list,
    &verb_validate,

    &verb_schedule_put,
    &verb_schedule_list,
    &verb_schedule_get,
    &verb_schedule_next,
    &verb_schedule_pause,
    &verb_schedule_resume,
    &verb_schedule_run,
    &verb_schedule_backfill,
    &verb_schedule_delete,

    &verb_top,
    &verb_agent_list,
    &verb_agent_get,
    &verb_agent_set,
    &verb_agent_reset,
    &verb_agent_open,
    &verb_agent_close,
    &verb_agent_check,
    &verb_agent_http,
    &verb_agent_amqp,
    &verb_agent_exec,
    &verb_outbox_list,
    &verb_outbox_retry,
    &verb_outbox_drop,
    &verb_target_list,
    &verb_node_list,
    &verb_lock_list,
    &verb_alert_list,
    &verb_alert_acknowledge,
    &verb_alert_test,
    &verb_audit_list,
    &verb_token_create,
    &verb_token_list,
    &verb_token_rotate,
    &verb_token_delete,

    &verb_completion,
    &verb_help,
    &verb_complete,
};
/* clang-format on */
const size_t verb_count = COUNT_OF(verbs);
