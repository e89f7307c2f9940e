/*
 * POST /v1/tasks/{id}/VERB {step?, from?, input?, output?, effect?, attempt?, reason}: a command of
 * an operator on one task. It is handed to the scheduler, which refuses it or stores it with its
 * audit entry; the answer is the task's record. Commands on many tasks are operations.
 */

#include "api/body.h"
#include "api/caller.h"
#include "api/room.h"
#include "api/tasks.h"
#include "base/log.h"
#include "node/access.h"
#include "node/exchange.h"
#include "node/json_answer.h"
#include "node/node.h"
#include "node/strict.h"
#include "json/json.h"

struct operation {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct exchange x;
    struct arena arena;
    const struct grant *grant;
    struct ask ask;
};

static void log_operation(const struct ask *a)
{
    CLEANUP(buf_fini) struct buf reason = {0};

    json_string(&reason, a->reason);
    log_line(LOG_WARN, "event=operated verb=%s task=%.*s step=%.*s reason=%s by=%.*s",
             ask_kind_text(a->kind), SLICE_ARG(a->id), SLICE_ARG(a->step), reason.ptr,
             SLICE_ARG(a->actor));
}

static void answer_refusal(struct http_request *r, const struct ask *a)
{
    if (a->refusal == OBSTACLE_ADMIN)
        http_problem(r, 403, "forbidden", "%s", a->story);
    else if (a->outcome == ERR_INVALID)
        http_problem(r, 422, a->kind == ASK_CORRECT && !a->step.ptr ? "bad-input" : "bad-step",
                     "%s", a->story);
    else
        answer_trouble(r, a->outcome, a->story);
}

static void answer_not_own(const struct operation *op, struct http_request *r)
{
    caller_log_forbidden(op->x.server, r, op->grant->owner, "it may not cancel tasks of others");
    http_problem(r, 403, "forbidden",
                 "task %.*s was not submitted with this token: cancelling it requires the role "
                 "repair, operate or admin",
                 SLICE_ARG(op->ask.id));
}

static void operated(struct ask *a)
{
    struct operation *op = a->user;
    struct http_request *r = op->x.http;
    struct arena arena = op->arena; /* op lies in it */

    if (a->outcome == ERR_OK)
        log_operation(a);
    exchange_untie(&op->x);
    if (r && http_is_alive(r)) {
        if (a->outcome == ERR_OK)
            task_get_when_ended(op->x.server, r, a->id, NULL, 0, 200, SLICE_NONE);
        else if (a->not_own && grant_reads(op->grant, a->not_own_of))
            answer_not_own(op, r);
        else if (a->outcome == ERR_NOT_FOUND)
            task_get_missing(op->x.server, r, a->id, op->grant);
        else
            answer_refusal(r, a);
    }
    arena_fini(&arena);
}

enum { REASON_MAX = 4096 }; /* it is stored with the task, and logged */

/* What each verb takes besides the reason. */
enum member { MEMBER_NONE, MEMBER_MAY, MEMBER_MUST };

static const struct takes {
    enum member step, from, input, output;
} takes[] = {
    [ASK_RETRY] = {.step = MEMBER_MAY, .from = MEMBER_MAY},
    [ASK_SKIP] = {.step = MEMBER_MUST, .output = MEMBER_MAY},
    [ASK_UNDO] = {0},
    [ASK_CANCEL] = {0},
    [ASK_PAUSE] = {0},
    [ASK_RESUME] = {0},
    [ASK_CORRECT] = {.step = MEMBER_MAY, .input = MEMBER_MUST},
    [ASK_SUPPLY] = {.step = MEMBER_MUST, .output = MEMBER_MUST},
    [ASK_RESOLVE] = {.step = MEMBER_MUST},
    [ASK_CLOSE] = {0},
    [ASK_REOPEN] = {0},
};

static bool reason_ok(struct http_request *r, const struct json *j)
{
    struct slice reason = json_get_text(j, "reason");

    if (reason.len == 0) {
        http_problem(r, 422, "no-reason", "a reason is required: {\"reason\": \"...\"}");
        return false;
    }
    if (reason.len > REASON_MAX) {
        http_problem(r, 422, "bad-reason", "the reason has %zu bytes, expected at most %d",
                     reason.len, REASON_MAX);
        return false;
    }
    return true;
}

/* `step` or `from`. Is it to be taken for all of the task? Then it had better not be there. */
static bool step_ok(struct http_request *r, const struct json *j, const char *key)
{
    const struct json *step = json_get(j, key);

    if (!step || step->type == JSON_NULL || step->type == JSON_STRING)
        return true;
    http_problem(r, 422, "bad-step", "%s is %s, expected the name of a step", key,
                 json_type_text(step->type));
    return false;
}

static bool steps_ok(struct http_request *r, const struct json *j, enum ask_kind kind)
{
    const char *verb = ask_kind_text(kind);

    if (!step_ok(r, j, "step") || !step_ok(r, j, "from"))
        return false;
    if (takes[kind].step == MEMBER_NONE && json_get(j, "step")) {
        if (kind == ASK_UNDO || kind == ASK_CANCEL)
            http_problem(r, 422, "no-single-step",
                         "%s applies to the whole task; a single step cannot be undone", verb);
        else
            http_problem(r, 422, "no-single-step", "%s applies to the whole task and takes no step",
                         verb);
        return false;
    }
    if (takes[kind].step == MEMBER_MUST && !json_get_text(j, "step").ptr) {
        http_problem(r, 422, "no-step", "a step to %s is required: {\"step\": \"...\"}", verb);
        return false;
    }
    if (json_get_text(j, "from").ptr && takes[kind].from == MEMBER_NONE) {
        http_problem(r, 422, "bad-step", "only retry takes `from`, the step to restart at");
        return false;
    }
    if (json_get_text(j, "from").ptr && json_get_text(j, "step").ptr) {
        http_problem(
            r, 422, "bad-step",
            "give either step, to retry that step, or from, to restart it and all steps after it");
        return false;
    }
    return true;
}

static bool values_ok(struct http_request *r, const struct json *j, enum ask_kind kind)
{
    if (takes[kind].output == MEMBER_NONE && json_get(j, "output")) {
        http_problem(r, 422, "no-output", "only skip and supply take an output");
        return false;
    }
    if (takes[kind].output == MEMBER_MUST && !json_get(j, "output")) {
        http_problem(r, 422, "no-output", "the output of the step is required: {\"output\": ...}");
        return false;
    }
    if (takes[kind].input == MEMBER_NONE && json_get(j, "input")) {
        http_problem(r, 422, "no-input", "%s takes no input; correct does", ask_kind_text(kind));
        return false;
    }
    if (takes[kind].input == MEMBER_MUST && !json_get(j, "input")) {
        http_problem(r, 422, "no-input", "the new input is required: {\"input\": ...}");
        return false;
    }
    return true;
}

/* A command that took effect needs more than that. */
static bool effect_ok(struct http_request *r, const struct json *j, enum ask_kind kind)
{
    if (kind != ASK_RESOLVE || slice_is(json_get_text(j, "effect"), "none"))
        return true;
    http_problem(r, 422, "bad-effect",
                 "{\"effect\": \"none\"} is required: the step did not take effect; for a step "
                 "that did, use supply with its output");
    return false;
}

/* The latest that was seen; 0: it is not given. */
static int64_t attempt_in(const struct json *j)
{
    return json_get_int(j, "attempt", json_get(j, "attempt") ? -1 : 0);
}

static bool attempt_ok(struct http_request *r, const struct json *j)
{
    int64_t attempt = attempt_in(j);

    if (!json_get(j, "attempt") || (attempt > 0 && attempt <= UINT32_MAX))
        return true;
    http_problem(r, 422, "bad-attempt",
                 "attempt: expected the number of the latest attempt that you inspected");
    return false;
}

static bool body_ok(struct http_request *r, const struct json *j, enum ask_kind kind)
{
    bool resolves = kind == ASK_RESOLVE;

    return members_ok(r, j,
                      NAMES("step", "from", "input", "output", "reason", resolves ? "effect" : NULL,
                            "attempt"),
                      "an operation")
           && reason_ok(r, j) && steps_ok(r, j, kind) && values_ok(r, j, kind)
           && effect_ok(r, j, kind) && attempt_ok(r, j);
}

void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct arena a = {0};

    if (!j || !body_ok(r, j, kind) || !asks_have_room(sv, r, 0))
        return;
    bool from = json_get_text(j, "from").ptr != NULL;
    struct operation *op = arena_alloc(&a, sizeof *op);
    op->arena = a;
    op->answered = operated;
    op->grant = grant_new(sv->api->bearer, &op->arena);
    op->ask = (struct ask){
        .kind = kind,
        .user = op,
        .id = arena_copy(&op->arena, http_segment(r, 2)),
        .step = arena_copy(&op->arena, json_get_text(j, from ? "from" : "step")),
        .from = from,
        .attempt = (uint32_t)attempt_in(j),
        .input = arena_copy(&op->arena, json_get_raw(j, "input")),
        .output = arena_copy(&op->arena, json_get_raw(j, "output")),
        .reason = arena_copy(&op->arena, json_get_text(j, "reason")),
        .actor = arena_copy(&op->arena, sv->caller),
        .address = caller_address(sv, r, &op->arena),
        .owner = op->grant ? op->grant->owner : SLICE_NONE,
        .own_only = op->grant && !op->grant->repairs,
        .reads_all = !op->grant || op->grant->reads_all,
        .is_admin = access_may(sv->api->bearer, ROLE_ADMIN, SLICE_NONE),
    };
    exchange_begin(&op->x, sv, r);
    server_ask(sv, &op->ask);
}
