#ifndef DISPATCH_AGENT_SETTINGS_H
#define DISPATCH_AGENT_SETTINGS_H

/*
 * What a user may set for an agent: how much of its work runs at a time, how fast it starts, and
 * when its breaker opens. JSON; missing members have their defaults:
 *
 *     {"limits": {"concurrency": 50, "rate": "100/s",
 *                 "actions": {"charge": {"concurrency": 5, "rate": "600/m"}}},
 *      "breaker": {"enabled": true, "calls": 20, "failures": 80, "slow": "5s", "slow_calls": 80,
 *                  "window": "30s", "wait": "5s", "max_wait": "1m", "trials": 3}}
 *
 * Pure: no clock, nothing shared; callable on any thread.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct json;

/* At most this many attempts at a time, and this many started in each `rate_ms`. 0: no limit. */
struct limit {
    uint32_t concurrency;
    uint32_t rate_count;
    int64_t rate_ms; /* a second, a minute or an hour; 0 without a rate */
};

struct action_limit {
    struct slice action;
    struct limit limit;
};

/* When the breaker opens and closes: see dispatch/breaker.h. */
struct breaker_rule {
    bool off;
    uint32_t calls;            /* with fewer ends in the window it does not open */
    uint32_t failures_percent; /* of them, to open it */
    int64_t slow_ms;           /* attempts that take longer count as slow; 0: none do */
    uint32_t slow_percent;     /* of them, to open it */
    int64_t window_ms;         /* older ends do not count */
    int64_t wait_ms;           /* before the first trials; doubles with each failed trial ... */
    int64_t max_wait_ms;       /* ... up to this */
    uint32_t trials;           /* at a time, while half-open; as many successes close it */
};

struct agent_settings {
    struct limit limit;
    struct action_limit *actions; /* by name; memory of the settings' owner */
    size_t action_count;
    struct breaker_rule breaker;
};

enum { SETTINGS_ACTIONS_MAX = 1000 };

/* The settings of an agent for which nothing is stored. Has no actions. */
struct agent_settings settings_default(void);

/* Reads settings from a tree. The result lies in `a` and does not refer to the tree. ERR_INVALID:
 * *e says where the error is, what was found and what was expected; *ret is unchanged. */
enum err settings_read(const struct json *j, struct arena *a, struct agent_settings *ret,
                       struct error *e) MUST_USE;

/* The same from a text. Also ERR_PARSE. */
enum err settings_parse(struct slice text, struct arena *a, struct agent_settings *ret,
                        struct error *e) MUST_USE;

/* Writes the settings in full, defaults included. Reading them back gives the same settings. */
void settings_write(struct buf *b, const struct agent_settings *st);

#endif
