/*
 * /v1/session and /v1/sessions: a browser exchanges a token, or a code that another client made
 * with one, for a session of its own. Each change is written first; what is good afterwards is read
 * from the store, as with tokens (background/token_list.c).
 */

#include "api/sessions.h"

#include <openssl/crypto.h>

#include "api/body.h"
#include "api/caller.h"
#include "api/handlers.h"
#include "api/pages.h"
#include "api/room.h"
#include "api/sign_ins.h"
#include "background/token_list.h"
#include "background/unknown_tokens.h"
#include "base/log.h"
#include "node/changes.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/new_id.h"
#include "node/node.h"
#include "node/quota.h"
#include "node/sessions.h"
#include "node/strict.h"
#include "store/job.h"
#include "json/json.h"

enum { HEAD_BODY_MAX = 4096 };

#define NO_STORE "Cache-Control: no-store\r\n"

/* ---- a change ---- */

enum change_of { SESSION_CREATE, SESSION_CODE, SESSION_DELETE };

struct session_change {
    enum change_of kind;
    struct exchange x;
    struct store_job job;
    struct arena arena; /* it lies in it */
    struct session_row row;
    bool has_code; /* SESSION_CREATE: this code becomes the session */
    unsigned char code[TOKEN_HASH_SIZE];
    struct audit audit;
    bool is_told;                        /* by the audit */
    char secret[ACCESS_SECRET_SIZE + 1]; /* or the code */
    bool is_own;                         /* SESSION_DELETE: of the browser that asks for it */
    bool secure;                         /* the cookie goes through TLS alone */
    struct token_list list;
    enum err err;
    struct error error;
};

static void change_run(struct store_job *j, struct store *store)
{
    struct session_change *c = CONTAINER_OF(j, struct session_change, job);
    const struct store_session_ops *ops = store->ops->sessions;

    if (c->kind == SESSION_DELETE)
        c->err = ops->remove(store, c->row.id, c->is_told ? &c->audit : NULL, &c->error);
    else
        c->err = ops->put(store, &c->row, c->has_code ? c->code : NULL,
                          c->is_told ? &c->audit : NULL, &c->error);
    token_list_read(store, &c->arena, &c->list);
}

/* The answer to the commit was lost, and the list was read after it: it shows the outcome. */
static void settle_unknown(struct session_change *c)
{
    bool there = false;

    if (c->err != ERR_UNKNOWN || c->list.err != ERR_OK)
        return;
    for (size_t i = 0; i < c->list.session_count; i++)
        there |= slice_eq(c->list.sessions[i].id, c->row.id);
    if (there == (c->kind != SESSION_DELETE))
        c->err = ERR_OK;
}

/* ---- answers ---- */

static void write_bearer(struct buf *b, const struct bearer *t, int64_t expires_at)
{
    json_open(b, '{');
    json_member_text(b, "name", t->name);
    json_member_text(b, "person", t->person.ptr ? t->person : t->name);
    json_member_raw(b, "groups", t->groups_json.ptr ? t->groups_json : SLICE("[]"));
    json_member_raw(b, "roles", t->roles_json);
    json_member_time(b, "expires_at", expires_at);
}

static void answer_open(struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *why = NULL;
    const struct server *sv = http_handler_arg(r);

    write_bearer(&b, access_who(sv->access, SLICE_NONE, 0, &why), 0);
    json_member_bool(&b, "open", true);
    json_close(&b, '}');
    answer_json(r, 200, &b, NO_STORE);
}

/* The session has begun, and may have ended already with its token. */
static void answer_begun(struct session_change *c, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    CLEANUP(buf_fini) struct buf headers = {0};
    struct server *sv = c->x.server;
    const char *why = NULL;
    const struct bearer *t = session_bearer(&c->row, sv->access, server_now(sv), &why);

    if (!t) {
        answer_unauthenticated(sv, r, why);
        return;
    }
    buf_str(&headers, NO_STORE);
    session_cookie_write(&headers, c->secure, c->secret, c->row.expires_at - c->row.created_at);
    write_bearer(&b, t, c->row.expires_at);
    json_close(&b, '}');
    answer_json(r, 201, &b, headers.ptr);
    OPENSSL_cleanse(headers.ptr, headers.len);
}

static void answer_code(const struct session_change *c, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_member_text(&b, "code", slice_of(c->secret));
    json_member_time(&b, "expires_at", c->row.expires_at);
    json_close(&b, '}');
    answer_json(r, 201, &b, NO_STORE);
    OPENSSL_cleanse(b.ptr, b.len);
}

static void answer_deleted(const struct session_change *c, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf headers = {0};

    buf_str(&headers, NO_STORE);
    if (c->is_own)
        session_cookie_write(&headers, c->secure, NULL, 0);
    http_answer(r, 204, NULL, SLICE(""), headers.ptr);
}

static void answer_no_code(struct server *sv, struct http_request *r)
{
    answer_unauthenticated(sv, r,
                           "the code is unknown: it was used, or its minute has passed; run "
                           "\"intact console\" again");
}

static void answer_change(struct session_change *c, struct http_request *r)
{
    if (c->err == ERR_OK && c->kind == SESSION_CREATE)
        answer_begun(c, r);
    else if (c->err == ERR_OK && c->kind == SESSION_CODE)
        answer_code(c, r);
    else if (c->err == ERR_OK)
        answer_deleted(c, r);
    else if (c->err == ERR_NOT_FOUND && c->kind == SESSION_CREATE)
        answer_no_code(c->x.server, r);
    else if (c->err == ERR_NOT_FOUND)
        http_problem(r, 404, "no-such-session", "there is no session \"%.*s\"",
                     SLICE_ARG(slice_cut(c->row.id, ID_TEXT_SIZE)));
    else
        answer_trouble(r, c->err, c->error.text);
}

static void log_change(const struct session_change *c)
{
    if (c->kind == SESSION_CREATE)
        log_line(LOG_INFO, "event=session_created id=%.*s name=%.*s address=\"%.*s\"",
                 SLICE_ARG(c->row.id), SLICE_ARG(c->row.token), SLICE_ARG(c->row.address));
    if (c->kind == SESSION_DELETE)
        log_line(LOG_INFO, "event=session_deleted id=%.*s name=%.*s by=%.*s", SLICE_ARG(c->row.id),
                 SLICE_ARG(c->row.token), SLICE_ARG(c->audit.actor));
}

static void change_done(struct store_job *j)
{
    struct session_change *c = CONTAINER_OF(j, struct session_change, job);
    struct http_request *r = c->x.http;
    struct arena a = c->arena;

    settle_unknown(c);
    token_list_apply(c->x.server, &c->list);
    if (c->err == ERR_OK)
        log_change(c);
    if (r) {
        exchange_untie(&c->x);
        answer_change(c, r);
    }
    c->x.server->load.exchanges--;
    c->x.server->load.asks_open--;
    OPENSSL_cleanse(c->secret, sizeof c->secret);
    arena_fini(&a);
}

static struct session_change *change_new(struct server *sv, struct http_request *r,
                                         enum change_of kind, struct slice actor)
{
    static const char *const verbs[] = {"session.create", "session.code", "session.delete"};
    struct arena a = {0};
    struct session_change *c = arena_alloc(&a, sizeof *c);

    *c = (struct session_change){.arena = a, .kind = kind, .secure = caller_is_secure(sv, r)};
    c->audit = (struct audit){.at = server_now(sv),
                              .actor = arena_copy(&c->arena, actor),
                              .address = caller_address(sv, r, &c->arena),
                              .verb = slice_of(verbs[kind])};
    c->job = (struct store_job){.run = change_run, .done = change_done};
    return c;
}

static void change_submit(struct session_change *c, struct server *sv, struct http_request *r)
{
    exchange_begin(&c->x, sv, r);
    sv->load.exchanges++;
    sv->load.asks_open++;
    changes_add(sv->changes, c->audit.actor, r->account, &c->job);
}

/* ---- beginning ---- */

/* An agent has no business in the console. False: answered. */
static bool may_sign_in(struct server *sv, struct http_request *r, const struct bearer *t)
{
    if (!t->inner && t->roles & ~(unsigned)ROLE_AGENT)
        return true;
    caller_log_forbidden(sv, r, t->name, "tokens of agents cannot sign in");
    http_problem(r, 403, "forbidden",
                 "the token \"%.*s\" is an agent's, and cannot sign in to the console",
                 SLICE_ARG(t->name));
    return false;
}

static bool has_room(struct server *sv, struct http_request *r)
{
    size_t count = 0;
    const struct session_row *rows = sessions_list(sv->sessions, &count);
    size_t open = 0;

    for (size_t i = 0; i < count; i++)
        open += rows[i].expires_at > server_now(sv); /* others are deleted with the next change */
    if (open < SESSIONS_MAX)
        return asks_have_room(sv, r, 0);
    http_problem(r, 503, "busy", "there are %d sessions; end some first", SESSIONS_MAX);
    return false;
}

/* Beside a token there is nothing to say: no body, or an empty object. False: answered. */
static bool is_without_content(struct http_request *r)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = r->body.len > 0 ? body_json(r, &tree) : NULL;

    return r->body.len == 0 || (j && members_ok(r, j, NAMES(NULL), "a request with a token"));
}

/* `code` NULL: with the token itself. `token_hash`: of the token's text. */
static void begin(struct server *sv, struct http_request *r, enum change_of kind,
                  const struct bearer *t, const unsigned char token_hash[TOKEN_HASH_SIZE],
                  const unsigned char *code)
{
    struct error e = {0};
    char id[ID_TEXT_SIZE];

    if (!may_sign_in(sv, r, t) || !has_room(sv, r))
        return;
    struct session_change *c = change_new(sv, r, kind, t->name);
    if (secret_make(c->secret, &e) != ERR_OK) {
        struct arena a = c->arena;
        arena_fini(&a);
        answer_trouble(r, e.code, e.text);
        return;
    }
    id_give(sv, id);
    c->row = (struct session_row){.id = arena_copy(&c->arena, slice_of(id)),
                                  .is_code = kind == SESSION_CODE,
                                  .token = c->audit.actor,
                                  .created_at = c->audit.at,
                                  .expires_at =
                                      c->audit.at + (kind == SESSION_CODE ? CODE_MS : SESSION_MS),
                                  .address = c->audit.address};
    if (t->expires_at != 0)
        c->row.expires_at = min_i64(c->row.expires_at, t->expires_at);
    c->audit.reason = c->row.id;
    c->is_told = kind == SESSION_CREATE && sign_ins_told(sv->api->sign_ins, t->name, c->audit.at);
    c->has_code = code != NULL;
    if (code)
        memcpy(c->code, code, sizeof c->code);
    memcpy(c->row.token_hash, token_hash, sizeof c->row.token_hash);
    bool ok = secret_hash(sv->access, slice_of(c->secret), c->row.hash);
    ASSERT(ok);
    change_submit(c, sv, r);
}

bool session_head(struct http_request *r)
{
    if (http_limit_body(r, HEAD_BODY_MAX, false))
        return true;
    http_problem(r, 413, "too-big", "a sign-in has at most %d bytes", HEAD_BODY_MAX);
    return false;
}

/* The hash of the code in the body. False: answered. */
static bool read_code(struct server *sv, struct http_request *r, unsigned char ret[TOKEN_HASH_SIZE])
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);

    if (!j || !members_ok(r, j, NAMES("code"), "a sign-in"))
        return false;
    struct slice code = json_get_text(j, "code");
    if (!code.ptr) {
        answer_unauthenticated(sv, r,
                               "send a token (\"Authorization: Bearer TOKEN\"), or a code "
                               "({\"code\": \"...\"}) that \"intact console\" made");
        return false;
    }
    if (secret_hash(sv->access, code, ret))
        return true;
    answer_no_code(sv, r);
    return false;
}

static void begin_by_code(struct server *sv, struct http_request *r,
                          const unsigned char hash[TOKEN_HASH_SIZE])
{
    const struct session_row *row = sessions_find(sv->sessions, hash);
    const char *why = NULL;
    const struct bearer *t =
        row && row->is_code ? session_bearer(row, sv->access, server_now(sv), &why) : NULL;

    if (!t) {
        answer_no_code(sv, r);
        return;
    }
    r->account = quota_enter(sv->quotas, t, r, server_now(sv), false);
    if (r->account)
        begin(sv, r, SESSION_CREATE, t, row->token_hash, hash);
}

static void begin_by_token(struct server *sv, struct http_request *r)
{
    unsigned char hash[TOKEN_HASH_SIZE];
    const char *why = "";
    const struct bearer *t = caller_of(sv, r, &why);

    if (!t) {
        answer_unauthenticated(sv, r, why);
        return;
    }
    if (!t->inner)
        r->account = quota_enter(sv->quotas, t, r, server_now(sv), false);
    if (t->inner) {
        (void)may_sign_in(sv, r, t);
        return;
    }
    if (!r->account || !is_without_content(r))
        return;
    bool ok = access_hash_of(sv->access, http_header(r, "authorization"), hash);
    ASSERT(ok); /* it is the caller's */
    begin(sv, r, SESSION_CREATE, t, hash, NULL);
}

/* Another node may have made its token, or its code, a moment ago. */
static bool is_held(struct server *sv, struct http_request *r,
                    const unsigned char code[TOKEN_HASH_SIZE],
                    void (*again)(struct server *sv, struct http_request *r))
{
    bool unknown = code ? !sessions_find(sv->sessions, code) : caller_may_be_new(sv, r);

    return unknown && again && unknown_tokens_hold(sv, r, again);
}

static void sign_in(struct server *sv, struct http_request *r,
                    void (*again)(struct server *sv, struct http_request *r))
{
    unsigned char code[TOKEN_HASH_SIZE];

    if (access_is_open(sv->access) && http_adopted(r) == 0) {
        answer_open(r);
    } else if (http_header(r, "authorization").ptr || http_adopted(r) != 0) {
        if (!is_held(sv, r, NULL, again))
            begin_by_token(sv, r);
    } else if (read_code(sv, r, code) && !is_held(sv, r, code, again)) {
        begin_by_code(sv, r, code);
    }
}

static void sign_in_known(struct server *sv, struct http_request *r)
{
    sign_in(sv, r, NULL);
}

void session_post(struct server *sv, struct http_request *r)
{
    sign_in(sv, r, sign_in_known);
}

/* False: answered. */
static bool has_console(const struct server *sv, struct http_request *r)
{
    if (pages_are_served(sv))
        return true;
    http_problem(r, 404, "no-console",
                 "this server has no console: it was started with --no-console, or built without");
    return false;
}

/* A code lasts for a minute, its session for hours: with the cookie of a session somebody could go
 * on for ever. */
void session_code_post(struct server *sv, struct http_request *r)
{
    unsigned char hash[TOKEN_HASH_SIZE];

    if (!has_console(sv, r))
        return;
    if (access_is_open(sv->access) && http_adopted(r) == 0) {
        answer_open(r);
        return;
    }
    if (!may_sign_in(sv, r, sv->api->bearer) || !is_without_content(r))
        return;
    if (!access_hash_of(sv->access, http_header(r, "authorization"), hash)) {
        http_problem(r, 403, "forbidden",
                     "a session cannot make codes for others: use the token itself");
        return;
    }
    begin(sv, r, SESSION_CODE, sv->api->bearer, hash, NULL);
}

/* ---- the present one ---- */

void session_get(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *why = NULL;
    const struct session_row *row = caller_session(sv, r, &why);

    if (access_is_open(sv->access) && http_adopted(r) == 0) {
        answer_open(r);
        return;
    }
    write_bearer(&b, sv->api->bearer, row ? row->expires_at : sv->api->bearer->expires_at);
    json_close(&b, '}');
    answer_json(r, 200, &b, NO_STORE);
}

static void end(struct server *sv, struct http_request *r, const struct session_row *row)
{
    const char *why = NULL;

    if (!asks_have_room(sv, r, 0))
        return;
    struct session_change *c = change_new(sv, r, SESSION_DELETE, sv->api->bearer->name);
    const struct session_row *own = caller_session(sv, r, &why);
    c->row = *row;
    c->row.id = arena_copy(&c->arena, row->id);
    c->row.token = arena_copy(&c->arena, row->token);
    c->row.address = SLICE_NONE;
    c->is_own = own == row;
    c->audit.reason = c->row.id;
    c->is_told = !slice_eq(c->row.token, c->audit.actor)
                 || sign_ins_told(sv->api->sign_ins, c->audit.actor, c->audit.at);
    change_submit(c, sv, r);
}

void session_end(struct server *sv, struct http_request *r)
{
    const char *why = NULL;
    const struct session_row *row = caller_session(sv, r, &why);

    if (row)
        end(sv, r, row);
    else
        http_problem(r, 404, "no-such-session", "the request was made without a session");
}

/* ---- all of them ---- */

static bool is_admin(const struct bearer *t)
{
    return t->roles & ROLE_ADMIN;
}

/* Whoever may know it; not a code, nor one that has ended. */
static bool is_shown(struct server *sv, const struct bearer *t, const struct session_row *row)
{
    const char *why = NULL;

    return !row->is_code && (is_admin(t) || slice_eq(row->token, t->name))
           && session_bearer(row, sv->access, server_now(sv), &why);
}

static void list_now(struct server *sv, struct http_request *r)
{
    CLEANUP(buf_fini) struct buf b = {0};
    const char *why = NULL;
    const struct bearer *t = caller_recheck(sv, r);
    const struct session_row *own = caller_session(sv, r, &why);
    size_t count = 0;
    const struct session_row *rows = sessions_list(sv->sessions, &count);

    if (!t)
        return;
    json_open(&b, '{');
    json_key(&b, "sessions");
    json_open(&b, '[');
    for (size_t i = 0; i < count; i++) {
        const struct session_row *row = &rows[i];
        if (!is_shown(sv, t, row))
            continue;
        json_open(&b, '{');
        json_member_text(&b, "id", row->id);
        json_member_text(&b, "token", row->token);
        json_member_time(&b, "created_at", row->created_at);
        json_member_time(&b, "expires_at", row->expires_at);
        json_member_text(&b, "address", row->address);
        json_member_bool(&b, "current", row == own);
        json_close(&b, '}');
    }
    json_close(&b, ']');
    json_close(&b, '}');
    answer_json(r, 200, &b, NO_STORE);
}

/* Others may have begun or ended some: read first, as for a token that is not known. */
void sessions_list_get(struct server *sv, struct http_request *r)
{
    if (!unknown_tokens_hold(sv, r, list_now))
        list_now(sv, r);
}

static void delete_now(struct server *sv, struct http_request *r)
{
    const struct bearer *t = caller_recheck(sv, r);
    struct slice id = http_segment(r, 2);
    size_t count = 0;
    const struct session_row *rows = sessions_list(sv->sessions, &count);

    if (!t)
        return;
    for (size_t i = 0; i < count; i++)
        if (slice_eq(rows[i].id, id) && is_shown(sv, t, &rows[i])) {
            sv->api->bearer = t;
            end(sv, r, &rows[i]);
            sv->api->bearer = NULL;
            return;
        }
    http_problem(r, 404, "no-such-session", "there is no session \"%.*s\"",
                 SLICE_ARG(slice_cut(id, ID_TEXT_SIZE)));
}

void session_delete(struct server *sv, struct http_request *r)
{
    if (!unknown_tokens_hold(sv, r, delete_now))
        delete_now(sv, r);
}
