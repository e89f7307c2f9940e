/* Writes and reads a supervisor's request, the column `request` of a task's row (row_request.h).
 * Pure. supervisor/supervisor.c writes it, the owner's tasks/live.c reads it and posts its items
 * as events. */

#include "store/row_request.h"

#include "json/json.h"

static void attempt_write(struct buf *b, const struct request_item *i)
{
    ASSERT(i->step.ptr);
    json_member_text(b, "step", i->step);
    if (i->of_item)
        json_member_number(b, "item", i->item);
    if (i->of_item && i->generation > 0)
        json_member_number(b, "generation", i->generation);
    json_member_text(b, "direction", slice_of(direction_text(i->direction)));
    if (i->attempt > 0)
        json_member_number(b, "attempt", i->attempt);
    json_member_text(b, "do", i->outlook);
    if (i->until != 0)
        json_member_number(b, "until", i->until);
}

static void item_write(struct buf *b, const struct request_item *i)
{
    json_open(b, '{');
    switch (i->kind) {
    case REQUEST_ATTEMPT:
        attempt_write(b, i);
        break;
    case REQUEST_DEADLINE:
        json_member_text(b, "do", SLICE("deadline"));
        break;
    case REQUEST_EXTEND:
        ASSERT(i->until > 0);
        json_member_text(b, "do", SLICE("extend"));
        json_member_number(b, "until", i->until);
        break;
    }
    json_close(b, '}');
}

void row_request_write(struct buf *b, const struct request *r)
{
    json_open(b, '[');
    for (size_t i = 0; i < r->count; i++)
        item_write(b, &r->list[i]);
    json_close(b, ']');
}

static bool item_read(const struct json *j, struct request_item *ret)
{
    struct slice todo = json_get_text(j, "do");

    *ret = (struct request_item){.kind = REQUEST_DEADLINE, .step = json_get_text(j, "step")};
    if (ret->step.ptr) {
        ret->kind = REQUEST_ATTEMPT;
        ret->attempt = (uint32_t)json_get_int(j, "attempt", 0);
        ret->of_item = json_get_int(j, "item", -1) >= 0;
        ret->item = (uint32_t)json_get_int(j, "item", 0);
        ret->generation = (uint32_t)json_get_int(j, "generation", 0);
        ret->outlook = todo;
        ret->until = json_get_int(j, "until", 0);
        return direction_parse(json_get_text(j, "direction"), &ret->direction);
    }
    if (slice_is(todo, "extend")) {
        ret->kind = REQUEST_EXTEND;
        ret->until = json_get_int(j, "until", 0);
    }
    return true;
}

void row_request_read(struct slice text, struct arena *a, struct request *ret)
{
    struct json *j = NULL;

    *ret = (struct request){0};
    if (!text.ptr || json_parse(a, text, &j, NULL) != ERR_OK || j->type != JSON_ARRAY)
        return;
    ret->list = arena_alloc(a, (j->count + 1) * sizeof *ret->list);
    for (const struct json *item = j->child; item; item = item->next)
        ret->count += item_read(item, &ret->list[ret->count]);
    ASSERT(ret->count <= j->count);
}
