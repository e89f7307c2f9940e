#ifndef STORE_SQLITE_H
#define STORE_SQLITE_H

/*
 * The state store in one SQLite file, `DIR/intact.db` (WAL, synchronous=FULL), with the schema of
 * schema/NNNN.sql, which migrates forward at start. One connection writes and checkpoints, another
 * one reads. `DIR/lock` is held (flock) as long as the store is open; in it stand the pid and,
 * about once a second while something is written, the server's time.
 *
 * Should intact.db lose its place while it is open (moved, removed, another file put there), every
 * operation ends ERR_IO until that very file is back. If intact.db-wal does, what it holds goes
 * into intact.db first.
 *
 * Opening fails with a story for a person, nothing is changed in the file then:
 *   ERR_LOCKED       another server has the folder
 *   ERR_NOT_A_STORE  the file is no SQLite database, or not one of ours (application_id)
 *   ERR_NEWER        its schema is of a newer version of this program
 *   ERR_CORRUPT      among others: intact.db is missing or empty, what belongs to it is there
 *   ERR_FULL, ERR_IO
 */

#include "store/store.h"

enum err sqlite_store_open(const char *dir, struct store **ret, struct error *e) MUST_USE;

/* Does what was put off: checkpoints when the WAL is long, when nothing was written for a while, or
 * when `idle`, which the store thread says after a while without work. Returns true if something is
 * left to do then; if false the store thread may sleep until the next call of anything else. */
bool sqlite_store_maintain(struct store *s, bool idle);

#endif
