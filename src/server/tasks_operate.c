#include "server/internal.h"

#include "base/log.h"
#include "json/json.h"

/* The operator's hands: POST /v1/tasks/{id}/retry|skip|undo|cancel {step?, output?, reason}. */
struct operation {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct exchange x;
    struct arena arena;
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
    if (a->outcome == ERR_NOT_FOUND)
        http_problem(r, 404, "no-such-task", "there is no task %.*s", SLICE_ARG(a->id));
    else if (a->outcome == ERR_INVALID)
        http_problem(r, 422, "bad-step", "%s", a->story);
    else
        answer_trouble(r, a->outcome, a->story);
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
            task_get_when_ended(op->x.server, r, a->id, 0, 200);
        else
            answer_refusal(r, a);
    }
    arena_fini(&arena);
}

enum { REASON_MAX = 4096 }; /* it is stored with the task, and logged */

static bool body_ok(struct http_request *r, const struct json *j, enum ask_kind kind)
{
    const struct json *step = json_get(j, "step");

    if (!members_ok(r, j, NAMES("step", "output", "reason"), "an operation"))
        return false;
    if (json_get_text(j, "reason").len == 0) {
        http_problem(r, 422, "no-reason", "say why: {\"reason\": \"...\"}; it stays on record");
        return false;
    }
    if (json_get_text(j, "reason").len > REASON_MAX) {
        http_problem(r, 422, "bad-reason", "the reason has %zu bytes, expected at most %d",
                     json_get_text(j, "reason").len, REASON_MAX);
        return false;
    }
    if (step && step->type != JSON_NULL
        && step->type != JSON_STRING) { /* to be taken for all of the task? */
        http_problem(r, 422, "bad-step", "step is %s, expected the name of a step",
                     json_type_text(step->type));
        return false;
    }
    if ((kind == ASK_UNDO || kind == ASK_CANCEL) && step) {
        http_problem(r, 422, "no-single-step",
                     "%s is of the whole task; a single step cannot be undone",
                     ask_kind_text(kind));
        return false;
    }
    if (kind != ASK_SKIP && json_get(j, "output")) {
        http_problem(r, 422, "no-output", "an output can be given only to a step that is skipped");
        return false;
    }
    if (kind == ASK_SKIP && !json_get_text(j, "step").ptr) {
        http_problem(r, 422, "no-step", "say which step to skip: {\"step\": \"...\"}");
        return false;
    }
    return true;
}

void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    struct json *j = body_json(r, &tree);
    struct arena a = {0};

    if (!j || !body_ok(r, j, kind) || !asks_have_room(sv, r, 0))
        return;
    struct operation *op = arena_alloc(&a, sizeof *op);
    op->arena = a;
    op->answered = operated;
    op->ask = (struct ask){
        .kind = kind,
        .user = op,
        .id = arena_copy(&op->arena, http_segment(r, 2)),
        .step = arena_copy(&op->arena, json_get_text(j, "step")),
        .output = arena_copy(&op->arena, json_get_raw(j, "output")),
        .reason = arena_copy(&op->arena, json_get_text(j, "reason")),
        .actor = arena_copy(&op->arena, sv->caller),
    };
    exchange_begin(&op->x, sv, r);
    server_ask(sv, &op->ask);
}
