#ifndef SCHEDULER_INTERNAL_H
#define SCHEDULER_INTERNAL_H

/*
 * What the files of the scheduler share. Who may change what, and when:
 *
 *   a live task is   loading   its row is being read; commands gather in its inbox
 *                    loaded    commands are decided at once, and make it dirty
 *                    dirty     it has a change in the batch that gathers
 *                    in flight its change is with the store: nothing of it may be decided, since
 * nobody knows yet on what; commands gather in its inbox
 *
 * A step is in one place: in its lane's queue (wants a place), or in its instance's `sent` (its
 * attempt is open), or nowhere.
 */

#include "base/log.h"
#include "outbox/telling.h"
#include "scheduler/scheduler.h"
#include "store/codec.h"

/* What is this long overdue should have been dealt with, whoever owns its task. */
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
    struct slice detail; /* ASK: for the audit, in the memory of its task */
    bool owned;          /* from the heap; freed when it is done */
    bool overtook; /* it came while its task was being read: of what others did before it came,
                      that reading may know nothing */
    bool looked;   /* a submission: its row was looked for, and is not there */
};

struct live;

/* What is evaluated in a turn. One that came to nothing in a turn, because the others spent all,
 * has the next one for itself. */
enum effort_kind { EFFORT_CONDITIONS, EFFORT_INPUTS, EFFORT_OUTPUTS, EFFORT_ANY };

/* effort.c */
struct effort {
    uint64_t turn, spent, max; /* steps */
    unsigned worked, left_out; /* in this turn; bits by kind */
    enum effort_kind first;    /* the others have to wait; ANY: nobody has */
};

/* How an attempt ended that is not durable yet. */
struct attempt_end {
    bool any, bad;
    enum direction direction;
    int64_t began_at, ended_at;
};

/* An attempt that its instance is done with, though it is still open: that is not durable yet. */
struct handed_over {
    struct slice instance; /* NONE: there is none */
    enum direction direction;
    int64_t began_at;
};

/* The volatile side of a step. */
struct live_step {
    struct link astir;     /* in its task's list */
    struct heap_node want; /* in its lane's queue */
    struct lane *queue_of;
    bool bulk;        /* it counts among those in bulk that wait there */
    struct link sent; /* in its instance's list, while its attempt is open */
    struct instance *instance;
    struct lane *counted; /* where its open attempt counts */
    struct link assigned; /* in the list of the call that is to carry it */
    struct work *work;
    struct live *live;
    uint64_t seen; /* the instance's call that last said to hold it */
    uint16_t step;
    bool pending;           /* its start is not durable yet; its call waits for that */
    bool delivered;         /* an answer with it was sent, or (after a restart) may have been */
    bool stop;              /* its agent is to be told to stop */
    bool stop_told;         /* an answer said so */
    bool retryable, wished; /* the last error; its agent said when to try again */
    struct agent *tries;    /* whose breaker the trial is of: the step may have turned since */
    uint32_t trial;         /* its attempt is one of its agent's breaker, of that epoch; 0: no */
    struct attempt_end end; /* since the last commit */
    struct handed_over handed_over;  /* the same */
    uint8_t completed[2], failed[2]; /* attempts by direction, since the last commit */
    bool elsewhere;                  /* its attempt is open, and no instance has it */
    bool holds;                      /* its `if` was evaluated to true, on what it sees now */
    struct slice token;              /* of an attempt, as its instance was sent it: ... */
    enum direction token_direction;
    uint32_t token_attempt;   /* ... this one; NONE: it was sent none */
    bool last_call;           /* its silence is too long, but a beat may be on its way ... */
    struct heap_node silence; /* ... when to look at it: in `silences` */
    int64_t silent_by;        /* too long by then; 0: it may be silent (silence.c) */
};

struct live {
    struct slice id;    /* `id_text` */
    struct arena arena; /* of the loaded state */
    const struct definition *definition;
    struct task task;
    struct live_step *steps;
    /* Of them all that wait for a place, have an attempt, or had one since the last commit: few of
     * a long task, which is not walked through at each of its changes. */
    struct link astir;
    struct encoded *encoded; /* what its steps were written as; NULL for few of them */
    struct effects fx;       /* of what was decided since the last commit */
    struct link inbox, applied;
    struct link beats;  /* the latest heartbeat of each open attempt (beats.c) */
    uint64_t told;      /* the revision that the world was told of, or was not to be told of */
    struct reply reply; /* whom messages go to, and what they have told */
    struct told messages;
    struct link dirty_link, load_link, inbox_link;
    struct link undecided; /* conditions are left for the next turn */
    struct link counted;   /* open attempts that count while its row is being read (limits.c) */
    struct heap_node nap;  /* the next moment at which a step wants a place */
    int64_t row_wake_at;   /* what the row has */
    int64_t row_seq;       /* its number; 0: not known */
    uint16_t ended[2][ATTEMPT_ENDS]; /* attempts, since the last commit */
    bool has_waits;                  /* the row waits for several */
    int64_t bulk_at;     /* it was asked in bulk then; 0: not, or it left the memory since */
    int64_t bulk_stored; /* the same, of what is durable: who was asked in vain keeps his place */
    bool loaded, fresh, in_flight, reload;
    bool erred;         /* what is durable says that it stopped in error */
    int64_t submission; /* while it is fresh: the row that it comes from; 0: none */
    bool asked_for;   /* while it was in flight, an instance came that had lost an attempt of it */
    bool unsure;      /* the outcome of its last commit is unknown */
    bool found;       /* it was claimed meanwhile: what its row says is news */
    unsigned puzzled; /* so many readings did not make its definition known here */
    /* of a stub: what is known of a task of that id that was deleted; until 0: nothing */
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
    struct link undecided;             /* of struct live: they go on with their conditions */
    struct effort effort;              /* of this turn */
    bool starts_left;                  /* the last turn could not start all that it had */
    const struct live *evaluating;     /* the world was told so */
    struct link puzzled;               /* of struct live, by load_link: their definitions ... */
    struct registry_wait definitions;  /* ... are being read */
    struct link answerable;            /* of struct work, by `turn`: closed and settled */
    struct link answers;               /* of struct command: asks that are settled */
    struct link shut, unsaved;         /* of struct agent (breakers.c) */
    bool agents_stale, agents_known;   /* what is said of agents is to be read; was read once */
    uint64_t agents_generation;        /* up to which */
    struct heap waits;                 /* of struct work: end of the wait */
    struct heap naps;                  /* of struct live */
    struct heap silences;              /* of struct live_step: who may not be silent for ever */
    int64_t silences_seen_at;          /* when that was last looked at */
    struct job *job;                   /* with the store; NULL: it is idle */
    struct link untold;    /* of struct job: those that are back, but for what their messages say */
    int64_t retry_at;      /* after trouble, nothing is committed before */
    int64_t time_next_at;  /* when to claim what sleeps; 0: nothing does */
    int64_t among_next_at; /* the same of what waits for agents, too */
    int64_t sweep_at;
    struct map overruns; /* overruns.c */
    bool overruns_stale; /* they could not be read */
    struct link lost; /* open attempts of tasks that others took from us, until they must be over */
    bool uncounted;   /* there may be open attempts of ours that are not counted yet */
    size_t claim_from; /* where in the map of agents the next batch begins to claim */
    bool taking_over;  /* rows of older boots may be left */
    /* After a claim of unknown outcome we may own rows that we do not know: all that are in work
     * are looked at. */
    bool looking;
    enum task_state look_state;
    int64_t look_before_seq;
    const struct live *just_read; /* what it says is what the row says, at this moment */
    bool draining, troubled;
    /* Where the store is shared (shared.c): */
    int64_t lease_until, survey_at;
    int64_t job_took_ms; /* the last one */
    bool seizing;        /* the lease is an older boot's: it is taken from it */
    bool left;           /* it was given up for good ... */
    bool leaving;        /* ... by this job, which is with the store */
    struct store_job leave_job;
    struct lease_try leave_try;
    struct arena leave_arena;
    bool replaced;          /* it is a newer boot's */
    bool polling;           /* requests of others are to be read ... */
    int64_t poll_after_seq; /* ... from there on */
    bool reclaiming;        /* tasks of dead nodes may be left */
    struct scheduler_stats stats;
    struct log_burst unreadable; /* tasks of which it was logged */
    struct buf scratch;          /* for texts that are copied as soon as they are written */
    int64_t held_now; /* what time it is for what is dealt with just now; 0: ask the clock */
    char me_text[80];
};

int64_t scheduler_now(const struct scheduler *s);
/* Until it is let go, time stands still: a turn asks for it some hundred times. */
void scheduler_hold_now(struct scheduler *s);
void scheduler_let_now_go(struct scheduler *s);
struct buf *scheduler_scratch(struct scheduler *s); /* empty */

/* Of two moments; 0: never. */
static inline int64_t earlier(int64_t a, int64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* live.c: tasks in memory */
struct live *live_find(struct scheduler *s, struct slice id);
struct live *live_stub(struct scheduler *s, struct slice id); /* new, loading */
void live_read(struct scheduler *s, struct slice id);         /* the same, and reads it */
bool live_load(struct scheduler *s, struct live *l, const struct task_row *row,
               struct error *e); /* the row is ours to work on */
/* Is its definition one that others may have stored meanwhile? Then it is loaded later, when that
 * is known: it is out of the caller's hands. */
bool live_puzzles(struct scheduler *s, struct live *l, const struct task_row *row);
void live_definitions_read(struct registry_wait *w, enum err err, const char *story);
void live_unload(struct scheduler *s, struct live *l); /* forgets the state, keeps the inbox */
void live_reload(struct scheduler *s, struct live *l); /* and reads it again */
void live_drop(struct scheduler *s, struct live *l);   /* frees it; its inbox is empty */
void live_dirty(struct scheduler *s, struct live *l);
bool live_is_ours(const struct scheduler *s, const struct live *l);
bool live_any_open(const struct live *l);
void live_stir(struct live_step *ls); /* something of it begins: it is among those astir */
void live_detach_step(struct scheduler *s, struct live_step *ls); /* out of all lists */
void live_goes_elsewhere(struct scheduler *s, struct live *l,
                         uint16_t step); /* no instance has it now */
enum answer live_decide(struct scheduler *s, struct live *l, const struct event *e);

/* inbox.c: commands */
void inbox_post(struct scheduler *s, struct slice id, struct command *c);
void inbox_post_event(struct scheduler *s, struct slice id, const struct event *e);
void inbox_process(struct scheduler *s, struct live *l);
void inbox_fail(struct scheduler *s, struct live *l, struct link *commands, enum err err,
                const char *story);
void inbox_applied_done(struct scheduler *s, struct live *l); /* all that was applied is durable */
void command_done(struct scheduler *s, struct live *l, struct command *c); /* it is durable */
void inbox_answer(struct scheduler *s);                                    /* asks that are done */

/* operate.c: the operator's verbs */
/* False: it cannot be decided; the answer stands in its ask. */
bool operator_event(struct live *l, struct command *c, struct event *ret);
/* It was decided: if it was refused, why. */
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
                   struct live *l); /* queues what is ready, naps for what will be */
/* The same, but one of which all that runs is elsewhere leaves the memory: *l may be gone then. */
void start_go_on(struct scheduler *s, struct live *l);
void start_unqueue(struct scheduler *s, struct live *l); /* takes all of it out of the queues */
void start_leave_queue(struct scheduler *s, struct live_step *ls); /* if it is in one */
struct lane *start_lane(struct scheduler *s, const struct live *l, uint16_t step);
void start_match(struct scheduler *s); /* gives wants to places */
/* Decides the `if` of all steps whose turn it is: nobody is needed for that. What is more than this
 * turn may do makes the task undecided. */
void start_conditions(struct scheduler *s, struct live *l);
void submit_go_on(struct scheduler *s, struct live *l);         /* with its conditions */
void start_decide_more(struct scheduler *s);                    /* of all that are undecided */
bool start_has_room(struct scheduler *s, struct live *l);       /* may a submission be claimed? */
bool start_should_release(struct scheduler *s, struct live *l); /* back to the store? */
/* Of a row without owner: for whom it waits, and where it stands among those that do. */
void start_wait_fields(struct scheduler *s, struct live *l, struct arena *a, struct task_row *row);
int64_t task_rank(const struct task *t);

/* breakers.c */
struct agent *agent_of_attempts(struct scheduler *s, const struct live *l, uint16_t step,
                                enum direction d);
void breakers_tick(struct scheduler *s, int64_t now);
int64_t breakers_next(const struct scheduler *s); /* when something changes by itself; 0: never */
/* Is the failure that this event tells of one of an outage? */
bool breakers_spare(struct scheduler *s, const struct live *l, const struct event *e);
/* The step's attempt takes no place of a trial any more. */
void breakers_trial_over(struct live *l, uint16_t step);
/* What the step's `end` says is durable. */
void breakers_count(struct scheduler *s, struct agent *a, struct live *l, uint16_t step);
void breakers_handed_over(struct scheduler *s, struct agent *a, const struct handed_over *h);
/* What others said of agents has that generation. */
void breakers_heard(struct scheduler *s, uint64_t generation);
void breakers_read(struct scheduler *s, const struct agent_row *rows, size_t count,
                   uint64_t generation);
/* What is to be written of them, in `a`; and what came of one of it. */
size_t breakers_to_save(struct scheduler *s, struct arena *a, struct agent_change *ret, size_t max);
void breakers_saved(struct scheduler *s, const struct agent_change *c, enum err err);

/* inputs.c: expressions of a task */
bool input_of_step(struct scheduler *s, struct live *l, uint16_t step, struct value *ret,
                   struct error *e);
/* inputs_evaluated has to follow, after the last one of the task. */
enum err input_condition(struct scheduler *s, struct live *l, uint16_t step, bool *ret,
                         struct error *e);
void input_output(struct scheduler *s, struct live *l); /* of the processed task */
struct slice step_known_output(const struct step *s);

void inputs_evaluated(struct scheduler *s); /* for now: tells the world */

/* effort.c: what a turn may evaluate */
void effort_begin(struct scheduler *s);
bool effort_may(struct scheduler *s, enum effort_kind kind); /* false: it is for the next turn */
uint64_t *effort_of_one(struct scheduler *s);                /* where its steps are counted */
bool effort_left_out(const struct scheduler *s, enum effort_kind kind);
void effort_turn_over(struct scheduler *s);

/* overruns.c: tasks whose evaluations took far too long */
void overruns_read(struct scheduler *s, const struct overrun *list, size_t count); /* all */
void overruns_free(struct scheduler *s);
bool overruns_too_often(const struct scheduler *s, struct slice id); /* it is evaluated no more */
/* Stops the task if it is one of these. True: nothing of it may be evaluated until the change that
 * it has is durable. */
bool overruns_hold(struct scheduler *s, struct live *l);
bool overruns_are_over(const struct scheduler *s, const struct live *l); /* with this change */
void overruns_forget(struct scheduler *s, struct slice id);

/* limits.c: what is at work, counted where the limits are */
void limits_open(struct scheduler *s, struct live_step *ls, struct lane *lane,
                 struct instance *i);                  /* an attempt is at work */
void limits_close(struct live_step *ls);               /* it is so no more */
void limits_keep(struct live *l);                      /* its row is about to be read */
void limits_kept(struct scheduler *s, struct live *l); /* it was read */
void limits_forget(struct live *l);                    /* and there is nothing of it */
void limits_forget_lost(struct scheduler *s);
void limits_expire(struct scheduler *s, int64_t now);
int64_t limits_next(const struct scheduler *s); /* 0: never */
void limits_look(struct scheduler *s);          /* is all counted by now? */
bool limits_may_start(const struct scheduler *s, const struct agent *a);
void limits_share(struct scheduler *s, const struct survey *v);

/* beats.c: heartbeats */
void beats_forget(struct live *l, uint16_t step); /* its attempt has ended */
void beats_forget_all(struct live *l);
/* What an attempt left for the next one, or NONE. Valid until its next beat. */
struct slice beats_resume(const struct live *l, uint16_t step, enum direction d, uint32_t attempt);

/* silence.c: how long an attempt may go without a heartbeat */
void silence_begin(struct scheduler *s, struct live_step *ls);      /* its request has left */
void silence_begin_anew(struct scheduler *s, struct live_step *ls); /* nobody could be heard */
void silence_broken(struct scheduler *s, struct live_step *ls);     /* a beat came */
void silence_end(struct scheduler *s, struct live_step *ls);
bool silence_is_over_long(const struct scheduler *s, const struct live_step *ls);
void silence_look(struct scheduler *s, int64_t now);
int64_t silence_next(const struct scheduler *s); /* 0: there is nothing to look at */

/* calls.c: work calls */
/* Tokens of what the instance is to stop, in `a`; their count. */
size_t call_stops(struct scheduler *s, const struct instance *i, struct arena *a,
                  struct slice **ret);
void call_settle(struct scheduler *s, struct work *w,
                 uint32_t count); /* of its items are durable */
void call_answer_ready(struct scheduler *s);
void call_assign(struct scheduler *s, struct work *w, struct live_step *ls);
void call_stop(struct live_step *ls); /* its agent is to be told to stop */
void call_tell_stop(struct scheduler *s, struct live *l);
void call_expire(struct scheduler *s, int64_t now);
void call_close(struct scheduler *s, struct work *w);    /* answered as soon as it is settled */
void call_poke_all(struct scheduler *s, struct live *l); /* all instances at work on it */
void call_poke(struct scheduler *s, struct instance *i); /* so that it says what it holds */

/* shared.c: where several nodes work on the same store */
bool shared_may_claim(const struct scheduler *s);
bool shared_seize(struct scheduler *s, struct arena *a,
                  struct lease_try *ret); /* false: there is nothing to be seized */
void shared_leased(struct scheduler *s, int64_t asked_at, const struct lease *l);
/* False: it is not the time. `along`: with a job that there is anyway. */
bool shared_survey(struct scheduler *s, struct arena *a, bool along, struct survey *ret);
void shared_surveyed(struct scheduler *s, const struct survey *v);
void shared_polled(struct scheduler *s, const struct row_page *page);
int64_t shared_next(const struct scheduler *s); /* 0: never */
void shared_leave(struct scheduler *s);
int64_t shared_stale_at(const struct scheduler *s, const struct live *l); /* the same */

/* flush.c: batches */
bool flush(struct scheduler *s);        /* hands a batch to the store, if there is one */
void flush_tell(struct scheduler *s);   /* of the messages that became durable */
void flush_forget(struct scheduler *s); /* them: they are found in the store */

/* landed.c: what became of a batch */
struct change;
struct reading;
void landed_change(struct scheduler *s, struct live *l, const struct change *c);
void landed_claim(struct scheduler *s, const struct claim *c);
void landed_claims_unknown(struct scheduler *s);
void landed_look(struct scheduler *s, const struct row_page *page);
void landed_load(struct scheduler *s, struct live *l, const struct reading *r);
void landed_trouble(struct scheduler *s, enum err err, bool committed, const struct error *e);

#endif
