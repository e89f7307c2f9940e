/* Implements kill.h: follows the frames of the WAL by what is written where. How many of them a
 * write has, and whether it has whole ones, does not matter. */

#include "kill.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "vfs.h"

enum { WAL_HEADER = 32, FRAME_HEADER = 24, PAGE = 4096, FRAME = FRAME_HEADER + PAGE };
enum { HEARD_US = 100000, TORN_OFF = 1000 };

enum when { BEFORE, TORN, AFTER };

static enum when when;
static uint32_t left;   /* commits until then */
static int64_t ends_at; /* where the last frame of the transaction ends; 0: it is not known yet */
static bool due;        /* it dies when this write is done */

static bool is_wal(const char *path)
{
    size_t len = path ? strlen(path) : 0;

    return len > 4 && strcmp(path + len - 4, "-wal") == 0;
}

/* The size of the database after the transaction, which other frames do not have. */
static bool ends_transaction(const unsigned char *header)
{
    return header[4] | header[5] | header[6] | header[7];
}

/* Looks at the headers in this write. Is a commit complete with it? */
static bool commits(const unsigned char *from, int count, int64_t at)
{
    int64_t frame = at <= WAL_HEADER ? 0 : (at - WAL_HEADER + FRAME - 1) / FRAME;

    for (int64_t h = WAL_HEADER + frame * FRAME; h + FRAME_HEADER <= at + count; h += FRAME)
        if (ends_transaction(from + (h - at)))
            ends_at = h + FRAME;
    if (ends_at == 0 || at + count < ends_at)
        return false;
    ends_at = 0;
    return true;
}

/* Whoever writes holds SQLite's lock for it, so one thread at a time comes here. */
static int follow(const char *path, const void *from, int count, int64_t at, bool done)
{
    if (done && due)
        (void)raise(SIGKILL);
    if (done || !is_wal(path) || !commits(from, count, at) || --left > 0)
        return count;
    due = true;
    if (when == AFTER)
        return count;
    (void)usleep(HEARD_US);
    if (when == BEFORE)
        (void)raise(SIGKILL);
    return count > TORN_OFF ? count - TORN_OFF : 0;
}

bool kill_plan(const char *text)
{
    static const char *const names[] = {"before", "torn", "after"};
    char name[8] = "";

    if (sscanf(text, "%7s %u", name, &left) != 2 || left == 0)
        return false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(name, names[i]) == 0) {
            when = (enum when)i;
            vfs_writes = follow;
            return true;
        }
    return false;
}
