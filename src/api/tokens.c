/*
 * /v1/tokens: creates, rotates, limits, lists and deletes tokens. Each change is written with its
 * audit entry; what is good afterwards is read from the store (background/token_list.c).
 */

#include <openssl/crypto.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "background/admin_token.h"
#include "background/token_list.h"
#include "background/unknown_tokens.h"
#include "base/log.h"
#include "base/names.h"
#include "base/when.h"
#include "node/access.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { RELOAD_MS = 500, TOKENS_MAX = 10000, ROTATE_TRIES = 5 };

#define EXPIRY_MS INT64_C(7776000000) /* 90 days, by default */
#define KEEP_MS   INT64_C(3600000)
#define KEEP_MAX  INT64_C(2592000000) /* 30 days */

/* ---- the list in memory, and that in the store ---- */

/* ---- a change ---- */

enum change_of { TOKEN_CREATE, TOKEN_DELETE, TOKEN_ROTATE, TOKEN_LIMIT };

struct token_change {
    enum change_of kind;
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct token_row row;
    struct audit audit;
    char text[ACCESS_TOKEN_SIZE + 1]; /* of a new one, or what it is from now on */
    /* TOKEN_ROTATE: how long the text before stays good, and how long the new one is: -1: as long
     * as that one was. */
    int64_t keep_ms, expires_ms;
    struct token_list list;
    int64_t now;
    enum err err;
    struct error error;
    /* TOKEN_ROTATE: the admin's file holds the text before, so that it gets the new one. */
    enum { FILE_OTHER, FILE_PREPARED, FILE_REPLACED, FILE_FAILED } file;
    struct error file_error;
};

static const struct token_row *row_of(const struct token_list *list, struct slice name)
{
    for (size_t i = 0; list->err == ERR_OK && i < list->count; i++)
        if (slice_eq(list->rows[i].name, name))
            return &list->rows[i];
    return NULL;
}

/* The token gets a new text, and keeps the old one for a while, but not beyond its own end. */
static struct token_row rotated(const struct token_change *c, const struct token_row *t)
{
    struct token_row row = *t;
    int64_t lifetime = t->expires_at ? t->expires_at - t->created_at : 0;

    memcpy(row.hash, c->row.hash, sizeof row.hash);
    memcpy(row.previous_hash, t->hash, sizeof row.previous_hash);
    row.previous_until = c->now + c->keep_ms;
    if (t->expires_at != 0)
        row.previous_until = min_i64(row.previous_until, t->expires_at);
    row.created_at = c->now;
    if (c->expires_ms >= 0)
        lifetime = c->expires_ms;
    row.expires_at = lifetime ? c->now + lifetime : 0;
    return row;
}

static struct token_row limited(const struct token_change *c, const struct token_row *t)
{
    struct token_row row = *t;

    row.limits = c->row.limits;
    return row;
}

static const char *file_of(const struct token_change *c)
{
    return c->x.server->config.token_file;
}

/* The rotation goes on without the file: its caller has the text. */
static void prepare_file(struct token_change *c, const struct token_row *t)
{
    if (c->kind != TOKEN_ROTATE || c->file != FILE_OTHER || !file_of(c)
        || !admin_token_holds(file_of(c), t->hash))
        return;
    enum err err = admin_token_prepare(file_of(c), c->text, &c->file_error);
    c->file = err == ERR_OK ? FILE_PREPARED : FILE_FAILED;
}

/* The list was read after the change: it shows the outcome if nothing else does. */
static void settle_file(struct token_change *c)
{
    const struct token_row *t = row_of(&c->list, c->row.name);
    bool good = c->err == ERR_OK || (t && memcmp(t->hash, c->row.hash, sizeof t->hash) == 0);

    if (c->file != FILE_PREPARED || (c->err == ERR_UNKNOWN && c->list.err != ERR_OK))
        return; /* the next start settles it */
    enum err err = admin_token_settle(file_of(c), good, &c->file_error);
    if (good)
        c->file = err == ERR_OK ? FILE_REPLACED : FILE_FAILED;
}

static void log_file(const struct token_change *c)
{
    if (c->file == FILE_REPLACED)
        admin_token_renewed(c->x.server);
    if (c->file == FILE_FAILED && c->err == ERR_OK)
        log_line(LOG_WARN,
                 "event=admin_token_not_written file=%s reason=\"%s\" advice=\"write the new text "
                 "of the token to it\"",
                 file_of(c), c->file_error.text);
}

/* Would there be no admin once the rotated token has expired? It expires earlier than before, and
 * no other one outlives it. */
static bool ends_last_admin(const struct token_change *c, const struct token_row *before,
                            const struct token_row *after)
{
    if (!after->admin || after->expires_at == 0
        || (before->expires_at != 0 && before->expires_at <= after->expires_at))
        return false;
    for (size_t i = 0; i < c->list.count; i++) {
        const struct token_row *t = &c->list.rows[i];
        if (t->admin && !slice_eq(t->name, after->name)
            && (t->expires_at == 0 || t->expires_at > after->expires_at))
            return false;
    }
    return true;
}

/* Another request may change it meanwhile, or delete it: then it is read again. */
static void replace_run(struct token_change *c, struct store *store)
{
    c->err = ERR_NOT_FOUND;
    for (int i = 0; i < ROTATE_TRIES && c->err == ERR_NOT_FOUND; i++) {
        token_list_read(store, &c->arena, &c->list);
        const struct token_row *t = row_of(&c->list, c->row.name);
        if (c->list.err != ERR_OK)
            c->err = error_set(&c->error, c->list.err, "the tokens cannot be read");
        if (!t)
            return;
        const struct token_row row = c->kind == TOKEN_LIMIT ? limited(c, t) : rotated(c, t);
        if (c->kind == TOKEN_ROTATE && ends_last_admin(c, t, &row)) {
            c->err = error_set(&c->error, ERR_CONFLICT, "no admin would be left");
            return;
        }
        prepare_file(c, t);
        c->err = store->ops->token_change(store, &row, t->hash, &c->audit, &c->error);
        c->row = row;
    }
}

static void change_run(struct store_job *j, struct store *store)
{
    struct token_change *c = CONTAINER_OF(j, struct token_change, job);

    switch (c->kind) {
    case TOKEN_CREATE:
        c->err = store->ops->token_put(store, &c->row, false, &c->audit, &c->error);
        break;
    case TOKEN_DELETE:
        c->err = store->ops->token_delete(store, c->row.name, c->now, &c->audit, &c->error);
        break;
    case TOKEN_ROTATE:
    case TOKEN_LIMIT:
        replace_run(c, store);
        break;
    }
    token_list_read(store, &c->arena, &c->list);
    settle_file(c);
}

struct shown_token {
    struct slice name, roles, person, groups;
    const char *text; /* NULL: it is not known */
    int64_t created_at, expires_at, previous_until;
};

static void render_token(struct buf *b, const struct shown_token *t)
{
    json_open(b, '{');
    json_key(b, "name");
    json_string(b, t->name);
    json_key(b, "roles");
    json_raw(b, t->roles);
    json_member_text(b, "person", t->person);
    json_member_raw(b, "groups", t->groups);
    if (t->text) {
        json_key(b, "token");
        json_string(b, slice_of(t->text));
    }
    json_key(b, "created_at");
    json_time(b, t->created_at);
    json_key(b, "expires_at");
    json_time(b, t->expires_at);
    json_key(b, "previous_until");
    json_time(b, t->previous_until);
}

/* All that is known of a token but its text. */
static void render_known(struct server *sv, struct buf *b, const struct bearer *t)
{
    bool rotated = t->previous_until > server_now(sv);
    const struct shown_token shown = {.name = t->name,
                                      .roles = t->roles_json,
                                      .person = t->person,
                                      .groups = t->groups_json,
                                      .created_at = t->created_at,
                                      .expires_at = t->expires_at,
                                      .previous_until = rotated ? t->previous_until : 0};

    render_token(b, &shown);
    quota_render(sv->quotas, t, uv_hrtime(), b);
    json_close(b, '}');
}

static void answer_limited(struct server *sv, struct http_request *r, struct slice name)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);

    for (size_t i = 0; i < count; i++)
        if (slice_eq(list[i].name, name))
            render_known(sv, &b, &list[i]);
    if (b.len > 0)
        answer_json(r, 200, &b, NULL);
    else
        http_problem(r, 404, "no-such-token", "there is no token \"%.*s\"", SLICE_ARG(name));
}

static void answer_made(struct http_request *r, const struct token_change *c)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const struct token_row *t = &c->row;
    const struct shown_token shown = {.name = t->name,
                                      .roles = t->roles,
                                      .person = t->person.ptr ? t->person : t->name,
                                      .groups = t->groups.ptr ? t->groups : SLICE("[]"),
                                      .text = c->text,
                                      .created_at = t->created_at,
                                      .expires_at = t->expires_at,
                                      .previous_until = t->previous_until};

    render_token(&b, &shown);
    json_close(&b, '}');
    answer_json(r, c->kind == TOKEN_CREATE ? 201 : 200, &b, "Cache-Control: no-store\r\n");
    OPENSSL_cleanse(b.ptr, b.len);
}

static void answer_change(struct http_request *r, const struct token_change *c)
{
    struct slice name = c->row.name;

    if (c->err == ERR_OK && c->kind == TOKEN_LIMIT) {
        answer_limited(c->x.server, r, name);
    } else if (c->err == ERR_OK && c->kind != TOKEN_DELETE) {
        answer_made(r, c);
    } else if (c->err == ERR_OK) {
        http_answer(r, 204, NULL, SLICE(""), NULL);
    } else if (c->err == ERR_CONFLICT && c->kind == TOKEN_CREATE) {
        http_problem(r, 409, "token-exists", "there is a token \"%.*s\"; delete it first",
                     SLICE_ARG(name));
    } else if (c->err == ERR_CONFLICT && c->kind == TOKEN_ROTATE) {
        http_problem(r, 409, "last-admin",
                     "no other token with the role admin is valid for longer than \"%.*s\" would "
                     "be; create one first, or omit expires_in",
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

/* The answer to the commit was lost, and the list was read after it: it shows the outcome. Limits
 * are not compared: they can be stored again. */
static void settle_unknown(struct token_change *c)
{
    bool there = false;

    if (c->err != ERR_UNKNOWN || c->list.err != ERR_OK || c->kind == TOKEN_LIMIT)
        return;
    for (size_t i = 0; i < c->list.count; i++)
        there |= c->kind != TOKEN_DELETE
                     ? memcmp(c->list.rows[i].hash, c->row.hash, TOKEN_HASH_SIZE) == 0
                     : slice_eq(c->list.rows[i].name, c->row.name);
    if (there == (c->kind != TOKEN_DELETE))
        c->err = ERR_OK;
}

/* The list cannot be read now; but what is answered to be so must be so. */
static void apply_alone(const struct token_change *c)
{
    if (c->kind != TOKEN_DELETE)
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
    log_file(c);
    if (c->err == ERR_OK)
        log_line(LOG_WARN, "event=%.*s name=%.*s by=%.*s", SLICE_ARG(c->audit.verb),
                 SLICE_ARG(c->row.name), SLICE_ARG(c->audit.actor));
    if (r) {
        exchange_untie(&c->x);
        answer_change(r, c);
    }
    c->x.server->load.exchanges--;
    c->x.server->load.asks_open--;
    OPENSSL_cleanse(c->text, sizeof c->text);
    arena_fini(&a);
}

static struct token_change *change_new(struct server *sv, struct http_request *r, struct slice name,
                                       enum change_of kind)
{
    struct arena a = {0};
    struct token_change *c = arena_alloc(&a, sizeof *c);

    static const char *const verbs[] = {"token.create", "token.delete", "token.rotate",
                                        "token.limit"};

    *c = (struct token_change){.arena = a, .kind = kind, .now = server_now(sv)};
    c->row.name = arena_copy(&c->arena, name);
    c->audit = (struct audit){.at = c->now,
                              .actor = arena_copy(&c->arena, sv->caller),
                              .address = caller_address(sv, r, &c->arena),
                              .verb = slice_of(verbs[kind]),
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
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, sv->caller, r->account, &c->job);
}

/* ---- POST /v1/tokens ---- */

/* Actors of the audit that have no token. No token, and no person, may look like them. */
static bool is_taken(struct http_request *r, struct slice name, const char *what)
{
    static const char *const taken[] = {"open",       "server",        "helper", "amqp",
                                        "signal-url", "approval-link", "sql",    "schedule"};

    for (size_t i = 0; i < COUNT_OF(taken); i++)
        if (slice_is(name, taken[i])) {
            http_problem(r, 422, "bad-token",
                         "a %s cannot have the name \"%s\": the audit uses it for callers of the "
                         "server itself",
                         what, taken[i]);
            return true;
        }
    return false;
}

static bool name_ok(struct http_request *r, const struct json *j)
{
    struct slice name = json_get_text(j, "name");

    if (!is_name(name) || name.len > ACCESS_NAME_MAX) {
        http_problem(r, 422, "bad-token",
                     "name must be a text of 1 to %d characters of [A-Za-z0-9._:-]",
                     ACCESS_NAME_MAX);
        return false;
    }
    return !is_taken(r, name, "token");
}

static bool has_text(const struct json *list, const struct json *before)
{
    for (const struct json *j = list->child; j != before; j = j->next)
        if (slice_eq(j->text, before->text))
            return true;
    return false;
}

/* Written again in a fixed form, so that each role is listed once. */
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
            http_problem(
                r, 422, "bad-token",
                "roles has %.*s, expected \"submit\", \"submit:WORKFLOW\", \"read\", "
                "\"read:WORKFLOW\", \"define\", \"repair\", \"operate\", \"approve\", \"admin\", "
                "\"agent:NAME\" (\"agent:*\": every agent) or \"signal:WORKFLOW/NAME\"",
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

static bool read_person(struct http_request *r, const struct json *j, struct token_change *c)
{
    const struct json *person = json_get(j, "person");

    if (!person || person->type == JSON_NULL)
        return true;
    if (person->type != JSON_STRING || !access_is_person(person->text)) {
        http_problem(r, 422, "bad-token",
                     "person must be a text of 1 to %d characters of [A-Za-z0-9._:@+-]",
                     ACCESS_NAME_MAX);
        return false;
    }
    if (is_taken(r, person->text, "person"))
        return false;
    c->row.person = arena_copy(&c->arena, person->text);
    return true;
}

/* For the audit: whose token it is, and of which groups that person is. */
static void tell_groups(struct token_change *c, const struct json *list)
{
    CLEANUP(buf_fini) struct buf reason = {0};

    buf_slice(&reason, c->audit.reason);
    if (c->row.person.ptr)
        buf_fmt(&reason, ", person %.*s", SLICE_ARG(c->row.person));
    for (const struct json *one = list ? list->child : NULL; one; one = one->next)
        buf_fmt(&reason, "%s %.*s", one == list->child ? ", of group" : ",", SLICE_ARG(one->text));
    c->audit.reason = arena_copy(&c->arena, buf_view(&reason));
}

/* Each is listed once, as with roles. */
static bool read_groups(struct http_request *r, const struct json *j, struct token_change *c)
{
    const struct json *list = json_get(j, "groups");
    CLEANUP(buf_fini) struct buf b = {0};

    if (list && (list->type != JSON_ARRAY || list->count > ACCESS_GROUPS_MAX)) {
        http_problem(r, 422, "bad-token", "groups must be an array of at most %d groups",
                     ACCESS_GROUPS_MAX);
        return false;
    }
    json_open(&b, '[');
    for (const struct json *one = list ? list->child : NULL; one; one = one->next) {
        if (one->type != JSON_STRING || !access_is_group(one->text)) {
            http_problem(r, 422, "bad-token",
                         "groups has %.*s, expected texts of 1 to %d characters of [A-Za-z0-9._:-]",
                         SLICE_ARG(slice_cut(one->raw, 80)), ACCESS_NAME_MAX);
            return false;
        }
        if (!has_text(list, one))
            json_string(&b, one->text);
    }
    json_close(&b, ']');
    if (list && list->count > 0)
        c->row.groups = arena_copy(&c->arena, buf_view(&b));
    tell_groups(c, list);
    return true;
}

/* *ret: 0: never; unchanged if it is not given. */
static bool read_expiry(struct http_request *r, const struct json *j, int64_t *ret)
{
    const struct json *in = json_get(j, "expires_in");
    int64_t ms = 0;

    if (!in || in->type == JSON_NULL)
        return true;
    bool never = in->type == JSON_STRING && slice_is(in->text, "never");
    if (!never && (in->type != JSON_STRING || !duration_parse(in->text, &ms) || ms <= 0)) {
        http_problem(r, 422, "bad-token",
                     "expires_in must be a duration such as \"30d\", or \"never\"");
        return false;
    }
    *ret = ms;
    return true;
}

static bool read_keep(struct http_request *r, const struct json *j, int64_t *ret)
{
    const struct json *keep = json_get(j, "keep");
    int64_t ms = KEEP_MS;

    if (keep
        && (keep->type != JSON_STRING || !duration_parse(keep->text, &ms) || ms < 0
            || ms > KEEP_MAX)) {
        http_problem(r, 422, "bad-token", "keep must be a duration of at most 30d, such as \"1h\"");
        return false;
    }
    *ret = ms;
    return true;
}

static bool read_limits(struct http_request *r, const struct json *j, struct token_change *c)
{
    CLEANUP(buf_fini) struct buf text = {0};
    struct quota_limits limits;
    struct slice wrong;

    if (!quota_limits_read(json_get(j, "limits"), &limits, &wrong)) {
        http_problem(r, 422, "bad-token",
                     "limits: \"%.*s\" is wrong, expected an object of calls, submissions, bytes, "
                     "waiting, cpu, readings and open_tasks, each a whole number from 1, or null "
                     "for the default",
                     SLICE_ARG(slice_cut(wrong, 80)));
        return false;
    }
    quota_limits_write(&text, &limits);
    c->row.limits = arena_copy(&c->arena, buf_view(&text));
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

static void submit_with_text(struct token_change *c, struct server *sv, struct http_request *r)
{
    struct error e = {0};

    if (access_make(c->text, &e) != ERR_OK) {
        change_free(c);
        answer_trouble(r, e.code, e.text);
        return;
    }
    bool ok = access_hash(sv->access, slice_of(c->text), c->row.hash);
    ASSERT(ok);
    change_submit(c, sv, r);
}

void token_post(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);

    if (!j
        || !members_ok(r, j, NAMES("name", "roles", "person", "groups", "expires_in", "limits"),
                       "a token")
        || !name_ok(r, j) || !has_room(sv, r) || !asks_have_room(sv, r, 0))
        return;
    struct token_change *c = change_new(sv, r, json_get_text(j, "name"), TOKEN_CREATE);
    int64_t lifetime = EXPIRY_MS;
    if (!read_roles(r, j, c) || !read_person(r, j, c) || !read_groups(r, j, c)
        || !read_expiry(r, j, &lifetime) || !read_limits(r, j, c)) {
        change_free(c);
        return;
    }
    c->row.created_at = c->now;
    c->row.expires_at = lifetime ? c->now + lifetime : 0;
    submit_with_text(c, sv, r);
}

/* ---- POST /v1/tokens/{name}/rotate ---- */

void token_rotate(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct slice name = http_segment(r, 2);
    struct json *j = body_json(r, &tree);
    int64_t expires_ms = -1;
    int64_t keep_ms = 0;

    if (!j || !members_ok(r, j, NAMES("keep", "expires_in"), "a rotation")
        || !read_expiry(r, j, &expires_ms) || !read_keep(r, j, &keep_ms))
        return;
    if (!is_name(name)) {
        http_problem(r, 404, "no-such-token", "no token can have this name");
        return;
    }
    if (!asks_have_room(sv, r, 0))
        return;
    struct token_change *c = change_new(sv, r, name, TOKEN_ROTATE);
    c->keep_ms = keep_ms;
    c->expires_ms = expires_ms;
    submit_with_text(c, sv, r);
}

/* ---- PUT /v1/tokens/{name}: its limits ---- */

void token_put(struct server *sv, struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct slice name = http_segment(r, 2);
    struct json *j = body_json(r, &tree);

    if (!j || !members_ok(r, j, NAMES("limits"), "what a token may use"))
        return;
    if (!is_name(name)) {
        http_problem(r, 404, "no-such-token", "no token can have this name");
        return;
    }
    if (!asks_have_room(sv, r, 0))
        return;
    struct token_change *c = change_new(sv, r, name, TOKEN_LIMIT);
    if (read_limits(r, j, c))
        change_submit(c, sv, r);
    else
        change_free(c);
}

/* ---- DELETE /v1/tokens/{name}, GET /v1/tokens ---- */

void token_delete(struct server *sv, struct http_request *r)
{
    struct slice name = http_segment(r, 2);

    if (!is_name(name)) {
        http_problem(r, 404, "no-such-token", "no token can have this name");
        return;
    }
    if (!asks_have_room(sv, r, 0))
        return;
    change_submit(change_new(sv, r, name, TOKEN_DELETE), sv, r);
}

static void list_now(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    size_t count = 0;
    const struct bearer *list = access_list(sv->access, &count);

    json_open(&b, '{');
    json_key(&b, "tokens");
    json_open(&b, '[');
    for (size_t i = 0; i < count; i++)
        render_known(sv, &b, &list[i]);
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NULL);
}

/* Others may have made or deleted some: read first, as for a token that is not known. */
void tokens_list(struct server *sv, struct http_request *r)
{
    if (!unknown_tokens_hold(sv, r, list_now))
        list_now(sv, r);
}
