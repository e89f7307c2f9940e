/* Draws workflows from the seed, or makes fixed ones for scenes: as JSON for the definition's
 * compiler, and side by side as plain data for the checkers, so that neither is derived from the
 * other (flow.h). A new feature of definitions is drawn here. */

#include "sim/flow.h"

#include <stdio.h>

#include "base/when.h"
#include "sim/family.h"
#include "sim/items.h"
#include "sim/long.h"
#include "sim/node.h"
#include "sim/weather.h"
#include "sim/world.h"
#include "store/codec/codec.h"
#include "json/json.h"

/* ---- drawing ---- */

static struct flow_retry draw_retry(void)
{
    struct flow_retry r = {0};

    r.attempts = 1 + below(4);
    r.wait_ms = spread(1, 3000);
    r.defers = chance(150) ? 1 + below(2) : 0;
    r.defer_ms = spread(3000, 90000);

    if (chance(80)) { /* so many that not all attempts are kept */
        r.attempts = 30 + below(20);
        r.wait_ms = 1 + below(20);
    }
    r.max_wait_ms = r.wait_ms * (1 + below(8));
    return r;
}

/* A definition is refused if its attempts take longer than its complete-by. */
static int64_t waits_of(const struct flow_retry *r)
{
    int64_t sum = r->defers * r->defer_ms;
    int64_t wait = r->wait_ms;

    for (uint32_t i = 1; i < r->attempts; i++) {
        sum += wait - wait / 2;
        wait = min_i64(2 * wait, r->max_wait_ms);
    }
    return sum;
}

void flow_fit_undo(struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++) {
        const struct flow_step *s = &f->steps[i];
        if (f->undo_complete_by_ms && s->undo == UNDO_CALL)
            f->undo_complete_by_ms = max_i64(f->undo_complete_by_ms, waits_of(&s->undo_retry) + 1);
    }
}

static void fit_deadlines(struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->complete_by_ms)
            f->complete_by_ms = max_i64(f->complete_by_ms, waits_of(&f->steps[i].retry) + 1);
    flow_fit_undo(f);
}

static uint32_t draw_before(uint32_t step, bool graph)
{
    if (step == 0)
        return 0;
    if (!graph)
        return BIT(step - 1);
    uint32_t before = below(BIT(step));
    return chance(300) ? before : before & below(BIT(step)); /* mostly few edges */
}

/* Derives `past` and `future` from `before` of the step and earlier ones. */
static void close_graph(struct flow *f, uint32_t i)
{
    struct flow_step *s = &f->steps[i];

    for (uint32_t b = 0; b < i; b++)
        if (s->before & BIT(b))
            s->past |= BIT(b) | f->steps[b].past;
    for (uint32_t b = 0; b < i; b++)
        if (s->past & BIT(b))
            f->steps[b].future |= BIT(i);
}

static enum on_failure draw_on_failure(void)
{
    uint32_t roll = below(10);

    return roll < 7 ? ON_FAILURE_UNDO : roll < 8 ? ON_FAILURE_HOLD : ON_FAILURE_CONTINUE;
}

static void draw_step(struct flow *f, uint32_t i, bool graph, uint32_t services, bool pivot)
{
    struct flow_step *s = &f->steps[i];
    uint32_t roll = below(10);

    *s = (struct flow_step){0};
    s->service = below(services);
    s->undo_service = below(services);
    s->undo = pivot ? UNDO_PIVOT : roll < 8 ? UNDO_CALL : UNDO_NONE;
    s->on_failure = draw_on_failure();
    s->before = draw_before(i, graph);
    s->complete_by_ms = spread(60, 30000);
    s->undo_complete_by_ms = spread(60, 30000);
    s->retry = draw_retry();
    s->undo_retry = draw_retry();
    if (pivot && chance(weather.pivots ? 900 : 300)) { /* soon in doubt, with long waits */
        s->complete_by_ms = between(60, 400);
        s->retry.attempts = 1 + below(2);
        s->retry.defers = 1 + below(2);
    }
    long_draw(s);
    close_graph(f, i);
}

/* Other branches that want the task undone while the pivot is in doubt. */
static void draw_failing_branches(struct flow *f, uint32_t pivot)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (i != pivot && chance(600)) {
            f->steps[i].retry.attempts = 1;
            f->steps[i].retry.defers = 0;
            f->steps[i].on_failure = ON_FAILURE_UNDO;
        }
}

/* One run in eight has longer workflows; this is not drawn from the run's source. */
static uint32_t draw_step_count(void)
{
    uint64_t own = hash_stable(&world.seed, sizeof world.seed) ^ 0x57e9;
    uint32_t count = 1 + below(FLOW_STEPS_FEW);

    return own % 8 == 0 ? count + FLOW_STEPS_MAX - FLOW_STEPS_FEW : count;
}

/* One run in six; not drawn from the run's source. With this number, no seed that was kept earlier
 * is among them. */
bool flows_go_back(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0xffb2) % 6 == 0;
}

static void draw_step_of_on_undo(struct flow *f, struct prng *own, bool first)
{
    uint32_t i = f->step_count++;
    struct flow_step *s = &f->steps[i];

    *s = (struct flow_step){
        .on_undo = true,
        .service = prng_below(own, SERVICES_MAX),
        .undo = UNDO_NONE,
        .on_failure = prng_chance(own, 30) ? ON_FAILURE_CONTINUE : ON_FAILURE_HOLD,
        .before = !first && prng_chance(own, 60) ? BIT(i - 1) : 0,
        .complete_by_ms = 100 + prng_below(own, 20000),
        .undo_complete_by_ms = MS_PER_S,
        .retry = {.attempts = 1 + prng_below(own, 5), .wait_ms = 1 + prng_below(own, 2000)},
        .may_break = prng_chance(own, 20), /* it has a condition */
    };
    s->retry.max_wait_ms = s->retry.wait_ms;
    s->undo_retry = s->retry;
    if (f->undo_complete_by_ms)
        f->undo_complete_by_ms = max_i64(f->undo_complete_by_ms, waits_of(&s->retry) + 1);
    close_graph(f, i);
}

/* In other runs processed tasks stay so. */
static void draw_way_back(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x6f6e5f756e646f00) + number)};
    uint32_t count = prng_below(&own, 4);

    f->undo_until_ms = 1;
    if (!flows_go_back())
        return;
    f->undo_until_ms = prng_chance(&own, 50) ? 0 : 1000 + prng_below(&own, 100000);
    for (uint32_t i = 0; i < count && f->step_count < FLOW_STEPS_MAX; i++)
        draw_step_of_on_undo(f, &own, i == 0);
}

/* One run in six, as above. */
bool flows_wait(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0xebf281) % 6 == 0;
}

/* Some steps become waits. The task has time for all of them, one after the other. */
static void draw_waits(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x7761697473000000) + number)};
    int64_t sum = 0;

    for (uint32_t i = 0; i < f->step_count && flows_wait(); i++) {
        struct flow_step *s = &f->steps[i];
        if (s->undo == UNDO_PIVOT || s->on_undo || !prng_chance(&own, 40))
            continue;
        s->is_wait = true;
        s->undo = UNDO_NONE;
        if (prng_chance(&own, 60))
            s->wait_ms = 1 + prng_below(&own, prng_chance(&own, 30) ? 60000 : 5000);
        else
            s->wait_plus_ms = (int64_t)prng_below(&own, 40000) - 5000;
        s->may_break |= s->wait_ms == 0 && prng_chance(&own, 10);
        sum += s->wait_ms;
    }
    if (f->complete_by_ms && sum > 0)
        f->complete_by_ms = max_i64(f->complete_by_ms, sum + 1);
}

/* One run in seven, as above. */
bool flows_signal(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0x52bc2c) % 7 == 0 && !flows_wait();
}

/* Some steps wait for a signal instead. */
static void draw_signals(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x7369676e616c0000) + number)};

    if (!flows_signal())
        return;
    f->undo_signal = prng_chance(&own, 50);
    for (uint32_t i = 0; i < f->step_count; i++) {
        struct flow_step *s = &f->steps[i];
        if (s->undo == UNDO_PIVOT || s->on_undo || !prng_chance(&own, 40))
            continue;
        s->is_wait = s->is_signal = true;
        s->undo = UNDO_NONE;
        s->signal_name = prng_chance(&own, 60) ? 'a' : 'b';
        s->takes_all = prng_chance(&own, 50);
        if (prng_chance(&own, 60))
            s->signal_ms = 1 + prng_below(&own, prng_chance(&own, 50) ? 60000 : 5000);
        s->has_default = s->signal_ms && prng_chance(&own, 50);
        s->may_break |= s->signal_ms && !s->has_default;
    }
}

/* One run in seven, as above. */
bool flows_approve(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0x430e1) % 7 == 0 && !flows_wait()
           && !flows_signal();
}

bool flow_excludes(const struct flow *f)
{
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].not_submitter)
            return true;
    return false;
}

/* In some steps people decide. */
static void draw_approvals(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x766f746573000000) + number)};

    for (uint32_t i = 0; i < f->step_count && flows_approve(); i++) {
        struct flow_step *s = &f->steps[i];
        if (s->undo == UNDO_PIVOT || s->on_undo || !prng_chance(&own, 40))
            continue;
        s->is_wait = s->is_approval = s->may_break = true;
        s->undo = UNDO_NONE;
        s->people = 1 + prng_below(&own, 3);
        s->not_submitter = prng_chance(&own, 50);
        if (prng_chance(&own, 50))
            s->asks_ms = 2 + prng_below(&own, prng_chance(&own, 50) ? 60000 : 5000);
        int64_t most = min_i64(prng_chance(&own, 50) ? 60000 : 5000, s->asks_ms - 1);
        if (prng_chance(&own, 50))
            s->escalate_ms = 1 + prng_below(&own, s->asks_ms ? (uint32_t)most : 30000);
        s->has_default = s->asks_ms && prng_chance(&own, 50);
    }
}

/* One run in six, as above. */
bool flows_lock(void)
{
    return (hash_stable(&world.seed, sizeof world.seed) ^ 0x137872b) % 6 == 0;
}

/* Those that share a lock may differ in its maximum: the taker's counts. */
static void draw_lock(struct flow *f, uint32_t number)
{
    struct prng own = {.state = world.seed ^ (UINT64_C(0x6c6f636b73000000) + number)};

    if (!flows_lock() || prng_chance(&own, 25))
        return;
    f->lock_shared = prng_chance(&own, 40);
    f->lock_keys = f->lock_shared ? 2 : 1 + prng_below(&own, 5);
    f->lock_max = 1 + prng_below(&own, 3);
    f->lock_replaces = prng_chance(&own, 30);
    f->lock_refuses = !f->lock_replaces && prng_chance(&own, 25);
}

static void draw(struct flow *f, uint32_t number)
{
    bool graph = chance(weather.bad_expressions || weather.pivots ? 900 : 500);
    uint32_t services = weather.bad_expressions ? 1 : 1 + below(SERVICES_MAX);

    *f = (struct flow){.step_count = draw_step_count()};
    (void)snprintf(f->name, sizeof f->name, "f%u", number);
    f->on_failure = chance(700) ? ON_FAILURE_UNDO : ON_FAILURE_HOLD;
    f->complete_by_ms = chance(300) ? spread(500, 5 * MS_PER_MIN) : 0;
    f->undo_complete_by_ms = chance(200) ? spread(300, MS_PER_MIN) : 0;
    uint32_t pivot = chance(weather.pivots ? 900 : 400) ? below(f->step_count) : FLOW_STEPS_MAX;
    for (uint32_t i = 0; i < f->step_count; i++)
        draw_step(f, i, graph, services, i == pivot);
    if (weather.pivots)
        draw_failing_branches(f, pivot);
    fit_deadlines(f);
    draw_waits(f, number);
    draw_signals(f, number);
    draw_approvals(f, number);
    draw_way_back(f, number);
    flow_draw_repeated(f, number);
    flow_draw_items(f, number);
    draw_lock(f, number);
}

/* ---- as JSON ---- */

static void put_duration_value(struct buf *b, int64_t ms)
{
    buf_byte(b, '"');
    duration_write(b, ms);
    buf_byte(b, '"');
}

static void put_duration(struct buf *b, const char *key, int64_t ms)
{
    json_key(b, key);
    put_duration_value(b, ms);
}

static void put_retry(struct buf *b, const struct flow_retry *r)
{
    json_key(b, "retry");
    json_open(b, '{');
    json_key(b, "attempts");
    json_number(b, r->attempts);
    put_duration(b, "wait", r->wait_ms);
    put_duration(b, "max_wait", r->max_wait_ms);
    if (r->defers) {
        put_duration(b, "defer", r->defer_ms);
        json_key(b, "defers");
        json_number(b, r->defers);
    }
    json_close(b, '}');
}

static void put_text(struct buf *b, const char *key, struct slice text)
{
    json_key(b, key);
    json_string(b, text);
}

/* A predecessor whose output the step may refer to, or -1. */
static int known_step(const struct flow_step *s)
{
    int known = -1;

    for (int b = 0; b < FLOW_STEPS_MAX; b++)
        if (s->past & BIT(b) && (known < 0 || chance(400)))
            known = b;
    return known;
}

static void put_condition(struct buf *b, const struct flow *f, struct flow_step *s)
{
    int known = known_step(s);

    if (!chance(200))
        return;
    s->may_break = true;
    uint32_t roll = below(10);
    bool plain = known < 0 && !flows_go_back(); /* otherwise it may turn back at its submission */
    if (roll < 5 || plain || (known < 0 && roll < 9))
        put_text(b, "if", SLICE(".input.flag"));
    else if (roll < 9 && f->steps[known].is_each)
        put_text(b, "if", text_of(".steps.s%d.failed == 0", known));
    else if (roll < 9)
        put_text(b, "if", text_of(".steps.s%d.output.n > 30", known));
    else
        put_text(b, "if", SLICE(".input.text.nothing"));
}

static void put_input(struct buf *b, const struct flow *f, struct flow_step *s)
{
    int known = known_step(s);
    uint32_t roll = below(20);

    if (roll < 8)
        return;
    json_key(b, "input");
    json_open(b, '{');
    put_text(b, "n", SLICE("${ .input.n }"));
    if (s->says_round)
        put_text(b, "round", SLICE("${ .round }"));
    if (known >= 0 && f->steps[known].is_each)
        put_text(b, "of", text_of("${ .steps.s%d.output }", known));
    else if (known >= 0)
        put_text(b, "of", text_of("${ .steps.s%d.output.id }", known));
    if (roll >= (weather.bad_expressions ? 15 : 18)) {
        put_text(b, "bad", SLICE("${ .input.text.nothing }"));
        s->may_break = true;
    }
    json_close(b, '}');
}

/* An undo may need the outputs of earlier steps. */
static void put_outputs_of(struct buf *b, const struct flow *f, uint32_t past)
{
    for (uint32_t k = 0; k < FLOW_STEPS_MAX; k++) {
        char key[16];
        (void)snprintf(key, sizeof key, "of%u", k);
        if (past & BIT(k) && !f->steps[k].is_each)
            put_text(b, key, text_of("${ .steps.s%u.output.id }", k));
    }
}

static void put_undo(struct buf *b, const struct flow *f, struct flow_step *s, uint32_t i)
{
    uint32_t roll = f->fixed ? 7 : below(20);

    if (s->undo == UNDO_PIVOT) {
        json_key(b, "pivot");
        json_bool(b, true);
        return;
    }
    if (s->undo == UNDO_NONE) {
        put_text(b, "undo", SLICE("none"));
        return;
    }
    json_key(b, "undo");
    json_open(b, '{');
    put_text(b, "agent", text_of("a%u", s->undo_service));
    put_text(b, "action", text_of("undo%u", i));
    put_duration(b, "complete_by", s->undo_complete_by_ms);
    if (s->undo_heartbeat_ms)
        put_duration(b, "heartbeat", s->undo_heartbeat_ms);
    put_retry(b, &s->undo_retry);
    if (roll < 8) {
        json_key(b, "input");
        json_open(b, '{');
        put_text(b, "id",
                 s->is_each ? SLICE("${ .output.id // null }")
                            : text_of("${ .steps.s%u.output.id }", i));
        put_outputs_of(b, f, s->past);
        put_text(b, "why", SLICE("${ .task.error }"));
        if (roll < (weather.bad_expressions ? 7u : 2u)) {
            put_text(b, "bad", SLICE("${ .input.text.nothing }"));
            s->may_break = true;
        }
        json_close(b, '}');
    }
    json_close(b, '}');
}

static const char *on_failure_text(enum on_failure o)
{
    return o == ON_FAILURE_UNDO ? "undo" : o == ON_FAILURE_HOLD ? "hold" : "continue";
}

static void put_after(struct buf *b, const struct flow_step *s, uint32_t i)
{
    if (!s->on_undo && s->before == (i == 0 ? 0 : BIT(i - 1)))
        return; /* that is the default */
    json_key(b, "after");
    json_open(b, '[');
    for (uint32_t k = 0; k < i; k++)
        if (s->before & BIT(k))
            json_string(b, text_of("s%u", k));
    json_close(b, ']');
}

/* A wait that may break has no moment. */
static void put_wait(struct buf *b, const struct flow_step *s)
{
    json_key(b, "wait");
    if (s->wait_ms) {
        put_duration_value(b, s->wait_ms);
        return;
    }
    json_open(b, '{');
    put_text(b, "until",
             s->may_break ? SLICE("${ .input.text }") : SLICE("${ .task.submitted_at }"));
    json_key(b, "plus");
    json_string(b, text_of("%s%" PRId64 "ms", s->wait_plus_ms < 0 ? "-" : "",
                           s->wait_plus_ms < 0 ? -s->wait_plus_ms : s->wait_plus_ms));
    json_close(b, '}');
}

static void put_signal(struct buf *b, const struct flow_step *s)
{
    json_key(b, "signal");
    json_open(b, '{');
    put_text(b, "name", (struct slice){&s->signal_name, 1});
    if (!s->takes_all)
        put_text(b, "match", SLICE(".data.ok"));
    json_close(b, '}');
    if (s->signal_ms)
        put_duration(b, "complete_by", s->signal_ms);
    if (!s->has_default)
        return;
    json_key(b, "default");
    json_raw(b, SLICE("{\"name\":\"nobody\"}"));
}

static void put_approve(struct buf *b, const struct flow_step *s)
{
    json_key(b, "approve");
    json_open(b, '{');
    put_text(b, "by", SLICE("g"));
    put_text(b, "question", SLICE("Is ${ .input.n } right?"));
    json_key(b, "people");
    json_number(b, s->people);
    if (s->not_submitter)
        put_text(b, "not", SLICE("submitter"));
    if (s->escalate_ms) {
        json_key(b, "escalate");
        json_open(b, '{');
        put_duration(b, "after", s->escalate_ms);
        put_text(b, "to", SLICE("h"));
        json_close(b, '}');
    }
    json_close(b, '}');
    if (s->asks_ms)
        put_duration(b, "complete_by", s->asks_ms);
    if (!s->has_default)
        return;
    json_key(b, "default");
    json_raw(b, SLICE("{\"approved\":false}"));
}

static void put_wait_step(struct buf *b, const struct flow *f, struct flow_step *s, uint32_t i)
{
    json_open(b, '{');
    put_text(b, "name", text_of("s%u", i));
    if (s->is_each)
        items_put(b, s);
    if (s->is_signal)
        put_signal(b, s);
    else if (s->is_approval)
        put_approve(b, s);
    else if (s->is_child)
        family_put_task(b, s);
    else
        put_wait(b, s);
    put_text(b, "on_failure", slice_of(on_failure_text(s->on_failure)));
    put_after(b, s, i);
    if (!f->fixed)
        put_condition(b, f, s);
    if (s->is_child && s->undo != UNDO_CHILD)
        put_undo(b, f, s, i);
    json_close(b, '}');
}

/* Where it may break, it does so unless the round satisfies it. */
static void put_repeat(struct buf *b, const struct flow_step *s)
{
    json_key(b, "repeat");
    json_open(b, '{');
    put_text(b, "until",
             s->may_break ? text_of(".round >= %u or .input.text.nothing", s->rounds)
                          : text_of(".round >= %u or .output.n > %d", s->rounds, FLOW_SATISFIES));
    put_duration(b, "every", s->every_ms);
    json_key(b, "factor");
    json_number(b, s->factor);
    put_duration(b, "max_every", s->max_every_ms);
    put_duration(b, "for", s->for_ms);
    json_close(b, '}');
}

static void put_step(struct buf *b, struct flow *f, uint32_t i)
{
    struct flow_step *s = &f->steps[i];

    if (s->is_child || (s->is_wait && !s->is_each)) {
        put_wait_step(b, f, s, i);
        return;
    }
    json_open(b, '{');
    put_text(b, "name", text_of("s%u", i));
    if (s->is_each)
        items_put(b, s);
    put_text(b, "agent", text_of("a%u", s->service));
    put_text(b, "action", text_of("act%u", i));
    put_duration(b, "complete_by", s->complete_by_ms);
    if (s->heartbeat_ms)
        put_duration(b, "heartbeat", s->heartbeat_ms);
    put_text(b, "on_failure", slice_of(on_failure_text(s->on_failure)));
    put_retry(b, &s->retry);
    put_after(b, s, i);
    if (s->on_undo && s->may_break && !f->fixed)
        put_text(b, "if", SLICE(".input.flag"));
    if (!f->fixed && !s->on_undo) {
        put_condition(b, f, s);
        if (!s->is_each)
            put_input(b, f, s);
    }
    if (s->is_each)
        items_put_input(b, s);
    if (s->is_repeated || s->item_rounds)
        put_repeat(b, s);
    put_undo(b, f, s, i);
    json_close(b, '}');
}

static void put_steps(struct buf *b, struct flow *f, bool on_undo)
{
    bool any = false;

    for (uint32_t i = 0; i < f->step_count; i++)
        any |= f->steps[i].on_undo == on_undo;
    if (!any)
        return;
    json_key(b, on_undo ? "on_undo" : "steps");
    json_open(b, '[');
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].on_undo == on_undo)
            put_step(b, f, i);
    json_close(b, ']');
}

static void put_lock(struct buf *b, const struct flow *f)
{
    if (f->lock_keys == 0)
        return;
    json_key(b, "lock");
    json_open(b, '{');
    put_text(b, "key", text_of("k${ .input.n %% %u }", f->lock_keys));
    json_key(b, "max");
    json_number(b, f->lock_max);
    if (f->lock_shared)
        put_text(b, "shared", SLICE("all"));
    if (f->lock_replaces)
        put_text(b, "if_taken", SLICE("replace"));
    if (f->lock_refuses)
        put_text(b, "if_taken", SLICE("refuse"));
    json_close(b, '}');
}

static struct slice write(struct flow *f)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_open(&b, '{');
    json_key(&b, "intact");
    json_number(&b, 1);
    put_text(&b, "workflow", slice_of(f->name));
    put_text(&b, "on_failure", slice_of(on_failure_text(f->on_failure)));
    if (f->complete_by_ms)
        put_duration(&b, "complete_by", f->complete_by_ms);
    if (f->undo_complete_by_ms)
        put_duration(&b, "undo_complete_by", f->undo_complete_by_ms);
    if (f->undo_until_ms)
        put_duration(&b, "undo_until", f->undo_until_ms);
    if (f->undo_signal) {
        json_key(&b, "on_signal");
        json_raw(&b, SLICE("{\"u\":\"undo\"}"));
    }
    put_lock(&b, f);
    put_steps(&b, f, false);
    put_steps(&b, f, true);
    if (f->steps[0].is_each) { /* others ask for the id of what a child returns */
        json_key(&b, "output");
        json_raw(&b, SLICE("{\"id\":\"${ .steps.s0.output }\"}"));
    } else {
        put_text(&b, "output", SLICE("${ .steps.s0.output }"));
    }
    json_close(&b, '}');
    return arena_copy(&world.arena, buf_view(&b));
}

static void enter(struct flow *f, struct registry *r)
{
    static struct mistakes mistakes;
    struct definition *d = NULL;
    struct slice text = write(f);

    f->text = text;
    f->stored = false;
    if (world.loud)
        fprintf(stderr, "%.*s\n", SLICE_ARG(text));
    mistakes.count = 0;
    if (definition_parse(text, DEFINITION_GUESS, &d, &mistakes, NULL) != ERR_OK)
        broken("definitions are accepted", "%s: found %s, expected %s: %.*s", mistakes.list[0].path,
               mistakes.list[0].found, mistakes.list[0].expected, SLICE_ARG(text));
    registry_add(r, d, 1);
    f->definition = registry_find(r, slice_of(f->name), 1);
    ASSERT(f->definition);
}

bool flow_is_long(const struct flow *f)
{
    return f->step_count > STEPS_FEW;
}

uint32_t flow_step_number(struct slice name)
{
    uint32_t n = 0;

    for (size_t i = 1; i < name.len && name.ptr[i] != '.'; i++)
        n = n * 10 + (uint32_t)(name.ptr[i] - '0');
    return n;
}

void flow_store(struct flow *f)
{
    int64_t version = 0;
    bool is_new = false;
    struct error e = {0};

    enum err err = inner->ops->workflow_put(inner, slice_of(f->name), f->text, store_now(), NULL,
                                            &version, &is_new, &e);
    ASSERT(err == ERR_OK);
    ASSERT(version == 1);
    f->stored = true;
    trace("the definition of %s is stored", f->name);
}

static void flow_is_stored(void *arg, uint64_t n)
{
    (void)n;
    flow_store(arg);
}

void flows_draw(struct flow *flows, uint32_t count, struct registry *r)
{
    for (uint32_t i = 0; i < count; i++) {
        draw(&flows[i], i);
        family_draw(flows, i);
        enter(&flows[i], r);
        if (nodes.shared && chance(500))
            later(spread(1, 30000), flow_is_stored, &flows[i], 0);
        else
            flow_store(&flows[i]);
    }
}

/* ---- for scenes ---- */

static void fix_call(int64_t *complete_by_ms, struct flow_retry *r)
{
    if (*complete_by_ms == 0)
        *complete_by_ms = MS_PER_S;
    if (r->attempts == 0)
        r->attempts = 1;
    if (r->wait_ms == 0)
        r->wait_ms = 100;
    if (r->max_wait_ms == 0)
        r->max_wait_ms = r->wait_ms;
}

void flow_fix(struct flow *f, const char *name, struct registry *r)
{
    f->fixed = true;
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    for (uint32_t i = 0; i < f->step_count; i++) {
        struct flow_step *s = &f->steps[i];
        fix_call(&s->complete_by_ms, &s->retry);
        fix_call(&s->undo_complete_by_ms, &s->undo_retry);
        s->is_wait |= s->is_each;
        close_graph(f, i);
    }
    enter(f, r);
}
