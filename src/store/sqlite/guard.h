#ifndef STORE_SQLITE_GUARD_H
#define STORE_SQLITE_GUARD_H

/*
 * A VFS over SQLite's own, for connections of the server, by which it alone checkpoints.
 *
 * Applications write into the same file. A checkpoint of one connection while another begins the
 * WAL anew loses what was committed since, in all versions of SQLite before 3.51.3. So:
 *
 *   - the lock for checkpoints is never given back while a connection of ours has the file open:
 *     those that applications begin by themselves after a commit find it taken, and give up;
 *   - a connection of ours that checkpoints holds the lock to write as well, so no other one
 *     appends to the WAL or restarts it meanwhile.
 *
 * Both are locks of SQLite's own kind, of which all versions know. Nothing else is changed: files
 * other than databases are those of the other VFS.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Its name, for sqlite3_open_v2. It wraps the VFS that is the default at that time. */
const char *guard_vfs(void);

/* How often SQLite had the disk make sure of what was written (fdatasync, or fsync), in this
 * process, of databases and their logs. From any thread. */
uint64_t guard_syncs(void);

/* What follows is of a database that a connection of ours has open; `path` is its whole name. */

/* Keeps the lock to write for this connection from now on, whether it writes or not: others wait.
 * False: another connection writes just now. It ends with the connection, too. */
bool guard_hold(sqlite3 *db);
void guard_release(sqlite3 *db); /* harmless if it is not held */

/* Whether any connection holds the lock to write, one of ours included. */
bool guard_is_written(const char *path);
/* Which other process holds the lock to write; 0: none, or unknown. */
pid_t guard_writer(const char *path);
/* Whether its -shm is still the file that its name refers to. */
bool guard_in_place(const char *path);
/* A descriptor of its -shm, or -1. It must not be closed before all connections are: that would
 * take their locks along. */
int guard_dup(const char *path);
/* The process that has that -shm open, or 0. Only once all of our connections are closed. */
pid_t guard_user(int shm_fd);

#endif
