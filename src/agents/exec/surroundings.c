/* What a command finds when it starts: its program, its environment and its standard input; and
 * how its secrets are removed from what it printed. See surroundings.h. */

#include "agents/exec/surroundings.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/when.h"
#include "config/secret.h"
#include "json/json.h"
#include "json/text.h"

enum {
    OWN_MAX = 16, /* variables that every command gets */
};

#define USUAL_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct making {
    struct command *c;
    char **env; /* ends with NULL, so it has room for one more than `most` */
    size_t count, most;
    char *why;
    size_t why_size;
};

static size_t name_len(const char *variable)
{
    return strcspn(variable, "=");
}

/* A later one of a name takes the place of an earlier one. */
static void put(struct making *m, char *variable)
{
    size_t len = name_len(variable);
    size_t i = 0;

    ASSERT(len > 0 && variable[len] == '=');
    while (i < m->count && (name_len(m->env[i]) != len || memcmp(m->env[i], variable, len) != 0))
        i++;
    ASSERT(i < m->most);
    m->env[i] = variable;
    m->count += i == m->count;
}

static void put_pair(struct making *m, struct slice name, struct slice value)
{
    char *v = arena_bytes(&m->c->arena, name.len + value.len + 2);

    memcpy(v, name.ptr, name.len);
    v[name.len] = '=';
    if (value.len > 0)
        memcpy(v + name.len + 1, value.ptr, value.len);
    v[name.len + 1 + value.len] = 0;
    put(m, v);
}

/* ---- secrets ---- */

static bool read_secret(struct making *m, struct slice path, struct slice *ret)
{
    const struct secret_place place = {.file = path.ptr};
    char *text = NULL;
    size_t len = 0;
    const char *fault = secret_place_load(&place, &text, &len);

    if (!fault && len == 0)
        fault = "it is empty";
    else if (!fault && memchr(text, 0, len))
        fault = "it is no text";
    if (!fault) {
        *ret = arena_copy(&m->c->arena, (struct slice){text, len});
        exec_secrets_add(&m->c->secrets, *ret);
    }
    secret_wipe(text, len);
    if (fault)
        (void)snprintf(m->why, m->why_size, "the secret in %s: %s", path.ptr, fault);
    return !fault;
}

static bool add_configured(struct making *m)
{
    const struct exec_command *what = m->c->what;

    for (size_t i = 0; i < what->variable_count; i++) {
        const struct exec_variable *v = &what->variables[i];
        struct slice value = v->text;
        if (v->source == EXEC_INHERITED)
            value = slice_of(getenv(v->text.ptr));
        if (v->source == EXEC_INHERITED && v->is_secret && value.ptr)
            exec_secrets_add(&m->c->secrets, value);
        if (v->source == EXEC_FILE && !read_secret(m, v->text, &value))
            return false;
        if (value.ptr)
            put_pair(m, v->name, value);
    }
    return true;
}

/* ---- what is asked ---- */

static void put_text(struct making *m, const char *name, const char *value)
{
    if (value)
        put_pair(m, slice_of(name), slice_of(value));
}

static const char *direction_of(const struct intact_request *r)
{
    return intact_request_direction(r) == INTACT_UNDO ? "undo" : "forward";
}

static void add_own(struct making *m)
{
    const struct intact_request *r = m->c->request;
    char attempt[20];

    (void)snprintf(attempt, sizeof attempt, "%u", intact_request_attempt(r));
    put_text(m, "INTACT_TASK", intact_request_task(r));
    put_text(m, "INTACT_STEP", intact_request_step(r));
    put_text(m, "INTACT_ACTION", intact_request_action(r));
    put_text(m, "INTACT_DIRECTION", direction_of(r));
    put_text(m, "INTACT_ATTEMPT", attempt);
    put_text(m, "INTACT_IDEMPOTENCY_KEY", intact_request_idempotency_key(r));
    put_text(m, "INTACT_FORWARD_KEY", intact_request_forward_key(r));
    put_text(m, "INTACT_PROGRESS_FD", "3");
    put_text(m, "TRACEPARENT", intact_request_traceparent(r));
}

/* Until when the command has time: SIGTERM comes then. */
static int64_t wall_clock_at(int64_t left_ms)
{
    return clock_wall_ms() + left_ms;
}

static void write_input(struct command *c)
{
    const struct intact_request *r = c->request;
    int64_t left = max_i64(c->term_at - clock_boot_ms(), 0);
    struct buf *b = &c->input;

    json_open(b, '{');
    json_member_text_if(b, "task", slice_of(intact_request_task(r)));
    json_member_text_if(b, "step", slice_of(intact_request_step(r)));
    json_member_text_if(b, "action", slice_of(intact_request_action(r)));
    json_member_text_if(b, "direction", slice_of(direction_of(r)));
    json_member_number(b, "attempt", intact_request_attempt(r));
    json_member_text_if(b, "idempotency_key", slice_of(intact_request_idempotency_key(r)));
    json_member_raw_if(b, "input", slice_of(intact_request_input(r)));
    json_member_raw_if(b, "forward", slice_of(intact_request_forward(r)));
    json_member_time(b, "complete_by", wall_clock_at(left));
    json_member_number(b, "time_left_ms", left);
    json_member_raw_if(b, "resume", slice_of(intact_request_resume(r)));
    json_member_text_if(b, "traceparent", slice_of(intact_request_traceparent(r)));
    json_close(b, '}');
    buf_byte(b, '\n');
}

/* ---- the program ---- */

static const char *value_of(const struct making *m, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < m->count; i++)
        if (name_len(m->env[i]) == len && memcmp(m->env[i], name, len) == 0)
            return m->env[i] + len + 1;
    return NULL;
}

static bool is_program(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* In the PATH of the command's own environment. */
static const char *find_program(struct making *m, const char *name)
{
    const char *path = value_of(m, "PATH");

    if (name[0] == '/')
        return name;
    while (path && *path) {
        CLEANUP(buf_fini) struct buf b = {0};
        size_t len = strcspn(path, ":");
        buf_fmt(&b, "%.*s/%s", (int)len, path, name);
        if (path[0] == '/' && is_program(b.ptr))
            return arena_copy(&m->c->arena, buf_view(&b)).ptr;
        path += len + (path[len] == ':');
    }
    (void)snprintf(m->why, m->why_size, "there is no program %s in its PATH", name);
    return NULL;
}

bool surroundings_make(struct command *c, struct keeper_order *o, char *why, /* NOLINT: by m */
                       size_t why_size)
{
    size_t most = c->what->variable_count + OWN_MAX;
    struct making m = {.c = c, .most = most, .why = why, .why_size = why_size};
    const struct exec_user *u = &c->what->user;

    m.env = arena_alloc(&c->arena, (most + 1) * sizeof *m.env);
    put_text(&m, "PATH", USUAL_PATH);
    put_text(&m, "HOME", u->home);
    put_text(&m, "USER", u->name);
    put_text(&m, "LOGNAME", u->name);
    if (!add_configured(&m))
        return false;
    exec_secrets_sort(&c->secrets);
    add_own(&m);
    o->envp = m.env;
    o->program = find_program(&m, c->what->argv[0]);
    write_input(c);
    ASSERT(!m.env[m.count]);
    return o->program;
}

/* ---- what may be disclosed ---- */

/* Those of ASCII, and the others, which terminals obey as well. */
static void blank_controls(char *at, size_t len)
{
    unsigned char before = 0;

    for (size_t i = 0; i < len; i++) {
        unsigned char now = (unsigned char)at[i];
        if (now < ' ' || now == 0x7f)
            at[i] = ' ';
        else if (before == 0xc2 && now >= 0x80 && now < 0xa0)
            at[i - 1] = at[i] = ' ';
        before = now;
    }
}

void surroundings_hide(const struct command *c, struct slice text, struct buf *ret)
{
    exec_secrets_hide(&c->secrets, text, ret);
}

void surroundings_clean(const struct command *c, struct slice text, struct buf *ret)
{
    struct buf copy = {0};

    surroundings_hide(c, text, &copy);
    blank_controls(copy.ptr, copy.len);
    for (struct slice rest = buf_view(&copy); rest.len > 0;) {
        size_t good = text_utf8_end(rest);
        buf_slice(ret, (struct slice){rest.ptr, good});
        if (good == rest.len)
            break;
        buf_byte(ret, '?');
        rest = (struct slice){rest.ptr + good + 1, rest.len - good - 1};
    }
    buf_fini(&copy);
}

void surroundings_clean_tail(const struct command *c, struct buf *ret)
{
    CLEANUP(buf_fini) struct buf copy = {0};

    buf_slice(&copy, buf_view(&c->tail));
    if (c->tail_is_cut)
        exec_secrets_cover_begun(&c->secrets, &copy);
    surroundings_clean(c, buf_view(&copy), ret);
}

/* A string of sound JSON, with its quotes; how it is escaped does not matter. Names of members stay
 * different: `names` counts those that were changed. */
static void write_clean(const struct command *c, struct slice literal, unsigned *names,
                        struct buf *ret)
{
    CLEANUP(arena_fini) struct arena a = {0};
    CLEANUP(buf_fini) struct buf text = {0};
    struct json *j = NULL;

    if (json_parse(&a, literal, &j, NULL) != ERR_OK)
        return;
    surroundings_hide(c, j->text, &text);
    if (slice_eq(buf_view(&text), j->text)) {
        buf_slice(ret, literal);
        return;
    }
    if (names && (*names)++ > 0)
        buf_fmt(&text, "%u", *names);
    json_string(ret, buf_view(&text));
}

static size_t literal_len(struct slice json)
{
    size_t len = 1;

    while (len < json.len && json.ptr[len] != '"')
        len += json.ptr[len] == '\\' ? 2 : 1;
    return len < json.len ? len + 1 : json.len;
}

static size_t number_len(struct slice json)
{
    size_t len = 0;

    while (len < json.len && json.ptr[len] && strchr("0123456789+-.eE", json.ptr[len]))
        len++;
    return len;
}

static bool is_name_of_member(struct slice rest)
{
    size_t at = 0;

    while (at < rest.len && rest.ptr[at] && strchr(" \t\r\n", rest.ptr[at]))
        at++;
    return at < rest.len && rest.ptr[at] == ':';
}

void surroundings_clean_json(const struct command *c, struct slice json, struct buf *ret)
{
    unsigned names = 0;

    while (json.len > 0) {
        bool is_text = json.ptr[0] == '"';
        size_t len = is_text ? literal_len(json) : number_len(json);
        struct slice literal = {json.ptr, len > 0 ? len : 1};
        json = (struct slice){json.ptr + literal.len, json.len - literal.len};
        if (is_text)
            write_clean(c, literal, is_name_of_member(json) ? &names : NULL, ret);
        else if (len > 0 && exec_secrets_have(&c->secrets, literal))
            buf_str(ret, "\"***\"");
        else
            buf_slice(ret, literal);
    }
}
