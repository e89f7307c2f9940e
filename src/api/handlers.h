#ifndef API_HANDLERS_H
#define API_HANDLERS_H

/*
 * The handlers of all routes (routes.c), by file. Each answers the request, now or later.
 *
 * A handler may use the modules of node/ and the headers of background/, and of api/ those headers
 * that files share (tasks.h, body.h, query.h, caller.h). server.caller and api.bearer are those
 * of its request until it returns. A request that has to wait has an exchange (node/exchange.h),
 * and is counted in server.load, after node/pressure.h or node/door.h has said that there is room.
 */

struct http_request;
struct server;

typedef void handler_fn(struct server *sv, struct http_request *r);

/* work.c, attempts.c, heartbeats.c: calls of agents */
handler_fn work_post;
handler_fn attempt_post;
handler_fn heartbeats_post;

/* sessions.c */
handler_fn session_post;
handler_fn session_get;
handler_fn session_end;
handler_fn session_code_post;
handler_fn sessions_list_get;
handler_fn session_delete;

/* clock.c: of a server whose time is virtual */
handler_fn clock_get;
handler_fn clock_advance;

/* overview.c */
handler_fn overview_get;

/* approvals.c, approval_links.c, approval_open.c */
handler_fn approvals_list;
handler_fn approval_approve;
handler_fn approval_reject;
handler_fn approval_link_make;
handler_fn approval_link_get;
handler_fn approval_link_post;

/* tasks_submit.c, tasks_read.c, tasks_signal.c, tasks_list.c, tasks_why.c, events.c, events_task.c
 */
handler_fn tasks_post;
handler_fn task_get;
handler_fn task_signals_get;
handler_fn task_items_get;
handler_fn task_signal_post;
handler_fn task_signal_drop;
handler_fn signal_url_post;

/* signals_many.c */
handler_fn signals_post;
handler_fn tasks_list;
handler_fn task_why_get;
handler_fn events_get;
handler_fn task_events_get;

/* submissions.c, submissions_put.c: what came by SQL or from a queue */
handler_fn submissions_get;
handler_fn submissions_retry;
handler_fn submissions_drop;
handler_fn submissions_put_refused;

/* operations.c */
handler_fn operations_post;
handler_fn operations_list;
handler_fn operation_get;
handler_fn operation_stop;
handler_fn operation_continue;

/* schedules.c, schedules_change.c */
handler_fn schedules_list;
handler_fn schedule_get;
handler_fn schedule_next_get;
handler_fn schedule_put;
handler_fn schedule_pause;
handler_fn schedule_resume;
handler_fn schedule_run;
handler_fn schedule_backfill;
handler_fn schedule_delete;

/* workflows.c */
handler_fn workflow_put;
handler_fn workflow_get;
handler_fn workflows_list;
handler_fn validate_post;

/* agents.c, agents_list.c */
handler_fn agents_get;
handler_fn agent_get;
handler_fn agent_put;
handler_fn agent_delete;
handler_fn breaker_post;

/* locks.c */
handler_fn locks_list;

/* alerts.c */
handler_fn alerts_list;
handler_fn alert_acknowledge;
handler_fn alert_test;

/* outbox.c: status messages that were not delivered */
handler_fn outbox_get;
handler_fn targets_get;
handler_fn outbox_retry_post;
handler_fn outbox_drop_post;

/* tokens.c, audit.c */
handler_fn tokens_list;
handler_fn token_post;
handler_fn token_rotate;
handler_fn token_put;
handler_fn token_delete;
handler_fn audit_get;

/* nodes.c, stats.c, status.c, metrics.c, backup.c, retire.c */
handler_fn nodes_get;
handler_fn nodes_refuse; /* 503: this node is no scheduler; names the nodes that are */
handler_fn stats_get;
handler_fn healthz_get;
handler_fn readyz_get;
handler_fn metrics_get;
handler_fn backup_post;
handler_fn retire_post;

#endif
