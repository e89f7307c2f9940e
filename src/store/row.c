#include "store/row.h"

#include "base/buf.h"
#include "json/json.h"

static size_t row_size(const struct task_row *row)
{
    size_t size = row->id.len + row->workflow.len + row->locked_by.len + row->waiting_for.len
                  + row->request.len + row->reply_to.len + row->tags.len + row->doc.len;

    for (size_t i = 0; i < row->payload_count; i++)
        size += row->payloads[i].json.len;
    return size;
}

static bool payloads_valid(const struct task_row *row)
{
    for (size_t i = 0; i < row->payload_count; i++)
        if (!row->payloads[i].json.ptr || row->payloads[i].number == 0
            || row->payloads[i].number > PAYLOAD_NUMBER_MAX)
            return false;
    return true;
}

/* What the table would refuse. */
static bool audits_valid(const struct change *c)
{
    for (size_t i = 0; i < c->audit_count; i++)
        if (!c->audits[i].actor.ptr || !c->audits[i].verb.ptr)
            return false;
    return true;
}

static bool tags_valid(struct slice tags)
{
    CLEANUP(arena_fini) struct arena a = {0};
    struct json *j;

    if (!tags.ptr)
        return true;
    return json_parse(&a, tags, &j, NULL) == ERR_OK && j->type == JSON_OBJECT;
}

enum err row_check(const struct change *c)
{
    const struct task_row *row = &c->row;

    ASSERT(row->id.ptr);
    ASSERT(c->kind == CHANGE_INSERT ? row->revision == 1 : row->revision > 1);
    if (row_size(row) > ROW_SIZE_MAX)
        return ERR_TOO_BIG;
    if (row->id.len == 0 || row->revision > INT64_MAX || !payloads_valid(row) || !audits_valid(c))
        return ERR_INVALID;
    if (c->kind == CHANGE_REQUEST)
        return ERR_OK;
    if (!row->doc.ptr)
        return ERR_INVALID;
    if (c->kind == CHANGE_INSERT && (!row->workflow.ptr || !tags_valid(row->tags)))
        return ERR_INVALID;
    return ERR_OK;
}

struct task_row row_copy(struct arena *a, const struct task_row *row)
{
    struct task_row copy = *row;

    copy.id = arena_copy(a, row->id);
    copy.workflow = arena_copy(a, row->workflow);
    copy.locked_by = arena_copy(a, row->locked_by);
    copy.waiting_for = arena_copy(a, row->waiting_for);
    copy.request = arena_copy(a, row->request);
    copy.reply_to = arena_copy(a, row->reply_to);
    copy.tags = arena_copy(a, row->tags);
    copy.doc = arena_copy(a, row->doc);
    copy.payloads = NULL;
    copy.payload_count = 0;
    return copy;
}

struct audit audit_copy(struct arena *a, const struct audit *audit)
{
    return (struct audit){
        .at = audit->at,
        .actor = arena_copy(a, audit->actor),
        .verb = arena_copy(a, audit->verb),
        .task = arena_copy(a, audit->task),
        .step = arena_copy(a, audit->step),
        .reason = arena_copy(a, audit->reason),
        .detail = arena_copy(a, audit->detail),
    };
}

struct slice audit_workflow_reason(struct arena *a, struct slice name, int64_t version)
{
    CLEANUP(buf_fini) struct buf b = {0};

    buf_fmt(&b, "%.*s, version %" PRId64, SLICE_ARG(name), version);
    return arena_copy(a, buf_view(&b));
}

struct slice owner_node(struct slice locked_by)
{
    const char *slash = memrchr(locked_by.ptr, '/', locked_by.len);

    ASSERT(slash);
    return (struct slice){locked_by.ptr, (size_t)(slash - locked_by.ptr) + 1};
}

uint64_t owner_boot(struct slice locked_by)
{
    size_t at = owner_node(locked_by).len;
    uint64_t boot = 0;

    if (locked_by.len - at > 18)
        return 0;
    for (; at < locked_by.len; at++) {
        if (locked_by.ptr[at] < '0' || locked_by.ptr[at] > '9')
            return 0;
        boot = boot * 10 + (uint64_t)(locked_by.ptr[at] - '0');
    }
    return boot;
}

static bool wish_fits(enum list_wish wish, bool is_so)
{
    return wish == LIST_EITHER || is_so == (wish == LIST_ONLY);
}

bool list_wants(const struct list_query *q, const struct task_row *row)
{
    if (q->states != 0 && !(q->states & 1U << row->state))
        return false;
    if (q->workflow.ptr && !slice_eq(row->workflow, q->workflow))
        return false;
    if (!wish_fits(q->paused, row->paused_at != 0) || !wish_fits(q->closed, row->closed_at != 0))
        return false;
    return (q->submitted_after == 0 || row->submitted_at >= q->submitted_after)
           && (q->submitted_before == 0 || row->submitted_at < q->submitted_before);
}

bool retire_wants(const struct retire *r, enum task_state state, int64_t ended_at, bool locked)
{
    return (r->states & RETIRE_STATES & 1U << state) && ended_at != 0 && ended_at < r->ended_before
           && !locked;
}

bool retire_is_past(const struct retire *r, int64_t submitted_at)
{
    return submitted_at >= r->ended_before + SUBMITTED_SLACK_MS;
}

void census_take_sleeping(struct census *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->agent_count; i++)
        if (slice_is(c->agents[i].agent, "time"))
            c->sleeping = c->agents[i].tasks;
        else
            c->agents[kept++] = c->agents[i];
    c->agent_count = kept;
}
