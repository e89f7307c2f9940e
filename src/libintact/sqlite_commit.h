#ifndef LIBINTACT_SQLITE_COMMIT_H
#define LIBINTACT_SQLITE_COMMIT_H

#include <sqlite3.h>
#include <stdbool.h>

/* Of a commit that has just failed: may it be there all the same, after a crash at the worst? Not
 * if what it consists of could not be written, or it was not begun. If it was written and could not
 * be brought to the disk, nobody knows. */
static inline bool sqlite_commit_had_no_effect(sqlite3 *db)
{
    int why = sqlite3_extended_errcode(db);
    int kind = why & 0xff;

    return kind == SQLITE_FULL || kind == SQLITE_BUSY || kind == SQLITE_CONSTRAINT
           || why == SQLITE_IOERR_WRITE;
}

#endif
