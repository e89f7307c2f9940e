#include "server/internal.h"

#include <openssl/crypto.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/when.h"
#include "json/json.h"

enum { RELOAD_MS = 500, TOKENS_MAX = 10000 };

/* ---- the list in memory, and that in the store ---- */

void token_list_read(struct store *st, struct arena *a, struct token_list *ret)
{
    struct error e = {0};

    ret->err = st->ops->token_list(st, a, &ret->rows, &ret->count, &e);
}

struct reload {
    struct store_job job;
    struct server *server;
    struct arena arena;
    struct token_list list;
};

static void reload_due(struct server *sv)
{
    sv->tokens_stale = true;
    if (!uv_is_active((uv_handle_t *)&sv->tokens_timer))
        (void)uv_timer_start(&sv->tokens_timer, tokens_reload, RELOAD_MS,
                             0); /* cannot fail: it has a callback */
}

/* Whatever became of a change, what is good is what the store says. If that cannot be read now, it
 * is later, as often as it takes. */
void token_list_apply(struct server *sv, const struct token_list *list)
{
    if (list->err != ERR_OK) {
        reload_due(sv);
        return;
    }
    sv->tokens_stale = false;
    access_load(sv->access, list->rows, list->count);
    events_recheck(sv->events);
}

static void reload_run(struct store_job *j, struct store *store)
{
    struct reload *rl = CONTAINER_OF(j, struct reload, job);

    token_list_read(store, &rl->arena, &rl->list);
}

static void reload_done(struct store_job *j)
{
    struct reload *rl = CONTAINER_OF(j, struct reload, job);

    token_list_apply(rl->server, &rl->list);
    rl->server->exchange_count--;
    arena_fini(&rl->arena);
    free(rl);
}

void tokens_reload(uv_timer_t *t)
{
    struct server *sv = t->data;
    struct reload *rl = NULL;

    if (!sv->tokens_stale || sv->ended)
        return;
    rl = calloc(1, sizeof *rl);
    ASSERT(rl);
    rl->server = sv;
    rl->job = (struct store_job){.run = reload_run, .done = reload_done};
    sv->exchange_count++;
    sv->store->submit(sv->store, &rl->job);
}

/* At once, and then as often as it takes. What this node changed itself comes back here, too. */
void tokens_heard(struct server *sv, uint64_t generation)
{
    if (generation == sv->tokens_heard)
        return;
    sv->tokens_heard = generation;
    sv->tokens_stale = true;
    tokens_reload(&sv->tokens_timer);
}

enum err tokens_load(struct server *sv, struct error *e)
{
    struct store *st = sv->config.store;
    struct token_row *rows = NULL;
    struct arena a = {0};
    size_t count = 0;

    enum err err = st->ops->token_list(st, &a, &rows, &count, e);
    if (err == ERR_OK)
        access_load(sv->access, rows, count);
    arena_fini(&a);
    return err;
}

/* ---- a change ---- */

struct token_change {
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct token_row row;
    struct audit audit;
    char text[ACCESS_TOKEN_SIZE + 1]; /* "": deletes */
    struct token_list list;
    int64_t now;
    enum err err;
    struct error error;
};

static void change_run(struct store_job *j, struct store *store)
{
    struct token_change *c = CONTAINER_OF(j, struct token_change, job);

    if (c->text[0])
        c->err = store->ops->token_put(store, &c->row, false, &c->audit, &c->error);
    else
        c->err = store->ops->token_delete(store, c->row.name, c->now, &c->audit, &c->error);
    token_list_read(store, &c->arena, &c->list);
}

static void render_token(struct buf *b, struct slice name, struct slice roles, const char *text,
                         int64_t created_at, int64_t expires_at)
{
    json_open(b, '{');
    json_key(b, "name");
    json_string(b, name);
    json_key(b, "roles");
    json_raw(b, roles);
    if (text) {
        json_key(b, "token");
        json_string(b, slice_of(text));
    }
    json_key(b, "created_at");
    json_time(b, created_at);
    json_key(b, "expires_at");
    json_time(b, expires_at);
    json_close(b, '}');
}

static void answer_change(struct http_request *r, const struct token_change *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice name = c->row.name;

    if (c->err == ERR_OK && c->text[0]) {
        render_token(&b, name, c->row.roles, c->text, c->row.created_at, c->row.expires_at);
        answer_json(r, 201, &b, "Cache-Control: no-store\r\n");
        OPENSSL_cleanse(b.ptr, b.len);
    } else if (c->err == ERR_OK) {
        http_answer(r, 204, NULL, SLICE(""), NULL);
    } else if (c->err == ERR_CONFLICT && c->text[0]) {
        http_problem(r, 409, "token-exists", "there is a token \"%.*s\"; delete it first",
                     SLICE_ARG(name));
    } else if (c->err == ERR_CONFLICT) {
        http_problem(r, 409, "last-admin",
                     "\"%.*s\" is the last token with the role admin; create another one first",
                     SLICE_ARG(name));
    } else if (c->err == ERR_NOT_FOUND) {
        http_problem(r, 404, "no-such-token", "there is no token \"%.*s\"", SLICE_ARG(name));
    } else {
        answer_trouble(r, c->err, c->error.text);
    }
}

/* The commit's answer was lost, and the list has been read after it: that says what became of it.
 */
static void settle_unknown(struct token_change *c)
{
    bool there = false;

    if (c->err != ERR_UNKNOWN || c->list.err != ERR_OK)
        return;
    for (size_t i = 0; i < c->list.count; i++)
        there |= c->text[0] ? memcmp(c->list.rows[i].hash, c->row.hash, TOKEN_HASH_SIZE) == 0
                            : slice_eq(c->list.rows[i].name, c->row.name);
    if (there == (c->text[0] != 0))
        c->err = ERR_OK;
}

/* The list cannot be read now; but what is answered to be so must be so. */
static void apply_alone(const struct token_change *c)
{
    if (c->text[0])
        access_add(c->x.server->access, &c->row);
    else
        access_remove(c->x.server->access, c->row.name);
}

static void change_done(struct store_job *j)
{
    struct token_change *c = CONTAINER_OF(j, struct token_change, job);
    struct http_request *r = c->x.http;
    struct arena a = c->arena;

    settle_unknown(c);
    token_list_apply(c->x.server, &c->list);
    if (c->err == ERR_OK && c->list.err != ERR_OK)
        apply_alone(c);
    if (c->err == ERR_OK)
        log_line(LOG_WARN, "event=%.*s name=%.*s by=%.*s", SLICE_ARG(c->audit.verb),
                 SLICE_ARG(c->row.name), SLICE_ARG(c->audit.actor));
    if (r) {
        exchange_untie(&c->x);
        answer_change(r, c);
    }
    c->x.server->exchange_count--;
    c->x.server->asks_open--;
    OPENSSL_cleanse(c->text, sizeof c->text);
    arena_fini(&a);
}

static struct token_change *change_new(struct server *sv, struct slice name, const char *verb)
{
    struct arena a = {0};
    struct token_change *c = arena_alloc(&a, sizeof *c);

    *c = (struct token_change){.arena = a, .now = server_now(sv)};
    c->row.name = arena_copy(&c->arena, name);
    c->audit = (struct audit){.at = c->now,
                              .actor = arena_copy(&c->arena, sv->caller),
                              .verb = slice_of(verb),
                              .reason = c->row.name};
    c->job = (struct store_job){.run = change_run, .done = change_done};
    return c;
}

static void change_free(struct token_change *c)
{
    struct arena a = c->arena;

    arena_fini(&a);
}

static void change_submit(struct token_change *c, struct server *sv, struct http_request *r)
{
    exchange_begin(&c->x, sv, r);
    sv->exchange_count++;
    sv->asks_open++;
    sv->store->submit(sv->store, &c->job);
}

/* ---- POST /v1/tokens ---- */

/* Nobody shall be taken for somebody else in the audit. */
static bool name_ok(struct http_request *r, const struct json *j)
{
    struct slice name = json_get_text(j, "name");

    if (!is_name(name) || name.len > ACCESS_NAME_MAX) {
        http_problem(r, 422, "bad-token",
                     "name must be a text of 1 to %d characters of [A-Za-z0-9._:-]",
                     ACCESS_NAME_MAX);
        return false;
    }
    if (slice_is(name, "open") || slice_is(name, "server")) {
        http_problem(r, 422, "bad-token", "a token cannot be called \"%.*s\": the audit does",
                     SLICE_ARG(name));
        return false;
    }
    return true;
}

static bool has_text(const struct json *list, const struct json *before)
{
    for (const struct json *j = list->child; j != before; j = j->next)
        if (slice_eq(j->text, before->text))
            return true;
    return false;
}

/* Written anew: whatever they were given as, each stands there once. */
static bool read_roles(struct http_request *r, const struct json *j, struct token_change *c)
{
    const struct json *list = json_get(j, "roles");
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf reason = {0};

    if (!list || list->type != JSON_ARRAY || list->count == 0 || list->count > ACCESS_ROLES_MAX) {
        http_problem(r, 422, "bad-token", "roles must be an array of 1 to %d roles",
                     ACCESS_ROLES_MAX);
        return false;
    }
    json_open(&b, '[');
    buf_fmt(&reason, "%.*s:", SLICE_ARG(c->row.name));
    for (const struct json *one = list->child; one; one = one->next) {
        struct slice agent = SLICE_NONE;
        unsigned role = 0;
        if (one->type != JSON_STRING || !role_parse(one->text, &role, &agent)) {
            http_problem(r, 422, "bad-token",
                         "roles has %.*s, expected \"submit\", \"read\", \"operate\", \"admin\" or "
                         "\"agent:NAME\" (\"agent:*\": every agent)",
                         SLICE_ARG(one->raw));
            return false;
        }
        if (has_text(list, one))
            continue;
        c->row.admin |= role == ROLE_ADMIN;
        json_string(&b, one->text);
        buf_fmt(&reason, " %.*s", SLICE_ARG(one->text));
    }
    json_close(&b, ']');
    c->row.roles = arena_copy(&c->arena, buf_view(&b));
    c->audit.reason = arena_copy(&c->arena, buf_view(&reason));
    return true;
}

static bool read_expiry(struct http_request *r, const struct json *j, struct token_change *c)
{
    const struct json *in = json_get(j, "expires_in");
    int64_t ms = 0;

    c->row.created_at = c->now;
    if (!in || in->type == JSON_NULL)
        return true;
    if (in->type != JSON_STRING || !duration_parse(in->text, &ms) || ms <= 0) {
        http_problem(r, 422, "bad-token", "expires_in must be a duration such as \"30d\"");
        return false;
    }
    c->row.expires_at = c->now + ms;
    return true;
}

static bool has_room(struct server *sv, struct http_request *r)
{
    size_t count = 0;

    (void)access_list(sv->access, &count); /* it is the count that matters */
    if (count < TOKENS_MAX)
        return true;
    http_problem(r, 422, "bad-token", "there are %d tokens; delete some first", TOKENS_MAX);
    return false;
}

void token_post(struct server *sv, struct http_request *r)
{
    struct error e = {0};
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);

    if (!j || !members_ok(r, j, NAMES("name", "roles", "expires_in"), "a token") || !name_ok(r, j)
        || !has_room(sv, r) || !asks_have_room(sv, r, 0))
        return;
    struct token_change *c = change_new(sv, json_get_text(j, "name"), "token.create");
    if (!read_roles(r, j, c) || !read_expiry(r, j, c)) {
        change_free(c);
        return;
    }
    if (access_make(c->text, &e) != ERR_OK) {
        change_free(c);
        answer_trouble(r, e.code, e.text);
        return;
    }
    bool ok = access_hash(sv->access, slice_of(c->text), c->row.hash);
    ASSERT(ok);
    change_submit(c, sv, r);
}

/* ---- DELETE /v1/tokens/{name}, GET /v1/tokens ---- */

void token_delete(struct server *sv, struct http_request *r)
{
    struct slice name = http_segment(r, 2);

    if (!is_name(name)) {
        http_problem(r, 404, "no-such-token", "no token can be called so");
        return;
    }
    if (!asks_have_room(sv, r, 0))
        return;
    change_submit(change_new(sv, name, "token.delete"), sv, r);
}

void tokens_list(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);

    json_open(&b, '{');
    json_key(&b, "tokens");
    json_open(&b, '[');
    for (size_t i = 0; i < count; i++)
        render_token(&b, list[i].name, list[i].roles_json, NULL, list[i].created_at,
                     list[i].expires_at);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}
