/*
 * Keeps applications that have the file open from running checkpoints: the VFS shim holds the lock
 * for checkpoints, eight bytes of the -shm as https://sqlite.org/walformat.html describes them.
 * Whoever recovers locks a range that begins with that lock, unless it is held already.
 */
#include "store/sqlite/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/buf.h"
#include "base/fault.h"
#include "base/fd.h"
#include "base/list.h"

enum { WRITE_BYTE = 0, CHECKPOINT_BYTE = 1, BYTES_AT = 120, USED_AT = 128 };

/* A file that connections of ours have open, and the byte of its -shm that we keep. */
struct guard {
    struct link link;
    char *path;
    size_t maps;                        /* connections that have its -shm open */
    int fd;                             /* of the -shm; -1: not open. Set once, under the mutex */
    bool kept;                          /* the byte is ours; looked at by who checkpoints */
    struct guarded *_Atomic checkpoint; /* which of our connections does, or recovers; NULL: none */
};

/* What we know of an open database. It lies behind the file of the VFS below, whose functions are
 * called with it as if we were not there. */
struct guarded {
    sqlite3_io_methods methods; /* of the file: those of the VFS below, but for some of them */
    const sqlite3_io_methods *real;
    struct guard *guard; /* once it has its -shm */
    const char *path;    /* SQLite's, as long as it is open */
    bool writes;         /* it holds the lock to write, as SQLite knows ... */
    bool writes_for_it;  /* ... or because it checkpoints */
    bool holds;          /* it keeps both until guard_release() */
};

enum { REAL_SIZE_MAX = 1024 }; /* of the file of the VFS below */

static sqlite3_vfs vfs;
static sqlite3_vfs *below;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is static */
static struct link guards = {&guards, &guards};
static atomic_ullong syncs;

static struct guarded *guarded_of(sqlite3_file *f)
{
    return (struct guarded *)(void *)((char *)f + REAL_SIZE_MAX);
}

/* ---- the byte ---- */

static void guard_open(struct guard *g)
{
    CLEANUP(buf_fini) struct buf path = {0};

    (void)pthread_mutex_lock(&mutex);
    if (g->fd < 0) {
        buf_fmt(&path, "%s-shm", g->path);
        g->fd = fault() ? -1 : open(path.ptr, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    }
    (void)pthread_mutex_unlock(&mutex);
}

/* A lock of the open file: it is in the way of SQLite's own, of other processes and of this one,
 * and closing another descriptor of that file does not lose it. */
static bool guard_keep(struct guard *g)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = BYTES_AT + CHECKPOINT_BYTE,
                         .l_len = 1};

    guard_open(g);
    if (!g->kept)
        g->kept = g->fd >= 0 && !fault() && fcntl(g->fd, F_OFD_SETLK, &lock) == 0;
    return g->kept;
}

static struct guard *find(const char *path)
{
    LIST_FOREACH (l, after, &guards) {
        struct guard *g = CONTAINER_OF(l, struct guard, link);
        if (strcmp(g->path, path) == 0)
            return g;
    }
    return NULL;
}

static struct guard *guard_of(const char *path)
{
    (void)pthread_mutex_lock(&mutex);
    struct guard *g = find(path);
    if (!g) {
        g = calloc(1, sizeof *g);
        ASSERT(g);
        *g = (struct guard){.path = strdup(path), .fd = -1};
        ASSERT(g->path);
        list_push(&guards, &g->link);
    }
    g->maps++;
    (void)pthread_mutex_unlock(&mutex);
    return g;
}

/* Our descriptor goes after SQLite's: closing it would take the locks of those along. */
static void guard_drop(struct guard *g)
{
    (void)pthread_mutex_lock(&mutex);
    bool last = --g->maps == 0;
    if (last)
        link_remove(&g->link);
    (void)pthread_mutex_unlock(&mutex);
    if (!last)
        return;
    if (g->fd >= 0)
        (void)close(g->fd);
    free(g->path);
    free(g);
}

/* ---- locks of the WAL ---- */

static int real_lock(sqlite3_file *file, int at, int count, int flags)
{
    return guarded_of(file)->real->xShmLock(file, at, count, flags);
}

/* Takes or releases the lock to write. A connection that checkpoints has it already, and keeps it
 * until the checkpoint has ended. */
static int lock_write(sqlite3_file *file, int flags)
{
    struct guarded *f = guarded_of(file);

    int rc = f->writes_for_it ? SQLITE_OK : real_lock(file, WRITE_BYTE, 1, flags);
    if (rc == SQLITE_OK)
        f->writes = (flags & SQLITE_SHM_LOCK) != 0;
    return rc;
}

/* The byte for checkpoints stays ours; which of our connections has it is noted here. */
static int lock_checkpoint(sqlite3_file *file)
{
    struct guarded *f = guarded_of(file);
    struct guard *g = f->guard;

    if (f->holds)
        return SQLITE_OK;
    struct guarded *nobody = NULL;
    if (!atomic_compare_exchange_strong(&g->checkpoint, &nobody, f))
        return SQLITE_BUSY;
    int rc = guard_keep(g) ? SQLITE_OK : SQLITE_BUSY;
    if (rc == SQLITE_OK && !f->writes) {
        rc = real_lock(file, WRITE_BYTE, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE);
        f->writes_for_it = rc == SQLITE_OK;
    }
    if (rc != SQLITE_OK)
        g->checkpoint = NULL;
    return rc;
}

static void unlock_checkpoint(sqlite3_file *file)
{
    struct guarded *f = guarded_of(file);

    if (f->guard->checkpoint != f || f->holds)
        return;
    if (f->writes_for_it && !f->writes)
        (void)real_lock(file, WRITE_BYTE, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE);
    f->writes_for_it = false;
    f->guard->checkpoint = NULL;
}

/* The lock for checkpoints and `count` - 1 behind it: who recovers takes them all. */
static int lock_from_checkpoint(sqlite3_file *file, int count, int flags)
{
    int rc = SQLITE_OK;

    if (flags & SQLITE_SHM_UNLOCK) {
        if (count > 1)
            rc = real_lock(file, CHECKPOINT_BYTE + 1, count - 1, flags);
        unlock_checkpoint(file);
        return rc;
    }
    rc = lock_checkpoint(file);
    if (rc != SQLITE_OK || count == 1)
        return rc;
    rc = real_lock(file, CHECKPOINT_BYTE + 1, count - 1, flags);
    if (rc != SQLITE_OK)
        unlock_checkpoint(file);
    return rc;
}

static int shm_lock(sqlite3_file *file, int at, int count, int flags)
{
    ASSERT(guarded_of(file)->guard);
    ASSERT(at != WRITE_BYTE || count == 1);
    if (at == WRITE_BYTE)
        return lock_write(file, flags);
    if (at == CHECKPOINT_BYTE)
        return lock_from_checkpoint(file, count, flags);
    return real_lock(file, at, count, flags);
}

static sqlite3_file *file_of(sqlite3 *db)
{
    sqlite3_file *file = NULL;

    int rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    return rc == SQLITE_OK && file && file->pMethods && file->pMethods->xShmLock == shm_lock
                   && guarded_of(file)->guard
               ? file
               : NULL;
}

bool guard_hold(sqlite3 *db)
{
    sqlite3_file *file = file_of(db);

    if (!file || lock_checkpoint(file) != SQLITE_OK)
        return false;
    guarded_of(file)->holds = true;
    return true;
}

void guard_release(sqlite3 *db)
{
    sqlite3_file *file = db ? file_of(db) : NULL;

    if (!file || !guarded_of(file)->holds)
        return;
    guarded_of(file)->holds = false;
    unlock_checkpoint(file);
}

/* ---- files ---- */

/* The -shm may be there although this failed. */
static int shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **ret)
{
    struct guarded *f = guarded_of(file);

    int rc = f->real->xShmMap(file, region, size, extend, ret);
    if (!f->guard)
        f->guard = guard_of(f->path);
    guard_open(f->guard);
    return rc;
}

static int shm_unmap(sqlite3_file *file, int remove)
{
    struct guarded *f = guarded_of(file);

    int rc = f->real->xShmUnmap(file, remove);
    if (!f->guard)
        return rc;
    if (f->guard->checkpoint == f)
        f->guard->checkpoint = NULL;
    guard_drop(f->guard);
    f->guard = NULL;
    return rc;
}

static int file_sync(sqlite3_file *file, int flags)
{
    (void)atomic_fetch_add_explicit(&syncs, 1, memory_order_relaxed);
    return guarded_of(file)->real->xSync(file, flags);
}

uint64_t guard_syncs(void)
{
    return atomic_load_explicit(&syncs, memory_order_relaxed);
}

static int file_close(sqlite3_file *file)
{
    struct guarded *f = guarded_of(file);

    if (f->guard)
        (void)shm_unmap(file, 0);
    file->pMethods = f->real;
    return f->real->xClose(file);
}

static int file_open(sqlite3_vfs *ours, const char *path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    struct guarded *f = guarded_of(file);
    (void)ours;

    int rc = below->xOpen(below, path, file, flags, ret_flags);
    if (rc != SQLITE_OK || !file->pMethods || !(flags & (SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL)))
        return rc;
    *f = (struct guarded){.methods = *file->pMethods, .real = file->pMethods, .path = path};
    f->methods.xClose = file_close;
    f->methods.xSync = file_sync;
    file->pMethods = &f->methods;
    if ((flags & SQLITE_OPEN_WAL) || f->real->iVersion < 2 || !f->real->xShmMap)
        return rc;
    f->methods.xShmMap = shm_map;
    f->methods.xShmLock = shm_lock;
    f->methods.xShmUnmap = shm_unmap;
    return rc;
}

const char *guard_vfs(void)
{
    (void)pthread_mutex_lock(&mutex);
    /* Nothing queries how much memory SQLite has, and counting it takes a lock for each piece.
     * Refused if it is in use already, and then it counts on. */
    (void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    sqlite3_vfs *now = sqlite3_vfs_find(NULL);
    ASSERT(now && now->szOsFile <= REAL_SIZE_MAX);
    if (now != below) {
        below = now;
        vfs = *now;
        vfs.zName = "intact";
        vfs.pNext = NULL;
        vfs.szOsFile = REAL_SIZE_MAX + (int)sizeof(struct guarded);
        vfs.xOpen = file_open;
        int rc = sqlite3_vfs_register(&vfs, 0);
        ASSERT(rc == SQLITE_OK);
    }
    (void)pthread_mutex_unlock(&mutex);
    return vfs.zName;
}

/* ---- who else is there ---- */

/* The process that holds a conflicting lock of that byte. */
static pid_t holder_of(int fd, int at)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};

    if (fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK)
        return 0;
    return lock.l_pid;
}

bool guard_is_written(const char *path)
{
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = BYTES_AT + WRITE_BYTE,
                         .l_len = 1};

    (void)pthread_mutex_lock(&mutex);
    const struct guard *g = find(path);
    bool known = g && g->fd >= 0 && fcntl(g->fd, F_OFD_GETLK, &lock) == 0;
    (void)pthread_mutex_unlock(&mutex);
    return known && lock.l_type != F_UNLCK;
}

pid_t guard_writer(const char *path)
{
    (void)pthread_mutex_lock(&mutex);
    const struct guard *g = find(path);
    pid_t pid = g ? holder_of(g->fd, BYTES_AT + WRITE_BYTE) : 0;
    (void)pthread_mutex_unlock(&mutex);
    return pid == getpid() ? 0 : pid;
}

pid_t guard_user(int shm_fd)
{
    return holder_of(shm_fd, USED_AT);
}

int guard_dup(const char *path)
{
    (void)pthread_mutex_lock(&mutex);
    const struct guard *g = find(path);
    int fd = g && g->fd >= 0 ? fd_duplicate(g->fd) : -1;
    (void)pthread_mutex_unlock(&mutex);
    return fd;
}

bool guard_in_place(const char *path)
{
    CLEANUP(buf_fini) struct buf name = {0};
    struct stat open_one;
    struct stat named;

    (void)pthread_mutex_lock(&mutex);
    const struct guard *g = find(path);
    bool known = g && g->fd >= 0 && fstat(g->fd, &open_one) == 0;
    (void)pthread_mutex_unlock(&mutex);
    buf_fmt(&name, "%s-shm", path);
    if (!known)
        return true;
    return stat(name.ptr, &named) == 0 && named.st_ino == open_one.st_ino
           && named.st_dev == open_one.st_dev;
}
