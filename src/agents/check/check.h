#ifndef AGENTS_CHECK_CHECK_H
#define AGENTS_CHECK_CHECK_H

/*
 * Simulates the server for an agent, one scenario after the other, and reports for each whether the
 * agent behaves as docs/agents.md requires. The agent is a command that is started for each
 * scenario, or a program that calls an address.
 *
 * Expected events are waited for, for minutes. Where possible, unwanted ones are judged by the
 * agent's later calls and not by silence for a time. Times are CLOCK_BOOTTIME.
 *
 * One thread; one run at a time in a process: while it lasts, it reaps all children of the process,
 * and handles SIGINT and SIGTERM, which end it early.
 */

#include "base/buf.h"
#include "base/err.h"

enum check_end { CHECK_OK, CHECK_WRONG, CHECK_SKIPPED };

/* The agents that a scenario applies to. */
enum check_level {
    CHECK_ANY,   /* any agent, with one action and an input that completes */
    CHECK_UNDO,  /* the same, with an action that undoes it */
    CHECK_KNOWN, /* agents with the actions of docs/agent-check.md */
    /* Agents whose effects can be counted: by a command, or by the known action count. */
    CHECK_EFFECTS,
    CHECK_EFFECTS_UNDO, /* the same, with an action that undoes it */
};

struct stage;

/* One scenario. Everything is data, except `play`, which runs it. */
struct check_scenario {
    const char *name;    /* "retry-after" */
    const char *must;    /* what an agent must do: one sentence, without a full stop */
    const char *why;     /* the consequence otherwise, in the same form */
    const char *chapter; /* of docs/agents.md */
    enum check_level level;
    bool is_rule;       /* judged on all calls of the run */
    bool needs_process; /* it is killed, or its exit is checked: not for an agent that calls by
                         * itself */
    void (*play)(struct stage *s);
};

extern const struct check_scenario check_scenarios[];
extern const size_t check_scenario_count;

/* NULL: there is none with that name. */
const struct check_scenario *check_scenario_find(const char *name);

struct check_settings {
    char **command;     /* argv, NULL-terminated; NULL: wait for an agent that calls */
    const char *listen; /* the address for that: "127.0.0.1:7421" */
    const char *agent;  /* its name; NULL: the one in its first call */
    const char *action; /* completes with `input`; NULL: it has the known actions */
    const char *undo;   /* undoes it; NULL: none */
    const char *input;  /* JSON */
    /* A shell command that prints a whole number: each effect of `action` changes it by the same
     * amount, and `undo` reverts that. NULL: the effects of `action` cannot be counted. */
    const char *effects;
    /* Scenarios to include and to exclude, by name; NULL-terminated. */
    const char *const *only, *const *except;
    int64_t patience_ms; /* for each expected event */
    int64_t limit_ms;    /* for the whole run */
    bool verbose;        /* the agent's output goes to standard error */
};

enum { CHECK_EXPECTED_MAX = 400, CHECK_SEEN_MAX = 1600 };

struct check_verdict {
    const struct check_scenario *scenario;
    enum check_end end;
    char expected[CHECK_EXPECTED_MAX]; /* if it is wrong */
    char seen[CHECK_SEEN_MAX];         /* the same; if it was skipped: the reason */
    int64_t took_ms;
};

struct check_sum {
    unsigned ok, wrong, skipped;
    bool is_broken_off; /* by a signal or the limit, or because no agent ever called */
    char agent[160];    /* its name; "": it never called */
};

/* Runs the scenarios. `told` is called after each. ERR_OK: *ret has the result, good or bad.
 * Otherwise nothing was run, and the error says why. */
enum err check_run(const struct check_settings *settings,
                   void (*told)(void *arg, const struct check_verdict *v), void *arg,
                   struct check_sum *ret, struct error *e) MUST_USE;

/* "any", "undo", "known", "effects" */
const char *check_level_text(enum check_level level);

/* A verdict as text (several lines if it is wrong), a member of a JSON array, an element of a JUnit
 * file. The agent's data is made safe for terminals and XML. */
void check_write_text(struct buf *b, const struct check_verdict *v);
void check_write_json(struct buf *b, const struct check_verdict *v);
void check_write_junit(struct buf *b, const struct check_verdict *v);

/* The text around the elements. */
void check_junit_head(struct buf *b, const struct check_sum *sum, int64_t took_ms);
void check_junit_tail(struct buf *b);

/* All scenarios, without running any: {"scenarios": [{name, level, must, why, chapter}]}. */
void check_list_json(struct buf *b);

#endif
