/*
 * A backup: the store copies itself into a file, in small steps between its other work, and the
 * file is sent as the client takes it. One at a time.
 *
 *     BEGINNING -> COPYING -> SENDING -> (end)
 *                     |          |
 *                     +----------+--> the client has gone, or the server ends: given up
 *
 * The file has no name any more when it is sent: closing it is all that there is to clean up.
 */

#include "api/backup.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/room.h"
#include "base/log.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/part.h"
#include "node/store_thread.h"
#include "node/strict.h"
#include "store/job.h"

enum {
    STEP_US = 2000,     /* how long a change may have to wait for a step */
    PATIENCE = 4,       /* the others get so much more of a busy store than the backup */
    LOOK_EVERY = 64,    /* steps between two checks of the progress */
    PIECE = 128 * 1024, /* read and sent at once */
};

enum backup_phase { BACKUP_BEGINNING, BACKUP_COPYING, BACKUP_SENDING, BACKUP_DROPPING };

struct backup {
    struct exchange x;
    struct store_job job;
    enum backup_phase phase;
    bool given_up;
    char actor[ACCESS_NAME_MAX + 1], address[ADDRESS_SIZE];
    struct audit audit;
    struct backup_step step;
    unsigned patience, steps;
    int64_t copied, left; /* since and at the last look */
    int64_t longest_us;   /* of the steps */
    enum err err;
    struct error error;
    int fd; /* of the whole copy */
    uint64_t size, at;
    uint64_t began_ns;
    bool reading; /* uv_fs_read is at work on `piece` */
    uv_fs_t fs;
    char piece[PIECE];
};

static void backup_free(struct backup *b)
{
    struct server *sv = b->x.server;

    ASSERT(!b->reading);
    if (b->x.http)
        exchange_untie(&b->x);
    if (b->fd >= 0)
        (void)close(b->fd); /* it was only read */
    sv->api->backup = NULL;
    sv->load.exchanges--;
    free(b);
}

/* ---- sending ---- */

static void send_on(struct backup *b);

static void tell_end(const struct backup *b)
{
    log_line(b->at == b->size ? LOG_INFO : LOG_WARN,
             "event=backup_%s bytes=%" PRIu64 " sent=%" PRIu64 " ms=%" PRIu64,
             b->at == b->size ? "sent" : "cut_short", b->size, b->at,
             (uv_hrtime() - b->began_ns) / 1000000);
}

static void sending_ended(struct backup *b)
{
    if (b->reading)
        return; /* when that has come back */
    tell_end(b);
    backup_free(b);
}

static void piece_read(uv_fs_t *fs)
{
    struct backup *b = CONTAINER_OF(fs, struct backup, fs);
    ssize_t n = fs->result;

    uv_fs_req_cleanup(fs);
    b->reading = false;
    if (!b->x.http) {
        sending_ended(b);
        return;
    }
    if (n <= 0) {
        log_line(LOG_ERROR, "event=backup_unreadable reason=\"%s\"",
                 n < 0 ? uv_strerror((int)n) : "it is too short");
        http_stream_end(b->x.http); /* cuts it; it ends by that */
        return;
    }
    if (!http_stream_write(b->x.http, (struct slice){b->piece, (size_t)n}))
        return; /* the client has gone: `gone` is called soon */
    b->at += (uint64_t)n;
    if (http_stream_backlog(b->x.http) == 0)
        send_on(b);
}

/* The next piece; on a thread of libuv's, since a disk may be slow. */
static void send_on(struct backup *b)
{
    uint64_t left = b->size - b->at;
    uv_buf_t room = uv_buf_init(b->piece, (unsigned)(left < PIECE ? left : PIECE));

    if (left == 0) {
        http_stream_end(b->x.http);
        return;
    }
    b->reading = true;
    int rc = uv_fs_read(&b->x.server->loop, &b->fs, b->fd, &room, 1, (int64_t)b->at, piece_read);
    ASSERT(rc == 0); /* it only queues */
}

void backup_flushed(struct server *sv, struct http_request *r)
{
    struct backup *b = sv->api->backup;

    if (b && b->x.http == r && b->phase == BACKUP_SENDING && !b->reading)
        send_on(b);
}

static void send_all(struct backup *b)
{
    struct stat st;

    if (!caller_recheck(b->x.server, b->x.http)) {
        backup_free(b);
        return;
    }
    if (fstat(b->fd, &st) != 0) {
        answer_trouble(b->x.http, ERR_IO, "the backup cannot be read");
        backup_free(b);
        return;
    }
    b->phase = BACKUP_SENDING;
    b->size = (uint64_t)st.st_size;
    log_line(LOG_INFO,
             "event=backup_made bytes=%" PRIu64 " steps=%u longest_us=%" PRId64 " ms=%" PRIu64,
             b->size, b->steps, b->longest_us, (uv_hrtime() - b->began_ns) / 1000000);
    http_stream_begin_sized(b->x.http, 200, "application/vnd.sqlite3",
                            "Cache-Control: no-store\r\n", b->size);
    send_on(b);
}

/* ---- copying ---- */

static void backup_run(struct store_job *j, struct store *store)
{
    struct backup *b = CONTAINER_OF(j, struct backup, job);

    if (b->phase == BACKUP_BEGINNING) {
        b->err = store->ops->backup->begin(store, &b->audit, &b->error);
    } else if (b->phase == BACKUP_COPYING) {
        b->step.budget_us = STEP_US;
        b->err = store->ops->backup->step(store, &b->step, &b->error);
    } else {
        store->ops->backup->end(store);
    }
}

/* If the store grows half as fast as it is copied, the copy takes too long, or never ends. */
static void keep_pace(struct backup *b)
{
    b->copied += b->step.copied;
    b->longest_us = max_i64(b->longest_us, b->job.took_us);
    if (b->steps++ % LOOK_EVERY != 0)
        return;
    if (b->steps > 1 && b->left - b->step.left < b->copied / 2)
        b->patience /= 2;
    b->left = b->step.left;
    b->copied = 0;
}

static void backup_failed(struct backup *b)
{
    log_line(LOG_ERROR, "event=backup_failed reason=\"%s\"", b->error.text);
    if (b->x.http) {
        struct http_request *r = b->x.http;
        exchange_untie(&b->x);
        answer_trouble(r, b->err, b->error.text);
    }
    backup_free(b);
}

static void backup_stepped(struct store_job *j)
{
    struct backup *b = CONTAINER_OF(j, struct backup, job);
    struct server *sv = b->x.server;

    if (b->phase == BACKUP_DROPPING) {
        backup_free(b);
        return;
    }
    if (b->err != ERR_OK) {
        backup_failed(b);
        return;
    }
    if (b->phase == BACKUP_COPYING) {
        b->fd = b->step.fd;
        keep_pace(b);
    }
    if (b->fd >= 0 && !b->given_up) {
        send_all(b);
    } else if (b->fd >= 0) {
        backup_free(b);
    } else if (b->given_up) {
        b->phase = BACKUP_DROPPING;
        sv->store->submit(sv->store, &b->job);
    } else {
        b->phase = BACKUP_COPYING;
        store_thread_background(sv->thread, &b->job, b->patience);
    }
}

/* ---- its life ---- */

static void backup_gone(struct exchange *x)
{
    struct backup *b = CONTAINER_OF(x, struct backup, x);

    if (b->phase == BACKUP_SENDING) {
        sending_ended(b);
        return;
    }
    log_line(LOG_WARN, "event=backup_given_up reason=\"the client closed the connection\"");
    b->given_up = true; /* what the store works on comes back first */
}

static void backup_drain(struct server *sv)
{
    struct backup *b = sv->api->backup;
    struct http_request *r = b ? b->x.http : NULL;

    if (!r)
        return;
    if (b->phase == BACKUP_SENDING) {
        http_stream_end(r); /* cuts it, unless it is all but over */
        return;
    }
    b->given_up = true;
    exchange_untie(&b->x);
    http_problem(r, 503, "draining", "the server is ending");
}

static bool may_begin(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = r->body.len > 0 ? body_json(r, &tree) : NULL;

    if (r->body.len > 0 && (!j || !members_ok(r, j, NAMES(NULL), "the request for a backup")))
        return false;
    if (sv->draining) {
        http_problem(r, 503, "draining", "the server is ending");
        return false;
    }
    if (sv->api->backup) {
        http_problem(r, 409, "backup-running",
                     "another backup is running; try again when it has ended");
        return false;
    }
    if (!sv->config.store->ops->backup) {
        http_problem(r, 409, "no-file-to-back-up",
                     "the state store is a PostgreSQL database: back it up with pg_dump, or with a "
                     "base backup and its WAL");
        return false;
    }
    return true;
}

void backup_post(struct server *sv, struct http_request *r)
{
    if (!may_begin(sv, r))
        return;
    struct backup *b = calloc(1, sizeof *b);
    ASSERT(b);
    (void)snprintf(b->actor, sizeof b->actor, "%.*s", SLICE_ARG(sv->caller)); /* always fits */
    caller_address_write(sv, r, b->address);
    b->audit = (struct audit){.at = server_now(sv),
                              .actor = slice_of(b->actor),
                              .verb = SLICE("backup"),
                              .address = slice_of(b->address)};
    b->fd = -1;
    b->patience = PATIENCE;
    b->began_ns = uv_hrtime();
    exchange_begin(&b->x, sv, r);
    b->x.gone = backup_gone;
    sv->api->backup = b;
    sv->load.exchanges++;
    b->job = (struct store_job){.run = backup_run, .done = backup_stepped};
    log_line(LOG_INFO, "event=backup_begun by=%s", b->actor);
    sv->store->submit(sv->store, &b->job);
}

const struct part backup_part = {
    .name = "backup",
    .drain = backup_drain,
};
