/* An agent's settings from JSON, with exact error texts, and back. Pure; see agent_settings.h.
 * Applied by: tasks/breakers.c. */

#include "dispatch/agent_settings.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/when.h"
#include "json/json.h"

enum { COUNT_MAX = 1000000, SHOWN_MAX = 60, ACTION_MAX = 128, WHERE_SIZE = 200 };

struct agent_settings settings_default(void)
{
    return (struct agent_settings){.breaker = {.calls = 20,
                                               .failures_percent = 80,
                                               .slow_percent = 80,
                                               .window_ms = 30000,
                                               .wait_ms = 5000,
                                               .max_wait_ms = 60000,
                                               .trials = 3}};
}

/* ---- reading: a member that is missing or null has its default ---- */

struct reading {
    struct arena *arena;
    struct error *e;
};

static enum err wrong(struct reading *r, const char *where, const struct json *found,
                      const char *expected)
{
    return error_set(r->e, ERR_INVALID, "%s is %.*s, expected %s", where,
                     SLICE_ARG(slice_cut(found->raw, SHOWN_MAX)), expected);
}

static bool is_left_out(const struct json *j)
{
    return !j || j->type == JSON_NULL;
}

/* Is it an object with known members only? */
static enum err members(struct reading *r, const char *where, const struct json *j,
                        const char *const *known)
{
    CLEANUP(buf_fini) struct buf names = {0};

    if (j->type != JSON_OBJECT)
        return wrong(r, where, j, "an object");
    for (size_t i = 0; known[i]; i++)
        buf_fmt(&names, "%s%s", i == 0 ? "" : known[i + 1] ? ", " : " or ", known[i]);
    for (const struct json *m = j->child; m; m = m->next) {
        bool found = false;
        for (size_t i = 0; known[i] && !found; i++)
            found = slice_is(m->key, known[i]);
        if (!found)
            return error_set(r->e, ERR_INVALID, "there is no member \"%.*s\" in %s, expected %s",
                             SLICE_ARG(slice_cut(m->key, SHOWN_MAX)), where, names.ptr);
    }
    return ERR_OK;
}

static enum err read_count(struct reading *r, const char *where, const struct json *j, int64_t max,
                           uint32_t *ret)
{
    char expected[60];
    int64_t v = 0;

    if (is_left_out(j))
        return ERR_OK;
    (void)snprintf(expected, sizeof expected, "a whole number from 1 to %" PRId64, max);
    if (!json_int(j, &v) || v < 1 || v > max)
        return wrong(r, where, j, expected);
    *ret = (uint32_t)v;
    return ERR_OK;
}

static enum err read_duration(struct reading *r, const char *where, const struct json *j,
                              int64_t *ret)
{
    int64_t ms = 0;

    if (is_left_out(j))
        return ERR_OK;
    if (j->type != JSON_STRING || !duration_parse(j->text, &ms) || ms < 1 || ms > MS_PER_D)
        return wrong(r, where, j, "a duration from 1ms to 1d, such as \"30s\"");
    *ret = ms;
    return ERR_OK;
}

static enum err read_flag(struct reading *r, const char *where, const struct json *j, bool *ret)
{
    if (is_left_out(j))
        return ERR_OK;
    if (j->type != JSON_TRUE && j->type != JSON_FALSE)
        return wrong(r, where, j, "true or false");
    *ret = j->type == JSON_TRUE;
    return ERR_OK;
}

static const struct {
    const char *unit;
    int64_t ms;
} rate_units[] = {{"s", MS_PER_S}, {"m", MS_PER_MIN}, {"h", MS_PER_H}};

/* "100/s" */
static bool rate_parse(struct slice text, struct limit *ret)
{
    const char *slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    uint32_t count = 0;

    if (!slash || slash == text.ptr || slash - text.ptr > 7)
        return false;
    for (const char *c = text.ptr; c < slash; c++) {
        if (*c < '0' || *c > '9')
            return false;
        count = count * 10 + (uint32_t)(*c - '0');
    }
    const struct slice unit = {slash + 1, (size_t)(text.ptr + text.len - slash - 1)};
    for (size_t i = 0; i < COUNT_OF(rate_units); i++)
        if (slice_is(unit, rate_units[i].unit)) {
            ret->rate_count = count;
            ret->rate_ms = rate_units[i].ms;
        }
    return count >= 1 && count <= COUNT_MAX && ret->rate_ms > 0;
}

static enum err read_limit(struct reading *r, const char *where, const struct json *j,
                           struct limit *ret)
{
    const struct json *rate = json_get(j, "rate");
    char inner[WHERE_SIZE + 16];
    struct limit l = {0};

    (void)snprintf(inner, sizeof inner, "%s.concurrency", where);
    enum err err = read_count(r, inner, json_get(j, "concurrency"), COUNT_MAX, &l.concurrency);
    if (err != ERR_OK)
        return err;
    (void)snprintf(inner, sizeof inner, "%s.rate", where);
    if (!is_left_out(rate) && (rate->type != JSON_STRING || !rate_parse(rate->text, &l)))
        return wrong(r, inner, rate,
                     "a count and a unit such as \"100/s\", \"600/m\" or \"5000/h\"");
    *ret = l;
    return ERR_OK;
}

static int by_action(const void *a, const void *b)
{
    return slice_order(((const struct action_limit *)a)->action,
                       ((const struct action_limit *)b)->action);
}

static enum err read_action(struct reading *r, const struct json *j, struct action_limit *ret)
{
    static const char *const known[] = {"concurrency", "rate", NULL};
    char where[WHERE_SIZE];

    if (j->key.len < 1 || j->key.len > ACTION_MAX)
        return error_set(r->e, ERR_INVALID,
                         "limits.actions has \"%.*s\", expected names of actions of 1 to %d bytes",
                         SLICE_ARG(slice_cut(j->key, SHOWN_MAX)), ACTION_MAX);
    (void)snprintf(where, sizeof where, "limits.actions.%.*s", SLICE_ARG(j->key));
    enum err err = members(r, where, j, known);
    if (err != ERR_OK)
        return err;
    ret->action = arena_copy(r->arena, j->key);
    return read_limit(r, where, j, &ret->limit);
}

static enum err read_actions(struct reading *r, const struct json *j, struct agent_settings *st)
{
    if (is_left_out(j))
        return ERR_OK;
    if (j->type != JSON_OBJECT)
        return wrong(r, "limits.actions", j, "an object with a limit for each action");
    if (j->count > SETTINGS_ACTIONS_MAX)
        return error_set(r->e, ERR_INVALID, "limits.actions has %u actions, expected at most %d",
                         j->count, SETTINGS_ACTIONS_MAX);
    st->actions = arena_alloc(r->arena, (j->count + 1) * sizeof *st->actions);
    for (const struct json *m = j->child; m; m = m->next) {
        enum err err = read_action(r, m, &st->actions[st->action_count++]);
        if (err != ERR_OK)
            return err;
    }
    qsort(st->actions, st->action_count, sizeof *st->actions, by_action);
    return ERR_OK;
}

static enum err read_limits(struct reading *r, const struct json *j, struct agent_settings *st)
{
    static const char *const known[] = {"concurrency", "rate", "actions", NULL};

    if (is_left_out(j))
        return ERR_OK;
    enum err err = members(r, "limits", j, known);
    if (err == ERR_OK)
        err = read_limit(r, "limits", j, &st->limit);
    return err == ERR_OK ? read_actions(r, json_get(j, "actions"), st) : err;
}

static enum err read_breaker(struct reading *r, const struct json *j, struct breaker_rule *b)
{
    static const char *const known[] = {"enabled", "calls", "failures", "slow",   "slow_calls",
                                        "window",  "wait",  "max_wait", "trials", NULL};
    bool enabled = !b->off;

    if (is_left_out(j))
        return ERR_OK;
    enum err err = members(r, "breaker", j, known);
    const struct {
        const char *name;
        int64_t max;
        uint32_t *to;
    } counts[] = {{"calls", COUNT_MAX, &b->calls},
                  {"failures", 100, &b->failures_percent},
                  {"slow_calls", 100, &b->slow_percent},
                  {"trials", 1000, &b->trials}};
    const struct {
        const char *name;
        int64_t *to;
    } durations[] = {{"slow", &b->slow_ms},
                     {"window", &b->window_ms},
                     {"wait", &b->wait_ms},
                     {"max_wait", &b->max_wait_ms}};
    char where[WHERE_SIZE];

    for (size_t i = 0; i < COUNT_OF(counts) && err == ERR_OK; i++) {
        (void)snprintf(where, sizeof where, "breaker.%s", counts[i].name);
        err = read_count(r, where, json_get(j, counts[i].name), counts[i].max, counts[i].to);
    }
    for (size_t i = 0; i < COUNT_OF(durations) && err == ERR_OK; i++) {
        (void)snprintf(where, sizeof where, "breaker.%s", durations[i].name);
        err = read_duration(r, where, json_get(j, durations[i].name), durations[i].to);
    }
    if (err == ERR_OK)
        err = read_flag(r, "breaker.enabled", json_get(j, "enabled"), &enabled);
    b->off = !enabled;
    if (err == ERR_OK && b->max_wait_ms < b->wait_ms) {
        if (!is_left_out(json_get(j, "max_wait")))
            return error_set(r->e, ERR_INVALID,
                             "breaker.max_wait is shorter than breaker.wait, expected at least it");
        b->max_wait_ms = b->wait_ms; /* only the default is shorter */
    }
    return err;
}

enum err settings_read(const struct json *j, struct arena *a, struct agent_settings *ret,
                       struct error *e)
{
    static const char *const known[] = {"limits", "breaker", NULL};
    struct agent_settings st = settings_default();
    struct reading r = {.arena = a, .e = e};

    enum err err = members(&r, "the settings of an agent", j, known);
    if (err == ERR_OK)
        err = read_limits(&r, json_get(j, "limits"), &st);
    if (err == ERR_OK)
        err = read_breaker(&r, json_get(j, "breaker"), &st.breaker);
    if (err == ERR_OK)
        *ret = st;
    return err;
}

enum err settings_parse(struct slice text, struct arena *a, struct agent_settings *ret,
                        struct error *e)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    if (json_parse_within(&tree, text, JSON_DEPTH_OUTSIDE, &j, &fault) != ERR_OK)
        return error_set(e, ERR_PARSE, "settings of an agent: line %u, column %u: %s", fault.line,
                         fault.column, fault.what);
    return settings_read(j, a, ret, e);
}

/* ---- writing ---- */

static void write_count(struct buf *b, const char *key, uint32_t v)
{
    json_key(b, key);
    if (v == 0)
        json_null(b);
    else
        json_number(b, v);
}

static void write_duration(struct buf *b, const char *key, int64_t ms)
{
    CLEANUP(buf_fini) struct buf text = {0};

    json_key(b, key);
    if (ms == 0) {
        json_null(b);
        return;
    }
    duration_write(&text, ms);
    json_string(b, buf_view(&text));
}

static void write_limit(struct buf *b, const struct limit *l)
{
    CLEANUP(buf_fini) struct buf text = {0};

    write_count(b, "concurrency", l->concurrency);
    for (size_t i = 0; i < COUNT_OF(rate_units); i++)
        if (l->rate_count && l->rate_ms == rate_units[i].ms)
            buf_fmt(&text, "%" PRIu32 "/%s", l->rate_count, rate_units[i].unit);
    json_key(b, "rate");
    json_string(b, text.len ? buf_view(&text) : SLICE_NONE);
}

static void write_breaker(struct buf *b, const struct breaker_rule *r)
{
    json_open(b, '{');
    json_key(b, "enabled");
    json_bool(b, !r->off);
    write_count(b, "calls", r->calls);
    write_count(b, "failures", r->failures_percent);
    write_duration(b, "slow", r->slow_ms);
    write_count(b, "slow_calls", r->slow_percent);
    write_duration(b, "window", r->window_ms);
    write_duration(b, "wait", r->wait_ms);
    write_duration(b, "max_wait", r->max_wait_ms);
    write_count(b, "trials", r->trials);
    json_close(b, '}');
}

void settings_write(struct buf *b, const struct agent_settings *st)
{
    json_open(b, '{');
    json_key(b, "limits");
    json_open(b, '{');
    write_limit(b, &st->limit);
    json_key(b, "actions");
    json_open(b, '{');
    for (size_t i = 0; i < st->action_count; i++) {
        json_key_slice(b, st->actions[i].action);
        json_open(b, '{');
        write_limit(b, &st->actions[i].limit);
        json_close(b, '}');
    }
    json_close(b, '}');
    json_close(b, '}');
    json_key(b, "breaker");
    write_breaker(b, &st->breaker);
    json_close(b, '}');
}
