/*
 * Submissions that applications insert into the database by SQL become tasks like those by HTTP:
 * each row is written as the text of a submission, and read as one. See intake/intake.h. A large
 * row is read on a thread, and so is what a batch has beyond HERE_MAX. Then a later row may be
 * submitted first.
 */

#include "background/submission_inbox.h"

#include <stdlib.h>
#include <unistd.h>

#include "background/notices.h"
#include "background/room.h"
#include "base/log.h"
#include "intake/family.h"
#include "node/node.h"
#include "node/offload.h"
#include "node/part.h"
#include "node/submission.h"
#include "store/rows/schedule.h"
#include "json/json.h"
#include "json/text.h"

enum {
    LOOK_MS = 1000,      /* for rows without a notification */
    LOOK_UNTOLD_MS = 40, /* if the store cannot notify */
    ASKS_LEFT = 1024,    /* for clients of the API */
    LOGGED_MAX = 10,     /* lines for one batch */
    ID_LOGGED_MAX = 140, /* bytes: it may be no id at all */
    HERE_MAX = 256 << 10 /* bytes of a batch that are read on the loop */
};

/* By whose turns large rows are read: no token and no task is called so. */
#define LINE SLICE("//sql")

struct inbox {
    struct server *server;
    struct intake *intake;
    uv_poll_t watch;
    bool watches;
    int fd;
    size_t here; /* bytes of the batch that were read on the loop */
};

/* One row, in the memory of its batch; what is made of it is in that of its submission. */
struct row_ask {
    void (*answered)(struct ask *a); /* first: for `child.told.user` */
    struct child_row child;
    bool is_child;
    struct submission s;
    struct intake_item *item;
    struct inbox *inbox;
    struct offload_job job;
    struct slice text;
    char problem[300]; /* of a column; "": there is none */
};

/* ---- a row as a text ---- */

static bool is_number(struct slice s)
{
    size_t i = s.len > 0 && s.ptr[0] == '-';

    if (s.len == i || s.len > 18)
        return false;
    for (; i < s.len; i++)
        if (s.ptr[i] < '0' || s.ptr[i] > '9')
            return false;
    return true;
}

static void put_text(struct buf *b, const char *key, struct slice v)
{
    if (!v.ptr)
        return;
    json_key(b, key);
    json_string(b, v);
}

static void put_number(struct buf *b, const char *key, struct slice v)
{
    if (!is_number(v)) {
        put_text(b, key, v);
        return;
    }
    json_key(b, key);
    json_raw(b, v);
}

static void put_raw(struct buf *b, const char *key, struct slice v)
{
    if (!v.ptr)
        return;
    json_key(b, key);
    json_raw(b, v);
}

static bool is_object(struct slice reply_to)
{
    return reply_to.len > 0 && reply_to.ptr[0] == '{';
}

static struct slice row_text(struct arena *a, const struct submission_row *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    put_text(&b, "workflow", r->workflow);
    put_number(&b, "version", r->version);
    put_text(&b, "id", r->id);
    put_raw(&b, "input", r->input);
    put_number(&b, "priority", r->priority);
    put_text(&b, "not_before", r->not_before);
    if (is_object(r->reply_to))
        put_raw(&b, "reply_to", r->reply_to);
    else
        put_text(&b, "reply_to", r->reply_to);
    put_raw(&b, "tags", r->tags);
    json_close(&b, '}');
    return arena_copy(a, buf_view(&b));
}

static void refuse(struct row_ask *ra, const char *fmt, ...) PRINTF(2, 3);

static void refuse(struct row_ask *ra, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    text_format(ra->problem, sizeof ra->problem, fmt, ap);
    va_end(ap);
}

/* Each column by itself: an error names its column, and none of them can add members to the
 * submission. */
static bool is_json(struct row_ask *ra, const char *name, struct slice v)
{
    const struct server *sv = ra->inbox->server;
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (!v.ptr
        || json_parse_bounded(&tree, v, (unsigned)sv->limits.json_depth, trees_max(sv), &j, &fault)
               == ERR_OK)
        return true;
    refuse(ra, "%s is not JSON: %s at byte %zu", name, fault.what, (size_t)fault.offset + 1);
    return false;
}

static bool is_text(struct row_ask *ra, const char *name, struct slice v)
{
    if (!v.ptr || text_utf8_end(v) == v.len)
        return true;
    refuse(ra, "%s is not UTF-8", name);
    return false;
}

static bool columns_ok(struct row_ask *ra)
{
    const struct submission_row *r = ra->item->row;
    size_t most = ra->inbox->server->limits.http.body_max;

    if (r->input.len > most) {
        refuse(ra, "input has %zu bytes, expected at most %zu", r->input.len, most);
        return false;
    }
    return is_text(ra, "workflow", r->workflow) && is_text(ra, "version", r->version)
           && is_text(ra, "id", r->id) && is_text(ra, "priority", r->priority)
           && is_text(ra, "not_before", r->not_before) && is_text(ra, "reply_to", r->reply_to)
           && is_json(ra, "input", r->input) && is_json(ra, "tags", r->tags)
           && (!is_object(r->reply_to) || is_json(ra, "reply_to", r->reply_to));
}

/* Any thread: what is read does not change. */
static void row_write(struct row_ask *ra)
{
    if (columns_ok(ra))
        ra->text = row_text(&ra->s.arena, ra->item->row);
}

/* ---- children that cannot be started ---- */

static void parent_answered(struct ask *a)
{
    struct row_ask *ra = a->user;

    child_refusal_told(&ra->child);
    intake_answered(ra->item, SLICE_NONE);
}

static void refuse_child(struct row_ask *ra, const char *problem)
{
    ra->answered = parent_answered;
    child_refuse(&ra->child, ra->item, problem, ra);
}

/* ---- what the intake wants of us ---- */

static void row_answered(struct submission *s)
{
    struct row_ask *ra = CONTAINER_OF(s, struct row_ask, s);
    struct arena a = s->arena;

    ASSERT(ra->item);
    if (ra->is_child && s->problem_type && child_is_refused(s->ask.outcome)) {
        refuse_child(ra, s->problem);
        server_ask(ra->inbox->server, &ra->child.told);
    } else { /* with the last one the batch may go, and ra with it */
        intake_answered(ra->item, s->problem_type ? slice_of(s->problem) : SLICE_NONE);
    }
    arena_fini(&a);
}

static void row_is_refused(struct row_ask *ra, const char *problem)
{
    if (ra->is_child)
        refuse_child(ra, problem);
    else
        ra->item->problem = arena_copy(ra->item->arena, slice_of(problem));
    arena_fini(&ra->s.arena);
}

/* False: a column is wrong. */
static bool row_is_written(struct row_ask *ra)
{
    if (!ra->problem[0])
        return true;
    ra->inbox->server->metrics.tasks_refused++;
    row_is_refused(ra, ra->problem);
    return false;
}

static void row_is_read(struct row_ask *ra, bool ok)
{
    if (ok)
        ra->item->ask = &ra->s.ask;
    else
        row_is_refused(ra, ra->s.problem);
}

/* ---- large ones ---- */

static void large_row_read(struct submission *s, bool ok)
{
    struct row_ask *ra = CONTAINER_OF(s, struct row_ask, s);

    row_is_read(ra, ok);
    intake_read(ra->item);
}

static void write_on_thread(struct offload_job *j)
{
    row_write(CONTAINER_OF(j, struct row_ask, job));
}

static void large_row_written(struct offload_job *j)
{
    struct row_ask *ra = CONTAINER_OF(j, struct row_ask, job);
    struct server *sv = ra->inbox->server;

    ASSERT(ra->item->away);
    ASSERT(sv->load.exchanges > 0);
    sv->load.exchanges--;
    if (row_is_written(ra))
        submission_read_offloaded(sv, &ra->s, ra->text, LINE, large_row_read);
    else
        intake_read(ra->item);
}

static void row_offload(struct row_ask *ra, size_t bytes)
{
    struct server *sv = ra->inbox->server;

    ASSERT(!ra->item->away);
    ra->item->away = true;
    ra->job =
        (struct offload_job){.run = write_on_thread, .done = large_row_written, .bytes = bytes};
    sv->load.exchanges++;
    offload_add(sv->bodies, LINE, OFFLOAD_SOON, &ra->job);
}

static void row_read(void *arg, struct intake_item *it)
{
    struct inbox *ib = arg;
    struct row_ask *ra = arena_alloc(it->arena, sizeof *ra);
    size_t bytes = it->row->input.len + it->row->tags.len + it->row->reply_to.len;

    *ra = (struct row_ask){.item = it, .inbox = ib, .s = {.answered = row_answered, .line = 1}};
    bool is_child = child_is_started_by(it->row);
    ra->s.made_here = is_child || slice_is(it->row->source, SCHEDULE_SOURCE);
    ra->s.ask.submitter = ra->s.made_here ? it->row->submitter : SLICE_NONE;
    if (is_child && !child_read(it, &ra->child, &ra->s.ask))
        return;
    ra->is_child = is_child;
    ra->s.trace = ra->child.origin.trace;
    if (bytes > BODY_SMALL || ib->here + bytes > HERE_MAX) {
        row_offload(ra, bytes);
        return;
    }
    ib->here += bytes;
    row_write(ra);
    if (row_is_written(ra))
        row_is_read(ra, submission_read(ib->server, &ra->s, ra->text));
}

static void row_ask(void *arg, struct intake_item *it)
{
    struct inbox *ib = arg;

    server_ask(ib->server, it->ask);
}

static size_t room(void *arg)
{
    const struct inbox *ib = arg;

    return asks_left(ib->server) > ASKS_LEFT ? asks_left(ib->server) - ASKS_LEFT : 0;
}

static void settled(void *arg, struct intake_item *const *refused, size_t count)
{
    (void)arg;
    for (size_t i = 0; i < count && i < LOGGED_MAX; i++) {
        CLEANUP(buf_fini) struct buf id = {0};
        CLEANUP(buf_fini) struct buf reason = {0};
        CLEANUP(buf_fini) struct buf source = {0};
        json_string(&id, slice_cut(refused[i]->row->id, ID_LOGGED_MAX));
        json_string(&reason, refused[i]->problem);
        log_word(&source, refused[i]->row->source);
        log_line(LOG_WARN, "event=submission_refused seq=%" PRId64 " id=%s source=%s reason=%s",
                 refused[i]->row->seq, id.ptr, source.ptr, reason.ptr);
    }
    if (count > LOGGED_MAX)
        log_line(LOG_WARN, "event=submission_refused more=%zu", count - LOGGED_MAX);
}

/* ---- notifications ---- */

static void notified(uv_poll_t *p, int status, int events)
{
    struct inbox *ib = p->data;
    (void)status;
    (void)events;

    ASSERT(ib->watches);
    (void)uv_poll_stop(p); /* until the next look, which may have to wait */
    intake_wake(ib->intake);
}

static void looks(void *arg)
{
    struct inbox *ib = arg;
    char bytes[4096];

    ib->here = 0;
    if (!ib->watches)
        return;
    while (read(ib->fd, bytes, sizeof bytes) > 0)
        ;
    (void)uv_poll_start(&ib->watch, UV_READABLE, notified);
}

static void notices(void *arg)
{
    const struct inbox *ib = arg;

    notices_part_wake(ib->server);
}

static void failed(void *arg, const struct error *e)
{
    (void)arg;
    log_line(LOG_DEBUG, "event=submissions_wait reason=\"%s\"", e->text);
}

static void watch(struct inbox *ib)
{
    struct store *st = ib->server->config.store;

    ib->fd = st->ops->watch ? st->ops->watch(st) : -1;
    ib->watches = ib->fd >= 0 && uv_poll_init(&ib->server->loop, &ib->watch, ib->fd) == 0;
    ib->watch.data = ib;
}

static enum err inbox_open(struct server *sv, struct error *e)
{
    struct inbox *ib = calloc(1, sizeof *ib);
    (void)e;

    ASSERT(ib);
    ib->server = sv;
    watch(ib);
    const struct intake_config c = {
        .store = sv->store,
        .workflows = &sv->workflows,
        .clock = {server_now_elapsing, sv},
        .shared = sv->config.store->shared,
        .look_ms = sv->config.store->shared                 ? 0
                   : ib->watches || sv->config.virtual_time ? LOOK_MS
                                                            : LOOK_UNTOLD_MS,
        .arg = ib,
        .room = room,
        .read = row_read,
        .ask = row_ask,
        .settled = settled,
        .looks = looks,
        .notices = notices,
        .failed = failed,
    };
    ib->intake = intake_new(&c);
    if (!(sv->config.roles & NODE_SCHEDULER))
        intake_drain(ib->intake);
    sv->background->inbox = ib;
    return ERR_OK;
}

static int64_t inbox_turn(struct server *sv)
{
    struct inbox *ib = sv->background->inbox;

    return server_of_elapsing(sv, intake_turn(ib->intake));
}

void inbox_surveyed(struct server *sv, const struct survey *v)
{
    intake_surveyed(sv->background->inbox->intake, v);
}

bool inbox_has_news(const struct server *sv)
{
    return intake_has_news(sv->background->inbox->intake);
}

void inbox_wake(struct server *sv)
{
    intake_wake(sv->background->inbox->intake);
}

static void inbox_drain(struct server *sv)
{
    struct inbox *ib = sv->background->inbox;

    intake_drain(ib->intake);
}

static bool inbox_is_drained(const struct server *sv)
{
    return !intake_is_busy(sv->background->inbox->intake);
}

void inbox_stats(const struct server *sv, struct intake_stats *ret)
{
    intake_stats(sv->background->inbox->intake, ret);
}

static void inbox_close(struct server *sv)
{
    struct inbox *ib = sv->background->inbox;

    if (ib->watches)
        uv_close((uv_handle_t *)&ib->watch, NULL);
}

static void inbox_free(struct server *sv)
{
    struct inbox *ib = sv->background->inbox;

    intake_free(ib->intake);
    free(ib);
}

const struct part inbox_part = {
    .name = "inbox",
    .open = inbox_open,
    .turn = inbox_turn,
    .drain = inbox_drain,
    .is_drained = inbox_is_drained,
    .close = inbox_close,
    .free = inbox_free,
};
