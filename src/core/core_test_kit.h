#ifndef CORE_CORE_TEST_KIT_H
#define CORE_CORE_TEST_KIT_H

/*
 * Shared by the tests of the core: workflows written as one line of text, and scripts that play
 * events to a task and state what is expected of each.
 */

#include "base/test.h"

#include "core/attempts.h"
#include "core/decide.h"
#include "core/retry.h"
#include "core/undo.h"

enum { GRAPH_STEPS = 6, GRAPH_SLOTS = 10, GRAPH_UNITS = GRAPH_STEPS + GRAPH_SLOTS };

/*
 * A workflow made from text: "by=60s a b2!<a c?<ab". Steps are letters, the first is `a` and has
 * index 0; they are written in topological order, which need not be the alphabet's. After a letter:
 *
 *   2    attempts, in both directions (default 1)    !    a pivot
 *   #    on_failure: hold                            -    undo: none
 *   ?    on_failure: continue                        <ab  its predecessors
 *   +    of on_undo (undo: none; on_failure: hold, if not continue)
 *   /    its attempts have a quarter of the time, in both directions
 *   ~    a wait by length                            @    a wait for a moment
 *   %    repeated in rounds (undo: none)
 *   $    waits for signal s, GRAPH_SIGNAL_MS         &    the same, with an output if none comes
 *   ^    waits for signal s or r, without limit
 *   *    asks two of group g (and of h after GRAPH_ESCALATE_MS), GRAPH_SIGNAL_MS
 *   ;    the same, with an output if they do not decide
 *   =    asks one of group g, who did not submit the task, without limit
 *   :    starts a child, whose undo is that of the step
 *   |    the same, GRAPH_SIGNAL_MS                    >    the same, but its undo is a call
 *   {2}  for_each, two items at a time; {2.} the same, and all are tried; {2:} and a third may fail
 *
 * Words before the steps: by= and undo= (complete-by of the task and of its undo), until= (how long
 * a processed task can be undone), from= (not_before, relative to the submission), defers=, beat=
 * (the longest silence of every attempt, in both directions), hold or continue (the workflow's own
 * on_failure), undo-on-u (signal u has the task undone), and child (the task is one).
 */
struct graph {
    struct workflow w;
    struct workflow_step steps[GRAPH_UNITS];
    uint16_t before[GRAPH_STEPS][GRAPH_STEPS], after[GRAPH_STEPS][GRAPH_STEPS];
    uint16_t order[GRAPH_STEPS];
    char names[GRAPH_STEPS][2];
    int64_t not_before_ms;
    bool is_child;
};

#define GRAPH_STEP_MS     INT64_C(10000) /* complete-by of each attempt, forward ... */
#define GRAPH_UNDO_MS     INT64_C(20000) /* ... and back */
#define GRAPH_WAIT_MS     INT64_C(1000)  /* between attempts, constant */
#define GRAPH_DEFER_MS    INT64_C(60000)
#define KIT_BEGIN         INT64_C(1000000)    /* start time of a test */
#define GRAPH_LONG_MS     INT64_C(6000)       /* a wait by length */
#define GRAPH_EVERY_MS    INT64_C(4000)       /* from an answer to the next round ... */
#define GRAPH_FOR_MS      INT64_C(5000)       /* ... and when the last one may begin */
#define GRAPH_SIGNAL_MS   INT64_C(8000)       /* how long a step waits for a signal */
#define GRAPH_ESCALATE_MS INT64_C(5000)       /* after this the others are asked, too */
#define GRAPH_MOMENT      (KIT_BEGIN + 12000) /* of a wait for a moment */

enum { KIT_SIGNALS = 24, KIT_VOTES = 12, KIT_ITEMS = 6 };

void graph_make(struct graph *g, const char *text);

/* An item at rest, as the store would hold it. */
struct kit_row {
    bool is_there;
    struct step item;
    struct attempt attempts[ATTEMPTS_KEPT];
};

/* A task of such a workflow, with room for all attempts. */
struct kit {
    char owner[40];
    struct graph g;
    struct task t;
    struct step steps[GRAPH_UNITS];
    struct attempt attempts[GRAPH_UNITS][ATTEMPTS_KEPT];
    struct items items[GRAPH_STEPS];
    struct kit_row rows[GRAPH_STEPS][KIT_ITEMS];
    uint16_t held; /* the slot of an item at rest that the event concerns; 0: none */
    bool is_slow;  /* what comes to rest is not stored until the script says so */
    struct signal signals[KIT_SIGNALS];
    char keys[KIT_SIGNALS][4]; /* of scripts */
    struct vote votes[KIT_VOTES];
    int64_t now;
    struct effects fx; /* of the latest event */
    const char *about; /* what is being tested */
};

/* Attributes given when a task is submitted; 0 if the text does not set them. */
int64_t graph_not_before(const struct graph *g);
int64_t graph_complete_by(const struct graph *g);

/* What a task of such a workflow has of its family. */
void graph_family(const struct graph *g, struct task *t);

void kit_make(struct kit *k, const char *about, const char *graph);

/* The vote of a person, who is a letter: 'A' to 'G' are of group g, 'H' of group h, 'S' of group g
 * submitted the task, all others are of no group. Overwritten by the next call. */
const struct ballot *kit_ballot(char person, bool agrees, uint32_t asking);

/* Applies one event and runs all checks, whatever the answer. */
enum answer kit_event(struct kit *k, const struct event *ev);

/*
 * Plays a script: commands between commas, each "VERB [STEP [ATTEMPT]] [= EXPECTED...]".
 *
 *     pause, resume, correct [a], supply a, from a (all from there on starts anew), close, reopen,
 *     resolve a (none of its attempts took effect)
 *     begin a, due a (at its time), due-now a (the same event, but now)     of a wait
 *     yes a, no a (whether its answer satisfies it)                         of a repeated step
 *     signal s k1 (with that key, and the data true), other s k1 (the data false), take a k1, drop
 * s [k1], late a (the complete-by of its waiting)                               of signals
 *     agree a A, reject a B (by these persons), agree a A2 (A agrees to the second question),
 *     decided a, late a                                                       of approvals claim,
 * release, retry [a], undo, undo-bare (undo without a reason), skip a, start a, notsent a, resend
 * a, cond a, bad a ok a        a result; of the open attempt, or of the one named: f2 (second
 * forward), u1 fail a      an error: permanent, without effect        doubt a   ... with unknown
 * effect again a     an error: retryable, without effect        lost a    ... with unknown effect
 * timeout a   at the complete-by of its open attempt     timeout-now a   the same event, but now
 * silence a   when it was silent for too long            silence-now a    the same event, but now
 * away a      its instance is done with it, and the result will come from elsewhere deadline at the
 * complete-by of the task             early     the same event, but now wait 30s    time passes
 *
 *     running a, error a, stands a, turned a, stuck a, processed a, compensated a
 *     of the present child, or of the one named: f1     what a child tells
 *     told-stop, told-undo, told-close, told-none, told-pause [3s] (so long ago), told-resume
 *     what a parent tells
 *
 *     begin a 3          a step with for_each begins, with that many items
 *     start a.1, ok a.1  of an item: in its slot, or in the first free one
 *     bring a.1          from its row; bring a: the one that the store would find first
 *     slow, store        from now on nothing is stored; what came to rest is stored, now and always
 *
 * EXPECTED is an answer (default: accepted), `alert` (default: if and only if the task stops in
 * error), `stop` (agents are told to stop; default: not).
 */
void kit_play(struct kit *k, const char *script);

/* Checks that the task is as `want` says: "compensating a:undoing b:undone". A stop other than none
 * follows the task's state: "processing/undo a:running". Items follow their step, in order:
 * "a:waiting(completed running -)"; - has not begun, <completed is back. What is known of a child
 * follows the
 * step's, and what it was told: "a:waiting/running+stop". Of a child: "processing a:running tells
 * running". */
void kit_expect(struct kit *k, const char *want);

/* A row of a table of examples, and its test. */
struct kit_case {
    const char *what; /* the sentence that it proves */
    const char *graph;
    const char *script;
    const char *want;
};

void kit_run(const struct kit_case *cases, size_t count);

const char *kit_answer_text(enum answer a);

#endif
