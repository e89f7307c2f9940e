/*
 * Applications that write to the same file. Their transactions block ours. The store's thread waits
 * for them, but only briefly; then the batch fails for now, the trouble is reported with the name
 * of the program, and the batch is tried again. While they block us only short tries are made, so
 * that reading goes on.
 */
#include "store/sqlite/body.h"

#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/sqlite/guard.h"

enum { WAIT_MS = 1000, WAIT_AGAIN_MS = 50, SHORT_PAUSES = 2000, SHORT_US = 100, LONG_US = 2000 };

static const char *name_of(const struct sqlite_store *s)
{
    const char *name =
        s->writer.handle ? sqlite3_db_filename(s->writer.handle, "main") : NULL; /* the whole one */

    return name ? name : s->path;
}

/* Locks of files are not given in any order: between two transactions of a process that writes
 * without a pause there are some microseconds, which must be hit. */
void others_pause(int count)
{
    const struct timespec pause = {.tv_nsec = (count < SHORT_PAUSES ? SHORT_US : LONG_US) * 1000L};

    (void)nanosleep(&pause, NULL);
}

/* A server that is starting serves no client yet, so giving up early would not help. */
static int64_t patience_ms(const struct sqlite_store *s)
{
    if (!s->boot)
        return START_WAIT_MS;
    return s->busy_since ? WAIT_AGAIN_MS : WAIT_MS;
}

void others_tell_of_waiting(struct sqlite_store *s, int64_t waited_ms)
{
    char who[120];

    if (s->boot || s->told_of_waiting || waited_ms < WAIT_MS)
        return;
    s->told_of_waiting = true;
    others_tell(s, who, sizeof who);
    log_line(
        LOG_WARN,
        "event=store_waits reason=\"state store %s: %s; it starts as soon as that is over, and "
        "gives up after %d s; end that transaction, or that program\"",
        s->path, who, START_WAIT_MS / 1000);
}

/* Called by SQLite each time that it finds the lock taken. 0: it gives up. */
static int busy(void *arg, int count)
{
    struct sqlite_store *s = arg;
    int64_t now = clock_steady_ms();
    int64_t patience = patience_ms(s);

    if (count == 0)
        s->waits_until = now + patience;
    if (now >= s->waits_until) {
        if (!s->busy_since)
            s->busy_since = now - patience;
        atomic_store(&s->base.held_since, s->busy_since);
        return 0;
    }
    others_tell_of_waiting(s, now - (s->waits_until - patience));
    others_pause(count);
    return 1;
}

void others_wait_for(struct sqlite_store *s)
{
    (void)sqlite3_busy_handler(s->writer.handle, busy, s);
}

/* "process 12 (python3)" */
static void tell_process(pid_t pid, char *ret, size_t size)
{
    char path[40];
    char name[40] = "";

    (void)snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
    FILE *f = fopen(path, "re");
    if (f) {
        if (!fgets(name, sizeof name, f))
            name[0] = 0;
        name[strcspn(name, "\n")] = 0;
        (void)fclose(f);
    }
    (void)snprintf(ret, size, "process %ld%s%s%s", (long)pid, name[0] ? " (" : "", name,
                   name[0] ? ")" : "");
}

void others_tell(const struct sqlite_store *s, char *ret, size_t size)
{
    pid_t pid = guard_writer(name_of(s));
    char who[80] = "another program";

    if (pid > 0)
        tell_process(pid, who, sizeof who);
    (void)snprintf(ret, size, "%s has a transaction open in it", who);
}

int store_look_for_others(struct sqlite_store *s)
{
    CLEANUP(query_end) sqlite3_stmt *q = NULL;
    struct stat st;

    int rc = db_query(&s->writer, SQL_DATA_VERSION, &q);
    if (rc != SQLITE_OK)
        return rc;
    rc = query_step(q);
    if (rc != SQLITE_ROW)
        return rc;
    int64_t version = sqlite3_column_int64(q, 0);
    if (version == s->data_version)
        return SQLITE_OK;
    s->data_version = version;
    if (stat(s->wal_path, &st) == 0 && st.st_size / WAL_FRAME_SIZE > s->wal_frames)
        s->wal_frames = (int)min_i64(st.st_size / WAL_FRAME_SIZE, INT_MAX);
    s->quiet_at = clock_steady_ms() + QUIET_MS;
    return SQLITE_OK;
}

bool others_write(const struct sqlite_store *s)
{
    return guard_is_written(name_of(s));
}

bool others_share_index(const struct sqlite_store *s)
{
    return guard_in_place(name_of(s));
}

/* Those who have the old -wal or -shm open go on by it, and do not see what is written by the new
 * ones, nor we what they write: so they have to end first. */
void others_before_close(struct sqlite_store *s)
{
    if (!s->lost_wal || s->lost_shm_fd >= 0)
        return;
    s->lost_shm_fd = guard_dup(name_of(s));
    s->lost_wal = false;
}

enum err others_are_gone(struct sqlite_store *s, struct error *e)
{
    char who[80];

    if (s->lost_shm_fd < 0)
        return ERR_OK;
    pid_t pid = guard_user(s->lost_shm_fd);
    if (pid > 0) {
        tell_process(pid, who, sizeof who);
        return error_set(
            e, ERR_IO,
            "state store %s: its -wal or -shm was removed, and %s has the old one open; "
            "end that program: nothing is accepted until then",
            s->path, who);
    }
    (void)close(s->lost_shm_fd);
    s->lost_shm_fd = -1;
    return ERR_OK;
}
