#ifndef STORE_SQLITE_SQLITE_H
#define STORE_SQLITE_SQLITE_H

/*
 * The state store in one SQLite file, `DIR/intact.db` (WAL, synchronous=FULL), with the schema of
 * schema/NNNN.sql, which migrates forward at start. One connection writes and checkpoints, another
 * one reads. `DIR/lock` is held (flock) as long as the store is open; it contains the pid and,
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
 *   ERR_COPIED       it is a copy of the file that was used last
 *   ERR_CORRUPT      among others: intact.db is missing or empty, what belongs to it is there
 *   ERR_FULL, ERR_IO
 */

#include "store/store.h"

enum err sqlite_store_open(const char *dir, struct store **ret, struct error *e) MUST_USE;

/* Does what was put off: checkpoints when the WAL is long, when nothing was written for a while, or
 * when `idle`, which the store thread passes after a while without work. Returns true if something
 * is left to do then; if false the store thread may sleep until the next call of anything else. */
bool sqlite_store_maintain(struct store *s, bool idle);

/* ---- what is done with a store that no server uses ---- */

/* Declares that the store in DIR, though a copy, continues, and its original does not. All of it is
 * checked first. *ret_was_copy false: it is none, nothing was done. */
enum err sqlite_store_adopt(const char *dir, bool *ret_was_copy, struct error *e) MUST_USE;

/* Is the file at `path` a sound backup? All of it is read, nothing is changed. */
enum err sqlite_file_check(const char *path, struct error *e) MUST_USE;

/* While something takes long: so much of it is done. May be NULL. */
struct sqlite_progress {
    void (*tell)(void *arg, int64_t done, int64_t whole);
    void *arg;
};

/* Copies the store in DIR to the file at `path`, which is empty; durable. The folder stays as it
 * is. ERR_NOT_FOUND: there is no store; ERR_LOCKED: a server uses it. */
enum err sqlite_folder_backup(const char *dir, const char *path, const struct sqlite_progress *p,
                              struct error *e) MUST_USE;

struct sqlite_compact {
    int64_t before, after; /* out: bytes of the file */
};

/* Writes the whole file anew, without what is free in it, and as one that becomes shorter by itself
 * from then on. The store must not be in use elsewhere, and can only be closed afterwards. The room
 * that it takes meanwhile is looked at first (ERR_FULL). After a failure or a crash the store is as
 * it was, or compacted. */
enum err sqlite_store_compact(struct store *s, struct sqlite_compact *c, struct error *e) MUST_USE;

struct sqlite_restore {
    const char *dir;  /* made if it is missing */
    int fd;           /* the backup, read from its current position */
    const char *name; /* as people call it */
    bool is_new;      /* it goes on under an installation id of its own */
    bool replace;     /* a store that is there is moved into a new folder inside of DIR */
    char aside[64];   /* out: the name of that folder; "": there was nothing */
};

/* Makes the folder's store what the backup holds. First all of it is copied and checked; a failure
 * up to there leaves the folder as it was. Durable when it returns; after a crash the folder has
 * the old store, the new one, or none, and then no server starts in it until the restore is run
 * again. ERR_CONFLICT: there is a store, and `replace` is false. */
enum err sqlite_folder_restore(struct sqlite_restore *r, struct error *e) MUST_USE;

#endif
