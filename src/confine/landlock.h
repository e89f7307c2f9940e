#ifndef CONFINE_LANDLOCK_H
#define CONFINE_LANDLOCK_H

/*
 * Landlock: a process permanently gives up access to the file system except for a few paths, for
 * itself and everything it starts. Available since Linux 5.13 unless disabled. See landlock(7).
 */

#include "base/base.h"

enum {
    LANDLOCK_READ = 1, /* files, and directory listings */
    LANDLOCK_RUN = 2,  /* programs */
    LANDLOCK_WRITE = 4 /* create, modify and remove files and folders */
};

enum { LANDLOCK_HAS_TRUNCATE = 3 }; /* since this version (Linux 6.2) it covers truncation */

int landlock_version(void); /* of the kernel; 0: unavailable */

/* Pretends that the kernel's version is at most `most`. For tests. */
void landlock_limit(int most);

/* A ruleset that allows nothing yet: a descriptor. -1, see errno. A process that is `alone` can
 * reach only itself and its descendants by signals and abstract Unix sockets, since version 6
 * (Linux 6.12). */
int landlock_open(bool alone);
/* Allows a file, or a folder with its contents. False, see errno: it is missing, or cannot be
 * opened. */
bool landlock_allow(int ruleset, const char *path, unsigned rights);

/* Applies to this thread and everything it starts from now on; set-user-id bits have no effect any
 * more. Async-signal-safe. False: see errno. */
bool landlock_enter(int ruleset) MUST_USE;

#endif
