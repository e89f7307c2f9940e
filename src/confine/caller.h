#ifndef CONFINE_CALLER_H
#define CONFINE_CALLER_H

/*
 * The confinement of a process that calls services over the network and reads what they answer:
 * whoever takes it over by an answer can neither read the server's files, nor write any, nor run
 * anything. It may read what looking up names and speaking TLS take, and the files that it is
 * told of.
 *
 *     caller_begin --> caller_reads for each file --> caller_enter, before there are threads
 *
 * Rules are for what a path led to: a file may be read as long as it is not replaced.
 * caller_is_outdated says when one was, and then only a new process helps. Files that have a folder
 * of their own, named by absolute paths, may be replaced: all of that folder may be read, since
 * nothing else was in it when the process began.
 */

#include "base/base.h"

enum { CALLER_FILES_MAX = 256 };

struct caller_file {
    char *path;
    uint64_t device, number; /* 0: it is not there */
    bool is_named;           /* by caller_reads */
    bool is_followed;        /* through its folder: it may be replaced */
};

struct caller {
    int ruleset; /* -1: there is none */
    int refusal; /* why not: errno */
    struct caller_file files[CALLER_FILES_MAX];
    size_t file_count;
    int64_t look_at_ms;
};

void caller_begin(struct caller *c);
void caller_reads(struct caller *c,
                  const char *path); /* NULL is fine; a file, or a folder with all below it */

/* Logs what could not be done: it is told once, and the process goes on without. */
void caller_enter(struct caller *c);

/* Looks once in a few seconds, or after caller_look at once. `now_ms` is of a clock that never
 * jumps. */
bool caller_is_outdated(struct caller *c, int64_t now_ms);
void caller_look(struct caller *c);
void caller_end(struct caller *c);

#endif
