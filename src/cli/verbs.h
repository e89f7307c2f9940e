#ifndef CLI_VERBS_H
#define CLI_VERBS_H

/* The verbs, each defined in the file that runs it. */

#include "cli/verb.h"

extern const struct verb verb_agent_amqp;
extern const struct verb verb_agent_check;
extern const struct verb verb_agent_close;
extern const struct verb verb_agent_exec;
extern const struct verb verb_agent_get;
extern const struct verb verb_agent_http;
extern const struct verb verb_agent_list;
extern const struct verb verb_agent_open;
extern const struct verb verb_agent_reset;
extern const struct verb verb_agent_set;
extern const struct verb verb_alert_acknowledge;
extern const struct verb verb_alert_list;
extern const struct verb verb_lock_list;
extern const struct verb verb_alert_test;
extern const struct verb verb_audit_list;
extern const struct verb verb_outbox_list;
extern const struct verb verb_outbox_retry;
extern const struct verb verb_outbox_drop;
extern const struct verb verb_target_list;
extern const struct verb verb_backup;
extern const struct verb verb_approval_list;
extern const struct verb verb_approval_link;
extern const struct verb verb_approve;
extern const struct verb verb_reject;
extern const struct verb verb_cancel;
extern const struct verb verb_signal;
extern const struct verb verb_signal_drop;
extern const struct verb verb_complete;
extern const struct verb verb_close;
extern const struct verb verb_completion;
extern const struct verb verb_correct;
extern const struct verb verb_eval;
extern const struct verb verb_get;
extern const struct verb verb_items;
extern const struct verb verb_help;
extern const struct verb verb_list;
extern const struct verb verb_node_list;
extern const struct verb verb_operation_continue;
extern const struct verb verb_operation_get;
extern const struct verb verb_operation_list;
extern const struct verb verb_operation_start;
extern const struct verb verb_operation_stop;
extern const struct verb verb_pause;
extern const struct verb verb_reopen;
extern const struct verb verb_restore;
extern const struct verb verb_resume;
extern const struct verb verb_retire;
extern const struct verb verb_compact;
extern const struct verb verb_archive_list;
extern const struct verb verb_archive_get;
extern const struct verb verb_archive_cat;
extern const struct verb verb_retry;
extern const struct verb verb_schedule_backfill;
extern const struct verb verb_schedule_delete;
extern const struct verb verb_schedule_get;
extern const struct verb verb_schedule_list;
extern const struct verb verb_schedule_next;
extern const struct verb verb_schedule_pause;
extern const struct verb verb_schedule_put;
extern const struct verb verb_schedule_resume;
extern const struct verb verb_schedule_run;
extern const struct verb verb_serve;
extern const struct verb verb_skip;
extern const struct verb verb_submission_drop;
extern const struct verb verb_submission_list;
extern const struct verb verb_submission_retry;
extern const struct verb verb_submit;
extern const struct verb verb_supply;
extern const struct verb verb_resolve;
extern const struct verb verb_simulate;
extern const struct verb verb_test;
extern const struct verb verb_token_create;
extern const struct verb verb_token_delete;
extern const struct verb verb_token_list;
extern const struct verb verb_token_rotate;
extern const struct verb verb_top;
extern const struct verb verb_console;
extern const struct verb verb_undo;
extern const struct verb verb_validate;
extern const struct verb verb_watch;
extern const struct verb verb_why;
extern const struct verb verb_workflow_get;
extern const struct verb verb_workflow_list;
extern const struct verb verb_workflow_put;

#endif
