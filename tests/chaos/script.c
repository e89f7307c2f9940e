/* Implements script.h: the operations, the model, and the comparison of the store with the
 * model. */

#include "script.h"

#include <ftw.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/test.h"
#include "disk.h"

/* ---- the model ---- */

static struct fact *fact_of(struct model *m, const char *id)
{
    for (size_t i = 0; i < m->count; i++)
        if (strcmp(m->facts[i].id, id) == 0)
            return &m->facts[i];
    ASSERT(m->count < SCRIPT_TASKS);
    struct fact *f = &m->facts[m->count++];
    *f = (struct fact){0};
    (void)snprintf(f->id, sizeof f->id, "%s", id);
    return f;
}

/* ---- reading ---- */

static bool failed(struct script *s, enum err err, const char *what)
{
    if (err == ERR_OK)
        return false;
    s->failures++;
    bool refused = s->may_be_refused && s->boot == 0 && err == ERR_NOT_A_STORE;
    CHECK(err_is_transient(err) || err == ERR_CORRUPT || refused, "%s: %s: %s", what, err_text(err),
          s->error.text);
    CHECK(s->error.code == err && s->error.text[0], "%s: no story is told", what);
    return true;
}

static void look(const struct script *s, const struct fact *want, enum err err,
                 const struct task_row *row)
{
    if (want->revision == 0) {
        CHECK(err == ERR_NOT_FOUND, "task %s was never accepted, and is there", want->id);
        return;
    }
    CHECK(err == ERR_OK, "task %s is lost: %s", want->id, s->error.text);
    CHECK(row->revision == want->revision, "task %s: revision %" PRIu64 ", not %" PRIu64, want->id,
          row->revision, want->revision);
    CHECK(memmem(row->doc.ptr, row->doc.len, want->mark, strlen(want->mark)), "task %s: not \"%s\"",
          want->id, want->mark);
    CHECK((row->state == TASK_PROCESSING) == want->claimed, "task %s is %s", want->id,
          task_state_text(row->state));
}

static enum err get(struct script *s, const char *id, struct task_row *ret)
{
    return s->store->ops->get(s->store, slice_of(id), &s->arena, ret, &s->error);
}

/* If batches are in doubt, reads them again, as the server does. What that finds must be durable.
 * False: they still cannot be read. */
static bool settle(struct script *s)
{
    if (!s->unread)
        return true;
    for (size_t i = 0; i < s->doubt_count; i++) {
        struct task_row row = {0};
        enum err err = get(s, s->doubts[i].id, &row);
        if (err == ERR_NOT_FOUND)
            continue;
        if (failed(s, err, "get what is in doubt"))
            return false;
        s->sure = s->doubts[i].there;
        s->doubt_count = 0;
    }
    s->unread = false;
    return true;
}

static void op_get(struct script *s, const char *id)
{
    struct task_row row = {0};

    if (!settle(s))
        return;
    enum err err = get(s, id, &row);
    if (err == ERR_NOT_FOUND || !failed(s, err, "get"))
        look(s, fact_of(&s->sure, id), err, &row);
}

static void op_list(struct script *s)
{
    const struct list_query q = {.limit = SCRIPT_TASKS};
    struct row_page page = {0};
    size_t want = 0;

    if (!settle(s)
        || failed(s, s->store->ops->list(s->store, &q, &s->arena, &page, &s->error), "list"))
        return;
    for (size_t i = 0; i < s->sure.count; i++)
        want += s->sure.facts[i].revision > 0;
    CHECK(page.count == want, "%zu tasks are listed, not %zu", page.count, want);
}

static void op_overdue(struct script *s)
{
    struct row_page page = {0};

    (void)failed(s, s->store->ops->overdue(s->store, 9, 0, 0, 10, &s->arena, &page, &s->error),
                 "overdue");
}

/* ---- writing ---- */

struct writing {
    struct model next;
    struct change changes[8];
    size_t count;
    struct claim claim;
};

static const char *copy(struct script *s, const char *text)
{
    return arena_copy(&s->arena, slice_of(text)).ptr;
}

static void write_row(struct script *s, struct writing *w, const char *id, size_t size)
{
    struct fact *f = fact_of(&w->next, id);
    bool is_new = f->revision == 0;
    char *doc = arena_bytes(&s->arena, size + 64);

    (void)snprintf(f->mark, sizeof f->mark, "mark-%u", s->batches);
    f->revision++;
    f->claimed = false;
    int len = snprintf(doc, size + 64, "{\"steps\":[],\"mark\":\"%s\",\"x\":\"%0*d\"}", f->mark,
                       (int)size, 7);
    ASSERT(w->count < COUNT_OF(w->changes));
    w->changes[w->count++] = (struct change){
        .kind = is_new ? CHANGE_INSERT : CHANGE_UPDATE,
        .wake_moved = true,
        .row = {.id = slice_of(copy(s, id)),
                .workflow = SLICE("order"),
                .version = 1,
                .revision = f->revision,
                .state = TASK_PENDING,
                .priority = 5,
                .wake_at = 5,
                .waiting_for = SLICE("nobody"),
                .rank = 100,
                .submitted_at = 1000,
                .tags = is_new ? SLICE("{\"k\":\"v\"}") : SLICE_NONE,
                .doc = {doc, (size_t)len}},
    };
}

static void give_payload(struct script *s, struct writing *w, size_t size)
{
    struct payload *p = arena_alloc(&s->arena, sizeof *p);
    char *text = arena_bytes(&s->arena, size);

    memset(text, '1', size);
    *p = (struct payload){.number = 1, .json = {text, size}};
    w->changes[w->count - 1].row.payloads = p;
    w->changes[w->count - 1].row.payload_count = 1;
}

static void request(struct script *s, struct writing *w, const char *id)
{
    struct fact *f = fact_of(&w->next, id);

    if (f->revision == 0)
        return;
    w->changes[w->count++] = (struct change){
        .kind = CHANGE_REQUEST,
        .row = {.id = slice_of(copy(s, id)),
                .revision = ++f->revision,
                .request = SLICE("{\"retry\":1}"),
                .wake_at = 7},
    };
}

/* The claim takes the one task that waits for agent "claimed". */
static void claim(struct script *s, struct writing *w, const char *id)
{
    char owner[32];

    for (size_t i = 0; i < w->count; i++)
        if (slice_is(w->changes[i].row.id, id))
            w->changes[i].row.waiting_for = SLICE("claimed");
    (void)snprintf(owner, sizeof owner, "n1/%" PRIu64, s->boot);
    w->claim = (struct claim){.kind = CLAIM_AGENT,
                              .agent = SLICE("claimed"),
                              .locked_by = slice_of(copy(s, owner)),
                              .now = 9,
                              .limit = 3};
    struct fact *f = fact_of(&w->next, id);
    f->revision++;
    f->claimed = true;
}

static void commit(struct script *s, struct writing *w)
{
    struct batch b = {.changes = w->changes,
                      .change_count = w->count,
                      .claims = &w->claim,
                      .claim_count = w->claim.limit > 0};

    enum err err = s->store->ops->commit(s->store, &b, &s->arena, &s->error);
    for (size_t i = 0; i < w->count; i++)
        CHECK(w->changes[i].outcome == err, "change %zu of a batch that ended %s: %s", i,
              err_text(err), err_text(w->changes[i].outcome));
    CHECK(w->claim.row_count == (w->claim.limit && err == ERR_OK), "claimed %zu",
          w->claim.row_count);
    if (!failed(s, err, "commit")) {
        s->sure = w->next;
        s->doubt_count = 0;
    }
    if (err != ERR_UNKNOWN)
        return;
    ASSERT(s->doubt_count < SCRIPT_DOUBTS);
    struct doubt *d = &s->doubts[s->doubt_count++];
    d->there = w->next;
    (void)snprintf(d->id, sizeof d->id, "%.15s", w->changes[0].row.id.ptr);
    s->unread = true;
}

/* A batch of several changes: `size` is that of its documents. */
static void op_commit(struct script *s, size_t size, bool with_claim)
{
    struct writing *w = calloc(1, sizeof *w);
    char id[32];

    ASSERT(w);
    if (settle(s)) {
        s->batches++;
        w->next = s->sure;
        (void)snprintf(id, sizeof id, "batch-%u", s->batches);
        write_row(s, w, id, size);
        if (with_claim)
            claim(s, w, id);
        write_row(s, w, s->batches % 2 ? "odd" : "even", size);
        write_row(s, w, "always", 10);
        request(s, w, s->batches % 2 ? "even" : "odd");
        if (s->batches % 3 == 1) {
            (void)snprintf(id, sizeof id, "payload-%u", s->batches);
            write_row(s, w, id, 10);
            give_payload(s, w, 2500);
        }
        commit(s, w);
    }
    free(w);
}

static void op_workflow(struct script *s)
{
    char text[32];
    int64_t version = 0;
    bool is_new = false;

    if (s->workflow_in_doubt)
        return;
    (void)snprintf(text, sizeof text, "text-%" PRId64, s->workflow_version + 1);
    enum err err = s->store->ops->workflow_put(s->store, SLICE("order"), slice_of(text), 1, NULL,
                                               &version, &is_new, &s->error);
    s->workflow_in_doubt = err == ERR_UNKNOWN;
    if (failed(s, err, "workflow_put"))
        return;
    CHECK(is_new && version == s->workflow_version + 1, "version %" PRId64, version);
    s->workflow_version = version;
}

/* Version 0 is the newest. */
static void look_at_workflow(struct script *s, enum err err, const struct workflow_row *row)
{
    char text[32];

    if (s->workflow_version == 0 && err == ERR_NOT_FOUND)
        return;
    CHECK(err == ERR_OK, "the workflow is lost: %s", s->error.text);
    if (s->workflow_in_doubt && row->version == s->workflow_version + 1) {
        s->workflow_version++;
        s->workflow_in_doubt = false;
    }
    (void)snprintf(text, sizeof text, "text-%" PRId64, s->workflow_version);
    CHECK(row->version == s->workflow_version && slice_is(row->text, text),
          "version %" PRId64 ", not %" PRId64, row->version, s->workflow_version);
}

static void op_workflow_get(struct script *s)
{
    struct workflow_row row = {0};
    struct workflow_row *list = NULL;
    size_t count = 0;

    enum err err =
        s->store->ops->workflow_get(s->store, SLICE("order"), 0, &s->arena, &row, &s->error);
    if (err == ERR_NOT_FOUND || !failed(s, err, "workflow_get"))
        look_at_workflow(s, err, &row);
    if (!failed(s, s->store->ops->workflow_list(s->store, &s->arena, &list, &count, &s->error),
                "workflow_list"))
        CHECK(s->workflow_in_doubt || (int64_t)count == s->workflow_version, "%zu versions", count);
}

static void op_maintain(struct script *s)
{
    (void)sqlite_store_maintain(s->store, false);
    (void)sqlite_store_maintain(s->store, true);
}

static void op_probe(struct script *s)
{
    (void)failed(s, s->store->ops->probe(s->store, &s->error), "probe");
}

/* ---- the whole ---- */

static void op_open(struct script *s)
{
    enum err err = sqlite_store_open(s->dir, &s->store, &s->error);

    CHECK((err == ERR_OK) == (s->store != NULL), "a store or an error");
    if (failed(s, err, "open"))
        return;
    CHECK(s->store->ops->boot(s->store) > s->boot, "boot %" PRIu64 " was there before",
          s->store->ops->boot(s->store));
    s->boot = s->store->ops->boot(s->store);
    s->unread = true;
    const unsigned char *secret = s->store->ops->secret(s->store);
    CHECK(!s->has_secret || memcmp(secret, s->secret, sizeof s->secret) == 0, "another secret");
    memcpy(s->secret, secret, sizeof s->secret);
    s->has_secret = true;
}

static void op_close(struct script *s)
{
    s->store->ops->close(s->store);
    s->store = NULL;
}

#define DO(op)                          \
    do {                                \
        op;                             \
        if (!s->store || disk_is_cut()) \
            return;                     \
        if (s->between)                 \
            s->between(s->arg);         \
    } while (0)

static void first_start(struct script *s)
{
    DO(op_open(s));
    DO(op_workflow(s));
    DO(op_commit(s, 10, false));
    DO(op_commit(s, 10, true));
    DO(op_overdue(s));
    DO(op_maintain(s));
    DO(op_commit(s, 4500, false));
    DO(op_get(s, "odd"));
    DO(op_close(s));
}

static void second_start(struct script *s)
{
    DO(op_open(s));
    DO(op_workflow(s));
    DO(op_workflow_get(s));
    DO(op_probe(s));
    DO(op_commit(s, 10, true));
    DO(op_maintain(s));
    DO(op_commit(s, 10, false));
    DO(op_list(s));
    DO(op_get(s, "payload-1"));
    DO(op_close(s));
}

void script_init(struct script *s, const char *dir)
{
    *s = (struct script){0};
    (void)snprintf(s->dir, sizeof s->dir, "%s", dir);
}

void script_fini(struct script *s)
{
    if (s->store)
        op_close(s);
    arena_fini(&s->arena);
}

void script_run(struct script *s)
{
    first_start(s);
    if (s->store)
        op_close(s);
    if (!disk_is_cut())
        second_start(s);
    if (s->store)
        op_close(s);
}

static int first_text(void *arg, int count, char **values, char **names)
{
    char *to = arg;

    (void)count;
    (void)names;
    (void)snprintf(to, 100, "%s", values[0]);
    return 1;
}

static void check_integrity(struct script *s)
{
    char path[120];
    char found[100] = "nothing";
    sqlite3 *db = NULL;

    (void)snprintf(path, sizeof path, "%s/intact.db", s->dir);
    CHECK(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK, "%s", path);
    (void)sqlite3_exec(db, "PRAGMA integrity_check", first_text, found, NULL);
    (void)sqlite3_close(db);
    CHECK(strcmp(found, "ok") == 0, "integrity_check: %s", found);
}

void script_verify(struct script *s)
{
    unsigned before = s->failures;

    ASSERT(!s->store);
    op_open(s);
    if (!s->store && s->boot == 0 && s->may_be_refused)
        return;
    CHECK(s->store, "it does not start again: %s", s->error.text);
    CHECK(settle(s), "%s", s->error.text);
    for (size_t i = 0; i < s->sure.count; i++) {
        struct task_row row = {0};
        const struct fact *f = &s->sure.facts[i];
        look(s, f, get(s, f->id, &row), &row);
        CHECK((row.payload_count > 0) == (strncmp(f->id, "payload", 7) == 0 && f->revision > 0),
              "task %s has %zu payloads", f->id, row.payload_count);
    }
    op_list(s);
    op_workflow_get(s);
    op_commit(s, 10, true); /* and it goes on */
    op_close(s);
    CHECK(s->failures == before, "%s", s->error.text);
    check_integrity(s);
}

bool script_folder(char *ret, size_t size)
{
    static const char *const places[] = {"/dev/shm/intact-chaos-XXXXXX",
                                         "/tmp/intact-chaos-XXXXXX"};

    for (size_t i = 0; i < COUNT_OF(places); i++) {
        ASSERT(strlen(places[i]) < size);
        memcpy(ret, places[i], strlen(places[i]) + 1);
        if (mkdtemp(ret))
            return true;
    }
    return false;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void script_remove(const char *dir)
{
    (void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
