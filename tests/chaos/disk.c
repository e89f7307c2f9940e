/* Implements disk.h: keeps the synced and the current image of each file, and the unsynced versions
 * of sectors in between, from which a power cut chooses. */

#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/list.h"
#include "base/prng.h"

/* One sector as some write left it, or (trunc) the file cut to `size`. */
struct version {
    int64_t sector, size; /* the file's size then, as far as this version knows */
    bool trunc;
    bool clean; /* a sync failed: no later one writes it */
    unsigned char bytes[DISK_SECTOR];
};

/* What a file holds, always whole pages, zeros behind `size`. */
struct image {
    unsigned char *bytes;
    int64_t size, cap;
};

struct disk_file {
    struct link link;
    char path[200];
    bool named;   /* its name is durable */
    bool deleted; /* but that is not durable */
    struct image synced, now;
    struct version *versions; /* since the last sync, oldest first */
    size_t count, cap;
};

bool disk_forgets;

static struct {
    struct link files;
    bool recording, cut;
    uint32_t changes, cut_after;
    struct prng prng;
} disk;

/* ---- images ---- */

static void image_reserve(struct image *m, int64_t size)
{
    int64_t cap = m->cap ? m->cap : 16 * DISK_PAGE;

    while (cap < size)
        cap *= 2;
    if (cap == m->cap)
        return;
    m->bytes = realloc(m->bytes, (size_t)cap);
    ASSERT(m->bytes);
    memset(m->bytes + m->cap, 0, (size_t)(cap - m->cap));
    m->cap = cap;
}

static void image_write(struct image *m, const void *bytes, size_t count, int64_t at)
{
    image_reserve(m, at + (int64_t)count);
    memcpy(m->bytes + at, bytes, count);
    m->size = max_i64(m->size, at + (int64_t)count);
}

static void image_truncate(struct image *m, int64_t size)
{
    if (size < m->size)
        memset(m->bytes + size, 0, (size_t)(m->size - size));
    m->size = min_i64(m->size, size);
}

static void image_apply(struct image *m, const struct version *v)
{
    if (v->trunc) {
        image_truncate(m, v->size);
        return;
    }
    int64_t at = v->sector * DISK_SECTOR;
    size_t count = (size_t)min_i64(DISK_SECTOR, v->size - at);
    image_write(m, v->bytes, count, at);
}

static void image_copy(struct image *to, const struct image *from)
{
    image_truncate(to, 0);
    if (from->size)
        image_write(to, from->bytes, (size_t)from->size, 0);
}

/* ---- files ---- */

static struct disk_file *find(const char *path)
{
    for (struct link *l = disk.files.next; l != &disk.files; l = l->next) {
        struct disk_file *f = CONTAINER_OF(l, struct disk_file, link);
        if (!f->deleted && strcmp(f->path, path) == 0)
            return f;
    }
    return NULL;
}

static void forget(struct disk_file *f)
{
    link_remove(&f->link);
    free(f->synced.bytes);
    free(f->now.bytes);
    free(f->versions);
    free(f);
}

static struct version *version_add(struct disk_file *f)
{
    if (f->count == f->cap) {
        f->cap = f->cap ? f->cap * 2 : 64;
        f->versions = realloc(f->versions, f->cap * sizeof *f->versions);
        ASSERT(f->versions);
    }
    f->versions[f->count] = (struct version){.size = f->now.size};
    return &f->versions[f->count++];
}

static void sector_add(struct disk_file *f, int64_t sector)
{
    struct version *v = version_add(f);

    v->sector = sector;
    image_reserve(&f->now, (sector + 1) * DISK_SECTOR);
    memcpy(v->bytes, f->now.bytes + sector * DISK_SECTOR, DISK_SECTOR);
}

/* Sectors of these pages that a failed sync took for clean are dirty again. */
static void redirty(struct disk_file *f, int64_t first, int64_t last)
{
    size_t count = f->count;

    for (size_t i = 0; i < count; i++) {
        struct version *v = &f->versions[i];
        int64_t page = v->sector * DISK_SECTOR / DISK_PAGE;
        if (v->trunc || !v->clean || page < first || page > last
            || v->sector * DISK_SECTOR >= f->now.size)
            continue;
        v->clean = false;
        sector_add(f, v->sector);
    }
}

/* Counts a change; true if the power goes in the middle of it. */
static bool change(void)
{
    disk.changes++;
    if (disk.cut_after == 0)
        return false;
    disk.cut_after--;
    disk.cut = disk.cut_after == 0;
    return disk.cut;
}

/* Reading it here is safe: no connection has a lock on it yet, which closing it would drop. */
void disk_opened(const char *path, bool existed)
{
    if (!disk.recording || find(path))
        return;
    struct disk_file *f = calloc(1, sizeof *f);
    ASSERT(f);
    ASSERT(strlen(path) < sizeof f->path);
    memcpy(f->path, path, strlen(path) + 1);
    list_push(&disk.files, &f->link);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ASSERT(fd >= 0);
    unsigned char page[DISK_PAGE];
    for (ssize_t n = 0; (n = read(fd, page, sizeof page)) > 0;)
        image_write(&f->synced, page, (size_t)n, f->synced.size);
    (void)close(fd);
    image_copy(&f->now, &f->synced);
    f->named = existed;
}

void disk_wrote(const char *path, const void *bytes, size_t count, int64_t at)
{
    struct disk_file *f = disk.recording && path ? find(path) : NULL;

    if (!f)
        return;
    int64_t last = (at + (int64_t)count - 1) / DISK_SECTOR;
    image_write(&f->now, bytes, count, at);
    for (int64_t sector = at / DISK_SECTOR; sector <= last; sector++)
        sector_add(f, sector);
    redirty(f, at / DISK_PAGE, (at + (int64_t)count - 1) / DISK_PAGE);
    (void)change();
}

void disk_truncated(const char *path, int64_t size)
{
    struct disk_file *f = disk.recording && path ? find(path) : NULL;

    if (!f)
        return;
    image_truncate(&f->now, size);
    version_add(f)->trunc = true;
    (void)change();
}

/* Names become durable with their folder, and there is only one. */
static void folder_synced(void)
{
    LIST_FOREACH (l, after, &disk.files) {
        struct disk_file *f = CONTAINER_OF(l, struct disk_file, link);
        f->named = true;
        if (f->deleted)
            forget(f);
    }
}

/* Keeps what a failed sync left and nobody wrote since: it may be lost for ever, or not. */
static void versions_land(struct disk_file *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->count; i++)
        if (!f->versions[i].clean)
            image_apply(&f->synced, &f->versions[i]);
    for (size_t i = 0; i < f->count; i++) {
        bool newer = false;
        for (size_t k = i + 1; k < f->count && f->versions[i].clean && !newer; k++)
            newer = !f->versions[k].clean
                    && (f->versions[k].trunc || f->versions[k].sector == f->versions[i].sector);
        if (f->versions[i].clean && !newer)
            f->versions[kept++] = f->versions[i];
    }
    f->count = kept;
}

void disk_synced(const char *path, bool with_folder)
{
    struct disk_file *f = disk.recording && path ? find(path) : NULL;

    if (!f || change())
        return;
    versions_land(f);
    if (with_folder)
        folder_synced();
}

void disk_sync_failed(const char *path)
{
    struct disk_file *f = disk.recording && path ? find(path) : NULL;

    for (size_t i = 0; f && disk_forgets && i < f->count; i++)
        f->versions[i].clean = !f->versions[i].trunc;
}

void disk_deleted(const char *path, bool with_folder)
{
    struct disk_file *f = disk.recording ? find(path) : NULL;

    if (!f)
        return;
    f->deleted = true;
    if (!change() && with_folder)
        folder_synced();
}

/* ---- the cut ---- */

void disk_record(uint64_t seed)
{
    ASSERT(!disk.recording);
    disk.recording = true;
    disk.cut = false;
    disk.changes = disk.cut_after = 0;
    disk.prng.state = seed;
    list_init(&disk.files);
}

void disk_cut_after(uint32_t changes)
{
    disk.cut_after = changes;
}

void disk_cut_now(void)
{
    ASSERT(disk.recording);
    disk.cut = true;
}

bool disk_is_cut(void)
{
    return disk.cut;
}

uint32_t disk_changes(void)
{
    return disk.changes;
}

static void put(const char *path, const struct image *m)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    ASSERT(fd >= 0);
    for (int64_t at = 0; at < m->size;) {
        ssize_t n = write(fd, m->bytes + at, (size_t)(m->size - at));
        ASSERT(n > 0);
        at += n;
    }
    (void)close(fd);
}

static void survive(struct disk_file *f)
{
    static const uint32_t chances[] = {0, 10, 50, 90, 97, 100}; /* of each sector */
    uint32_t chance = chances[prng_below(&disk.prng, COUNT_OF(chances))];

    for (size_t i = 0; i < f->count; i++)
        if (prng_chance(&disk.prng, chance))
            image_apply(&f->synced, &f->versions[i]);
    put(f->path, &f->synced);
}

void disk_return(void)
{
    char path[sizeof((struct disk_file *)0)->path + 8];

    ASSERT(disk.recording);
    for (struct link *l = disk.files.next; l != &disk.files; l = l->next) {
        struct disk_file *f = CONTAINER_OF(l, struct disk_file, link);
        (void)snprintf(path, sizeof path, "%s-shm", f->path);
        (void)unlink(path);
    }
    for (struct link *l = NULL; (l = list_first(&disk.files));) {
        struct disk_file *f = CONTAINER_OF(l, struct disk_file, link);
        bool there = f->deleted || !f->named ? prng_chance(&disk.prng, 50) : true;
        if (there && (f->named || !f->deleted))
            survive(f); /* as the same file: the store would not take another one for it */
        else
            (void)unlink(f->path);
        forget(f);
    }
    disk.recording = disk.cut = false;
    disk.cut_after = 0;
}
