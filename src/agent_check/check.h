#ifndef AGENT_CHECK_CHECK_H
#define AGENT_CHECK_CHECK_H

/*
 * Plays the server against an agent, one scenario after the other, and tells of each whether the
 * agent did what docs/agents.md asks of it. The agent is a command that is started anew for each
 * scenario, or whoever calls at an address.
 *
 * What must come is waited for, for minutes; what must not come is judged by the agent's later
 * calls and not by silence for a time, wherever that is possible. Times are those of CLOCK_BOOTTIME
 * here.
 *
 * One thread; one run at a time in a process: it reaps all children of the process, and takes
 * SIGINT and SIGTERM, on which it ends early, for its own while it lasts.
 */

#include "base/buf.h"
#include "base/err.h"

enum check_end { CHECK_OK, CHECK_WRONG, CHECK_SKIPPED };

/* Whom a scenario is for. */
enum check_level {
    CHECK_ANY,   /* any agent, with one action and an input that completes */
    CHECK_UNDO,  /* the same, with an action that undoes it as well */
    CHECK_KNOWN, /* agents with the actions of docs/agent-check.md */
    /* Agents whose effects can be counted: by a command, or by the known action count. */
    CHECK_EFFECTS,
    CHECK_EFFECTS_UNDO, /* the same, with an action that undoes it as well */
};

struct stage;

/* What an agent is put to. All of them are data; `play` is the course of events. */
struct check_scenario {
    const char *name;    /* "retry-after" */
    const char *must;    /* what an agent must do: one sentence, without a dot */
    const char *why;     /* what would come of it otherwise: the same */
    const char *chapter; /* of docs/agents.md */
    enum check_level level;
    bool is_rule; /* judged on all calls of the run */
    bool
        needs_process; /* it is killed, or its end is looked at: not for one that calls by itself */
    void (*play)(struct stage *s);
};

extern const struct check_scenario check_scenarios[];
extern const size_t check_scenario_count;

/* NULL: there is none of that name. */
const struct check_scenario *check_scenario_find(const char *name);

struct check_settings {
    char **command;     /* words, with NULL behind them; NULL: wait for an agent that calls */
    const char *listen; /* then: "127.0.0.1:7421" */
    const char *agent;  /* its name; NULL: the one by which it calls first */
    const char *action; /* that completes with `input`; NULL: it has the known actions */
    const char *undo;   /* that undoes it; NULL: none is known */
    const char *input;  /* JSON */
    /* A shell command that prints a whole number: each effect of `action` changes it by the same
     * amount, and `undo` changes it back. NULL: the effects of `action` cannot be counted. */
    const char *effects;
    /* Only these and not those, each a name out of the table; NULL behind them. */
    const char *const *only, *const *except;
    int64_t patience_ms; /* for one thing that must come */
    int64_t limit_ms;    /* for all of it */
    bool verbose;        /* what the agent writes goes to standard error */
};

enum { CHECK_EXPECTED_MAX = 400, CHECK_SEEN_MAX = 1600 };

struct check_verdict {
    const struct check_scenario *scenario;
    enum check_end end;
    char expected[CHECK_EXPECTED_MAX]; /* of what is wrong */
    char seen[CHECK_SEEN_MAX];         /* the same; of what was skipped: why */
    int64_t took_ms;
};

struct check_sum {
    unsigned ok, wrong, skipped;
    bool is_broken_off; /* by a signal or the limit, or since nobody ever called */
    char agent[160];    /* its name; "": it never called */
};

/* Plays. `told` is called for each scenario when it is over. ERR_OK, whatever came of it: then *ret
 * says so. Else nothing was played, and the error says why. */
enum err check_run(const struct check_settings *settings,
                   void (*told)(void *arg, const struct check_verdict *v), void *arg,
                   struct check_sum *ret, struct error *e) MUST_USE;

/* "any", "undo", "known", "effects" */
const char *check_level_text(enum check_level level);

/* A verdict as a line of text (several if it is wrong), a member of a JSON array, an element of a
 * JUnit file. What the agent sent is made harmless for terminals and for XML. */
void check_write_text(struct buf *b, const struct check_verdict *v);
void check_write_json(struct buf *b, const struct check_verdict *v);
void check_write_junit(struct buf *b, const struct check_verdict *v);

/* What stands around the elements. */
void check_junit_head(struct buf *b, const struct check_sum *sum, int64_t took_ms);
void check_junit_tail(struct buf *b);

/* All scenarios, without playing any: {"scenarios": [{name, level, must, why, chapter}]}. */
void check_list_json(struct buf *b);

#endif
