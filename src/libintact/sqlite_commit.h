#ifndef LIBINTACT_SQLITE_COMMIT_H
#define LIBINTACT_SQLITE_COMMIT_H

#include <sqlite3.h>
#include <stdbool.h>

/* Whether a failed commit certainly had no effect, even after a crash: if its contents could not be
 * written, or it was not begun. If they were written and the sync failed, the outcome is
 * unknown. */
static inline bool sqlite_commit_had_no_effect(sqlite3 *db)
{
    int why = sqlite3_extended_errcode(db);
    int kind = why & 0xff;

    return kind == SQLITE_FULL || kind == SQLITE_BUSY || kind == SQLITE_CONSTRAINT
           || why == SQLITE_IOERR_WRITE;
}

#endif
