#include "server/internal.h"

#include "json/json.h"

/* The operator's hands: POST /v1/tasks/{id}/retry|skip|undo {step?, output?, reason}. */
struct operation {
    void (*answered)(struct ask *a); /* first: ask_answered finds it through ask.user */
    struct exchange x;
    struct arena arena;
    struct ask ask;
};

static void operated(struct ask *a)
{
    struct operation *op = a->user;
    struct http_request *r = op->x.http;
    struct arena arena = op->arena; /* op lies in it */

    if (r && http_is_alive(r)) {
        exchange_untie(&op->x);
        if (a->outcome == ERR_OK)
            task_get_when_ended(op->x.server, r, a->id, 0, 200);
        else
            answer_trouble(r, a->outcome, a->story);
    }
    arena_fini(&arena);
}

void task_operate(struct server *sv, struct http_request *r, enum ask_kind kind)
{
    struct json *j = body_json(r);
    struct arena a = {0};

    if (!j)
        return;
    if (!json_get_text(j, "reason").ptr) {
        http_problem(r, 422, "no-reason", "say why: {\"reason\": \"...\"}; it is kept on record");
        return;
    }
    if (kind == ASK_SKIP && !json_get_text(j, "step").ptr) {
        http_problem(r, 422, "no-step", "say which step to skip: {\"step\": \"...\"}");
        return;
    }
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
    };
    exchange_begin(&op->x, sv, r);
    scheduler_ask(sv->scheduler, &op->ask);
}
