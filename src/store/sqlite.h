#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

/*
 * The state store in one SQLite file, `DIR/intact.db` (WAL, synchronous=FULL), with the schema of
 * schema/NNNN.sql, which migrates forward at start. One connection writes and checkpoints, another
 * one reads. `DIR/lock` is held (flock) as long as the store is open.
 *
 * Opening fails with a story for a person, nothing is changed in the file then:
 *   ERR_LOCKED       another server has the folder
 *   ERR_NOT_A_STORE  the file is no SQLite database, or not one of ours (application_id)
 *   ERR_NEWER        its schema is of a newer version of this program
 *   ERR_CORRUPT, ERR_FULL, ERR_IO
 */

#include "store/store.h"

enum err sqlite_store_open(const char *dir, struct store **ret, struct error *e) MUST_USE;

/* Does what was put off: checkpoints when the WAL is long, or when `idle`. Called by the store thread
 * when it has nothing else to do. Returns true if it should be called again soon. */
bool sqlite_store_maintain(struct store *s, bool idle);

#endif
