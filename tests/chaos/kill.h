#ifndef TESTS_CHAOS_KILL_H
#define TESTS_CHAOS_KILL_H

/*
 * Kills this process at one exact commit. A transaction of SQLite is committed when the last frame
 * of it is in the WAL, which is marked in its header: before that it has never been, after it the
 * next start finds it. With a plan such as "before 3" the process dies at the third commit:
 *
 *     before   the write with that frame is not made
 *     torn     a part of the frame is missing
 *     after    the frame is written; nobody has been told yet
 *
 * At the first two it lives for a moment longer, so that whatever is said too early is heard.
 */

#include "base/base.h"

/* Has vfs_writes call it. False: the text is no plan. */
bool kill_plan(const char *text);

#endif
