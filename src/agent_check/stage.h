#ifndef AGENT_CHECK_STAGE_H
#define AGENT_CHECK_STAGE_H

/*
 * What scenarios play on: one or two nodes that speak the agents' protocol as docs/agents.md has
 * it, the agent's process, everything that it said, and the verdict.
 *
 * A scenario is a function that asks the agent for something and waits for what comes of it.
 * Waiting runs the loop; the calls come in meanwhile and are answered by the nodes on their own, as
 * the scenario has arranged. The first thing that is wrong decides it: from then on nothing waits
 * any more, so that a scenario need only return.
 */

#include <uv.h>

#include "agent_check/check.h"
#include "agent_check/child.h"
#include "base/arena.h"
#include "base/list.h"
#include "http/http.h"
#include "json/json.h"

/* Whose the nodes are. Always the same, so that an agent that calls by itself can be checked again;
 * and another one, of which some scenario makes the node a member. */
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
    struct http_request *http; /* NULL: it was answered, or its client went */
    enum call_kind kind;
    uint64_t number;  /* in the run, from 1 */
    unsigned open;    /* calls for work at that time, this one among them */
    int64_t came_at;  /* boot time */
    int64_t ended_at; /* 0: it is open */
    int64_t wait_ms;
    int64_t max;
    bool is_faulted;  /* it was answered as a fault says */
    bool was_left;    /* the client went before it was answered */
    bool fetches;     /* max > 0 */
    bool is_named;    /* it says for which installation it is meant */
    bool is_at_other; /* the node was one of INSTALLATION_OTHER */
    const struct json *body;
};

/* A request that the agent is asked, under its token. */
struct asked {
    struct link link;
    char token[TOKEN_SIZE], key[KEY_SIZE], task[KEY_SIZE], step[16];
    const char *action, *direction, *input;
    const char *more; /* members besides, `"a":1,"b":2`; NULL: none */
    struct asked *of; /* undo: what it undoes; NULL: its forward request never was */
    unsigned attempt;
    struct node *node; /* that gives it; NULL: any */
    int64_t left_ms;
    unsigned to_give, given;   /* how often */
    struct call *by;           /* the call with whose answer it went last */
    unsigned results;          /* how often one came */
    struct node *results_at;   /* where the last one came */
    const struct json *result; /* the first one */
    const char *outcome;       /* what is said of it; "accepted" */
    bool is_settled;           /* an outcome was answered */
    bool ended_elsewhere;      /* by its token */
    bool must_be_silent;       /* a result is wrong; why: */
    const char *silent_why;
    bool refuse_output; /* calls with an output of it are answered 422 */
    bool is_held;       /* the last call that fetched said so */
    unsigned missed;    /* calls that fetched, one after the other's answer, and did not have it */
    struct call *missed_by;
    unsigned freed; /* calls that held it, and asked for as many as if nothing were in work */
    struct call *result_by;  /* the call that brought its last result */
    struct call *settled_by; /* the call that brought its result */
    int64_t shown_at;        /* when the agent first showed that it has it; 0: not yet */
    unsigned confirmed;      /* calls that fetched after that, and held it or handed it in */
    unsigned denied;         /* the same, one after the other's answer, that did neither */
    struct call *denied_by;
    unsigned stale; /* calls, one after the other's answer, that still held it then */
    struct call *stale_by;
    unsigned after; /* results that came once the answer to that one was out */
    unsigned beats, beats_taken;
    int64_t done, first_done; /* progress.done; -1: none was told */
    bool went_back;           /* it was told to be further before */
    bool is_old;              /* of an earlier scenario */
};

enum fault_kind {
    FAULT_BREAK,     /* the connection ends without an answer */
    FAULT_STATUS,    /* such a status */
    FAULT_GARBAGE,   /* 200 with what is no JSON */
    FAULT_TRUNCATED, /* 200, and the connection ends in the middle of the answer */
    FAULT_MUTE,      /* 200 without an outcome */
};

enum fault_on { FAULT_ON_RESULTS, FAULT_ON_WORK, FAULT_ON_BEATS, FAULT_ON_REQUESTS };

struct fault {
    enum fault_on on;
    enum fault_kind kind;
    int status;
    int retry_after_s; /* 0: the answer says nothing of it */
    unsigned count;    /* so many calls */
};

struct stage {
    const struct check_settings *settings;
    uv_loop_t loop;
    uv_timer_t tick;
    uv_signal_t signals[2];
    struct node nodes[NODES_MAX];
    unsigned node_count; /* that the agent is told of */
    struct child child;
    struct child counter; /* the command of --effects */
    char bearer[64];
    char agent[160];    /* "" until the first call, if the settings do not say */
    char instance[160]; /* the same */
    char run[24];       /* part of all ids: no other run used it */
    unsigned serial;
    uint64_t call_serial;   /* of all of the run */
    uint64_t serial_before; /* when the scenario began */
    uint64_t refused_count; /* what could not be read as HTTP; and why, of the last: */
    char refused[120];
    int64_t places; /* the most that it asked for when it held nothing; in this scenario */
    bool is_interrupted;
    int64_t ends_at; /* the limit, boot time */

    /* Of the scenario that is played: */
    const struct check_scenario *scenario;
    struct check_verdict verdict;
    bool is_decided;
    bool may_end;     /* the agent's process */
    bool knows_nodes; /* it asked who is there */
    struct arena arena;
    struct link calls,
        asked; /* `asked` holds those of earlier ones, too, for one that calls itself */
    struct fault faults[FAULTS_MAX];
    unsigned fault_count;
    int64_t park_ms;   /* how long calls are parked at most */
    int64_t delay_ms;  /* answers with requests are held back so long after they are due */
    bool tells_delay;  /* in `waited_ms`: it was the server that was slow, and not the network */
    bool in_pieces;    /* answers come in chunks */
    bool is_ornate;    /* answers have members that nobody knows */
    bool is_old_clock; /* the server's clock is years behind */
    int64_t probes;    /* effects that were taken to count the others */
    char stops[4][TOKEN_SIZE]; /* tokens that answers say are to be stopped */
    unsigned stop_count;
    bool stops_in_beats; /* only there */
    bool refuses_bearer;
    const char *installation; /* of the nodes */
    char installation_line[80];
    unsigned misdirected; /* requests that named another one, and were refused */

    /* Of the run: what broke a rule, by the scenario of that rule. */
    struct {
        const struct check_scenario *rule;
        char expected[CHECK_EXPECTED_MAX], seen[CHECK_SEEN_MAX];
    } breaches[8];
    unsigned breach_count;
};

int64_t stage_now(void); /* CLOCK_BOOTTIME in ms */

/* ---- before and after scenarios ---- */

enum err stage_init(struct stage *s, const struct check_settings *settings,
                    struct error *e) MUST_USE;
void stage_fini(struct stage *s);
/* Clears what the last scenario left, opens the nodes, starts the process. False: decided. */
bool stage_begin(struct stage *s, const struct check_scenario *scenario);
void stage_end(struct stage *s);

/* ---- verdicts ---- */

/* Both do nothing once it is decided. */
void stage_wrong(struct stage *s, const char *expected, const char *seen, ...) PRINTF(3, 4);
void stage_skip(struct stage *s, const char *why, ...) PRINTF(2, 3);
/* A rule was broken, whatever the present scenario is about. The first time counts. */
void stage_breach(struct stage *s, const char *rule, const char *expected, const char *seen, ...)
    PRINTF(4, 5);

/* ---- waiting ---- */

typedef bool stage_condition(struct stage *s, const void *arg);

/* Runs until the condition holds. False: decided, since it never did. `expected` says what. */
bool stage_until(struct stage *s, stage_condition *is, const void *arg, const char *expected);

/* ---- asking ---- */

/* How a request differs from an ordinary one: forward, of the agent's action and input, an hour of
 * time, a key of its own. */
struct ask {
    const char *action, *input, *more;
    struct asked *again; /* another attempt of that one's step */
    struct asked *undo;  /* undoes that one */
    bool undo_of_nothing;
    int64_t left_ms;
    bool has_left; /* left_ms is given, even as 0 */
    struct node *node;
};

struct asked *stage_ask(struct stage *s, const struct ask *how);
/* A forward request for the step that this undo, or other request, belongs to. */
struct asked *stage_ask_forward_of(struct stage *s, const struct asked *undo);

void stage_fault(struct stage *s, enum fault_on on, enum fault_kind kind, int status,
                 int retry_after_s, unsigned count);
void stage_stop(struct stage *s, const struct asked *a);
void stage_wake(struct stage *s); /* parked calls are answered with what there is, if only stops */

/* ---- waiting for the usual ---- */

bool stage_given(struct stage *s, struct asked *a);  /* it went to the agent */
bool stage_result(struct stage *s, struct asked *a); /* a result is settled */
bool stage_output(struct stage *s, struct asked *a); /* the same, and it is an output */
bool stage_error(struct stage *s, struct asked *a);  /* or an error */
bool stage_undone(struct stage *s, struct asked *a); /* or the error "undone", in all its parts */
bool stage_passes(struct stage *s, int64_t ms);      /* so much time */
/* If it is decided, and wrong: what was expected, in the words of the scenario. */
void stage_expected(struct stage *s, const char *expected);
/* Ends what is at work and would take long. */
void stage_dismiss(struct stage *s, struct asked *a);
bool stage_dropped(struct stage *s, struct asked *a); /* the agent neither holds it nor says so */
bool stage_ended(struct stage *s, const char *expected); /* the process */
bool stage_again(struct stage *s);                       /* starts the process anew after a kill */
/* The first node goes, and one of that installation comes in its place. */
bool stage_replace(struct stage *s, const char *installation);

struct slice asked_output(const struct asked *a); /* raw; NONE if it is none */
const struct json *asked_error(const struct asked *a);
struct asked *stage_asked(struct stage *s, struct slice token); /* NULL: there is none */

/* ---- effects, in effects.c ---- */

/* How many effects there are, in units of the agent's own. False: decided. */
bool stage_effects(struct stage *s, int64_t *ret);

/* ---- nodes, in node.c ---- */

enum err node_open(struct node *n, struct error *e) MUST_USE;
void node_close(struct node *n);
/* Answers those parked calls that have something to be told, or whose time is over. */
void node_tend(struct stage *s, bool wake);

/* ---- calls, in call.c ---- */

/* Reads and judges a call for work. False: it was answered as malformed. */
bool call_read_work(struct call *c);
bool call_read_beats(struct call *c);
/* Notes what a call for work says of all that was asked: results and holding. */
void call_note(struct call *c);
/* One result, wherever it came; with what is wrong with its form told as a breach. */
void call_note_result(struct call *c, const struct json *result, struct asked *a);

#endif
