/* Acts for the agents of a test: picks the answer that the test file has for a request, lets its
 * effect take place in the world, and sends the result in time. */

#include "definition/expression/expression.h"
#include "tasks/ask.h"
#include "testing/play_key.h"
#include "testing/step_path.h"
#include "testing/strikes.h"

/* A request that an agent works at. */
struct job {
    struct trial *trial;
    struct link link;                   /* in trial.jobs, until it has ended */
    struct arena arena;                 /* what is needed until then */
    uint32_t plan_count;                /* what is planned of it */
    const struct played_answer *answer; /* NULL: the file does not say */
    struct slice input;
    const struct json *root;      /* what expressions see; NULL: there are none */
    struct effect_record *effect; /* of the forward request */
    const struct effect_spec *does;
    struct slice agent, token, name; /* name: of the step */
    uint32_t attempt;
    enum direction direction;
    int64_t ends_at, beat_ms;
    uint32_t at;     /* of the answer in the file */
    uint32_t number; /* of the requests of its step and direction */
    int64_t complete_by;
    struct fault fault; /* what goes wrong with it */
    bool is_repeated;   /* it is performed for the second time */
};

/* ---- which answer ---- */

/* Two lists may speak of an action: the test's, which comes first, and the file's. In each, a key
 * of the action comes before that of its agent. */
struct choice {
    const struct play *own, *base;
    const struct played_answer *usual; /* that of the file, for this request */
};

static struct choice choose_play(const struct trial *t, struct slice agent,
                                 const struct work_request *r, struct slice *ret_key,
                                 struct arena *a)
{
    struct slice keys[] = {play_key(agent, r->action, r->step, r->direction == DIRECTION_UNDO, a),
                           agent};

    struct choice c = {0};

    *ret_key = keys[0];
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        c.own = c.own ? c.own : plays_find(&t->test->agents, keys[i]);
        c.base = c.base ? c.base : plays_find(&t->suite->agents, keys[i]);
    }
    return c;
}

static uint32_t count_request(struct trial *t, const struct work_request *r)
{
    CLEANUP(buf_fini) struct buf key = {0};

    buf_slice(&key, r->task);
    buf_byte(&key, '/');
    buf_slice(&key, r->step);
    buf_str(&key, r->direction == DIRECTION_UNDO ? "/undo" : "");
    uint32_t *count = map_get(&t->counters, buf_view(&key));
    if (!count) {
        count = arena_alloc(&t->arena, sizeof *count);
        map_put(&t->counters, arena_copy(&t->arena, buf_view(&key)), count);
    }
    return ++*count;
}

static bool is_true(struct trial *t, const struct played_answer *a, const struct json *root)
{
    const struct json *value = NULL;
    struct error e = {0};

    CLEANUP(arena_fini) struct arena own = {0};

    if (expression_eval(a->condition, root, &own, &value, &e) == ERR_OK)
        return json_truth(value);
    trial_problem(t, a->at, "the `if` of an answer failed: %s", e.text);
    return false;
}

/* Those with a condition come first; of the others, the one for this attempt; at the end the last
 * one again. */
static const struct played_answer *choose_answer(struct trial *t, const struct play *p,
                                                 uint32_t number, const struct json *root)
{
    const struct played_answer *last = NULL;
    int64_t passed = 0;

    for (size_t i = 0; i < p->count; i++)
        if (p->answers[i].condition && is_true(t, &p->answers[i], root))
            return &p->answers[i];
    for (size_t i = 0; i < p->count; i++) {
        if (p->answers[i].condition)
            continue;
        last = &p->answers[i];
        passed += last->times;
        if (passed >= number)
            break;
    }
    return last;
}

typedef bool has_part(const struct played_answer *a);

static bool has_takes(const struct played_answer *a)
{
    return a->takes_ms >= 0;
}

static bool has_effect(const struct played_answer *a)
{
    return a->does.is_given;
}

static bool has_undone(const struct played_answer *a)
{
    return a->undone.is_given;
}

static bool has_idempotent(const struct played_answer *a)
{
    return a->idempotent != PROMISE_DEFAULT;
}

static bool has_barrier(const struct played_answer *a)
{
    return a->barrier != PROMISE_DEFAULT;
}

/* What an answer leaves out says the first one of its list, or the answer that the file has for
 * this request, or the first one there. */
static const struct played_answer *part_of(const struct choice *c, const struct played_answer *a,
                                           has_part *has)
{
    const struct play *lists[] = {c->own, c->base};

    if (a && has(a))
        return a;
    for (size_t k = 0; k < COUNT_OF(lists); k++) {
        if (lists[k] == c->base && c->usual && has(c->usual))
            return c->usual;
        for (size_t i = 0; lists[k] && i < lists[k]->count; i++)
            if (!lists[k]->answers[i].condition && has(&lists[k]->answers[i]))
                return &lists[k]->answers[i];
    }
    return NULL;
}

/* ---- what expressions see ---- */

static const struct json *parse(struct arena *a, struct slice json)
{
    struct json *j = NULL;

    enum err err = json_parse(a, arena_copy(a, json), &j, NULL);
    ASSERT(err == ERR_OK);
    return j;
}

/* The input of the task, which may be large, and which each item may have, is read once. */
static const struct json *tree_of(struct trial *t, struct slice json, struct arena *a)
{
    if (!slice_eq(json, t->submission.input))
        return parse(a, json.ptr ? json : SLICE("null"));
    if (!t->input_tree)
        t->input_tree = parse(&t->arena, json);
    return t->input_tree;
}

/* Prepends a member. Its own members are shared: nothing changes them. */
static void add(struct json *object, struct slice key, const struct json *value, struct arena *a)
{
    struct json *m = arena_alloc(a, sizeof *m);

    *m = *value;
    m->key = key;
    m->next = object->child;
    object->child = m;
    object->count++;
}

static void add_text(struct json *object, const char *key, struct slice text, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    json_string(&b, text);
    add(object, slice_of(key), parse(a, buf_view(&b)), a);
}

static struct json *object_new(struct arena *a)
{
    struct json *j = arena_alloc(a, sizeof *j);

    j->type = JSON_OBJECT;
    return j;
}

static void add_world(const struct trial *t, struct json *root, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    world_write(&t->world, &b);
    add(root, SLICE("world"), parse(a, buf_view(&b)), a);
}

static const struct json *root_of(struct job *j, const struct work_request *r)
{
    struct trial *t = j->trial;
    struct arena *a = &j->arena;
    struct json *root = object_new(a);
    CLEANUP(buf_fini) struct buf number = {0};

    if (r->direction == DIRECTION_UNDO) {
        struct json *forward = object_new(a);
        add(forward, SLICE("output"), tree_of(t, r->forward_output, a), a);
        add(forward, SLICE("input"), tree_of(t, r->forward_input, a), a);
        add(root, SLICE("forward"), forward, a);
    }
    json_number(&number, r->attempt);
    add(root, SLICE("attempt"), parse(a, buf_view(&number)), a);
    add_text(root, "key", r->idempotency_key, a);
    add_text(root, "direction", slice_of(direction_text(r->direction)), a);
    add_text(root, "action", r->action, a);
    add_text(root, "step", r->step, a);
    add_text(root, "task", r->task, a);
    add(root, SLICE("input"), tree_of(t, j->input, a), a);
    add_world(t, root, a);
    return root;
}

/* The same with the world of this moment; output: NONE, if there is none. */
static const struct json *root_now(const struct job *j, struct slice input, struct slice output,
                                   struct arena *a)
{
    if (!j->root)
        return NULL;
    struct json *root = object_new(a);
    for (const struct json *m = j->root->child; m; m = m->next)
        if (!slice_is(m->key, "world") && !slice_is(m->key, "input"))
            add(root, m->key, m, a);
    if (j->direction == DIRECTION_UNDO) {
        struct json *undo = object_new(a);
        add(undo, SLICE("input"), tree_of(j->trial, j->input, a), a);
        add(root, SLICE("undo"), undo, a);
    }
    if (output.ptr)
        add(root, SLICE("output"), tree_of(j->trial, output, a), a);
    add(root, SLICE("input"), tree_of(j->trial, input, a), a);
    add_world(j->trial, root, a);
    return root;
}

static bool has_expression(const struct effect_spec *e)
{
    for (size_t i = 0; e && i < e->count; i++)
        if (e->list[i].value)
            return true;
    return false;
}

static bool sees_requests(const struct play *p)
{
    for (size_t i = 0; p && i < p->count; i++) {
        const struct played_answer *a = &p->answers[i];
        if (a->condition || a->output || has_expression(&a->does) || has_expression(&a->undone))
            return true;
    }
    return false;
}

/* ---- effects ---- */

static void tell_change(struct trial *t, const struct job *j, const char *what)
{
    CLEANUP(buf_fini) struct buf b = {0};

    for (size_t i = 0; i < j->effect->count && !t->timeline.is_off; i++) {
        const struct changed *c = &j->effect->list[i];
        const struct world_member *m = world_member(&t->world, c->name);
        struct slice now = timeline_short(&t->arena, m->json);
        buf_fmt(&b, "%s%.*s is %.*s", i > 0 ? ", " : "", SLICE_ARG(c->name), SLICE_ARG(now));
    }
    if (b.len > 0)
        timeline_add(&t->timeline, trial_now(t), "%s%.*s: %s", what, SLICE_ARG(j->name), b.ptr);
}

static void take_effect(struct job *j)
{
    struct trial *t = j->trial;
    CLEANUP(arena_fini) struct arena a = {0};
    struct error e = {0};
    bool took = false;
    uint32_t at = j->at;

    if (!j->does)
        return;
    const struct json *root = root_now(j, j->input, SLICE_NONE, &a);
    if (world_take(&t->world, j->effect, j->does, root, &took, &at, &e) != ERR_OK)
        trial_problem(t, at, "the effect of %.*s failed: %s", SLICE_ARG(j->name), e.text);
    if (!took)
        return;
    tell_change(t, j, "effect of ");
    trial_effect(t, "", j->name);
    trial_changed(t, NULL, NULL);
}

static void undo_effect(struct job *j)
{
    struct trial *t = j->trial;
    CLEANUP(arena_fini) struct arena a = {0};
    struct error e = {0};
    bool undone = false;
    uint32_t at = j->at;

    const struct json *root = root_now(j, j->effect->input, j->effect->output, &a);
    if (world_undo(&t->world, j->effect, root, &undone, &at, &e) != ERR_OK)
        trial_problem(t, at, "the undo of %.*s failed: %s", SLICE_ARG(j->name), e.text);
    if (!undone)
        return;
    tell_change(t, j, "undo of ");
    trial_effect(t, "undo ", j->name);
    trial_changed(t, NULL, NULL);
}

/* ---- the answer ---- */

static struct slice output_of(struct job *j, bool *ret_ok)
{
    struct trial *t = j->trial;
    struct slice output = SLICE("null");
    struct error e = {0};

    *ret_ok = true;
    if (!j->answer || !j->answer->output)
        return output;
    const struct json *root = root_now(j, j->input, SLICE_NONE, &j->arena);
    if (template_eval(j->answer->output, root, &j->arena, &output, &e) == ERR_OK)
        return output;
    trial_problem(t, j->at, "the output of %.*s failed: %s", SLICE_ARG(j->name), e.text);
    *ret_ok = false;
    return SLICE("null");
}

static void tell_answer(const struct job *j, const struct work_result *r)
{
    struct trial *t = j->trial;
    const char *undo = j->direction == DIRECTION_UNDO ? "undo of " : "";

    if (r->failed)
        timeline_add(&t->timeline, trial_now(t), "%s%.*s: attempt %u %s: %.*s, effect %s", undo,
                     SLICE_ARG(j->name), j->attempt, r->retryable ? "fails" : "is refused",
                     SLICE_ARG(r->error.code), effect_text(r->effect));
    else
        timeline_add(&t->timeline, trial_now(t), "%s%.*s: attempt %u completes: %.*s", undo,
                     SLICE_ARG(j->name), j->attempt,
                     SLICE_ARG(timeline_short(&t->arena, r->output)));
}

static void answer(struct job *j)
{
    const struct played_answer *a = j->answer;
    struct work_result r = {.token = j->token};
    bool ok = true;

    if (a && (a->kind == PLAYED_REFUSED || a->kind == PLAYED_FAILED)) {
        r.failed = true;
        r.retryable = a->kind == PLAYED_FAILED;
        r.error = (struct fault_note){a->code, a->message.ptr ? a->message : SLICE("test")};
        r.effect = a->effect;
        r.retry_after_ms = a->retry_after_ms;
    } else {
        r.output = output_of(j, &ok);
        if (j->direction == DIRECTION_FORWARD && j->effect->reverse)
            j->effect->output = arena_copy(&j->trial->arena, r.output);
    }
    tell_answer(j, &r);
    engine_result(j->trial->engine, j->agent, &r);
}

static void job_free(struct job *j)
{
    link_remove(&j->link);
    j->root = NULL;
    arena_fini(&j->arena);
    j->arena = (struct arena){0};
}

/* Has something happen with it later. */
static void job_plan(struct job *j, int64_t at, void (*happen)(void *arg, uint64_t n))
{
    j->plan_count++;
    j->trial->plays_left++;
    agenda_add(engine_agenda(j->trial->engine), at, happen, j, 0);
}

/* It has happened. After the last time its memory is freed, but heartbeats may still come, and see
 * that it has ended. */
static void job_end(struct job *j)
{
    ASSERT(j->plan_count > 0);
    j->trial->plays_left--;
    if (--j->plan_count == 0)
        job_free(j);
}

void player_close(struct trial *t)
{
    for (struct link *l = NULL; (l = list_first(&t->jobs));)
        job_free(CONTAINER_OF(l, struct job, link));
}

static void answer_later(void *arg, uint64_t n)
{
    struct job *j = arg;
    (void)n;

    answer(j);
    job_end(j);
}

static void send_answer(struct job *j)
{
    struct trial *t = j->trial;

    if (j->answer && j->answer->kind == PLAYED_SILENT)
        timeline_add(&t->timeline, trial_now(t), "%.*s: attempt %u is silent", SLICE_ARG(j->name),
                     j->attempt);
    else if (j->fault.kind == FAULT_ANSWER_LOST)
        timeline_add(&t->timeline, trial_now(t), "%.*s: the answer to attempt %u is lost",
                     SLICE_ARG(j->name), j->attempt);
    else if (j->fault.kind == FAULT_ANSWER_LATE && j->complete_by > trial_now(t))
        job_plan(j, j->complete_by + j->fault.ms, answer_later);
    else
        answer(j);
}

static void perform(void *arg, uint64_t n)
{
    struct job *j = arg;
    const struct played_answer *a = j->answer;
    bool takes = !a || a->kind == PLAYED_COMPLETED || a->takes_effect;
    (void)n;

    if (takes && j->direction == DIRECTION_FORWARD)
        take_effect(j);
    else if (takes)
        undo_effect(j);
    send_answer(j);
    if (j->fault.kind == FAULT_TWICE && !j->is_repeated) {
        j->is_repeated = true;
        job_plan(j, trial_now(j->trial) + j->fault.ms, perform);
    }
    job_end(j);
}

/* A program that works shows that it is alive, as the libraries do. */
static void beat(void *arg, uint64_t n)
{
    struct job *j = arg;
    int64_t now = trial_now(j->trial);

    if (now >= j->ends_at)
        return;
    engine_heartbeat(j->trial->engine, j->agent, j->token);
    agenda_add(engine_agenda(j->trial->engine), now + j->beat_ms, beat, j, n);
}

/* ---- requests ---- */

static struct job *job_of(struct trial *t, struct slice agent, const struct work_request *r)
{
    struct job *j = arena_alloc(&t->arena, sizeof *j);
    CLEANUP(buf_fini) struct buf name = {0};

    step_path_write(&name, TRIAL_ID, r->task, r->step);
    *j = (struct job){.trial = t,
                      .agent = arena_copy(&t->arena, agent),
                      .token = arena_copy(&t->arena, r->token),
                      .name = arena_copy(&t->arena, buf_view(&name)),
                      .attempt = r->attempt,
                      .direction = r->direction};
    list_push(&t->jobs, &j->link);
    j->input = arena_copy(&j->arena, r->input.ptr ? r->input : SLICE("null"));
    j->effect = world_effect(&t->world,
                             r->direction == DIRECTION_UNDO ? r->forward_key : r->idempotency_key);
    return j;
}

static void tell_request(struct trial *t, const struct job *j, struct slice key)
{
    timeline_add(&t->timeline, trial_now(t), "%s%.*s: attempt %u, %.*s %.*s",
                 j->direction == DIRECTION_UNDO ? "undo of " : "", SLICE_ARG(j->name), j->attempt,
                 SLICE_ARG(key), SLICE_ARG(timeline_short(&t->arena, j->input)));
}

static struct slice kept(struct trial *t, struct slice input)
{
    return slice_eq(input, t->submission.input) ? t->submission.input
                                                : arena_copy(&t->arena, input);
}

/* What the forward request will do to the world, and how that is undone. */
static void find_effect(struct trial *t, struct job *j, const struct choice *c)
{
    const struct played_answer *does = part_of(c, j->answer, has_effect);
    const struct played_answer *undone = part_of(c, j->answer, has_undone);

    j->does = does ? &does->does : NULL;
    j->effect->step = j->name;
    j->effect->stays = step_path_stays(t->suite, j->name);
    j->effect->reverse = undone ? &undone->undone : NULL;
    if (undone && !j->effect->input.ptr)
        j->effect->input = kept(t, j->input);
}

static bool breaks(const struct choice *c, const struct played_answer *a, has_part *has,
                   bool is_barrier)
{
    const struct played_answer *said = part_of(c, a, has);

    return said && (is_barrier ? said->barrier : said->idempotent) == PROMISE_BROKEN;
}

/* What its service does not promise. */
static void find_promises(struct job *j, const struct choice *c)
{
    bool repeats = breaks(c, j->answer, has_idempotent, false);

    if (j->direction == DIRECTION_UNDO) {
        j->effect->repeats_undo = repeats;
        return;
    }
    j->effect->repeats = repeats;
    j->effect->ignores_undo = breaks(c, j->answer, has_barrier, true);
}

static void find_answer(struct trial *t, struct job *j, struct choice *c,
                        const struct work_request *r, struct slice key)
{
    uint32_t number = j->number = count_request(t, r);

    j->at = t->test->at;
    c->usual = c->base ? choose_answer(t, c->base, number, j->root) : NULL;
    j->answer = c->own ? choose_answer(t, c->own, number, j->root) : NULL;
    if (!j->answer)
        j->answer = c->usual;
    if (j->answer)
        j->at = j->answer->at;
    else if (r->direction == DIRECTION_FORWARD)
        trial_problem(t, j->at, "%.*s is requested, and `agents` does not say what it does",
                      SLICE_ARG(key));
}

/* When it is done. */
static int64_t end_of(const struct job *j, int64_t now, int64_t takes_ms)
{
    int64_t ends_at = now + takes_ms;
    int64_t latest = max_i64(j->complete_by - 1, ends_at);

    if (j->fault.kind == FAULT_SLOW)
        return j->complete_by > 0 ? min_i64(ends_at + j->fault.ms, latest) : ends_at + j->fault.ms;
    if (j->fault.kind == FAULT_LATE)
        return max_i64(ends_at, j->complete_by) + j->fault.ms;
    return ends_at;
}

static void plan(struct trial *t, struct job *j, const struct choice *c, int64_t heartbeat_ms)
{
    const struct played_answer *takes = part_of(c, j->answer, has_takes);
    bool is_silent = j->answer && j->answer->kind == PLAYED_SILENT;

    j->ends_at = end_of(j, trial_now(t), takes ? takes->takes_ms : 0);
    j->beat_ms = max_i64(heartbeat_ms / 2, 1);
    job_plan(j, j->ends_at, perform);
    if (heartbeat_ms > 0 && !is_silent && j->ends_at > trial_now(t))
        agenda_add(engine_agenda(t->engine), trial_now(t) + j->beat_ms, beat, j, 0);
}

/* ---- what goes wrong ---- */

static bool is_pivot(const struct trial *t, const struct work_request *r)
{
    const struct seen_task *seen = map_get(&t->tasks, r->task);
    int step = seen ? workflow_step_index(seen->workflow, step_path_first(r->step)) : -1;

    return step >= 0 && seen->workflow->steps[step].undo_kind == UNDO_PIVOT;
}

static struct played_answer *error_of(struct trial *t, enum played_kind kind, const char *code,
                                      const char *message)
{
    struct played_answer *a = arena_alloc(&t->arena, sizeof *a);

    *a = (struct played_answer){.kind = kind,
                                .code = slice_of(code),
                                .message = slice_of(message),
                                .effect = EFFECT_NONE};
    return a;
}

/* What the service answers instead; NULL: as usual. */
static const struct played_answer *spoilt(struct trial *t, const struct job *j)
{
    bool fails_after = j->fault.kind == FAULT_FAILS_AFTER;

    if (strikes_is_down(t, j->agent))
        return error_of(t, PLAYED_FAILED, "unavailable", "the service is down");
    if (j->fault.kind == FAULT_REFUSED)
        return error_of(t, PLAYED_REFUSED, "refused", "the service refuses");
    if (j->fault.kind != FAULT_FAILS && !fails_after)
        return NULL;
    struct played_answer *a = error_of(t, PLAYED_FAILED, "failed", "the service fails");
    a->effect = EFFECT_UNKNOWN;
    a->takes_effect = fails_after && (!j->answer || j->answer->kind == PLAYED_COMPLETED);
    return a;
}

static void cancel(struct trial *t)
{
    const struct act a = {.kind = ACT_VERB,
                          .what = "operator",
                          .verb = ASK_CANCEL,
                          .reason = SLICE("test")};

    acts_add(t, &a, trial_now(t));
}

static void meet_fault(struct trial *t, struct job *j, const struct work_request *r)
{
    bool is_undo = j->direction == DIRECTION_UNDO;
    const struct fault_point p = {.place = PLACE_REQUEST,
                                  .name = j->name,
                                  .is_undo = is_undo,
                                  .number = j->number,
                                  .is_pivot = !is_undo && is_pivot(t, r),
                                  .took = j->effect->took && (!is_undo || j->effect->undone)};

    j->complete_by = r->complete_by > 0 ? engine_moment(t->engine, r->complete_by) : 0;
    if (!t->faults || strikes_is_down(t, j->agent) || !strikes_at(t, &p, &j->fault))
        return;
    if (j->fault.kind == FAULT_DOWN)
        strikes_put_down(t, j->agent, j->fault.ms);
    else if (j->fault.kind == FAULT_CANCELLED)
        cancel(t);
}

void player_request(void *arg, struct slice agent, const struct work_request *r)
{
    struct trial *t = arg;
    struct job *j = job_of(t, agent, r);
    struct slice key;
    struct choice c = choose_play(t, agent, r, &key, &j->arena);

    tell_request(t, j, key);
    if (sees_requests(c.own) || sees_requests(c.base) || has_expression(j->effect->reverse))
        j->root = root_of(j, r);
    find_answer(t, j, &c, r, key);
    if (r->direction == DIRECTION_FORWARD)
        find_effect(t, j, &c);
    find_promises(j, &c);
    meet_fault(t, j, r);
    if (j->fault.kind == FAULT_REQUEST_LOST) {
        timeline_add(&t->timeline, trial_now(t), "%.*s: the request of attempt %u is lost",
                     SLICE_ARG(j->name), j->attempt);
        job_free(j);
        return;
    }
    plan(t, j, &c, r->heartbeat_ms);
    const struct played_answer *instead = t->faults ? spoilt(t, j) : NULL;
    if (instead)
        j->answer = instead;
}

void player_result(void *arg, struct slice token, enum result_status status)
{
    struct trial *t = arg;
    (void)token;

    if (status == RESULT_LATE)
        timeline_add(&t->timeline, trial_now(t), "an answer comes too late: its attempt has ended");
}

/* ---- who is connected ---- */

static void serve(void *arg, const struct definition *d)
{
    struct trial *t = arg;

    for (uint16_t i = 0; i < d->workflow.step_count; i++) {
        const struct workflow_step *ws = &d->workflow.steps[i];
        if (ws->call.agent.ptr)
            engine_serve(t->engine, ws->call.agent);
        if (ws->undo_kind == UNDO_CALL && ws->undo.agent.ptr)
            engine_serve(t->engine, ws->undo.agent);
    }
}

void player_serve_all(struct trial *t)
{
    registry_each(&t->suite->workflows, serve, t);
}
