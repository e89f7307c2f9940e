#ifndef AGENTS_CHECK_STAGE_H
#define AGENTS_CHECK_STAGE_H

/*
 * The environment of scenarios: one or two nodes that speak the agents' protocol of docs/agents.md,
 * the agent's process, all of its calls, and the verdict.
 *
 * A scenario is a function that sends requests to the agent and waits for results. Waiting runs the
 * loop; the nodes answer calls meanwhile, as the scenario has arranged. The first error decides the
 * scenario: from then on nothing waits any more, so a scenario only has to return.
 */

#include <uv.h>

#include "agents/check/check.h"
#include "agents/check/child.h"
#include "base/arena.h"
#include "base/list.h"
#include "http/http.h"
#include "json/json.h"

/* The nodes' installation: always the same, so that an agent that calls by itself can be checked
 * again. And another one, to which some scenario moves the node. */
#define INSTALLATION_OWN   "c4ec4000-0000-4000-8000-000000000001"
#define INSTALLATION_OTHER "c4ec4000-0000-4000-8000-000000000002"

enum { NODES_MAX = 2, FAULTS_MAX = 16, TOKEN_SIZE = 48, KEY_SIZE = 96, HOUR_MS = 3600000 };

struct node {
    struct stage *stage;
    struct http_server *http; /* NULL: it is down */
    int port;
    char name[16];
    char url[64];
};

enum call_kind { CALL_WORK, CALL_BEATS, CALL_NODES, CALL_ATTEMPT, CALL_OTHER };

/* One call of the agent. */
struct call {
    struct link link;
    struct stage *stage;
    struct node *node;
    struct http_request *http; /* NULL: it was answered, or the client disconnected */
    enum call_kind kind;
    uint64_t number;  /* in the run, from 1 */
    unsigned open;    /* calls for work at that time, including this one */
    int64_t came_at;  /* CLOCK_BOOTTIME */
    int64_t ended_at; /* 0: it is open */
    int64_t wait_ms;
    int64_t max;
    bool is_faulted;  /* it was answered with a fault */
    bool was_left;    /* the client disconnected before the answer */
    bool fetches;     /* max > 0 */
    bool is_named;    /* it names the intended installation */
    bool is_at_other; /* the node belonged to INSTALLATION_OTHER */
    const struct json *body;
};

/* A request to the agent, by its token. */
struct asked {
    struct link link;
    char token[TOKEN_SIZE], key[KEY_SIZE], task[KEY_SIZE], step[16];
    const char *action, *direction, *input;
    const char *more; /* further members, `"a":1,"b":2`; NULL: none */
    struct asked *of; /* undo: the request to be undone; NULL: there was none */
    unsigned attempt;
    struct node *node; /* gives it; NULL: any */
    int64_t left_ms;
    unsigned to_give, given;   /* how often to give it, and how often it was given */
    struct call *by;           /* the call whose answer last contained it */
    unsigned results;          /* results received */
    struct node *results_at;   /* the node of the last result */
    const struct json *result; /* the first one */
    const char *outcome;       /* the answer to it; "accepted" */
    bool is_settled;           /* an outcome was sent */
    bool ended_elsewhere;      /* by its token */
    bool must_be_silent;       /* a result is wrong; the reason: */
    const char *silent_why;
    bool refuse_output; /* calls with an output for it get 422 */
    bool is_held;       /* according to the last call for work */
    unsigned missed;    /* consecutive calls for work without it */
    struct call *missed_by;
    unsigned freed; /* calls that held it, and asked for as many as if nothing were in work */
    struct call *result_by;  /* the call with its last result */
    struct call *settled_by; /* the call with its settled result */
    int64_t shown_at;        /* when the agent first showed that it has it; 0: not yet */
    unsigned confirmed;      /* later calls for work that held it or brought its result */
    unsigned denied;         /* consecutive ones that did neither */
    struct call *denied_by;
    unsigned stale; /* consecutive calls that still held it after the outcome */
    struct call *stale_by;
    unsigned after; /* results received after the answer to that one was sent */
    unsigned beats, beats_taken;
    int64_t done, first_done; /* progress.done; -1: none */
    bool went_back;           /* progress.done decreased */
    bool is_old;              /* of an earlier scenario */
};

enum fault_kind {
    FAULT_BREAK,     /* the connection ends without an answer */
    FAULT_STATUS,    /* that status */
    FAULT_GARBAGE,   /* 200 with invalid JSON */
    FAULT_TRUNCATED, /* 200, and the connection ends within the answer */
    FAULT_MUTE,      /* 200 without an outcome */
};

enum fault_on { FAULT_ON_RESULTS, FAULT_ON_WORK, FAULT_ON_BEATS, FAULT_ON_REQUESTS };

struct fault {
    enum fault_on on;
    enum fault_kind kind;
    int status;
    int retry_after_s; /* 0: no such header */
    unsigned count;    /* for that many calls */
};

struct stage {
    const struct check_settings *settings;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t signals[2];
    struct node nodes[NODES_MAX];
    unsigned node_count; /* listed for the agent */
    struct child child;
    struct child counter; /* the command of --effects */
    char bearer[64];
    char agent[160];    /* "" until the first call, unless configured */
    char instance[160]; /* the same */
    char run[24];       /* part of all ids, unique to this run */
    unsigned serial;
    uint64_t call_serial;   /* over the whole run */
    uint64_t serial_before; /* its value when the scenario began */
    uint64_t refused_count; /* input that was no valid HTTP; the last reason: */
    char refused[120];
    int64_t places; /* the most that it asked for while it held nothing, in this scenario */
    bool is_interrupted;
    int64_t ends_at; /* the limit, CLOCK_BOOTTIME */

    /* The current scenario: */
    const struct check_scenario *scenario;
    struct check_verdict verdict;
    bool is_decided;
    bool may_end;     /* the agent's process may exit */
    bool knows_nodes; /* it asked for the list of nodes */
    struct arena arena;
    struct link calls,
        asked; /* `asked` includes those of earlier scenarios for an agent that calls by itself */
    struct fault faults[FAULTS_MAX];
    unsigned fault_count;
    int64_t park_ms;           /* maximum time to park calls */
    int64_t delay_ms;          /* extra delay of answers with requests */
    bool tells_delay;          /* in `waited_ms`: as a delay of the server, not of the network */
    bool in_pieces;            /* answers are chunked */
    bool is_ornate;            /* answers contain unknown members */
    bool is_old_clock;         /* the server's clock is years behind */
    int64_t probes;            /* effects caused by counting */
    char stops[4][TOKEN_SIZE]; /* tokens to stop, listed in answers */
    unsigned stop_count;
    bool stops_in_beats; /* only in answers to heartbeats */
    bool refuses_bearer;
    const char *installation; /* of the nodes */
    char installation_line[80];
    unsigned misdirected; /* requests refused because they named another installation */

    /* The whole run: broken rules, by the scenario of the rule. */
    struct {
        const struct check_scenario *rule;
        char expected[CHECK_EXPECTED_MAX], seen[CHECK_SEEN_MAX];
    } breaches[8];
    unsigned breach_count;
};

/* ---- before and after scenarios ---- */

enum err stage_init(struct stage *s, const struct check_settings *settings,
                    struct error *e) MUST_USE;
void stage_fini(struct stage *s);
/* Clears the previous scenario, opens the nodes, starts the process. False: decided. */
bool stage_begin(struct stage *s, const struct check_scenario *scenario);
void stage_end(struct stage *s);

/* ---- verdicts ---- */

/* Both do nothing once the scenario is decided. */
void stage_wrong(struct stage *s, const char *expected, const char *seen, ...) PRINTF(3, 4);
void stage_skip(struct stage *s, const char *why, ...) PRINTF(2, 3);
/* A rule was broken, in any scenario. The first time counts. */
void stage_breach(struct stage *s, const char *rule, const char *expected, const char *seen, ...)
    PRINTF(4, 5);

/* ---- waiting ---- */

typedef bool stage_condition(struct stage *s, const void *arg);

/* Runs until the condition holds. False: decided, or it never did, which is the verdict then, with
 * `expected` as the missing event. */
bool stage_until(struct stage *s, stage_condition *is, const void *arg, const char *expected);

/* ---- requests ---- */

/* How a request differs from the default: forward, with the agent's action and input, an hour of
 * time, and its own key. */
struct ask {
    const char *action, *input, *more;
    struct asked *again; /* another attempt of that step */
    struct asked *undo;  /* undoes that one */
    bool undo_of_nothing;
    int64_t left_ms;
    bool has_left; /* left_ms is set, possibly to 0 */
    struct node *node;
};

struct asked *stage_ask(struct stage *s, const struct ask *how);
/* A forward request for the step of this undo, or other request. */
struct asked *stage_ask_forward_of(struct stage *s, const struct asked *undo);

void stage_fault(struct stage *s, enum fault_on on, enum fault_kind kind, int status,
                 int retry_after_s, unsigned count);
void stage_stop(struct stage *s, const struct asked *a);
void stage_wake(struct stage *s); /* answers parked calls with what there is, even if only stops */

/* ---- common waits ---- */

bool stage_given(struct stage *s, struct asked *a);  /* it was given to the agent */
bool stage_result(struct stage *s, struct asked *a); /* it has a settled result */
bool stage_output(struct stage *s, struct asked *a); /* the same, and an output */
bool stage_error(struct stage *s, struct asked *a);  /* or an error */
bool stage_undone(struct stage *s, struct asked *a); /* or the error "undone", complete */
bool stage_passes(struct stage *s, int64_t ms);      /* lets that time pass */
/* Replaces the expected event if the verdict is "wrong". */
void stage_expected(struct stage *s, const char *expected);
/* Ends a long request. */
void stage_dismiss(struct stage *s, struct asked *a);
bool stage_dropped(struct stage *s, struct asked *a); /* the agent neither holds nor reports it */
bool stage_ended(struct stage *s, const char *expected); /* the process has ended */
bool stage_again(struct stage *s);                       /* kills and restarts the process */
/* Replaces the first node by one of that installation. */
bool stage_replace(struct stage *s, const char *installation);

struct slice asked_output(const struct asked *a); /* raw; NONE: it has none */
const struct json *asked_error(const struct asked *a);
struct asked *stage_asked(struct stage *s, struct slice token); /* NULL: unknown */

/* ---- effects, in effects.c ---- */

/* The number of effects, in the agent's unit. False: decided. */
bool stage_effects(struct stage *s, int64_t *ret);

/* ---- nodes, in node.c ---- */

enum err node_open(struct node *n, struct error *e) MUST_USE;
void node_close(struct node *n);
/* Answers parked calls that have something to report, or whose time is up. */
void node_tend(struct stage *s, bool wake);

/* ---- calls, in call.c ---- */

/* Reads and checks a call for work. False: it was answered as malformed. */
bool call_read_work(struct call *c);
bool call_read_beats(struct call *c);
/* Evaluates what a call for work reports about all requests: results and holding. */
void call_note(struct call *c);
/* Evaluates one result from any call; an invalid form is reported as a breach. */
void call_note_result(struct call *c, const struct json *result, struct asked *a);

#endif
