/*
 * A VFS shim that gathers the many small writes of a transaction to the WAL into one write. It
 * changes when bytes are written, never which or in what order.
 */
#include "store/sqlite/gather.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/fault.h"

enum { BYTES_MAX = 128 * 1024, FRAME_HEADER = 24 };

/* Replaces the methods of a file, and calls those with the file unchanged. */
struct gathered {
    sqlite3_io_methods methods; /* those of the file, but for six of them */
    const sqlite3_io_methods *real;
    sqlite3_int64 at;      /* where in the file ... */
    int count;             /* ... so many bytes are to be written */
    bool ends;             /* the next write is the page of a frame that commits */
    sqlite3_int64 read_at; /* where the last call read, or -1 if it did not read */
    char bytes[BYTES_MAX];
};

static struct gathered *gathered_of(sqlite3_file *file)
{
    return (struct gathered *)(void *)(uintptr_t)file->pMethods; /* its first member */
}

/* What fails is forgotten: the transaction fails with it, and the next one writes to the same
 * place. */
static int flush(sqlite3_file *file)
{
    struct gathered *g = gathered_of(file);
    int count = g->count;

    g->count = 0;
    if (count == 0)
        return SQLITE_OK;
    return fault() ? SQLITE_IOERR_WRITE : g->real->xWrite(file, g->bytes, count, g->at);
}

/* A frame's header, which is written alone before its page, has in its second word the size of the
 * database after the commit; 0: more frames follow. See "WAL format" of SQLite's file format. */
static bool is_commit_header(const void *bytes, int count)
{
    static const char none[4];

    return count == FRAME_HEADER && memcmp((const char *)bytes + 4, none, sizeof none) != 0;
}

static int take(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    struct gathered *g = gathered_of(file);
    bool follows = g->count > 0 && at == g->at + g->count && count <= BYTES_MAX - g->count;
    int rc = follows ? SQLITE_OK : flush(file);

    if (rc != SQLITE_OK)
        return rc;
    if (count > BYTES_MAX)
        return g->real->xWrite(file, bytes, count, at);
    if (g->count == 0)
        g->at = at;
    memcpy(g->bytes + g->count, bytes, (size_t)count);
    g->count += count;
    return SQLITE_OK;
}

/* A commit that is not synced (synchronous = NORMAL) is shown to other connections right after its
 * last write: so that is not kept back. It is the page of the commit's frame; or, if pages had left
 * the memory before, the header of that frame, which SQLite has then read again to change it. */
static int gather_write(sqlite3_file *file, const void *bytes, int count, sqlite3_int64 at)
{
    struct gathered *g = gathered_of(file);
    bool last = g->ends || at == g->read_at;

    g->ends = is_commit_header(bytes, count);
    g->read_at = -1;
    int rc = take(file, bytes, count, at);
    return rc == SQLITE_OK && last ? flush(file) : rc;
}

static int gather_sync(sqlite3_file *file, int flags)
{
    int rc = flush(file);

    return rc == SQLITE_OK ? gathered_of(file)->real->xSync(file, flags) : rc;
}

static int gather_read(sqlite3_file *file, void *bytes, int count, sqlite3_int64 at)
{
    int rc = flush(file);

    gathered_of(file)->read_at = at;
    return rc == SQLITE_OK ? gathered_of(file)->real->xRead(file, bytes, count, at) : rc;
}

static int gather_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int rc = flush(file);

    return rc == SQLITE_OK ? gathered_of(file)->real->xTruncate(file, size) : rc;
}

static int gather_size(sqlite3_file *file, sqlite3_int64 *ret)
{
    int rc = flush(file);

    return rc == SQLITE_OK ? gathered_of(file)->real->xFileSize(file, ret) : rc;
}

static sqlite3_file *wal_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &file);

    return rc == SQLITE_OK && file && file->pMethods ? file : NULL;
}

/* What is left belongs to no transaction that was committed. */
static int gather_close(sqlite3_file *file)
{
    struct gathered *g = gathered_of(file);

    file->pMethods = g->real;
    free(g);
    return file->pMethods->xClose(file);
}

/* The lock to write is gone by now: another commit may have written its pages where ours were to
 * go. */
static void forget(void *db)
{
    sqlite3_file *file = wal_of(db);

    if (file && file->pMethods->xClose == gather_close)
        gathered_of(file)->count = 0;
}

void gather_writes(sqlite3 *db)
{
    sqlite3_file *file = wal_of(db);

    if (!file || file->pMethods->xClose == gather_close)
        return;
    struct gathered *g = malloc(sizeof *g);
    ASSERT(g);
    g->methods = *file->pMethods;
    g->real = file->pMethods;
    g->at = 0;
    g->count = 0;
    g->ends = false;
    g->read_at = -1;
    g->methods.xClose = gather_close;
    g->methods.xRead = gather_read;
    g->methods.xWrite = gather_write;
    g->methods.xTruncate = gather_truncate;
    g->methods.xSync = gather_sync;
    g->methods.xFileSize = gather_size;
    file->pMethods = &g->methods;
    (void)sqlite3_rollback_hook(db, forget, db);
}
