/* Writes and reads what tasks of one family tell each other, and what a child has from its parent
 * (family.h). Pure. scheduler/family.c writes both; background/notices.c and submission_inbox.c
 * read them. */

#include "store/codec/family.h"

#include <string.h>

#include "store/rows/notice.h"
#include "json/json.h"

static void put_error(struct buf *b, const struct fault_note *n)
{
    if (!n->code.ptr && !n->message.ptr)
        return;
    json_key(b, "error");
    json_open(b, '{');
    json_member_text_if(b, "code", n->code);
    json_member_text_if(b, "message", n->message);
    json_close(b, '}');
}

static struct fault_note get_error(const struct json *j)
{
    const struct json *error = json_get(j, "error");

    return (struct fault_note){json_get_text(error, "code"), json_get_text(error, "message")};
}

static void put_child(struct buf *b, const struct family_word *w)
{
    json_member_text(b, "step", w->step);
    json_member_number(b, "number", w->number);
    json_member_plain(b, "state", slice_of(child_state_text(w->state)));
}

static void put_parent(struct buf *b, const struct family_word *w)
{
    if (!w->pauses)
        json_member_plain(b, "wish", slice_of(child_wish_text(w->wish)));
    else if (w->paused_at)
        json_member_number(b, "paused_at", w->paused_at);
    else
        json_member_raw(b, "paused_at", SLICE_NONE);
}

void family_word_write(struct buf *b, struct slice kind, const struct family_word *w)
{
    json_open(b, '{');
    if (slice_eq(kind, NOTICE_CHILD))
        put_child(b, w);
    else
        put_parent(b, w);
    put_error(b, &w->error);
    json_close(b, '}');
    if (!w->output.ptr)
        return;
    buf_byte(b, '\n');
    buf_slice(b, w->output);
}

static bool get_child(const struct json *j, struct family_word *ret)
{
    int64_t number = json_get_int(j, "number", 0);

    ret->step = json_get_text(j, "step");
    if (!ret->step.ptr || number < 1 || number > UINT32_MAX)
        return false;
    ret->number = (uint32_t)number;
    return child_state_parse(json_get_text(j, "state"), &ret->state) && ret->state != CHILD_NONE;
}

static bool get_parent(const struct json *j, struct family_word *ret)
{
    ret->pauses = json_get(j, "paused_at") != NULL;
    ret->paused_at = json_get_int(j, "paused_at", 0);
    return ret->pauses || child_wish_parse(json_get_text(j, "wish"), &ret->wish);
}

bool family_word_read(struct slice kind, struct slice body, struct arena *a,
                      struct family_word *ret)
{
    const char *end = body.len > 0 ? memchr(body.ptr, '\n', body.len) : NULL;
    struct slice head = {body.ptr, end ? (size_t)(end - body.ptr) : body.len};
    struct json *j = NULL;

    *ret = (struct family_word){0};
    if (json_parse(a, arena_copy(a, head), &j, NULL) != ERR_OK || j->type != JSON_OBJECT)
        return false;
    ret->error = get_error(j);
    if (end)
        ret->output = (struct slice){end + 1, body.len - head.len - 1};
    return slice_eq(kind, NOTICE_CHILD) ? get_child(j, ret) : get_parent(j, ret);
}

void child_origin_write(struct buf *b, const struct child_origin *o)
{
    json_open(b, '{');
    json_member_text(b, "parent", o->parent);
    json_member_text(b, "root", o->root);
    json_member_text(b, "step", o->step);
    json_member_number(b, "number", o->number);
    if (o->complete_by)
        json_member_number(b, "complete_by", o->complete_by);
    json_member_raw_if(b, "family", o->family);
    json_member_text_if(b, "trace", o->trace);
    json_member_text_if(b, "owner", o->owner);
    json_close(b, '}');
}

bool child_origin_read(struct slice text, struct arena *a, struct child_origin *ret)
{
    struct json *j = NULL;

    *ret = (struct child_origin){0};
    if (json_parse(a, arena_copy(a, text), &j, NULL) != ERR_OK || j->type != JSON_OBJECT)
        return false;
    int64_t number = json_get_int(j, "number", 0);
    *ret = (struct child_origin){
        .parent = json_get_text(j, "parent"),
        .root = json_get_text(j, "root"),
        .step = json_get_text(j, "step"),
        .number = (uint32_t)number,
        .complete_by = json_get_int(j, "complete_by", 0),
        .family = json_get_raw(j, "family"),
        .trace = json_get_text(j, "trace"),
        .owner = json_get_text(j, "owner"),
    };
    return ret->parent.ptr && ret->root.ptr && ret->step.ptr && number >= 1 && number <= UINT32_MAX;
}
