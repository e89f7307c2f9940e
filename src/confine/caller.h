#ifndef CONFINE_CALLER_H
#define CONFINE_CALLER_H

/*
 * The confinement of a process that calls services over the network and reads their answers: an
 * attacker who takes over the process through an answer can neither read the server's files, nor
 * write any, nor run programs. The process may read what name lookups and TLS need, and the files
 * that are registered.
 *
 *     caller_begin --> caller_reads for each file --> caller_enter, before there are threads
 *
 * Rules apply to the file that a path led to, so a replaced file cannot be read. caller_is_outdated
 * detects that, and then a new process is needed. Files in a folder of their own, named by absolute
 * paths, may be replaced: the whole folder is readable, because it contained nothing else when the
 * process began.
 */

#include "base/base.h"

enum { CALLER_FILES_MAX = 256 };

struct caller_file {
    char *path;
    uint64_t device, number; /* 0: it is missing */
    bool is_named;           /* by caller_reads */
    bool is_followed;        /* its folder is allowed: it may be replaced */
};

struct caller {
    int ruleset; /* -1: none */
    int refusal; /* the errno, if there is none */
    struct caller_file files[CALLER_FILES_MAX];
    size_t file_count;
    int64_t look_at_ms;
};

void caller_begin(struct caller *c);
void caller_reads(struct caller *c,
                  const char *path); /* a file, or a folder with its contents; NULL is allowed */

/* Logs once what could not be restricted; the process continues without it. */
void caller_enter(struct caller *c);

/* Checks every few seconds, or at once after caller_look. `now_ms` is from a monotonic clock. */
bool caller_is_outdated(struct caller *c, int64_t now_ms);
void caller_look(struct caller *c);
void caller_end(struct caller *c);

#endif
