/*
 * The disk fails or is full during a backup with concurrent writes: the n-th call, once or from
 * there on. The backup is complete or absent, and accepted work remains.
 */

#include "../contract/store_world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "vfs.h"

static void rewrite(struct world *w, uint64_t revision, size_t size)
{
    CLEANUP(buf_fini) struct buf doc = {0};
    struct task_row row = a_row("big");

    buf_fmt(&doc, "{\"steps\":[],\"x\":\"%0*d\"}", (int)size, 7);
    row.doc = buf_view(&doc);
    row.revision = revision;
    must(revision == 1 ? insert_row(w, row) : update_row(w, row), "big");
}

static void save_as(int fd, const char *path)
{
    static char bytes[65536];
    ssize_t n;
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(to >= 0, "%s", path);
    while ((n = read(fd, bytes, sizeof bytes)) > 0)
        CHECK(write(to, bytes, (size_t)n) == n, "written");
    (void)close(to);
    (void)close(fd);
}

/* Steps and small changes in turn, until it is whole or has failed; *accepted of them. */
static enum err backup_beside_changes(struct world *w, int *accepted, int *ret_fd)
{
    struct backup_step b = {.fd = -1};
    char id[16];

    enum err err = w->s->ops->backup->begin(w->s, NULL, &w->e);
    for (int i = 0; err == ERR_OK && b.fd < 0; i++) {
        err = w->s->ops->backup->step(w->s, &b, &w->e);
        if (i % 4 != 0)
            continue;
        (void)snprintf(id, sizeof id, "s%d", *accepted);
        struct error e = w->e;
        if (insert_row(w, a_row(arena_copy(&w->a, slice_of(id)).ptr)) == ERR_OK)
            ++*accepted;
        w->e = e;
    }
    *ret_fd = b.fd;
    return err;
}

/* Was there an n-th call? */
static bool one(enum vfs_how how, uint32_t calls, uint32_t n, uint32_t fire, int *whole)
{
    char path[128];
    char id[16];
    void *state;
    int accepted = 0;
    int fd = -1;

    (void)world_setup_sqlite(&state);
    struct world *w = state;
    rewrite(w, 1, 400000);
    vfs_plan = (struct vfs_plan){.calls = calls, .how = how, .skip = n, .fire = fire};
    enum err err = backup_beside_changes(w, &accepted, &fd);
    bool fired = vfs_plan.fired > 0;
    vfs_plan = (struct vfs_plan){0};
    CHECK(fired || err == ERR_OK, "call %u: %s", n, w->e.text);
    CHECK((err == ERR_OK) == (fd >= 0), "call %u: whole, or an error", n);
    CHECK(err == ERR_OK || w->e.text[0], "call %u: no story", n);
    CHECK(how != VFS_FULL || err == ERR_OK || err == ERR_FULL || err == ERR_BUSY, "call %u: %s: %s",
          n, err_text(err), w->e.text);
    (void)snprintf(path, sizeof path, "%s/backup.part", w->dir);
    CHECK(access(path, F_OK) != 0, "call %u: something of it is left", n);
    if (fd >= 0) {
        ++*whole;
        (void)snprintf(path, sizeof path, "%s/copy.db", w->dir);
        save_as(fd, path);
        CHECK(sqlite_file_check(path, &w->e) == ERR_OK, "call %u: %s", n, w->e.text);
    }
    for (int i = 0; i < accepted; i++) {
        (void)snprintf(id, sizeof id, "s%d", i);
        CHECK(exists(w, id), "call %u: %s was accepted, and is lost", n, id);
    }
    must(insert_row(w, a_row("afterwards")), "afterwards");
    CHECK(backup_beside_changes(w, &accepted, &fd) == ERR_OK, "call %u: again: %s", n, w->e.text);
    (void)close(fd);
    (void)world_teardown(&state);
    return fired;
}

static void each(enum vfs_how how, uint32_t calls, uint32_t stride)
{
    static const uint32_t fires[] = {1, UINT32_MAX};
    int whole = 0;

    for (size_t i = 0; i < COUNT_OF(fires); i++) {
        uint32_t n = 0;
        while (one(how, calls, n, fires[i], &whole))
            n += stride;
        CHECK(n > 50, "only %u calls met", n);
    }
    CHECK(whole >= 2, "%d were made", whole);
}

static void any_call_may_fail(void **state)
{
    (void)state;
    each(VFS_IO, VFS_ALL, 23);
}

static void the_disk_may_get_full_at_any_write(void **state)
{
    (void)state;
    each(VFS_FULL, BIT(VFS_WRITE), 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_call_may_fail),
        cmocka_unit_test(the_disk_may_get_full_at_any_write),
    };

    vfs_register(1, false);
    return cmocka_run_group_tests_name("backup on a failing disk", tests, NULL, NULL);
}
