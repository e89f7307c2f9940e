/*
 * Brings the schema of the file up to date, in one transaction, and reads the facts that are read
 * once at start.
 */
#include "store/sqlite/body.h"

#include <stdio.h>
#include <sys/random.h>

#include "base/fault.h"
#include "store/sqlite_migrations.h"

/* A migration that was released is never changed. */
const int schema_version = COUNT_OF(sqlite_migrations);

int schema_secret_make(struct db *d)
{
    unsigned char secret[SECRET_SIZE];
    sqlite3_stmt *q = NULL;

    if (fault() || getrandom(secret, sizeof secret, 0) != (ssize_t)sizeof secret)
        return SQLITE_IOERR;
    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_prepare_v2(d->handle,
                                          "INSERT INTO meta (name, value) VALUES ('secret', ?1) "
                                          "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                                          -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(q, 1, secret, sizeof secret, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = query_run(q);
    (void)sqlite3_finalize(q);
    return rc;
}

static int migrate_all(struct sqlite_store *s, int64_t version)
{
    struct db *d = &s->writer;
    char text[80];
    bool fresh = version == 0;
    bool known = version >= IDENTITY_VERSION;

    /* So a new file can become shorter (shrink.c). It must be set before the first page is made,
     * which it makes itself, and thus begins to write. */
    int rc = db_exec(d, fresh ? "BEGIN; PRAGMA auto_vacuum = INCREMENTAL" : "BEGIN IMMEDIATE");
    for (; rc == SQLITE_OK && version < schema_version; version++)
        rc = db_exec(d, sqlite_migrations[version]);
    if (rc == SQLITE_OK && fresh)
        rc = schema_secret_make(d);
    if (rc == SQLITE_OK && !known)
        rc = identity_write(d, s->path);
    (void)snprintf(text, sizeof text, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                   APPLICATION_ID, schema_version); /* always fits */
    if (rc == SQLITE_OK)
        rc = db_exec(d, text);
    if (rc == SQLITE_OK)
        rc = db_exec(d, "COMMIT");
    db_rollback(d);
    return rc;
}

/* A fresh file gets its schema, its version and our mark in one transaction of the rollback
 * journal, before it is switched to WAL: so the mark is in the file itself, where folder_file()
 * looks for it, or the file is still empty. */
enum err schema_check(struct sqlite_store *s, bool first, struct error *e)
{
    int64_t version = 0;
    int64_t id = 0;

    int rc = db_number(&s->writer, "PRAGMA user_version", &version);
    if (rc == SQLITE_OK)
        rc = db_number(&s->writer, "PRAGMA application_id", &id);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "read its version");
    if (version > schema_version)
        return error_set(e, ERR_NEWER,
                         "the state store %s has schema version %" PRId64 ", this program knows up "
                         "to %d; start the newer program, or restore a backup of before it",
                         s->path, version, schema_version);
    if (version < 0 || (version == 0 && !first) || (version > 0 && id != APPLICATION_ID))
        return error_set(e, ERR_CORRUPT,
                         "the state store %s has lost its schema; restore it from "
                         "a backup",
                         s->path);
    enum err err = first && version >= IDENTITY_VERSION ? identity_check(s, e) : ERR_OK;
    if (err != ERR_OK || version == schema_version)
        return err;
    rc = migrate_all(s, version);
    return rc == SQLITE_OK ? ERR_OK : store_failed(s, rc, e, "bring its schema up to date");
}

enum err schema_secret(struct sqlite_store *s, struct error *e)
{
    sqlite3_stmt *q = NULL;

    int rc = fault()
                 ? SQLITE_IOERR
                 : sqlite3_prepare_v2(s->writer.handle,
                                      "SELECT value FROM meta WHERE name = 'secret'", -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = query_step(q);
    if (rc == SQLITE_DONE || (rc == SQLITE_ROW && sqlite3_column_bytes(q, 0) != SECRET_SIZE))
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_ROW)
        memcpy(s->secret, sqlite3_column_blob(q, 0), SECRET_SIZE);
    (void)sqlite3_finalize(q);
    return rc == SQLITE_ROW ? ERR_OK : store_failed(s, rc, e, "read its secret");
}

/* Stores from before there were such ids get theirs when they are opened. */
static int installation_make(struct db *d)
{
    unsigned char random[16];
    char id[UUID_SIZE];
    sqlite3_stmt *q = NULL;

    if (fault() || getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return SQLITE_IOERR;
    uuid_write(random, id);
    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_prepare_v2(d->handle,
                                          "INSERT INTO meta (name, value) "
                                          "VALUES ('installation', ?1)",
                                          -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_blob(q, 1, id, UUID_SIZE - 1, SQLITE_STATIC);
    if (rc == SQLITE_OK)
        rc = query_run(q);
    (void)sqlite3_finalize(q);
    return rc;
}

/* SQLITE_DONE: there is none. */
static int installation_read(struct sqlite_store *s)
{
    sqlite3_stmt *q = NULL;

    int rc = fault() ? SQLITE_IOERR
                     : sqlite3_prepare_v2(s->writer.handle,
                                          "SELECT value FROM meta WHERE name = 'installation'", -1,
                                          &q, NULL);
    if (rc == SQLITE_OK)
        rc = query_step(q);
    if (rc == SQLITE_ROW && !uuid_read(query_text(q, 0), s->installation))
        rc = SQLITE_CORRUPT;
    (void)sqlite3_finalize(q);
    return rc;
}

enum err schema_installation(struct sqlite_store *s, struct error *e)
{
    int rc = installation_read(s);

    if (rc == SQLITE_DONE) {
        rc = installation_make(&s->writer);
        if (rc == SQLITE_OK)
            rc = installation_read(s);
    }
    return rc == SQLITE_ROW ? ERR_OK : store_failed(s, rc, e, "read the id of its installation");
}

enum err schema_boot(struct sqlite_store *s, struct error *e)
{
    int64_t boot = 0;

    int rc = db_number(&s->writer,
                       "INSERT INTO node (name, boot) VALUES ('n1', 1) "
                       "ON CONFLICT (name) DO UPDATE SET boot = boot + 1 RETURNING boot",
                       &boot);
    if (rc != SQLITE_OK)
        return store_failed(s, rc, e, "count its starts");
    s->boot = (uint64_t)boot;
    return ERR_OK;
}
