#ifndef AGENTS_EXEC_COMMAND_H
#define AGENTS_EXEC_COMMAND_H

/*
 * A command at work: its pipes, what came out of them so far, and when it is to end.
 *
 *     command_start --> pipes are served by epoll --> its keeper is gone --> outcome_answer
 */

#include <intact/agent.h>

#include "agents/exec/exec_config.h"
#include "agents/exec/exec_secrets.h"
#include "agents/exec/keeper.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"

/* Why it was terminated. */
enum command_end { COMMAND_BY_ITSELF, COMMAND_STOPPED, COMMAND_OUT_OF_TIME, COMMAND_FLOODS };

enum {
    COMMAND_TAIL_MAX = 8192, /* of standard error; what was before is dropped */
    COMMAND_LINE_MAX = 8192, /* of progress; longer ones are dropped */
};

struct command;

struct command_pipe {
    struct command *command;
    enum keeper_end end;
    int fd; /* ours; -1: closed */
};

struct command {
    struct link link;
    const struct exec_command *what;
    const struct exec_agent_config *agent;
    struct intact_request *request;
    struct arena arena;
    pid_t keeper;
    int epoll; /* which reports its pipes; -1: none */
    struct command_pipe pipes[KEEPER_ENDS];
    struct buf input; /* what is not written yet begins at `written` */
    size_t written;
    struct buf output, tail, line;
    bool line_is_too_long;
    bool tail_is_cut;                     /* something was dropped before it */
    struct exec_secrets secrets;          /* must not be disclosed */
    int64_t started_at, term_at, kill_at; /* CLOCK_BOOTTIME; INT64_MAX: it was done */
    int64_t give_up_at;                   /* when its keeper has to be gone; INT64_MAX: not yet */
    int64_t grace_ms;
    enum command_end end;
    struct keeper_report report; /* what 0: none came */
    bool is_over;                /* the keeper is gone */
};

/* Starts it for a request, which is kept. `files` as keeper_order has it. NULL: `why` has the
 * reason, for people; nothing was run. */
struct command *command_start(const struct exec_agent_config *agent,
                              const struct exec_command *what, struct intact_request *r,
                              const struct rlimit *files, char *why, size_t why_size);

/* Registers its pipes with epoll, with a struct command_pipe each. False: the system has no room
 * for them. */
bool command_watch(struct command *c, int epoll) MUST_USE;

/* It ends as if its keeper had been killed: its pipes cannot be watched, or the keeper does not
 * obey. */
void command_give_up(struct command *c);

/* One of its pipes is ready: reads or writes what there is, and no more than a bit. */
void command_serve(struct command_pipe *p);

/* Terminates it: SIGTERM, and SIGKILL after its grace. */
void command_terminate(struct command *c, enum command_end why);
void command_kill(struct command *c);

/* Does what is due by its times. */
void command_tick(struct command *c, int64_t now);
int64_t command_wake_at(const struct command *c);

/* It has ended: reads what is left in its pipes. False: its keeper was killed, and may have left
 * processes behind. */
bool command_drain(struct command *c) MUST_USE;
void command_free(struct command *c); /* it has ended, and its request was answered */

#endif
