#ifndef CONFINE_LANDLOCK_H
#define CONFINE_LANDLOCK_H

/*
 * Landlock: a process gives up the file system but for a few paths, for good, and with it all that
 * it starts. Linux has it since 5.13, if it is not switched off. See landlock(7).
 */

#include "base/base.h"

enum {
    LANDLOCK_READ = 1, /* files, and lists of folders */
    LANDLOCK_RUN = 2,  /* programs */
    LANDLOCK_WRITE = 4 /* files and folders are made, changed, removed */
};

enum { LANDLOCK_HAS_TRUNCATE = 3 }; /* since that version (Linux 6.2) it refuses truncation */

int landlock_version(void); /* of the kernel's; 0: there is none */

/* As if the kernel's had no later version than `most`. For tests. */
void landlock_limit(int most);

/* A ruleset that allows nothing yet: a descriptor. -1 with errno. Of a process that is `alone`
 * signals and abstract Unix sockets reach no further than itself and what it starts, since version
 * 6 (Linux 6.12). */
int landlock_open(bool alone);
/* A file, or a folder with all below it. False with errno: it is not there, or cannot be opened. */
bool landlock_allow(int ruleset, const char *path, unsigned rights);

/* For this thread and all that it starts from now on; no program gets more rights by a set-user-id
 * bit. Safe in a signal handler. False with errno. */
bool landlock_enter(int ruleset) MUST_USE;

#endif
