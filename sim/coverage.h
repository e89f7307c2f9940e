#ifndef SIM_COVERAGE_H
#define SIM_COVERAGE_H

/*
 * How often the runs met the cases that are most likely to fail: a simulator that never reaches
 * them proves nothing.
 */

#include "base/base.h"

/* clang-format off */
#define COVERAGE(X)                                                                               \
    X(RECEIVER_DOWN,      "messages sent to receivers that were down")                            \
    X(RECEIVER_AWAY,      "messages that found no connection")                                    \
    X(RECEIVER_BACK,      "channels that said that a receiver is there again")                    \
    X(MESSAGE_TWICE,      "messages that were taken, and whose answers were lost")                \
    X(MESSAGE_OF_HANDS,   "messages of pauses, and of tasks that were closed")                    \
    X(CRASH,              "crashes of the node")                                                  \
    X(OVERRUN,            "evaluations without end")                                              \
    X(LEFT_OUT,           "turns that left evaluations to the next one")                          \
    X(OVERRUN_UNHEARD,    "the same, of tasks that were counted twice, unknown to the node")      \
    X(OVERRAN,            "tasks stopped because of that")                                        \
    X(DRAIN,              "drains that came to their end")                                        \
    X(SUSPEND,            "suspensions")                                                          \
    X(USURP,              "nodes started again while their old process lived")                    \
    X(REPLACED,           "processes that noticed that they were replaced")                       \
    X(BLACKOUT,           "blackouts of all nodes")                                               \
    X(WILD_CLOCKS,        "runs in which clocks disagree by more than a lease")                   \
    X(LOOKED_IDLE,        "ready steps that nobody had begun for a while, in quiet times")        \
    X(AGENT_AWAY,         "steps told to wait for an agent that calls other nodes only")          \
    X(WAITS_AMONG,        "tasks released that several agents, or a time, could go on with")      \
    X(CLAIM_AMONG,        "of them, those taken up for one of several")                           \
    X(SERVED,             "starts compared with all that wait for the same agent")                \
    X(HANDED_ON,          "leases given up by the leader")                                        \
    X(LEASE_SHORTER,      "looks at a lease that runs longer than its node believes")             \
    X(NEVER_BACK,         "nodes that never came back")                                           \
    X(CUT,                "nodes cut off from the store")                                         \
    X(DEAF,               "nodes cut off from everybody else")                                    \
    X(CLOCK_JUMP,         "clocks set while the node was down")                                   \
    X(FAILOVER,           "failovers of the database")                                            \
    X(CLOCK_AHEAD,        "failovers to a clock that was ahead")                                  \
    X(CLOCK_BEHIND,       "failovers to a clock that was behind")                                 \
    X(LEARNED,            "definitions that others stored, read by a node at work")                \
    X(ROLES,              "runs in which nodes have roles of their own")                          \
    X(DEPOSED,            "requests of leaders that were deposed")                                \
    X(LEADER_CHANGE,      "changes of the leading supervisor")                                    \
    X(NODE_CLAIM,         "tasks taken over from nodes whose lease had run out")                  \
    X(ANOTHER_NODE,       "results at a node that did not own the task")                          \
    X(FOUND_REQUEST,      "requests of another node's supervisor that were found")                \
    X(UNKNOWN_STORED,     "commits of unknown outcome that were stored")                          \
    X(UNKNOWN_LOST,       "commits of unknown outcome that were not")                             \
    X(CONFLICT_RESULT,    "results decided on a row that had changed")                            \
    X(TAKE_OVER,          "tasks taken over with attempts open")                                  \
    X(LONG_OUTAGE,        "tasks of which all attempts fell due while the node was away")         \
    X(GROUPED,            "steps that left their task's document")                                \
    X(GROUPED_AGAIN,      "of them, those that changed all the same")                             \
    X(GRACE,              "attempts that were given grace")                                       \
    X(TIMED_OUT,          "attempts that timed out")                                              \
    X(NOT_SENT,           "attempts that were not sent")                                          \
    X(LATE,               "late results that were kept")                                          \
    X(LATE_EFFECT,        "late results that told of an effect")                                  \
    X(REPEATED,           "results repeated after their answer was lost")                         \
    X(DELETED,            "tasks that were deleted when they were over")                          \
    X(NOT_DELETED,        "tasks that were changed between being found and being deleted")        \
    X(SUBMITTED_DELETED,  "submissions of tasks that were deleted")                               \
    X(SQL_TAKEN,          "batches of submissions in SQL")                                        \
    X(SQL_ASKED,          "submissions in SQL that were asked of a node")                         \
    X(SQL_TASK,           "of them, those that became new tasks")                                 \
    X(SQL_REFUSED,        "submissions in SQL that were refused")                                 \
    X(SQL_VERB,           "retries and drops of such")                                            \
    X(OVERTAKEN,          "jobs of the store that were overtaken by urgent ones")                 \
    X(BEAT,               "heartbeats of current attempts")                                      \
    X(LATE_BEAT,          "heartbeats of attempts that were over")                               \
    X(FORGED_BEAT,        "forged heartbeats")                                                   \
    X(BEAT_STOP,          "stops told to heartbeats")                                            \
    X(SHOWN,              "ends shown from memory, as they were stored")                         \
    X(SHOWN_AUDIT,        "of tasks to which people did something")                              \
    X(SENT_AGAIN,         "requests sent again under the same token")                             \
    X(ANSWER_TOO_LATE,    "answers that came after the request's deadline")                       \
    X(GONE_BEFORE_WORK,   "agents gone between poll and work")                                    \
    X(CALLED_HOME,        "parked calls that were called home")                                   \
    X(HANG,               "agents that hung past their deadline")                                 \
    X(OPERATION,          "operations that came to their end")                                   \
    X(OPERATION_CONFLICT, "operations that were changed while somebody worked on them")          \
    X(OPERATION_AGAIN,    "tasks of an operation that were asked a second time")                 \
    X(OPERATION_KNOWN,    "tasks that were done already when an operation went on")              \
    X(STOPPED,            "agents told to stop")                                                  \
    X(TOMBSTONE,          "forward effects refused by a tombstone")                               \
    X(TRANSACTION_WAITS,  "effects that waited for another transaction about their step")         \
    X(ROLLED_BACK,        "effects that were rolled back")                                        \
    X(REFUSED_IN_DOUBT,   "steps undone after one attempt timed out and another was refused")     \
    X(UNDO_NO_OUTPUT,     "undo requests for a step without output")                              \
    X(UNDO_IN_DOUBT,      "undo requests for a step in doubt")                                    \
    X(UNDO_RETRIED,       "compensations that were tried again")                                  \
    X(UNDO_STUCK,         "compensations that failed for good")                                   \
    X(PIVOT_IN_DOUBT,     "pivots in doubt")                                                      \
    X(PIVOT_RESOLVED,     "pivots in doubt that turned out completed")                            \
    X(PIVOT_STANDS,       "tasks stopped by a pivot in doubt")                                    \
    X(PIVOT_COMPLETED_FAIL, "tasks stopped by a failure after their pivot")                       \
    X(BRANCH_RUNNING,     "undos begun while another branch was running")                         \
    X(DEADLINE,           "tasks whose complete-by passed")                                       \
    X(DEADLINE_IN_UNDO,   "tasks whose complete-by passed during undo")                           \
    X(UNDO_DEADLINE,      "undos whose complete-by passed")                                       \
    X(SKIP_IN_DOUBT,      "steps skipped in doubt")                                               \
    X(SKIP_IN_UNDO,       "compensations done by hand")                                           \
    X(OPERATOR_UNDO,      "undos that an operator asked for")                                     \
    X(PAUSED,             "tasks paused")                                                         \
    X(SEVERAL_ALARMS,     "rows with one alarm for several attempts")                             \
    X(PAUSED_EARLY,       "pauses of tasks that were not to begin yet")                           \
    X(PAUSE_OVER,         "pauses of tasks with a complete-by that went on")                      \
    X(PAUSED_AGAIN,       "of them, those that may have begun again in that change")              \
    X(CORRECTED,          "inputs corrected")                                                     \
    X(SUPPLIED,           "outputs supplied by hand")                                             \
    X(RESOLVED,           "steps in doubt resolved")                                              \
    X(RESOLVED_PIVOT,     "pivots in doubt resolved")                                             \
    X(RESOLVED_WRONGLY,   "steps that an operator did not resolve: they took effect")             \
    X(BARRED,             "requests that came after their step was resolved")                     \
    X(DOUBT_AGAIN,        "steps in doubt again after they were resolved")                        \
    X(FROM,               "tasks that started anew from a step on")                               \
    X(TRACE,              "requests within the trace of a submitter")                             \
    X(ANOTHER_KEY,        "requests under another key")                                           \
    X(CLOSED,             "tasks closed in error")                                                \
    X(ALERT_TOLD,         "alerts told")                                                          \
    X(ALERT_RESOLVED,     "alerts told to be over")                                               \
    X(ALERT_NOT_TAKEN,    "deliveries of alerts that failed")                                     \
    X(ALERT_AGAIN,        "notices told again by another process")                                \
    X(ALERT_STANDS,       "groups in error in the end, that everybody knows of")                  \
    X(RESUMED,            "tasks resumed from error")                                             \
    X(CONTINUED,          "steps failed where on_failure is continue")                            \
    X(EXPRESSION,         "expressions that failed")                                              \
    X(CONDITION,          "steps skipped by their condition")                                     \
    X(DEFERRED,           "extended waits")                                                       \
    X(DROPPED,            "steps with more attempts than are kept")                               \
    X(OUTAGE,             "services that went away")                                              \
    X(LIMIT_CONCURRENCY,  "limits of what is at work that were reached")                           \
    X(LIMIT_RATE,         "limits of what begins that were reached")                               \
    X(LIMIT_NODES,        "limits shared by nodes that were reached")                              \
    X(LIMITS_CHANGED,     "limits changed while the nodes ran")                                    \
    X(SICK,               "instances that began to do badly, or to do well again")               \
    X(ILL,                "instances that did so badly that they were to get nothing")           \
    X(ILL_TRIAL,          "trials of such instances")                                            \
    X(ILL_LAST,           "work for them because nobody was better off")                         \
    X(ILL_BACK,           "of them, those that did well again")                                  \
    X(BREAKER_OPEN,       "breakers that opened")                                                 \
    X(BREAKER_HALF_OPEN,  "breakers that let trials start")                                       \
    X(BREAKER_CLOSED,     "breakers that closed")                                                 \
    X(BREAKER_BY_HAND,    "breakers that were opened by hand")                                    \
    X(BREAKER_CONFLICT,   "breakers written by two nodes at once")                                \
    X(BREAKER_TRIAL,      "trials")                                                               \
    X(SPARED,             "failures that did not count, in an outage")                            \
    X(WISH_IN_OUTAGE,     "failures in an outage whose service said when to try again")           \
    X(HASTENED,           "attempts that an outage's end made begin earlier")                     \
    X(RELEASED,           "tasks released to the store")                                          \
    X(TIME_CLAIM,         "tasks claimed when they were due")                                     \
    X(AGENT_CLAIM,        "tasks claimed for an agent")                                           \
    X(SUBMITTED_AGAIN,    "submissions repeated")                                                 \
    X(LONG_BEAT,          "heartbeats of attempts that may not be silent")                        \
    X(SILENT,             "attempts that ended by their silence")                                 \
    X(UNHEARD,            "agents that stopped because nobody heard them")                        \
    X(RESUME_TOLD,        "heartbeats that told where to go on")                                  \
    X(RESUMED_FROM,       "requests that tell where to go on")                                    \
    X(ELSEWHERE,          "attempts that went elsewhere")                                         \
    X(ENDED_ELSEWHERE,    "attempts ended by somebody with their token")                          \
    X(FORGED_END,         "made-up tokens that ended nothing")                                    \
    X(CANCELLED,          "cancels that were taken")                                              \
    X(CANCEL_REFUSED,     "cancels that came too late")                                           \
    X(SUBMIT_CONFLICT,    "submissions in conflict")                                              \
    X(SUBMIT_MEETS,       "the same, by content that has the same hash")                          \
    X(SUBMIT_OLD,         "submissions known again by their hash alone")                          \
    X(ALERT_LOST,         "alerts that died with the node")                                       \
    X(UNDO_LATE_OUTPUT,   "outputs of late results that undos were told")                         \
    X(TOLD_WHY,           "undos that were told the first failure")                               \
    X(ON_UNDO,            "attempts of steps that run on undo")                                   \
    X(UNDO_PROCESSED,     "processed tasks that were undone")                                     \
    X(WAIT_LENGTH,        "waits by length that began")                                           \
    X(WAIT_MOMENT,        "waits for a moment that began")                                        \
    X(WAIT_OVER,          "waits that were over")                                                 \
    X(WAIT_PAUSED,        "waits by length that a pause moved")                                   \
    X(WAIT_IN_ERROR,      "waits by length of tasks that had stopped in error")                   \
    X(ROUND,              "rounds that followed an answer")                                       \
    X(ROUND_LAST,         "rounds that ended a repeated step")                                    \
    X(ROUND_LATER,        "answers that were judged by a later change")                           \
    X(ROUND_PAUSED,       "repeated steps whose time a pause moved")                              \
    X(ROUND_IN_ERROR,     "repeated steps of tasks that had stopped in error")                    \
    X(NOT_YET,            "repeated steps whose time passed")                                     \
    X(SIGNAL_KEPT,        "signals that arrived")                                                 \
    X(SIGNAL_TAKEN,       "signals that were taken")                                              \
    X(SIGNAL_UNDID,       "signals that had their task undone")                                   \
    X(SIGNAL_BACK,        "signals that were put back")                                           \
    X(SIGNAL_LATE,        "steps that waited for a signal in vain")                               \
    X(SIGNAL_REFUSED,     "signals that were refused")                                            \
    X(SIGNAL_AGAIN,       "signals that were sent again")                                         \
    X(VOTE,               "votes that counted")                                                   \
    X(VOTE_REJECTS,       "votes that rejected")                                                  \
    X(VOTE_ESCALATED,     "votes of those who were asked later")                                  \
    X(VOTE_REFUSED,       "votes that were refused")                                              \
    X(VOTE_AGAIN,         "votes that were sent again")                                           \
    X(VOTE_RACE,          "changes with several votes on a question")                             \
    X(VOTE_VOID,          "questions that were asked anew while there were votes")                \
    X(VOTE_PAUSED,        "votes while a task was paused, or in error")                           \
    X(APPROVED,           "steps that enough persons approved")                                   \
    X(REJECTED,           "steps that were rejected")                                             \
    X(NOT_APPROVED,       "steps on which too few persons decided")                               \
    X(OVERRIDDEN,         "steps that were decided in place of people")                           \
    X(ALLOWED_CORRECTED,  "inputs that were corrected although people had decided")               \
    X(LOCK_TAKEN,         "locks that were taken")                                                \
    X(LOCK_SHARED,        "locks that workflows share and that were taken")                       \
    X(LOCK_QUEUE,         "tasks that waited for a lock")                                         \
    X(LOCK_IN_ERROR,      "tasks in error that held a lock")                                      \
    X(LOCK_REFUSED,       "submissions that were refused for want of a lock")                     \
    X(LOCK_BLOCKED,       "tasks that waited behind one whose workflow lets fewer hold its lock") \
    X(LOCK_REPLACED,      "tasks that newer ones replaced")                                       \
    X(LOCK_LOOKED,        "looks at who waits for a lock")                                        \
    X(SIGNAL_MANY,        "signals to all tasks of a workflow")                                   \
    X(SIGNAL_BOTH,        "signals that were sent two ways")                                      \
    X(CARRIED,            "signals that came with a new task")                                    \
    X(CARRIED_LATER,      "signals that came with a repeated submission")                         \
    X(CARRIED_REFUSED,    "signals of a submission that were refused")                            \
    X(NOTICE_CUT,         "nodes that died with notices in their hands")                          \
    X(NOTICE_DECIDED,      "signals by SQL that were decided on")                                 \
    X(NOTICE_AGAIN,        "signals by SQL that were inserted twice")                             \
    X(NOTICE_REFUSED,      "signals by SQL that were refused")                                    \
    X(SCHEDULE_STORED,    "schedules that were stored")                                           \
    X(SCHEDULE_CHANGED,   "schedules that were changed")                                          \
    X(SCHEDULE_PAUSED,    "schedules that were paused")                                           \
    X(SCHEDULE_RUN,       "runs of schedules by hand")                                            \
    X(SCHEDULE_BACKFILL,  "backfills of schedules")                                               \
    X(SCHEDULE_DELETED,   "schedules that were deleted")                                          \
    X(SCHEDULE_FIRED,     "moments of schedules that got a task")                                 \
    X(SCHEDULE_CAUGHT_UP, "the same, more than a minute later")                                   \
    X(SCHEDULE_BACKLOG,   "moments that were to run one by one")                                  \
    X(SCHEDULE_WAITED,    "moments that had waited for the end of a run")                         \
    X(SCHEDULE_MISSED,    "moments that were missed")                                             \
    X(SCHEDULE_SKIPPED,   "moments that found a run open")                                        \
    X(SCHEDULE_FAILED,    "moments without an input")                                             \
    X(SCHEDULE_UNDO,      "runs that were to be undone for the next moment")                      \
    X(SCHEDULE_BETWEEN,   "changes of schedules between the reading and the writing of a leader") \
    X(SCHEDULE_CONFLICT,  "changes of schedules that others had overtaken")                       \
    X(SCHEDULE_DEPOSED,   "decisions on moments of nodes that led no more")                       \
    X(SCHEDULE_LOST,      "changes of schedules that were lost without an answer")                \
    X(SCHEDULE_UNKNOWN,   "changes of schedules that were stored without an answer")              \
    X(CHILD,              "children that were started")                                           \
    X(GRANDCHILD,         "the same, by children")                                                \
    X(CHILD_AGAIN,        "the same, after another one of that step")                             \
    X(CHILD_REFUSED,      "children that were refused")                                           \
    X(CHILD_STOPPED,      "children that were told to stop")                                      \
    X(CHILD_LATE,         "the same, as their time was over")                                     \
    X(CHILD_UNDONE,       "children that were told to go back after their end")                   \
    X(CHILD_CLOSED,       "children that were told that nobody needs them")                       \
    X(CHILD_PAUSED,       "children that were told of a pause, or of its end")                    \
    X(CHILD_ERROR,        "children that stopped in error")                                       \
    X(CHILD_STUCK,        "children that stopped in error, and were to be undone")                \
    X(CHILD_WENT_ON,      "children that went on after an error")                                 \
    X(CHILD_STANDS,       "children that were told to stop after their pivot")                    \
    X(CHILD_TURNED,       "children that turned back")                                            \
    X(FAMILY_ERROR,       "looks at tasks in error for that of a child")                          \
    X(FAMILY_COMPENSATED, "families that were undone")                                            \
    X(ITEM_DONE,          "items completed")                                                      \
    X(ITEM_FAILED,        "items that failed")                                                    \
    X(ITEM_SKIPPED,       "items skipped by hand")                                                \
    X(ITEM_DOUBT,         "items at rest in doubt")                                               \
    X(ITEM_UNDONE,        "items undone")                                                         \
    X(ITEM_BACK,          "items brought back to be undone")                                      \
    X(ITEM_LATE,          "late results of items")                                                \
    X(ITEM_LATE_AT_REST,  "late results of items at rest")                                        \
    X(ITEM_VERB_AT_REST,  "operators' changes of items at rest")                                  \
    X(RESOLVED_RASHLY,    "resolves of items without a look at their service")                    \
    X(ITEM_CONTRADICTED,  "items that took effect after all, by a late result")                   \
    X(ITEM_UNDONE_LATER,  "changes after which later items are undone than before")               \
    X(ITEM_ROW_OLDER,     "rows of items to be undone that were read while the item was at work") \
    X(ITEM_ROW_NEWER,     "rows of items that were read by a node that had lost their task")      \
    X(ITEM_AGAIN,         "changes with an item at work again after it was at rest")              \
    X(ITEM_SENT_AGAIN,    "requests of items sent again")                                         \
    X(ITEM_CORRECTED,     "requests of items with another key")                                   \
    X(ITEMS_ANEW,         "requests of items of a list that was made anew")                       \
    X(ITEMS_FULL,         "changes after which no other item may begin")                          \
    X(ITEMS_COMPLETED,    "lists without a failure")                                              \
    X(ITEMS_TOLERATED,    "lists with failures that were tolerated")                              \
    X(ITEMS_EMPTY,        "empty lists")                                                          \
    X(ITEMS_FAILED,       "steps that failed because of an item")                                 \
    X(ITEMS_OUTPUTS,      "outputs of lists told to a later step")                                \
    X(ITEMS_NO_LIST,      "steps that got no list, or one that is too long")                      \
    X(ITEM_CHILD,         "children of items that were started")                                  \
    X(ITEM_CHILD_ERROR,   "changes in which the child of an item in error keeps its place")       \
    X(ITEM_CHILD_BLOCKS,  "the same, while other items wait for that place")                      \
    X(ITEM_CHILD_STOPPED, "children of items that were stopped because another item failed")      \
    X(ITEM_CHILD_UNDONE,  "children of items that were told to go back after their end")          \
    X(ITEM_CHILD_LEFT,    "children in error of items that were left by hand")                    \
    X(PROCESSED,          "tasks processed")                                                      \
    X(COMPENSATED,        "tasks compensated")                                                    \
    X(ERROR,              "tasks stopped in error")
/* clang-format on */

enum cover {
#define X(name, text) COVER_##name,
    COVERAGE(X)
#undef X
};

void covered(enum cover c);
void coverage_print(void);

/* Counts go there from now on: zeroed memory, shared by several processes. */
size_t coverage_size(void);
void coverage_share(void *page);

#endif
