/* Implements vfs.h: wraps each method of SQLite's own VFS with the plan of faults, and reports
 * changes to disk.c. */

#include "vfs.h"

#include <errno.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/prng.h"
#include "disk.h"

struct vfs_file {
    sqlite3_file base;
    sqlite3_file *real;
    const char *path; /* SQLite's, as long as it is open; NULL: a temporary file */
    bool synced;      /* the first sync of a file makes its name durable */
};

struct vfs_plan vfs_plan;
void (*vfs_steer)(void);
int (*vfs_writes)(const char *path, const void *from, int count, int64_t at, bool done);

static sqlite3_vfs *below;
static struct prng prng;
static bool sync_for_real;

const char *vfs_call_text(enum vfs_call call)
{
    static const char *const texts[] = {
        [VFS_OPEN] = "open",         [VFS_DELETE] = "delete",        [VFS_ACCESS] = "access",
        [VFS_READ] = "read",         [VFS_WRITE] = "write",          [VFS_TRUNCATE] = "truncate",
        [VFS_SYNC] = "sync",         [VFS_FILE_SIZE] = "file_size",  [VFS_LOCK] = "lock",
        [VFS_UNLOCK] = "unlock",     [VFS_CHECK_LOCK] = "checklock", [VFS_SHM_MAP] = "shm_map",
        [VFS_SHM_LOCK] = "shm_lock",
    };
    _Static_assert(COUNT_OF(texts) == VFS_CALL_COUNT, "every call has a name");
    return texts[call];
}

static bool planned(struct vfs_plan *p, enum vfs_call call)
{
    if (!(p->calls & BIT(call)))
        return false;
    if (p->permille)
        return prng_below(&prng, 1000) < p->permille;
    if (p->fire == 0)
        return false;
    if (p->skip > 0) {
        p->skip--;
        return false;
    }
    p->fire--;
    return true;
}

/* Each call asks first. */
static bool fails(enum vfs_call call)
{
    if (disk_is_cut())
        return true;
    if (vfs_steer)
        vfs_steer();
    vfs_plan.seen++;
    if (!planned(&vfs_plan, call))
        return false;
    vfs_plan.fired++;
    return true;
}

static struct vfs_file *file_of(sqlite3_file *f)
{
    return CONTAINER_OF(f, struct vfs_file, base);
}

/* ---- reading and writing ---- */

static int file_close(sqlite3_file *base)
{
    struct vfs_file *f = file_of(base);

    return f->real->pMethods ? f->real->pMethods->xClose(f->real) : SQLITE_OK;
}

/* In the database file itself SQLite takes what cannot be read for zeros: it expects a short read
 * only at the end of a file. */
static bool may_be_short(const char *path)
{
    return path && (strstr(path, "-wal") || strstr(path, "-journal"));
}

static int file_read(sqlite3_file *base, void *to, int count, sqlite3_int64 at)
{
    struct vfs_file *f = file_of(base);
    sqlite3_file *real = f->real;

    if (!fails(VFS_READ))
        return real->pMethods->xRead(real, to, count, at);
    if (disk_is_cut() || vfs_plan.how != VFS_SHORT || !may_be_short(f->path))
        return SQLITE_IOERR_READ;
    int some = (int)prng_below(&prng, (uint32_t)count);
    memset(to, 0, (size_t)count);
    int rc = some ? real->pMethods->xRead(real, to, some, at) : SQLITE_OK;
    return rc == SQLITE_OK ? SQLITE_IOERR_SHORT_READ : rc;
}

/* Leaves whole sectors of the write behind, or bytes up to the first end of a sector. */
static void write_part(struct vfs_file *f, const void *from, int count, sqlite3_int64 at)
{
    int first = DISK_SECTOR - (int)(at % DISK_SECTOR);
    int sectors = 1 + (count - 1) / DISK_SECTOR;
    int some = (int)prng_below(&prng, (uint32_t)sectors + 1) * DISK_SECTOR;

    if (some > 0)
        some += first - DISK_SECTOR;
    some = some < count ? some : count - 1;
    if (some <= 0 || f->real->pMethods->xWrite(f->real, from, some, at) != SQLITE_OK)
        return;
    disk_wrote(f->path, from, (size_t)some, at);
}

static int file_write(sqlite3_file *base, const void *from, int count, sqlite3_int64 at)
{
    struct vfs_file *f = file_of(base);

    if (fails(VFS_WRITE)) {
        if (disk_is_cut())
            return SQLITE_IOERR_WRITE;
        write_part(f, from, count, at);
        if (vfs_plan.how == VFS_TEAR)
            (void)raise(SIGKILL);
        if (vfs_plan.how == VFS_QUOTA)
            errno = EDQUOT;
        return vfs_plan.how == VFS_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
    }
    if (vfs_writes)
        count = vfs_writes(f->path, from, count, at, false);
    int rc = f->real->pMethods->xWrite(f->real, from, count, at);
    if (rc == SQLITE_OK && vfs_writes)
        (void)vfs_writes(f->path, from, count, at, true);
    if (rc == SQLITE_OK)
        disk_wrote(f->path, from, (size_t)count, at);
    return disk_is_cut() ? SQLITE_IOERR_WRITE : rc;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    struct vfs_file *f = file_of(base);

    if (fails(VFS_TRUNCATE))
        return SQLITE_IOERR_TRUNCATE;
    int rc = f->real->pMethods->xTruncate(f->real, size);
    if (rc == SQLITE_OK)
        disk_truncated(f->path, size);
    return disk_is_cut() ? SQLITE_IOERR_TRUNCATE : rc;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct vfs_file *f = file_of(base);

    if (fails(VFS_SYNC)) {
        if (!disk_is_cut())
            disk_sync_failed(f->path);
        return SQLITE_IOERR_FSYNC;
    }
    int rc = sync_for_real ? f->real->pMethods->xSync(f->real, flags) : SQLITE_OK;
    if (rc == SQLITE_OK)
        disk_synced(f->path, !f->synced);
    f->synced = true;
    return disk_is_cut() ? SQLITE_IOERR_FSYNC : rc;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *ret)
{
    sqlite3_file *real = file_of(base)->real;

    return fails(VFS_FILE_SIZE) ? SQLITE_IOERR_FSTAT : real->pMethods->xFileSize(real, ret);
}

/* ---- locks and shared memory ---- */

static int file_lock(sqlite3_file *base, int level)
{
    sqlite3_file *real = file_of(base)->real;

    return fails(VFS_LOCK) ? SQLITE_IOERR_LOCK : real->pMethods->xLock(real, level);
}

static int file_unlock(sqlite3_file *base, int level)
{
    sqlite3_file *real = file_of(base)->real;
    bool fail = fails(VFS_UNLOCK);
    int rc = real->pMethods->xUnlock(real, level);

    return fail ? SQLITE_IOERR_UNLOCK : rc;
}

static int file_check_lock(sqlite3_file *base, int *ret)
{
    sqlite3_file *real = file_of(base)->real;

    return fails(VFS_CHECK_LOCK) ? SQLITE_IOERR_CHECKRESERVEDLOCK
                                 : real->pMethods->xCheckReservedLock(real, ret);
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
    sqlite3_file *real = file_of(base)->real;

    return disk_is_cut() ? SQLITE_NOTFOUND : real->pMethods->xFileControl(real, op, arg);
}

static int file_sector_size(sqlite3_file *base)
{
    sqlite3_file *real = file_of(base)->real;

    return real->pMethods->xSectorSize(real);
}

static int file_characteristics(sqlite3_file *base)
{
    sqlite3_file *real = file_of(base)->real;

    return real->pMethods->xDeviceCharacteristics(real);
}

static int file_shm_map(sqlite3_file *base, int page, int size, int extend, void volatile **ret)
{
    sqlite3_file *real = file_of(base)->real;

    if (!fails(VFS_SHM_MAP))
        return real->pMethods->xShmMap(real, page, size, extend, ret);
    *ret = NULL;
    return SQLITE_IOERR_SHMMAP;
}

static int file_shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    sqlite3_file *real = file_of(base)->real;
    bool release = flags & SQLITE_SHM_UNLOCK;

    if (!release && fails(VFS_SHM_LOCK))
        return SQLITE_IOERR_SHMLOCK;
    return real->pMethods->xShmLock(real, offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *base)
{
    sqlite3_file *real = file_of(base)->real;

    real->pMethods->xShmBarrier(real);
}

static int file_shm_unmap(sqlite3_file *base, int delete)
{
    sqlite3_file *real = file_of(base)->real;

    return real->pMethods->xShmUnmap(real, delete);
}

/* Version 2: without xFetch, as mmap_size is 0 anyway. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- names ---- */

static int vfs_open(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *base, int flags,
                    int *ret_flags)
{
    struct vfs_file *f = file_of(base);
    bool existed = false;
    (void)vfs;

    *f = (struct vfs_file){.path = path, .real = (sqlite3_file *)(void *)(f + 1)};
    f->real->pMethods = NULL;
    if (fails(VFS_OPEN))
        return SQLITE_CANTOPEN;
    existed = path && access(path, F_OK) == 0;
    int rc = below->xOpen(below, path, f->real, flags, ret_flags);
    if (f->real->pMethods)
        f->base.pMethods = &methods;
    if (rc == SQLITE_OK && path)
        disk_opened(path, existed);
    return rc;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_folder)
{
    (void)vfs;
    if (fails(VFS_DELETE))
        return SQLITE_IOERR_DELETE;
    int rc = below->xDelete(below, path, sync_for_real && sync_folder);
    if (rc == SQLITE_OK)
        disk_deleted(path, sync_folder);
    return disk_is_cut() ? SQLITE_IOERR_DELETE : rc;
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *ret)
{
    (void)vfs;
    return fails(VFS_ACCESS) ? SQLITE_IOERR_ACCESS : below->xAccess(below, path, flags, ret);
}

static int vfs_full_path(sqlite3_vfs *vfs, const char *path, int size, char *ret)
{
    (void)vfs;
    return below->xFullPathname(below, path, size, ret);
}

static int vfs_random(sqlite3_vfs *vfs, int count, char *ret)
{
    (void)vfs;
    return below->xRandomness(below, count, ret);
}

static int vfs_sleep(sqlite3_vfs *vfs, int us)
{
    (void)vfs;
    return below->xSleep(below, us);
}

static int vfs_time(sqlite3_vfs *vfs, double *ret)
{
    (void)vfs;
    return below->xCurrentTime(below, ret);
}

static int vfs_time_ms(sqlite3_vfs *vfs, sqlite3_int64 *ret)
{
    (void)vfs;
    return below->xCurrentTimeInt64(below, ret);
}

static int vfs_last_error(sqlite3_vfs *vfs, int size, char *ret)
{
    (void)vfs;
    return below->xGetLastError(below, size, ret);
}

void vfs_register(uint64_t seed, bool sync)
{
    static sqlite3_vfs ours = {
        .iVersion = 2,
        .zName = "faulty",
        .xOpen = vfs_open,
        .xDelete = vfs_delete,
        .xAccess = vfs_access,
        .xFullPathname = vfs_full_path,
        .xRandomness = vfs_random,
        .xSleep = vfs_sleep,
        .xGetLastError = vfs_last_error,
        .xCurrentTime = vfs_time,
        .xCurrentTimeInt64 = vfs_time_ms,
    };

    prng.state = seed;
    sync_for_real = sync;
    if (below)
        return;
    below = sqlite3_vfs_find(NULL);
    ASSERT(below && below->iVersion >= 2);
    ours.szOsFile = (int)sizeof(struct vfs_file) + below->szOsFile;
    ours.mxPathname = below->mxPathname;
    int rc = sqlite3_vfs_register(&ours, 1);
    ASSERT(rc == SQLITE_OK);
}
