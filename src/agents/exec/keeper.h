#ifndef AGENTS_EXEC_KEEPER_H
#define AGENTS_EXEC_KEEPER_H

/*
 * A process between the agent and a command, which makes sure that nothing of the command outlives
 * it, or the agent:
 *
 *     agent --fork--> keeper --fork, exec--> command --> whatever it starts
 *
 * All that the command starts, and that escapes from its process group and session, becomes the
 * keeper's child when its parent ends (PR_SET_CHILD_SUBREAPER). The keeper ends when all of it is
 * gone. A pipe carries the orders to end the command; its end shows that the agent has died. If the
 * keeper itself is killed, the kernel kills the command (PR_SET_PDEATHSIG).
 *
 * Between fork and exec nothing is called that is not safe in a signal handler: the agent's process
 * has threads (of libcurl).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

/* Its ends of pipes, in the order in which the command gets the first four as 0 to 3. */
enum keeper_end {
    KEEPER_IN,
    KEEPER_OUT,
    KEEPER_ERR,
    KEEPER_PROGRESS,
    KEEPER_CONTROL,
    KEEPER_STATUS,
    KEEPER_ENDS
};

struct keeper_order {
    const char *program, *directory;
    char *const *argv, *const *envp;
    bool switches_user;
    uid_t uid;
    gid_t gid;
    const gid_t *groups;
    size_t group_count;
    int64_t memory; /* 0: no limit */
    bool no_new_privileges;
    int ruleset;         /* of confine/landlock.h; -1: none */
    struct rlimit files; /* of descriptors, as the agent had it from the start */
    int ends[KEEPER_ENDS];
};

/* Bytes on the control pipe; its end means KILL as well. */
enum { KEEPER_TERM = 'T', KEEPER_KILL = 'K' };

/* What comes on the status pipe: one of these, then its end. Without any, the keeper was killed. */
struct keeper_report {
    enum keeper_outcome { KEEPER_NOT_RUN = 1, KEEPER_ENDED } what;
    int value;      /* ENDED: the wait status; NOT_RUN: errno */
    char stage[16]; /* NOT_RUN: what failed */
};

/* Its process id, or -1 with errno. The ends stay open here, too. */
pid_t keeper_start(const struct keeper_order *o);

/* Kills and reaps all children of this thread for which `is_known` returns false. True: some may be
 * left. */
bool keeper_sweep(bool (*is_known)(void *arg, pid_t pid), void *arg);

#endif
