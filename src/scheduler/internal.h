#ifndef SCHEDULER_INTERNAL_H
#define SCHEDULER_INTERNAL_H

/*
 * What the files of the scheduler share. The states of a live task:
 *
 *   loading    its row is being read; commands gather in its inbox
 *   loaded     commands are decided at once, and make it dirty
 *   dirty      it has a change for the next batch
 *   in flight  its change is at the store. Nothing of it may be decided, because the state
 *              to decide on is unknown; commands gather in its inbox
 *
 * A step is in one place: in its lane's queue (it waits for a place), or in its instance's `sent`
 * (its attempt is open), or nowhere.
 */

#include "base/log.h"
#include "outbox/telling.h"
#include "scheduler/scheduler.h"
#include "store/codec.h"

/* What is overdue for this long should have been handled by the task's owner. */
#define STALE_MS INT64_C(5000)

enum { GONE_OWNER_MAX = 128 }; /* bytes of a token's name that are kept of a deleted task */

enum command_kind { COMMAND_RESULT, COMMAND_ASK, COMMAND_EVENT };

/* Something to be done to one task. */
struct command {
    struct link link;
    enum command_kind kind;
    struct event event;
    struct work *work; /* RESULT */
    struct work_result *result;
    struct ask *ask;     /* ASK */
    enum answer answer;  /* of the last evaluation */
    struct slice detail; /* ASK: for the audit; in the task's arena */
    bool owned;          /* on the heap; freed when it is done */
    bool overtook; /* it arrived while its task was being read, so that read may miss changes that
                      other nodes made before it arrived */
    bool looked;   /* a submission: its row was read and does not exist */
};

struct live;

/* What a turn evaluates. A kind that got nothing in one turn, because the others used it up, has
 * the next turn to itself. */
enum effort_kind { EFFORT_CONDITIONS, EFFORT_INPUTS, EFFORT_OUTPUTS, EFFORT_ANY };

/* effort.c */
struct effort {
    uint64_t turn, spent, max; /* steps */
    unsigned worked, left_out; /* in this turn; bits by kind */
    enum effort_kind first;    /* the other kinds wait; ANY: none waits */
};

/* The end of an attempt, not durable yet. */
struct attempt_end {
    bool any, bad;
    enum direction direction;
    int64_t began_at, ended_at;
};

/* An attempt that its instance handed over elsewhere; it stays open. Not durable yet. */
struct handed_over {
    struct slice instance; /* NONE: there is no such attempt */
    enum direction direction;
    int64_t began_at;
};

/* The part of a step that is kept in memory only. */
struct live_step {
    struct link astir;     /* in its task's list */
    struct heap_node want; /* in its lane's queue */
    struct lane *queue_of;
    bool bulk;        /* it is counted as bulk in that queue */
    struct link sent; /* in its instance's list while its attempt is open */
    struct instance *instance;
    struct lane *counted; /* the lane whose limit counts the open attempt */
    struct link assigned; /* in the list of the call that will carry it */
    struct work *work;
    struct live *live;
    uint64_t seen; /* the last call in which the instance reported to hold it */
    uint16_t step;
    bool pending;   /* its start is not durable yet; its call waits for that */
    bool delivered; /* a response with it was sent, or (after a restart) may have been sent */
    bool stop;      /* its agent must be told to stop */
    bool stop_told; /* a response said so */
    bool retryable, wished; /* of the last error; wished: its agent named a retry time */
    struct agent *tries;    /* the agent of the trial: the step may have changed direction since */
    uint32_t trial;         /* the breaker epoch if the attempt is a trial; 0: it is not */
    struct attempt_end end; /* since the last commit */
    struct handed_over handed_over;  /* since the last commit */
    uint8_t completed[2], failed[2]; /* attempts by direction, since the last commit */
    bool elsewhere;                  /* its attempt is open, but no instance has it */
    bool holds;                      /* its `if` evaluated to true on the current state */
    struct slice token;              /* of an attempt, as sent to its instance: ... */
    enum direction token_direction;
    uint32_t token_attempt;   /* ... this attempt; no token: none was sent */
    bool last_call;           /* it is silent for too long, but a heartbeat may be on its way ... */
    struct heap_node silence; /* ... when to check it: in `silences` */
    int64_t silent_by;        /* silent for too long from then on; 0: no limit (silence.c) */
};

struct live {
    struct slice id;    /* `id_text` */
    struct arena arena; /* of the loaded state */
    const struct definition *definition;
    struct task task;
    struct live_step *steps;
    /* The steps that wait for a place, have an attempt, or had one since the last commit: so a
     * change of a long task does not walk through all its steps. */
    struct link astir;
    struct encoded *encoded; /* the stored form of its steps; NULL if there are few */
    struct effects fx;       /* of the decisions since the last commit */
    struct link inbox, applied;
    struct link beats;  /* the latest heartbeat of each open attempt (beats.c) */
    uint64_t told;      /* the last revision that was reported, or need not be */
    struct reply reply; /* where messages go, and what was already sent */
    struct told messages;
    struct link dirty_link, load_link, inbox_link;
    struct link undecided; /* conditions remain for the next turn */
    struct link counted;   /* open attempts that count while its row is being read (limits.c) */
    struct heap_node nap;  /* the next time at which a step wants a place */
    int64_t row_wake_at;   /* as in the row */
    int64_t row_seq;       /* its number; 0: unknown */
    uint16_t ended[2][ATTEMPT_ENDS]; /* attempts since the last commit */
    bool has_waits;                  /* the row waits for several agents */
    int64_t bulk_at; /* when it was last part of a bulk operation; 0: never since it was loaded */
    int64_t bulk_stored; /* the durable value: a failed bulk operation does not cost the task its
                            rank */
    bool loaded, fresh, in_flight, reload;
    bool erred;         /* the durable state is error */
    int64_t submission; /* while it is fresh: the row that it comes from; 0: none */
    bool asked_for; /* while it was in flight, an instance called that had lost an attempt of it */
    bool unsure;    /* the outcome of its last commit is unknown */
    bool found;     /* it was claimed meanwhile: its row must be reported */
    unsigned puzzled; /* the number of reads of definitions that did not find its own */
    /* of a stub: the deleted task that had this id; until 0: none */
    struct {
        struct content content;
        char sha256[CONTENT_SHA256_LEN]; /* its text, if it has one */
        char owner_text[GONE_OWNER_MAX];
        struct slice owner; /* NONE: nobody's; one that is too long is cut */
        int64_t version, ended_at, until;
        enum task_state state;
    } gone;
    char id_text[];
};

struct job;

struct scheduler {
    struct scheduler_config config;
    struct slice me; /* "node/boot" */
    struct store_queue *store;
    struct registry *workflows;
    struct token_key *key;
    struct clock clock;
    struct outside outside;
    struct dispatch dispatch;
    struct map lives;
    struct link dirty, loads, inboxes; /* of struct live */
    struct link undecided;             /* of struct live: conditions remain to be decided */
    struct effort effort;              /* of this turn */
    bool starts_left;                  /* the last turn left starts for the next one */
    const struct live *evaluating;     /* reported as being evaluated */
    struct link puzzled;               /* of struct live, by load_link: their definitions ... */
    struct registry_wait definitions;  /* ... are being read */
    struct link answerable;            /* of struct work, by `turn`: closed and settled */
    struct link answers;               /* of struct command: settled asks */
    struct link shut, unsaved;         /* of struct agent (breakers.c) */
    bool agents_stale, agents_known;   /* agents must be read; were read once */
    uint64_t agents_generation;        /* the generation that was read */
    struct heap waits;                 /* of struct work: end of the wait */
    struct heap naps;                  /* of struct live */
    struct heap silences;              /* of struct live_step: attempts with a limit on silence */
    int64_t silences_seen_at;          /* when `silences` was last checked */
    struct job *job;                   /* at the store; NULL: none */
    struct job *spare_job;             /* nothing was gathered for it */
    struct link untold;    /* of struct job: done, but their messages are not reported yet */
    int64_t retry_at;      /* after a failure: no commit before */
    int64_t time_next_at;  /* when to claim tasks that wait for a time; 0: none waits */
    int64_t among_next_at; /* the same for tasks that wait for agents, too */
    int64_t sweep_at;
    struct map overruns; /* overruns.c */
    bool overruns_stale; /* the last read failed */
    struct link lost;  /* open attempts of tasks that other nodes took over, until their complete-by
                          at the latest */
    bool uncounted;    /* some open attempts of this node may not be counted yet */
    size_t claim_from; /* where in the map of agents the next batch begins to claim */
    bool taking_over;  /* rows of older boots may remain */
    /* After a claim of unknown outcome this node may own rows that it does not know: all rows in
     * work are checked. */
    bool looking;
    enum task_state look_state;
    int64_t look_before_seq;
    const struct live *just_read; /* its state is that of its row at this moment */
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
    bool replaced;          /* a newer boot holds the lease */
    bool polling;           /* requests of other nodes must be read ... */
    int64_t poll_after_seq; /* ... from there on */
    bool reclaiming;        /* tasks of dead nodes may remain */
    struct scheduler_stats stats;
    struct log_burst unreadable; /* limits the log lines for unreadable tasks */
    struct buf scratch;          /* for texts that are copied at once */
    int64_t held_now;            /* the time for the current turn; 0: ask the clock */
    char me_text[80];
};

int64_t scheduler_now(const struct scheduler *s);
/* Freezes the time until it is released: a turn asks for it some hundred times. */
void scheduler_hold_now(struct scheduler *s);
void scheduler_let_now_go(struct scheduler *s);
struct buf *scheduler_scratch(struct scheduler *s); /* empty */

/* The earlier of two times; 0: never. */
static inline int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* live.c: tasks in memory */
struct live *live_find(struct scheduler *s, struct slice id);
struct live *live_stub(struct scheduler *s, struct slice id); /* new, loading */
void live_read(struct scheduler *s, struct slice id);         /* the same, and starts a read */
bool live_load(struct scheduler *s, struct live *l, const struct task_row *row,
               struct error *e); /* this node may work on the row */
/* True if another node may have stored the task's definition meanwhile: then the task is loaded
 * once that is known, and the caller is done with it. */
bool live_puzzles(struct scheduler *s, struct live *l, const struct task_row *row);
void live_definitions_read(struct registry_wait *w, enum err err, const char *story);
void live_unload(struct scheduler *s, struct live *l); /* drops the state, keeps the inbox */
void live_reload(struct scheduler *s, struct live *l); /* drops the state and reads it again */
void live_drop(struct scheduler *s, struct live *l);   /* frees it; its inbox is empty */
void live_dirty(struct scheduler *s, struct live *l);
bool live_is_ours(const struct scheduler *s, const struct live *l);
bool live_any_open(const struct live *l);
void live_stir(struct live_step *ls);                             /* adds the step to those astir */
void live_detach_step(struct scheduler *s, struct live_step *ls); /* removes it from all lists */
void live_goes_elsewhere(struct scheduler *s, struct live *l,
                         uint16_t step); /* no instance has it from now on */
enum answer live_decide(struct scheduler *s, struct live *l, const struct event *e);

/* inbox.c: commands */
void inbox_post(struct scheduler *s, struct slice id, struct command *c);
void inbox_post_event(struct scheduler *s, struct slice id, const struct event *e);
void inbox_process(struct scheduler *s, struct live *l);
void inbox_fail(struct scheduler *s, struct live *l, struct link *commands, enum err err,
                const char *story);
void inbox_applied_done(struct scheduler *s, struct live *l); /* all that was applied is durable */
void command_done(struct scheduler *s, struct live *l, struct command *c); /* it is durable */
void inbox_answer(struct scheduler *s); /* sends the answers of settled asks */

/* operate.c: the operator's verbs */
/* False: it cannot be decided; the reason is in its ask. */
bool operator_event(struct live *l, struct command *c, struct event *ret);
/* After a decision: if it was refused, says why. */
void operator_explain(struct scheduler *s, const struct live *l, struct command *c,
                      const struct event *e);
/* A cancel was refused by the state alone: why, and whether an undo is possible instead. */
void operator_explain_cancel(struct scheduler *s, const struct live *l, struct command *c);
void operator_done(struct live *l, struct command *c);

/* submit.c: new tasks */
void submit_apply(struct scheduler *s, struct live *l, struct command *c);
void submit_done(struct scheduler *s, const struct live *l, struct command *c);

/* start.c: from ready to running */
void start_refresh(struct scheduler *s,
                   struct live *l); /* queues ready steps; sets the nap for later ones */
/* The same, but a task whose open attempts are all elsewhere may leave memory: then *l is freed. */
void start_go_on(struct scheduler *s, struct live *l);
void start_unqueue(struct scheduler *s, struct live *l); /* removes all its steps from the queues */
void start_leave_queue(struct scheduler *s, struct live_step *ls); /* if it is in one */
struct lane *start_lane(struct scheduler *s, const struct live *l, uint16_t step);
void start_match(struct scheduler *s); /* assigns waiting steps to places */
/* Decides the `if` of all steps whose turn it is; no agent is needed for that. If the turn's limit
 * is reached, the task becomes undecided. */
void start_conditions(struct scheduler *s, struct live *l);
void submit_go_on(struct scheduler *s, struct live *l);         /* continues with its conditions */
void start_decide_more(struct scheduler *s);                    /* of all undecided tasks */
bool start_has_room(struct scheduler *s, struct live *l);       /* may a submission be claimed? */
bool start_should_release(struct scheduler *s, struct live *l); /* back to the store? */
/* For a row without owner: which agents it waits for, and its rank. */
void start_wait_fields(struct scheduler *s, struct live *l, struct arena *a, struct task_row *row);
int64_t task_rank(const struct task *t);

/* breakers.c */
struct agent *agent_of_attempts(struct scheduler *s, const struct live *l, uint16_t step,
                                enum direction d);
void breakers_tick(struct scheduler *s, int64_t now);
int64_t breakers_next(const struct scheduler *s); /* when a breaker changes by itself; 0: never */
/* Does the event report a failure during an outage? */
bool breakers_spare(struct scheduler *s, const struct live *l, const struct event *e);
/* The step's attempt no longer occupies a trial. */
void breakers_trial_over(struct live *l, uint16_t step);
/* The step's `end` is durable. */
void breakers_count(struct scheduler *s, struct agent *a, struct live *l, uint16_t step);
void breakers_handed_over(struct scheduler *s, struct agent *a, const struct handed_over *h);
/* Another node stored agents up to this generation. */
void breakers_heard(struct scheduler *s, uint64_t generation);
void breakers_read(struct scheduler *s, const struct agent_row *rows, size_t count,
                   uint64_t generation);
/* Breaker states to be stored, in `a`; and the outcome of storing one. */
size_t breakers_to_save(struct scheduler *s, struct arena *a, struct agent_change *ret, size_t max);
void breakers_saved(struct scheduler *s, const struct agent_change *c, enum err err);

/* inputs.c: expressions of a task */
bool input_of_step(struct scheduler *s, struct live *l, uint16_t step, struct value *ret,
                   struct error *e);
/* inputs_evaluated must follow the task's last evaluation. */
enum err input_condition(struct scheduler *s, struct live *l, uint16_t step, bool *ret,
                         struct error *e);
void input_output(struct scheduler *s, struct live *l); /* of the processed task */
struct slice step_known_output(const struct step *s);

void inputs_evaluated(struct scheduler *s); /* reports that the task's evaluations have ended */

/* effort.c: limits evaluations per turn */
void effort_begin(struct scheduler *s);
bool effort_may(struct scheduler *s, enum effort_kind kind); /* false: left for the next turn */
uint64_t *effort_of_one(struct scheduler *s);                /* the counter of its steps */
bool effort_left_out(const struct scheduler *s, enum effort_kind kind);
void effort_turn_over(struct scheduler *s);

/* overruns.c: tasks whose evaluations took far too long */
void overruns_read(struct scheduler *s, const struct overrun *list, size_t count); /* all of them */
void overruns_free(struct scheduler *s);
bool overruns_too_often(const struct scheduler *s, struct slice id); /* it is not evaluated again */
/* Stops the task if it overran too often. True: nothing of it may be evaluated until its change is
 * durable. */
bool overruns_hold(struct scheduler *s, struct live *l);
bool overruns_are_over(const struct scheduler *s, const struct live *l); /* with this change */
void overruns_forget(struct scheduler *s, struct slice id);

/* limits.c: counts open attempts against limits */
void limits_open(struct scheduler *s, struct live_step *ls, struct lane *lane,
                 struct instance *i);                  /* an attempt begins */
void limits_close(struct live_step *ls);               /* the attempt ends */
void limits_keep(struct live *l);                      /* its row is about to be read */
void limits_kept(struct scheduler *s, struct live *l); /* its row was read */
void limits_forget(struct live *l);                    /* its row does not exist */
void limits_forget_lost(struct scheduler *s);
void limits_expire(struct scheduler *s, int64_t now);
int64_t limits_next(const struct scheduler *s); /* 0: never */
void limits_look(struct scheduler *s);          /* checks whether all open attempts are counted */
bool limits_may_start(const struct scheduler *s, const struct agent *a);
void limits_share(struct scheduler *s, const struct survey *v);

/* beats.c: heartbeats */
void beats_forget(struct live *l, uint16_t step); /* its attempt has ended */
void beats_forget_all(struct live *l);
/* The resume details of an attempt for the next one, or NONE. Valid until its next heartbeat. */
struct slice beats_resume(const struct live *l, uint16_t step, enum direction d, uint32_t attempt);

/* silence.c: limits how long an attempt may go without a heartbeat */
void silence_begin(struct scheduler *s, struct live_step *ls);      /* its request was sent */
void silence_begin_anew(struct scheduler *s, struct live_step *ls); /* after time without contact */
void silence_broken(struct scheduler *s, struct live_step *ls);     /* a heartbeat arrived */
void silence_end(struct scheduler *s, struct live_step *ls);
bool silence_is_over_long(const struct scheduler *s, const struct live_step *ls);
void silence_look(struct scheduler *s, int64_t now);
int64_t silence_next(const struct scheduler *s); /* 0: nothing to check */

/* calls.c: work calls */
/* Returns the number of tokens in *ret, allocated in `a`: the attempts that the instance must
 * stop. */
size_t call_stops(struct scheduler *s, const struct instance *i, struct arena *a,
                  struct slice **ret);
void call_settle(struct scheduler *s, struct work *w,
                 uint32_t count); /* so many of its items are durable */
void call_answer_ready(struct scheduler *s);
void call_assign(struct scheduler *s, struct work *w, struct live_step *ls);
void call_stop(struct live_step *ls); /* its agent must be told to stop */
void call_tell_stop(struct scheduler *s, struct live *l);
void call_expire(struct scheduler *s, int64_t now);
void call_close(struct scheduler *s, struct work *w);    /* answered as soon as it is settled */
void call_poke_all(struct scheduler *s, struct live *l); /* all instances that work on it */
void call_poke(struct scheduler *s, struct instance *i); /* so that it reports what it holds */

/* shared.c: several nodes on one store */
bool shared_may_claim(const struct scheduler *s);
bool shared_seize(struct scheduler *s, struct arena *a,
                  struct lease_try *ret); /* false: there is nothing to seize */
void shared_leased(struct scheduler *s, int64_t asked_at, const struct lease *l);
/* False: not due. `along`: there is a job anyway. */
bool shared_survey(struct scheduler *s, struct arena *a, bool along, struct survey *ret);
void shared_surveyed(struct scheduler *s, const struct survey *v);
void shared_polled(struct scheduler *s, const struct row_page *page);
int64_t shared_next(const struct scheduler *s); /* 0: never */
void shared_leave(struct scheduler *s);
int64_t shared_stale_at(const struct scheduler *s, const struct live *l); /* 0: never */

/* flush.c: batches */
bool flush(struct scheduler *s);        /* gives the store a batch, if there is one */
void flush_tell(struct scheduler *s);   /* reports messages that became durable */
void flush_forget(struct scheduler *s); /* drops unreported messages: they are found in the store */

/* landed.c: the outcome of a batch */
struct change;
struct reading;
void landed_change(struct scheduler *s, struct live *l, const struct change *c);
void landed_claim(struct scheduler *s, const struct claim *c);
void landed_claims_unknown(struct scheduler *s);
void landed_look(struct scheduler *s, const struct row_page *page);
void landed_load(struct scheduler *s, struct live *l, const struct reading *r);
void landed_trouble(struct scheduler *s, enum err err, bool committed, const struct error *e);

#endif
