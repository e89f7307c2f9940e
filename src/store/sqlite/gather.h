#ifndef STORE_SQLITE_GATHER_H
#define STORE_SQLITE_GATHER_H

/*
 * Fewer and larger writes into a WAL. SQLite writes each page of a transaction by two calls, 24
 * bytes and the page, of which none begins where a page of the system's does. Here they are put
 * together, and written with the last write of a commit at the latest, and before the file is
 * synced, read, cut or measured.
 *
 * That is enough for others who have the WAL open, too: of a transaction they learn from the -shm,
 * which is written after it, whether the commit is synced or not. What is left of a transaction
 * that was rolled back is forgotten, and never written.
 */

#include <sqlite3.h>

/* Gathers the writes to the WAL that this connection has open, until it is closed. Takes its
 * rollback hook. Harmless if there is no WAL, or if its writes are gathered already. */
void gather_writes(sqlite3 *db);

#endif
