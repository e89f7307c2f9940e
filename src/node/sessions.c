/*
 * Sessions of the console in memory, and the cookie that names one. Touches no store:
 * sessions_load is given what was read (background/token_list.c). Who may use a session, and what
 * else such a request needs: api/caller.c.
 */

#include "node/sessions.h"

#include <stdlib.h>

#include "node/access.h"

#define NAME        "intact_session"
#define SECURE_NAME "__Host-" NAME

struct sessions {
    struct arena arena;
    struct session_row *rows;
    size_t count;
    struct map by_hash;
};

struct sessions *sessions_new(void)
{
    struct sessions *ss = calloc(1, sizeof *ss);

    ASSERT(ss);
    return ss;
}

void sessions_free(struct sessions *ss)
{
    if (!ss)
        return;
    map_fini(&ss->by_hash);
    arena_fini(&ss->arena);
    free(ss);
}

void sessions_load(struct sessions *ss, const struct session_row *rows, size_t count)
{
    map_fini(&ss->by_hash);
    arena_fini(&ss->arena);
    ss->by_hash = (struct map){0};
    ss->arena = (struct arena){0};
    ss->count = count;
    ss->rows = arena_alloc(&ss->arena, (count + 1) * sizeof *ss->rows);
    for (size_t i = 0; i < count; i++) {
        struct session_row *row = &ss->rows[i];
        *row = rows[i];
        row->id = arena_copy(&ss->arena, rows[i].id);
        row->token = arena_copy(&ss->arena, rows[i].token);
        row->address = arena_copy(&ss->arena, rows[i].address);
        map_put(&ss->by_hash, (struct slice){(const char *)row->hash, sizeof row->hash}, row);
    }
}

const struct session_row *sessions_list(const struct sessions *ss, size_t *ret_count)
{
    *ret_count = ss->count;
    return ss->rows;
}

const struct session_row *sessions_find(const struct sessions *ss,
                                        const unsigned char hash[TOKEN_HASH_SIZE])
{
    return map_get(&ss->by_hash, (struct slice){(const char *)hash, TOKEN_HASH_SIZE});
}

const struct bearer *session_bearer(const struct session_row *row, struct access *a, int64_t now,
                                    const char **ret_why)
{
    const char *why = "";
    const struct bearer *b = NULL;

    if (row->expires_at <= now)
        *ret_why = "the session has ended: sign in again";
    else if (!(b = access_by_hash(a, row->token_hash, now, &why)))
        *ret_why = "the session has ended with its token: sign in with another one";
    return b;
}

/* ---- cookies ---- */

/* Cuts the next pair off "a=b; c=d" (RFC 6265, 4.2.1). */
static bool pair_next(struct slice *list, struct slice *ret_name, struct slice *ret_value)
{
    while (list->len > 0 && (*list->ptr == ' ' || *list->ptr == ';'))
        *list = (struct slice){list->ptr + 1, list->len - 1};
    if (list->len == 0)
        return false;
    const char *end = memchr(list->ptr, ';', list->len);
    struct slice pair = {list->ptr, end ? (size_t)(end - list->ptr) : list->len};
    const char *equals = memchr(pair.ptr, '=', pair.len);
    size_t name_len = equals ? (size_t)(equals - pair.ptr) : pair.len;
    *ret_name = (struct slice){pair.ptr, name_len};
    *ret_value = equals ? (struct slice){equals + 1, pair.len - name_len - 1} : SLICE_NONE;
    *list = (struct slice){list->ptr + pair.len, list->len - pair.len};
    return true;
}

static struct slice value_of(struct slice list, const char *wanted, bool *ret_twice)
{
    struct slice found = SLICE_NONE;
    struct slice name;
    struct slice value;

    while (pair_next(&list, &name, &value)) {
        if (!slice_is(name, wanted))
            continue;
        *ret_twice |= found.ptr != NULL;
        found = value;
    }
    return found;
}

struct slice session_cookie(const struct http_request *r, enum cookie_kind kind, bool *ret_twice)
{
    struct slice list = http_header(r, "cookie");
    struct slice found = SLICE_NONE;

    *ret_twice = false;
    if (!list.ptr)
        return SLICE_NONE;
    if (kind != COOKIE_PLAIN)
        found = value_of(list, SECURE_NAME, ret_twice);
    if (!found.ptr && kind != COOKIE_SECURE)
        found = value_of(list, NAME, ret_twice);
    *ret_twice |= found.ptr && http_header_count(r, "cookie") > 1;
    return found;
}

void session_cookie_write(struct buf *b, bool secure, const char *secret, int64_t lifetime_ms)
{
    buf_fmt(b, "Set-Cookie: %s=%s; Path=/; HttpOnly; SameSite=Strict; Max-Age=%" PRId64 "%s\r\n",
            secure ? SECURE_NAME : NAME, secret ? secret : "", secret ? lifetime_ms / 1000 : 0,
            secure ? "; Secure" : "");
}
