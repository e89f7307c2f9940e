#ifndef SCHEDULER_INTERNAL_H
#define SCHEDULER_INTERNAL_H

/*
 * What the files of the scheduler share. The tasks in memory are one floor below (tasks/tasks.h);
 * here is what decides, and what talks to the store and the outside. Each file calls only those
 * before it:
 *
 *   inputs, decisions    evaluate expressions, and decide what needs no agent
 *   items                rows of items: read, and brought back to be undone
 *   release, shared      what goes back to the store; this node among others
 *   start, submit        ready steps to places; new tasks
 *   family               what the task and others of its family tell each other
 *   rest                 commands for items at rest
 *   signals, votes, operate, commands   take the commands of a task, decide and answer them
 *   work, heartbeats     what agents send, and what they get
 *   requests             what others wrote to rows of this node
 *   change, claim, job   a batch for the store
 *   landed, messages     what follows from its outcome
 *   turn                 calls all of these, in order
 *   scheduler            construction, and what is no part of a turn
 */

#include "base/log.h"
#include "scheduler/scheduler.h"
#include "store/codec/codec.h"
#include "tasks/breakers.h"
#include "tasks/calls.h"
#include "tasks/family.h"
#include "tasks/limits.h"
#include "tasks/live.h"
#include "tasks/pulses.h"
#include "tasks/queue.h"
#include "tasks/silence.h"
#include "tasks/task_inbox.h"

/* What is overdue for this long should have been handled by the task's owner. */
#define STALE_MS INT64_C(5000)

struct job;

/* Tasks that are claimed when their time has come. */
enum due {
    DUE_TIME,  /* they wait for a time alone */
    DUE_WAIT,  /* ... for the moment of a `wait` */
    DUE_AMONG, /* ... for agents, too */
    DUES,
};

struct scheduler {
    struct tasks tasks;
    struct scheduler_config config;
    struct slice me; /* "node/boot" */
    struct store_queue *store;
    struct token_key *key;
    struct outside outside;
    struct slice url;                   /* how the outside reaches this node; NONE: unknown */
    bool starts_left;                   /* the last turn left starts for the next one */
    const struct live *evaluating;      /* reported as being evaluated */
    const struct live *just_read;       /* its state is that of its row at this moment */
    const struct item_reading *landing; /* rows of items that were just read, for commands */
    struct at_rest {
        uint16_t unit; /* the slot of an item at rest that the command concerns; 0: none */
        bool changed;
        struct step slot;   /* as it was before */
        struct arena arena; /* of the item, if nothing of it can change */
    } rest;
    struct link answers;    /* of struct command: settled asks */
    struct job *job;        /* at the store; NULL: none */
    struct job *spare_job;  /* nothing was gathered for it; NULL: none */
    struct link unreported; /* of struct job: done, but their messages are not reported yet */
    int64_t retry_at;       /* after a failure: no commit before */
    int64_t due_at[DUES];   /* when to claim tasks that wait for a time; 0: none waits */
    int64_t sweep_at;
    bool locks;          /* tasks may wait for locks that have room */
    bool family_told;    /* the job tells others of families something, or starts children */
    bool overruns_stale; /* the last read failed */
    bool uncounted;      /* some open attempts of this node may not be counted yet */
    size_t claim_from;   /* where in the map of agents the next batch begins to claim */
    bool taking_over;    /* rows of older boots may remain */
    /* After a claim of unknown outcome this node may own rows that it does not know: all rows in
     * work are checked. */
    bool checking_owned;
    enum task_state owned_state;
    int64_t owned_before_seq;
    bool draining, troubled;
    /* Where the store is shared (shared.c): */
    int64_t lease_until, survey_at;
    int64_t job_took_ms; /* the last job */
    bool seizing;        /* an older boot holds the lease, which must be seized */
    bool left;           /* the lease was given up for good ... */
    bool leaving;        /* ... by this job, which is at the store */
    struct store_job leave_job;
    struct lease_try leave_try;
    struct arena leave_arena;
    bool replaced;               /* a newer boot holds the lease */
    bool polling;                /* requests of other nodes must be read ... */
    int64_t poll_after_seq;      /* ... from there on */
    bool reclaiming;             /* tasks of dead nodes may remain */
    struct log_burst unreadable; /* limits the log lines for unreadable tasks */
    struct buf scratch;          /* for texts that are copied at once */
    char me_text[80];
};

static inline int64_t scheduler_now(const struct scheduler *s)
{
    return tasks_now(&s->tasks);
}

/* Empty, for a text that is copied at once. */
static inline struct buf *scheduler_scratch(struct scheduler *s)
{
    enum { KEPT = 65536 };

    if (s->scratch.cap > KEPT)
        buf_fini(&s->scratch);
    buf_clear(&s->scratch);
    return &s->scratch;
}

/* inputs.c: expressions of a task */
/* The code of a failed evaluation. */
static inline const char *evaluation_code(const struct error *e)
{
    return e->code == ERR_TOO_BIG ? "too_big" : "expression";
}

bool input_of_step(struct scheduler *s, struct live *l, uint16_t step, struct value *ret,
                   struct error *e);
/* Does the workflow of the step's child accept that input? True where its definition is not known
 * here: then who starts the child finds out. */
bool input_of_child_ok(struct scheduler *s, struct live *l, uint16_t step,
                       const struct value *input, struct error *e);
/* inputs_evaluated must follow the task's last evaluation. */
enum err input_condition(struct scheduler *s, struct live *l, uint16_t step, bool *ret,
                         struct error *e);
/* The same for the moment of a wait. */
enum err input_wait_until(struct scheduler *s, struct live *l, uint16_t step, int64_t *ret_at,
                          struct error *e);
/* The same for whether the last answer satisfies a repeated step. */
enum err input_until(struct scheduler *s, struct live *l, uint16_t step, bool *ret,
                     struct error *e);
/* The same for what a step asks, which is a JSON string in the task's memory. */
enum err input_question(struct scheduler *s, struct live *l, uint16_t step, struct slice *ret,
                        struct error *e);
/* Is it what the step waits for? */
bool input_match(struct scheduler *s, struct live *l, uint16_t step, const struct signal *sig);
/* "NAME/KEY" of the lock that a new task needs, in its arena. */
enum err input_lock(struct scheduler *s, struct live *l, struct slice *ret, struct error *e);
void input_output(struct scheduler *s, struct live *l); /* of the processed task */
struct slice step_known_output(const struct step *s);
/* The list of a step with for_each, in the task's memory. */
enum err input_list(struct scheduler *s, struct live *l, uint16_t step, struct item_list *ret,
                    const char **ret_code, struct error *e);
void inputs_evaluated(struct scheduler *s); /* reports that the task's evaluations have ended */

/* decisions.c: what needs no agent */
/* Decides the `if` of all steps whose turn it is, their waits, answers to repeated ones, and who
 * takes which signal. If the turn's limit is reached, the task becomes undecided. */
void decisions_make(struct scheduler *s, struct live *l);
/* Has something arrived that was not offered to the step, which waits for it? The same, for any
 * step. */
bool decisions_offers_left(const struct scheduler *s, const struct live *l, uint16_t step);
bool decisions_any_offers_left(const struct scheduler *s, const struct live *l);
/* Is the step still to be decided? Then it cannot be queued. */
bool decision_is_open(const struct scheduler *s, const struct live *l, const struct ready *r);
void decision_bad_input(struct scheduler *s, struct live *l, uint16_t step, const char *code,
                        const struct error *e);
/* Stops the task if it overran too often. True: nothing of it may be evaluated until its change is
 * durable. */
bool overrun_hold(struct scheduler *s, struct live *l);
bool overrun_is_over(const struct scheduler *s, const struct live *l); /* with this change */

/* items.c: items of steps with for_each, and their rows */
struct item_reading;
/* The next three are for tasks with slots. Brings items back that are to be undone now, as far as
 * their rows are known; others are read. */
void items_bring(struct scheduler *s, struct live *l);
/* Are items at rest to be undone now? Nothing else tells a node without the task of them. */
bool items_are_wanted_back(const struct live *l);
/* Items that come to rest are brought back, to be undone, as soon as their rows are stored. */
bool items_will_be_undone(const struct live *l);
/* Is an array of outputs to be read before anything of the task is evaluated? Then it is. */
bool items_await_outputs(struct scheduler *s, struct live *l);
void items_gather(struct scheduler *s, struct job *j); /* reads for a job */
/* The task that goes on with it; NULL: none does. */
struct live *items_landed(struct scheduler *s, struct item_reading *r);
/* Rows from that item on are read, for a command. */
void items_want_row(struct scheduler *s, struct live *l, uint16_t step, uint32_t number);
void items_forget_rows(struct live *l, uint16_t step); /* those to be undone: one has changed */
void items_unreadable(struct scheduler *s, struct live *l, uint16_t step, const char *story);

/* rest.c: commands for items at rest */
/* False: the command has to wait until the row of its item is read, or a slot is free. */
bool rest_reach(struct scheduler *s, struct live *l, struct command *c);
void rest_done(struct scheduler *s, struct live *l); /* the command was decided */

/* shared.c: several nodes on one store */
bool shared_may_claim(const struct scheduler *s);
/* False: there is nothing to seize. */
bool shared_seize(struct scheduler *s, struct arena *a, struct lease_try *ret);
void shared_leased(struct scheduler *s, int64_t asked_at, const struct lease *l);
/* False: not due. `along`: there is a job anyway. */
bool shared_survey(struct scheduler *s, struct arena *a, bool along, struct survey *ret);
void shared_surveyed(struct scheduler *s, const struct survey *v);
int64_t shared_next(const struct scheduler *s); /* 0: never */
void shared_leave(struct scheduler *s);
int64_t shared_stale_at(const struct scheduler *s, const struct live *l); /* 0: never */

/* release.c */
bool release_is_due(struct scheduler *s, struct live *l); /* back to the store? */
/* The same, with the ready steps of the task. */
bool release_is_due_for(struct scheduler *s, const struct live *l, const struct ready *ready,
                        size_t count);
void release_sweep(struct scheduler *s, int64_t now); /* tasks that wait in vain */
/* For a row without owner: which agents it waits for, and its rank. */
void release_wait_fields(struct scheduler *s, struct live *l, struct arena *a,
                         struct task_row *row);

/* start.c: from ready to running */
/* Queues ready steps; sets the nap for later ones. */
void start_refresh(struct scheduler *s, struct live *l);
/* The same, but a task whose open attempts are all elsewhere may leave memory: then *l is freed. */
void start_continue(struct scheduler *s, struct live *l);
void start_match(struct scheduler *s); /* assigns waiting steps to places */

/* submit.c: new tasks */
/* Is its lock to be found in the next turn? Then the submission stays in its inbox. */
bool submit_has_to_wait(struct scheduler *s, struct live *l, const struct command *c);
/* A new task is to be continued, when its signals have arrived. */
void submit_apply(struct scheduler *s, struct live *l, struct command *c);
void submit_continue(struct scheduler *s, struct live *l); /* with its conditions */
void submit_done(struct scheduler *s, const struct live *l, struct command *c);

/* family.c */
struct change;
/* What the change tells the task's parent and children, and the children that it starts. */
void family_fill(struct scheduler *s, struct job *j, const struct live *l, struct change *c);
struct event family_event(struct live *l, const struct command *c); /* what others told it */

/* operate.c: the operator's verbs */
/* False: it cannot be decided; the reason is in its ask. */
bool operator_event(struct live *l, struct command *c, struct event *ret);
/* The same for signals: signals.c. */
void signal_event(struct live *l, struct command *c, struct event *ret);
void signal_explain(const struct live *l, struct command *c);
/* Those of a submission arrive, each for itself. Returns whether any concerns what the task does
 * now. */
bool signals_carried(struct scheduler *s, struct live *l, struct command *c);
/* All of them are refused: its task was deleted, or is another's. */
void signals_not_carried(struct command *c, enum obstacle why);
/* votes.c */
void vote_event(struct scheduler *s, struct live *l, struct command *c, struct event *ret);
void vote_explain(struct scheduler *s, const struct live *l, struct command *c,
                  const struct event *e);
/* Whether the step goes on with it. */
bool vote_decides(struct scheduler *s, const struct live *l, const struct event *e);
/* Whether it concerns what the task does now, and is not only kept for later. */
bool signal_is_awaited(struct scheduler *s, const struct live *l, const struct command *c);
/* After a decision: if it was refused, says why. */
void operator_explain(struct scheduler *s, const struct live *l, struct command *c,
                      const struct event *e);
/* A cancel was refused by the state alone: why, and whether an undo is possible instead. */
void operator_explain_cancel(struct scheduler *s, const struct live *l, struct command *c);
void operator_done(struct live *l, struct command *c);

/* commands.c */
void commands_process(struct scheduler *s, struct live *l);
void commands_fail(struct scheduler *s, struct live *l, struct link *commands, enum err err,
                   const char *story);
void commands_durable(struct scheduler *s, struct live *l); /* all that was applied */
void commands_answer(struct scheduler *s);                  /* sends the answers of settled asks */

/* requests.c: what was written to this node's rows by others */
void requests_polled(struct scheduler *s, const struct row_page *page);

/* work.c: work calls */
/* Returns the number of tokens in *ret, allocated in `a`: the attempts that the instance must
 * stop. */
size_t work_stops(struct scheduler *s, const struct instance *i, struct arena *a,
                  struct slice **ret);
void work_answer_ready(struct scheduler *s);

/* messages.c */
void messages_report(struct scheduler *s); /* those that became durable */
void messages_drop(struct scheduler *s);   /* unreported ones: they are found in the store */

/* landed.c: the outcome of a batch */
struct reading;
void landed_change(struct scheduler *s, struct live *l, const struct change *c);
void landed_claim(struct scheduler *s, const struct claim *c);
void landed_claims_unknown(struct scheduler *s);
void landed_owned(struct scheduler *s, const struct row_page *page);
void landed_load(struct scheduler *s, struct live *l, const struct reading *r);
void landed_items(struct scheduler *s, struct item_reading *r);
void landed_trouble(struct scheduler *s, enum err err, bool committed, const struct error *e);

/* Whether a change with these effects is an end for those who wait: also in error, where only a
 * person continues the task. */
static inline bool effects_end(struct effects fx, enum task_state state)
{
    return fx.ended || (fx.alert && state == TASK_ERROR);
}

#endif
