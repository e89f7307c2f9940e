#ifndef DISPATCH_SETTINGS_H
#define DISPATCH_SETTINGS_H

/*
 * What a user may set of an agent: how much of its work runs at a time and how fast it begins, and
 * when its breaker opens. As JSON, of which all that is left out is as by default:
 *
 *     {"limits": {"concurrency": 50, "rate": "100/s",
 *                 "actions": {"charge": {"concurrency": 5, "rate": "600/m"}}},
 *      "breaker": {"enabled": true, "calls": 20, "failures": 80, "slow": "5s", "slow_calls": 80,
 *                  "window": "30s", "wait": "5s", "max_wait": "1m", "trials": 3}}
 *
 * Pure: no clock, nothing shared; from any thread.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct json;

/* At most so many attempts at a time, and so many begun in each `rate_ms`. 0: no limit. */
struct limit {
    uint32_t concurrency;
    uint32_t rate_count;
    int64_t rate_ms; /* of a second, a minute or an hour; 0 with rate_count */
};

struct action_limit {
    struct slice action;
    struct limit limit;
};

/* When the breaker opens, and what makes it close: see dispatch/breaker.h. */
struct breaker_rule {
    bool off;
    uint32_t calls;            /* fewer ends than this within the window say nothing */
    uint32_t failures_percent; /* of them that make it open */
    int64_t slow_ms;           /* who completes after more than this was slow; 0: nobody is */
    uint32_t slow_percent;     /* of them that make it open */
    int64_t window_ms;         /* what is older does not count */
    int64_t wait_ms;           /* before the first trials; doubled with each that fails ... */
    int64_t max_wait_ms;       /* ... up to this */
    uint32_t trials;           /* at a time, while half-open; as many successes close it */
};

struct agent_settings {
    struct limit limit;
    struct action_limit *actions; /* by name; of whoever owns the settings */
    size_t action_count;
    struct breaker_rule breaker;
};

enum { SETTINGS_ACTIONS_MAX = 1000 };

/* What is so for an agent of which nobody has said anything. Has no actions. */
struct agent_settings settings_default(void);

/* Reads settings out of a tree. What they hold lies in `a`, no longer in the tree. ERR_INVALID: *e
 * says where and what is wrong, and what is expected; *ret is left alone. */
enum err settings_read(const struct json *j, struct arena *a, struct agent_settings *ret,
                       struct error *e) MUST_USE;

/* The same of a text: ERR_PARSE, too. */
enum err settings_parse(struct slice text, struct arena *a, struct agent_settings *ret,
                        struct error *e) MUST_USE;

/* As above, complete: defaults stand there, too. Reading that gives the same settings. */
void settings_write(struct buf *b, const struct agent_settings *st);

#endif
