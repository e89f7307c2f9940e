/* Builds workflows from one line of text and plays scripts of events to a task: see
 * core_test_kit.h. Part of the tests. */
#include "core/core_test_kit.h"

#include <stdlib.h>

#include "base/when.h"
#include "core/attempts.h"
#include "core/core_test_items.h"

/* ---- graphs ---- */

static struct call_spec call_of(struct slice agent, int64_t complete_by_ms)
{
    return (struct call_spec){
        .agent = agent,
        .action = SLICE("act"),
        .complete_by_ms = complete_by_ms,
        .retry = {.attempts = 1,
                  .factor_milli = 1000,
                  .wait_ms = GRAPH_WAIT_MS,
                  .max_wait_ms = GRAPH_WAIT_MS,
                  .defer_ms = GRAPH_DEFER_MS},
    };
}

static void graph_edge(struct graph *g, uint16_t from, uint16_t to)
{
    struct workflow_step *f = &g->steps[from];
    struct workflow_step *t = &g->steps[to];

    g->before[to][t->before_count++] = from;
    g->after[from][f->after_count++] = to;
}

static void hurry(struct workflow_step *s)
{
    s->call.complete_by_ms = GRAPH_STEP_MS / 4;
    s->undo.complete_by_ms = GRAPH_UNDO_MS / 4;
}

static void become_wait(struct workflow_step *s, int64_t ms)
{
    s->kind = KIND_WAIT;
    s->wait_ms = ms;
    s->call = (struct call_spec){0};
    s->undo_kind = UNDO_NONE;
}

static void become_repeated(struct workflow_step *s)
{
    s->undo_kind = UNDO_NONE;
    s->repeat = (struct repeat_rule){.for_ms = GRAPH_FOR_MS,
                                     .every_ms = GRAPH_EVERY_MS,
                                     .max_every_ms = GRAPH_EVERY_MS,
                                     .factor_milli = 1000,
                                     .input_varies = true};
}

static void become_signal(struct workflow_step *s, char flag)
{
    static const struct slice names[] = {{"s", 1}, {"r", 1}};

    become_wait(s, 0);
    s->kind = KIND_SIGNAL;
    s->signal.names = names;
    s->signal.count = flag == '^' ? 2 : 1;
    s->signal.complete_by_ms = flag == '^' ? 0 : GRAPH_SIGNAL_MS;
    if (flag == '&')
        s->signal.otherwise = SLICE("{\"name\":\"nobody\"}");
}

static void become_approval(struct workflow_step *s, char flag)
{
    static const struct slice by[] = {{"g", 1}};
    static const struct slice to[] = {{"h", 1}};

    become_wait(s, 0);
    s->kind = KIND_APPROVE;
    s->approve = (struct approve_spec){.by = by, .by_count = 1, .people = flag == '=' ? 1 : 2};
    s->approve.not_submitter = flag == '=';
    if (flag == '=')
        return;
    s->approve.to = to;
    s->approve.to_count = 1;
    s->approve.escalate_ms = GRAPH_ESCALATE_MS;
    s->approve.complete_by_ms = GRAPH_SIGNAL_MS;
    if (flag == ';')
        s->approve.otherwise = SLICE("{\"approved\":false}");
}

static void become_parent(struct workflow_step *s, char flag)
{
    become_wait(s, 0);
    s->kind = KIND_TASK;
    s->undo_kind = flag == '>' ? UNDO_CALL : UNDO_CHILD;
    s->child.workflow = SLICE("other");
    s->child.complete_by_ms = flag == '|' ? GRAPH_SIGNAL_MS : 0;
}

static void graph_step(struct graph *g, const char *word)
{
    uint16_t i = (uint16_t)(word[0] - 'a');
    struct workflow_step *s = &g->steps[i];

    CHECK(i < GRAPH_STEPS, "step %s", word);
    for (const char *p = word + 1; *p; p++) {
        if (*p >= '1' && *p <= '9')
            s->call.retry.attempts = s->undo.retry.attempts = (uint32_t)(*p - '0');
        else if (*p == '!')
            s->undo_kind = UNDO_PIVOT;
        else if (*p == '-')
            s->undo_kind = UNDO_NONE;
        else if (*p == '+')
            s->on_undo = true;
        else if (*p == '/')
            hurry(s);
        else if (*p == '%')
            become_repeated(s);
        else if (*p == '~' || *p == '@')
            become_wait(s, *p == '~' ? GRAPH_LONG_MS : 0);
        else if (*p == '$' || *p == '&' || *p == '^')
            become_signal(s, *p);
        else if (*p == '*' || *p == ';' || *p == '=')
            become_approval(s, *p);
        else if (*p == ':' || *p == '|' || *p == '>')
            become_parent(s, *p);
        else if (*p == '{')
            p = kit_become_each(s, p + 1);
        else if (*p == '#')
            s->on_failure = ON_FAILURE_HOLD;
        else if (*p == '?')
            s->on_failure = ON_FAILURE_CONTINUE;
        else if (*p != '<')
            graph_edge(g, (uint16_t)(*p - 'a'), i);
    }
    if (s->on_undo) {
        s->undo_kind = UNDO_NONE;
        if (s->on_failure == ON_FAILURE_UNDO)
            s->on_failure = ON_FAILURE_HOLD;
    }
    if (s->kind == KIND_TASK)
        g->w.child_step_count++;
    g->order[g->w.step_count++] = i;
}

static int64_t ms_of(const char *text)
{
    int64_t ms = 0;

    CHECK(duration_parse(slice_of(text), &ms), "%s", text);
    return ms;
}

static void graph_word(struct graph *g, const char *word)
{
    if (strncmp(word, "by=", 3) == 0) {
        g->w.complete_by_ms = ms_of(word + 3);
    } else if (strncmp(word, "undo=", 5) == 0) {
        g->w.undo_complete_by_ms = ms_of(word + 5);
    } else if (strncmp(word, "until=", 6) == 0) {
        g->w.undo_until_ms = ms_of(word + 6);
    } else if (strncmp(word, "from=", 5) == 0) {
        g->not_before_ms = ms_of(word + 5);
    } else if (strncmp(word, "beat=", 5) == 0) {
        for (size_t i = 0; i < GRAPH_STEPS; i++)
            g->steps[i].call.heartbeat_ms = g->steps[i].undo.heartbeat_ms = ms_of(word + 5);
    } else if (strcmp(word, "undo-on-u") == 0) {
        static const struct slice names[] = {{"u", 1}};
        g->w.undo_signals = names;
        g->w.undo_signal_count = 1;
    } else if (strcmp(word, "child") == 0) {
        g->is_child = true;
    } else if (strcmp(word, "hold") == 0) {
        g->w.on_failure = ON_FAILURE_HOLD;
    } else if (strcmp(word, "continue") == 0) {
        g->w.on_failure = ON_FAILURE_CONTINUE;
    } else if (strncmp(word, "defers=", 7) == 0) {
        for (size_t i = 0; i < GRAPH_STEPS; i++) {
            g->steps[i].call.retry.defers = (uint32_t)(word[7] - '0');
            g->steps[i].undo.retry.defers = (uint32_t)(word[7] - '0');
        }
    } else {
        graph_step(g, word);
    }
}

void graph_make(struct graph *g, const char *text)
{
    char words[200];
    char *save = NULL;

    *g = (struct graph){.w = {.name = SLICE("w"), .version = 1}};
    for (size_t i = 0; i < GRAPH_STEPS; i++) {
        g->names[i][0] = (char)('a' + i);
        g->steps[i] = (struct workflow_step){
            .name = slice_of(g->names[i]),
            .call = call_of(SLICE("agent"), GRAPH_STEP_MS),
            .undo = call_of(SLICE("agent"), GRAPH_UNDO_MS),
            .before = g->before[i],
            .after = g->after[i],
        };
    }
    g->w.steps = g->steps;
    g->w.order = g->order;
    (void)snprintf(words, sizeof words, "%s", text);
    for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        graph_word(g, w);
    kit_graph_slots(g);
    CHECK(workflow_valid(&g->w), "%s", text);
}

/* ---- tasks ---- */

int64_t graph_not_before(const struct graph *g)
{
    return g->not_before_ms ? KIT_BEGIN + g->not_before_ms : 0;
}

int64_t graph_complete_by(const struct graph *g)
{
    return g->w.complete_by_ms ? KIT_BEGIN + g->not_before_ms + g->w.complete_by_ms : 0;
}

void graph_family(const struct graph *g, struct task *t)
{
    if (g->w.child_step_count > 0)
        t->family = SLICE("{\"other\":1}");
    if (!g->is_child)
        return;
    t->parent = SLICE("p");
    t->root = SLICE("r");
    t->parent_step = SLICE("s");
    t->parent_number = 1;
}

const struct ballot *kit_ballot(char person, bool agrees, uint32_t asking)
{
    static const struct slice groups[] = {{"x", 1}, {"g", 1}, {"h", 1}};
    static char name[2];
    static struct ballot b;
    bool in_g = (person >= 'A' && person <= 'G') || person == 'S';

    name[0] = person;
    b = (struct ballot){.person = slice_of(name), .agrees = agrees, .asking = asking};
    b.comment = agrees ? SLICE_NONE : SLICE("too much");
    b.groups = &groups[in_g ? 1 : person == 'H' ? 2 : 0];
    b.group_count = 1;
    return &b;
}

void kit_make(struct kit *k, const char *about, const char *graph)
{
    memset(k, 0, sizeof *k); /* as a literal it would be a large object on the stack */
    k->now = KIT_BEGIN;
    k->about = about;
    graph_make(&k->g, graph);
    k->t = (struct task){
        .id = SLICE("t"),
        .priority = 5,
        .submitted_at = k->now,
        .complete_by = graph_complete_by(&k->g),
        .not_before = graph_not_before(&k->g),
        .input = {.json = SLICE("{}")},
        .steps = k->steps,
        .step_count = k->g.w.step_count,
        .slot_count = k->g.w.slot_count,
        .signals = k->signals,
        .signal_cap = KIT_SIGNALS,
        .votes = k->votes,
        .vote_cap = KIT_VOTES,
        .owner = SLICE("till"),
        .submitter = SLICE("S"),
    };
    graph_family(&k->g, &k->t);
    for (size_t i = 0; i < task_unit_count(&k->t); i++) {
        k->steps[i].attempts = k->attempts[i];
        k->steps[i].attempt_cap = ATTEMPTS_KEPT;
        if (k->g.steps[i].kind == KIND_EACH)
            k->steps[i].items = &k->items[i];
    }
}

const char *kit_answer_text(enum answer a)
{
    static const char *const texts[] = {"accepted", "repeated", "late", "unknown", "refused"};
    return texts[a];
}

/* A refused event changes nothing, except that a late result is stored. Settling twice changes
 * nothing, so effects of several events may be combined. */
static void check_no_trace(struct kit *k, const struct kit *before, const struct event *ev)
{
    static struct kit again;
    struct effects full = {.changed = true};

    CHECK(memcmp(&k->t, &before->t, sizeof k->t) == 0, "%s: the task changed", k->about);
    CHECK(memcmp(k->steps, before->steps, sizeof k->steps) == 0, "%s: a step changed", k->about);
    CHECK(memcmp(k->attempts, before->attempts, sizeof k->attempts) == 0, "%s: an attempt changed",
          k->about);
    CHECK(memcmp(k->items, before->items, sizeof k->items) == 0, "%s: sums changed", k->about);
    CHECK(memcmp(k->signals, before->signals, sizeof k->signals) == 0, "%s: a signal changed",
          k->about);
    CHECK(memcmp(k->votes, before->votes, sizeof k->votes) == 0, "%s: a vote changed", k->about);
    CHECK(!k->fx.changed && !k->fx.alert && !k->fx.ended && !k->fx.stop_running, "%s: effects",
          k->about);
    memcpy(&again, k, sizeof again);
    enum answer answer = decide(&k->g.w, &k->t, ev, k->now, &full);
    CHECK(answer != ANSWER_ACCEPTED, "%s: accepted at the second time", k->about);
    CHECK(memcmp(&k->t, &again.t, sizeof k->t) == 0
              && memcmp(k->steps, again.steps, sizeof k->steps) == 0
              && memcmp(k->attempts, again.attempts, sizeof k->attempts) == 0
              && memcmp(k->items, again.items, sizeof k->items) == 0
              && memcmp(k->signals, again.signals, sizeof k->signals) == 0,
          "%s: settling twice differs", k->about);
}

/* A step is one with its items. */
static void check_others(const struct kit *k, const struct kit *before, const struct event *ev)
{
    for (uint16_t i = 0; i < task_unit_count(&k->t) && !k->fx.any_step; i++)
        CHECK((ev->step >= 0 && unit_step(&k->g.w, i) == unit_step(&k->g.w, (uint16_t)ev->step))
                  || (memcmp(&k->steps[i], &before->steps[i], sizeof k->steps[i]) == 0
                      && memcmp(k->attempts[i], before->attempts[i], sizeof k->attempts[i]) == 0),
              "%s: a step that is not the event's has changed", k->about);
}

enum answer kit_event(struct kit *k, const struct event *ev)
{
    static struct kit before;

    memcpy(&before, k, sizeof before);
    k->fx = (struct effects){0};
    enum answer answer = decide(&k->g.w, &k->t, ev, k->now, &k->fx);
    if (!k->fx.changed)
        check_no_trace(k, &before, ev);
    check_others(k, &before, ev);
    CHECK(k->fx.changed == (answer == ANSWER_ACCEPTED) || answer == ANSWER_LATE, "%s: %s", k->about,
          kit_answer_text(answer));
    bool ended = task_state_is_end(k->t.state) && k->t.state != before.t.state;
    CHECK(k->fx.ended == ended, "%s: ended", k->about);
    CHECK(task_valid(&k->g.w, &k->t), "%s: valid", k->about);
    kit_let_go(k);
    if (k->fx.changed && k->t.slot_count > 0)
        kit_after_items(k, ev);
    return answer;
}

/* ---- scripts ---- */

struct command {
    const char *verb, *step, *attempt;
    enum answer answer;
    bool alert, stop;
};

static bool expected_word(struct command *c, const char *word)
{
    for (enum answer a = ANSWER_ACCEPTED; a <= ANSWER_REFUSED; a++)
        if (strcmp(word, kit_answer_text(a)) == 0) {
            c->answer = a;
            return true;
        }
    c->alert |= strcmp(word, "alert") == 0;
    c->stop |= strcmp(word, "stop") == 0;
    return strcmp(word, "alert") == 0 || strcmp(word, "stop") == 0;
}

static struct command command_of(char *text)
{
    struct command c = {0};
    char *save = NULL;
    bool expected = false;

    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        if (strcmp(w, "=") == 0)
            expected = true;
        else if (expected)
            CHECK(expected_word(&c, w), "expected: %s", w);
        else if (!c.verb)
            c.verb = w;
        else if (!c.step)
            c.step = w;
        else
            c.attempt = w;
    }
    return c;
}

static struct event result_of(const char *verb)
{
    struct event ev = {.kind = EVENT_RESULT, .output = {.json = SLICE("{\"id\":1}")}};

    if (strcmp(verb, "ok") == 0)
        return ev;
    ev.output = (struct value){0};
    ev.failed = true;
    ev.error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
    ev.retryable = strcmp(verb, "again") == 0 || strcmp(verb, "lost") == 0;
    bool unknown = strcmp(verb, "doubt") == 0 || strcmp(verb, "lost") == 0;
    ev.effect = unknown ? EFFECT_UNKNOWN : EFFECT_NONE;
    return ev;
}

static struct event event_of(const char *verb)
{
    static const struct {
        const char *verb;
        enum event_kind kind;
    } verbs[] = {
        {"start", EVENT_START},
        {"notsent", EVENT_NOT_SENT},
        {"timeout", EVENT_TIMEOUT},
        {"resend", EVENT_SEND_AGAIN},
        {"ok", EVENT_RESULT},
        {"fail", EVENT_RESULT},
        {"doubt", EVENT_RESULT},
        {"again", EVENT_RESULT},
        {"lost", EVENT_RESULT},
        {"cond", EVENT_CONDITION},
        {"bad", EVENT_BAD_INPUT},
        {"claim", EVENT_CLAIM},
        {"release", EVENT_RELEASE},
        {"retry", EVENT_RETRY},
        {"skip", EVENT_SKIP},
        {"undo", EVENT_UNDO},
        {"deadline", EVENT_DEADLINE},
        {"early", EVENT_DEADLINE},
        {"timeout-now", EVENT_TIMEOUT},
        {"silence", EVENT_SILENCE},
        {"silence-now", EVENT_SILENCE},
        {"away", EVENT_ELSEWHERE},
        {"pause", EVENT_PAUSE},
        {"resume", EVENT_RESUME},
        {"correct", EVENT_CORRECT},
        {"supply", EVENT_SUPPLY},
        {"from", EVENT_RETRY_FROM},
        {"resolve", EVENT_RESOLVE},
        {"close", EVENT_CLOSE},
        {"reopen", EVENT_REOPEN},
        {"undo-bare", EVENT_UNDO},
        {"overrun", EVENT_OVERRUN},
        {"begin", EVENT_BEGIN},
        {"due", EVENT_DUE},
        {"due-now", EVENT_DUE},
        {"yes", EVENT_UNTIL},
        {"no", EVENT_UNTIL},
        {"signal", EVENT_SIGNAL},
        {"other", EVENT_SIGNAL},
        {"take", EVENT_TAKE},
        {"drop", EVENT_DROP},
        {"late", EVENT_TIMEOUT},
        {"agree", EVENT_VOTE},
        {"reject", EVENT_VOTE},
        {"decided", EVENT_DECIDED},
        {"running", EVENT_CHILD},
        {"error", EVENT_CHILD},
        {"stands", EVENT_CHILD},
        {"turned", EVENT_CHILD},
        {"stuck", EVENT_CHILD},
        {"processed", EVENT_CHILD},
        {"compensated", EVENT_CHILD},
        {"bring", EVENT_BRING},
        {"told-none", EVENT_PARENT},
        {"told-stop", EVENT_PARENT},
        {"told-undo", EVENT_PARENT},
        {"told-close", EVENT_PARENT},
        {"told-pause", EVENT_PARENT_PAUSE},
        {"told-resume", EVENT_PARENT_RESUME},
    };
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(verb, verbs[i].verb) == 0) {
            struct event ev = {.kind = verbs[i].kind};
            if (ev.kind == EVENT_RESULT)
                ev = result_of(verb);
            if (ev.kind == EVENT_BAD_INPUT)
                ev.error = (struct fault_note){SLICE("expression"), SLICE("no such field")};
            if (strcmp(verb, "undo") == 0)
                ev.error = (struct fault_note){SLICE("operator"), SLICE("changed my mind")};
            if (ev.kind == EVENT_CLOSE)
                ev.error = (struct fault_note){SLICE("operator"), SLICE("settled by telephone")};
            ev.holds = strcmp(verb, "yes") == 0;
            if (ev.kind == EVENT_BEGIN)
                ev.until = GRAPH_MOMENT;
            if (ev.kind == EVENT_CORRECT)
                ev.input.json = SLICE("{\"in\":2}");
            if (ev.kind == EVENT_SUPPLY)
                ev.output.json = SLICE("{\"id\":2}");
            return ev;
        }
    CHECK(false, "no verb: %s", verb);
    return (struct event){0};
}

/* Finds the attempt meant: the one named, the one that START makes, or the open one. */
static void aim(struct kit *k, struct event *ev, const struct command *c)
{
    ev->step = c->step ? c->step[0] - 'a' : -1;
    ev->instance = SLICE("node/1");
    if (ev->kind == EVENT_CLAIM && c->step) {
        (void)snprintf(k->owner, sizeof k->owner, "%s", c->step); /* it outlives the script */
        ev->instance = slice_of(k->owner);
        ev->step = -1;
    }
    if (ev->step < 0 || ev->step >= k->t.step_count)
        return;
    kit_aim_item(k, ev, c->step, c->attempt);
    const struct step *s = &k->steps[ev->step];
    ev->direction = s->direction;
    ev->attempt = s->attempt;
    if (ev->kind == EVENT_START) {
        struct attempt a = task_next_attempt(&k->g.w, &k->t, ev->step, k->now);
        ev->direction = a.direction;
        ev->attempt = a.number;
        ev->input.json = SLICE("{\"in\":1}");
    }
    if (c->attempt && !ev->list) {
        ev->direction = c->attempt[0] == 'u' ? DIRECTION_UNDO : DIRECTION_FORWARD;
        ev->attempt = (uint32_t)strtoul(c->attempt + 1, NULL, 10);
    }
}

static void let_time_pass(struct kit *k, const struct event *ev, const char *verb)
{
    const struct attempt *a = ev->step >= 0 ? step_open_attempt(&k->steps[ev->step]) : NULL;
    bool undo = k->t.direction == DIRECTION_UNDO;

    if (strcmp(verb, "timeout") == 0 && a)
        k->now = max_i64(k->now, a->complete_by);
    if (strcmp(verb, "silence") == 0 && a)
        k->now = max_i64(k->now, a->started_at + k->g.steps[ev->step].call.heartbeat_ms);
    if (strcmp(verb, "due") == 0 && ev->step >= 0)
        k->now = max_i64(k->now, k->steps[ev->step].wait_until);
    if (strcmp(verb, "late") == 0 && ev->step >= 0)
        k->now = max_i64(k->now, k->steps[ev->step].complete_by);
    if (strcmp(verb, "deadline") == 0)
        k->now = max_i64(k->now, undo ? k->t.undo_complete_by : k->t.complete_by);
}

/* The signal that the event means, by the words of the script. */
static void aim_signal(struct kit *k, struct event *ev, const struct command *c, struct signal *ret)
{
    bool is_new = ev->kind == EVENT_SIGNAL;
    char *key = c->attempt ? k->keys[k->t.signal_count % KIT_SIGNALS] : NULL;
    static const char *const names[] = {"s", "r", "u"};

    if (ev->kind != EVENT_SIGNAL && ev->kind != EVENT_TAKE && ev->kind != EVENT_DROP)
        return;
    if (key)
        (void)snprintf(key, sizeof k->keys[0], "%s", c->attempt);
    *ret = (struct signal){.key = slice_of(key)};
    for (size_t i = 0; i < COUNT_OF(names) && ev->kind != EVENT_TAKE; i++)
        if (strcmp(c->step, names[i]) == 0)
            ret->name = slice_of(names[i]);
    if (is_new) {
        ret->content = strcmp(c->verb, "other") == 0 ? SLICE("2") : SLICE("1");
        ret->data.json = strcmp(c->verb, "other") == 0 ? SLICE("false") : SLICE("true");
    }
    if (ev->kind != EVENT_TAKE)
        ev->step = -1;
    ev->output.json = SLICE("{\"name\":\"s\"}");
    ev->signal = ret;
}

/* What a child tells, or a parent. */
static void aim_family(const struct kit *k, struct event *ev, const struct command *c)
{
    bool parsed = true;

    if (ev->kind == EVENT_CHILD) {
        parsed = child_state_parse(slice_of(c->verb), &ev->child);
        ev->attempt = c->attempt ? ev->attempt : k->steps[ev->step].child.number;
        if (ev->child == CHILD_PROCESSED)
            ev->output.json = SLICE("{\"id\":3}");
        if (ev->child == CHILD_COMPENSATED)
            ev->error = (struct fault_note){SLICE("broken"), SLICE("it broke")};
    } else if (ev->kind == EVENT_PARENT) {
        parsed = child_wish_parse(slice_of(c->verb + strlen("told-")), &ev->wish);
        ev->error = (struct fault_note){SLICE("above"), SLICE("it broke there")};
    } else if (ev->kind == EVENT_PARENT_PAUSE) {
        ev->until = k->now - (c->step ? ms_of(c->step) : 0);
        ev->step = -1;
    }
    CHECK(parsed, "no such word: %s", c->verb);
}

/* The name of a person outlives the script. */
static void aim_vote(struct event *ev, const struct command *c)
{
    static const char *const names[] = {"A", "B", "C", "H", "S", "X"};
    static struct ballot b;

    ev->input.json = ev->kind == EVENT_BEGIN ? SLICE("\"is it right?\"") : ev->input.json;
    if (ev->kind == EVENT_DECIDED)
        ev->output.json = SLICE("{\"approved\":true}");
    if (ev->kind != EVENT_VOTE)
        return;
    b = *kit_ballot(c->attempt[0], strcmp(c->verb, "agree") == 0,
                    c->attempt[1] ? (uint32_t)(c->attempt[1] - '0') : 0);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (names[i][0] == c->attempt[0])
            b.person = slice_of(names[i]);
    ev->ballot = &b;
}

static void play_one(struct kit *k, char *text)
{
    char copy[100];
    (void)snprintf(copy, sizeof copy, "%s", text);
    struct command c = command_of(text);

    if (strcmp(c.verb, "wait") == 0) {
        k->now += ms_of(c.step);
        return;
    }
    if (strcmp(c.verb, "slow") == 0 || strcmp(c.verb, "store") == 0) {
        k->is_slow = strcmp(c.verb, "slow") == 0;
        if (!k->is_slow)
            kit_store_items(k);
        return;
    }
    struct event ev = event_of(c.verb);
    bool erred = k->t.state == TASK_ERROR;
    struct signal sig;
    aim(k, &ev, &c);
    aim_signal(k, &ev, &c, &sig);
    aim_vote(&ev, &c);
    aim_family(k, &ev, &c);
    let_time_pass(k, &ev, c.verb);
    enum answer answer = kit_event(k, &ev);
    CHECK(answer == c.answer, "%s: '%s' was %s", k->about, copy, kit_answer_text(answer));
    CHECK(k->fx.alert == (c.alert || (k->t.state == TASK_ERROR && !erred)), "%s: '%s' alert",
          k->about, copy);
    CHECK(k->fx.stop_running == c.stop, "%s: '%s' tells agents to stop: %d", k->about, copy,
          k->fx.stop_running);
}

void kit_play(struct kit *k, const char *script)
{
    char commands[800];
    char *save = NULL;

    CHECK(strlen(script) < sizeof commands, "%s: too long", k->about);
    (void)snprintf(commands, sizeof commands, "%s", script);
    for (char *c = strtok_r(commands, ",", &save); c; c = strtok_r(NULL, ",", &save))
        play_one(k, c);
}

void kit_expect(struct kit *k, const char *want)
{
    char got[400];
    size_t at = 0;

    at += (size_t)snprintf(got, sizeof got, "%s", task_state_text(k->t.state));
    if (k->t.stop != STOP_NONE)
        at += (size_t)snprintf(got + at, sizeof got - at, "/%s", stop_text(k->t.stop));
    for (size_t i = 0; i < k->t.step_count; i++) {
        const struct child *c = &k->steps[i].child;
        at += (size_t)snprintf(got + at, sizeof got - at, " %s:%s", k->g.names[i],
                               step_state_text(k->steps[i].state));
        if (k->g.steps[i].kind == KIND_EACH)
            at += kit_tell_items(k, (uint16_t)i, got + at, sizeof got - at);
        if (c->state != CHILD_NONE)
            at += (size_t)snprintf(got + at, sizeof got - at, "/%s", child_state_text(c->state));
        if (c->wish != WISH_NONE)
            at += (size_t)snprintf(got + at, sizeof got - at, "+%s", child_wish_text(c->wish));
    }
    if (k->g.is_child)
        at += (size_t)snprintf(got + at, sizeof got - at, " tells %s",
                               child_state_text(child_told(&k->g.w, &k->t)));
    CHECK(strcmp(got, want) == 0, "%s: is '%s', not '%s'", k->about, got, want);
}

void kit_run(const struct kit_case *cases, size_t count)
{
    static struct kit k;

    for (size_t i = 0; i < count; i++) {
        kit_make(&k, cases[i].what, cases[i].graph);
        kit_play(&k, cases[i].script);
        kit_expect(&k, cases[i].want);
    }
}
