/*
 * What all bodies hold against a row: checks before it is stored, copies, and the decisions of
 * listings, retention and counts that do not depend on a database. It calls no body and does no
 * I/O. The columns are those of rows/.
 */
#include "store/row.h"

#include "base/buf.h"
#include "store/codec/envelope.h"
#include "store/row_item.h"
#include "json/json.h"

static size_t family_size(const struct change *c)
{
    size_t size = 0;

    for (size_t i = 0; i < c->tell_count; i++)
        size += c->tells[i].body.len;
    for (size_t i = 0; i < c->child_count; i++)
        size += c->children[i].input.len + c->children[i].child.len;
    return size;
}

static size_t row_size(const struct task_row *row)
{
    size_t size = row->id.len;

#define SIZE(name, type, how) SIZE_##type(row->name)
#define SIZE_text(field)      size += (field).len;
#define SIZE_number(field)
#define SIZE_time(field)
#define SIZE_state(field)
#define SIZE_direction(field)
    TASK_COLUMNS(SIZE, )

    for (size_t i = 0; i < row->payload_count; i++)
        size += row->payloads[i].json.len;
    for (size_t i = 0; i < row->item_count; i++)
        size += row->items[i].doc.len;
    return size;
}

bool row_waits_for_several(const struct task_row *row)
{
    return row->waiting_for.len > 0 && row->waiting_for.ptr[0] == ',';
}

bool row_waits_for(const struct task_row *row, struct slice agent)
{
    struct slice rest = row->waiting_for;

    if (!row_waits_for_several(row))
        return rest.ptr && slice_eq(rest, agent);
    while (rest.len > 0) {
        struct slice name = {rest.ptr + 1, rest.len - 1};
        const char *comma = name.len > 0 ? memchr(name.ptr, ',', name.len) : NULL;
        if (comma)
            name.len = (size_t)(comma - name.ptr);
        if (slice_eq(name, agent))
            return true;
        rest = (struct slice){name.ptr + name.len, rest.len - 1 - name.len};
    }
    return false;
}

bool census_is_lock(struct slice waiting_for)
{
    static const char before[] = WAITING_LOCK;

    return waiting_for.len > sizeof before - 1
           && memcmp(waiting_for.ptr, before, sizeof before - 1) == 0;
}

bool row_queues(const struct task_row *row)
{
    return census_is_lock(row->waiting_for);
}

/* A task that waits for a lock waits for its own, and does not hold it. */
static bool lock_valid(const struct change *c)
{
    const struct task_row *row = &c->row;

    if (c->lock_move != LOCK_STAYS && !row->lock.ptr)
        return false;
    if (c->kind == CHANGE_REQUEST)
        return c->lock_move == LOCK_STAYS || (c->lock_move == LOCK_QUIT && c->release);
    if (c->kind == CHANGE_INSERT && (c->lock_move == LOCK_DROP || c->lock_move == LOCK_QUIT))
        return false;
    if (!row_queues(row))
        return true;
    struct slice queue = {row->waiting_for.ptr + sizeof WAITING_LOCK - 1,
                          row->waiting_for.len - (sizeof WAITING_LOCK - 1)};
    return row->lock.ptr && slice_eq(queue, row->lock) && row->lock_since == 0 && row->lock_max > 0
           && c->lock_move == LOCK_STAYS;
}

static bool waits_valid(const struct change *c)
{
    for (size_t i = 0; i < c->row.wait_count; i++)
        if (!c->row.waits[i].agent.ptr)
            return false;
    return (c->row.wait_count > 0) == row_waits_for_several(&c->row);
}

static bool payloads_valid(const struct task_row *row)
{
    for (size_t i = 0; i < row->payload_count; i++)
        if (!row->payloads[i].json.ptr || row->payloads[i].number == 0
            || row->payloads[i].number > PAYLOAD_NUMBER_MAX)
            return false;
    return true;
}

/* What is deleted was there before. */
static bool dropped_valid(const struct change *c)
{
    for (size_t i = 0; i < c->row.dropped_payload_count; i++) {
        uint32_t number = c->row.dropped_payloads[i];
        if (number == 0 || number > PAYLOAD_NUMBER_MAX)
            return false;
        for (size_t k = 0; k < c->row.payload_count; k++)
            if (c->row.payloads[k].number == number)
                return false;
    }
    return c->kind != CHANGE_REQUEST || c->row.dropped_payload_count == 0;
}

static bool is_of_list(const struct item_row *row, const struct item_row *of)
{
    return row->generation == of->generation && slice_eq(row->step, of->step);
}

/* Whether the row begins a list, which no row before it is of. */
static bool begins_list(const struct item_row *items, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (is_of_list(&items[at], &items[i]))
            return false;
    return true;
}

/* Each row of the list that begins there, once. */
static bool list_valid(const struct item_row *items, size_t count, size_t at)
{
    uint64_t seen[ITEMS_MAX / 64 + 1] = {0};

    for (size_t i = at; i < count; i++) {
        if (!is_of_list(&items[i], &items[at]))
            continue;
        uint64_t bit = UINT64_C(1) << items[i].number % 64;
        if (seen[items[i].number / 64] & bit)
            return false;
        seen[items[i].number / 64] |= bit;
    }
    return true;
}

static bool items_valid(const struct change *c)
{
    const struct item_row *items = c->row.items;

    for (size_t i = 0; i < c->row.item_count; i++)
        if (!item_row_valid(&items[i]))
            return false;
    for (size_t i = 0; i < c->row.item_count; i++) {
        bool goes_on = i > 0 && is_of_list(&items[i], &items[i - 1]); /* as nearly all do */
        if (!goes_on && begins_list(items, i) && !list_valid(items, c->row.item_count, i))
            return false;
    }
    return c->kind != CHANGE_REQUEST || c->row.item_count == 0;
}

/* What the table would refuse. */
static bool audits_valid(const struct change *c)
{
    for (size_t i = 0; i < c->audit_count; i++)
        if (!c->audits[i].actor.ptr || !c->audits[i].verb.ptr)
            return false;
    return true;
}

static bool messages_valid(const struct change *c)
{
    for (size_t i = 0; i < c->message_count; i++)
        if (!c->messages[i].name.ptr || !c->messages[i].target.ptr
            || (!c->messages[i].body.ptr && !c->messages[i].data.ptr))
            return false;
    return true;
}

static bool family_valid(const struct change *c)
{
    for (size_t i = 0; i < c->tell_count; i++)
        if (!c->tells[i].task.ptr || !c->tells[i].sender.ptr || !c->tells[i].kind.ptr
            || !c->tells[i].body.ptr)
            return false;
    for (size_t i = 0; i < c->child_count; i++)
        if (!c->children[i].source.ptr || !c->children[i].key.ptr)
            return false;
    return c->kind != CHANGE_REQUEST || c->tell_count + c->child_count == 0;
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
    if (row_size(row) + family_size(c) > ROW_SIZE_MAX)
        return ERR_TOO_BIG;
    if (row->id.len == 0 || row->revision > INT64_MAX || !payloads_valid(row) || !audits_valid(c)
        || !messages_valid(c) || !lock_valid(c) || !family_valid(c) || !items_valid(c)
        || !dropped_valid(c))
        return ERR_INVALID;
    if (c->kind == CHANGE_REQUEST)
        return ERR_OK;
    if (!row->doc.ptr || !waits_valid(c))
        return ERR_INVALID;
    if (c->kind == CHANGE_INSERT && (!row->workflow.ptr || !tags_valid(row->tags)))
        return ERR_INVALID;
    return ERR_OK;
}

/* Copies the texts among the columns, which `copy` still shares, to `a`. */
#define COPY(name, type)           COPY_##type(copy.name)
#define COPY_TASK(name, type, how) COPY_##type(copy.name)
#define COPY_text(field)           (field) = arena_copy(a, field);
#define COPY_any(field)            COPY_text(field)
#define COPY_number(field)
#define COPY_time(field)
#define COPY_flag(field)
#define COPY_state(field)
#define COPY_direction(field)

struct task_row row_copy(struct arena *a, const struct task_row *row)
{
    struct task_row copy = *row;

    copy.id = arena_copy(a, row->id);
    TASK_COLUMNS(COPY_TASK, )
    copy.payloads = NULL;
    copy.payload_count = 0;
    copy.dropped_payloads = NULL;
    copy.dropped_payload_count = 0;
    copy.waits = NULL;
    copy.wait_count = 0;
    copy.items = NULL;
    copy.item_count = 0;
    return copy;
}

struct message message_copy(struct arena *a, const struct message *m)
{
    CLEANUP(buf_fini) struct buf body = {0};
    struct message copy = *m;

    envelope_write(&body, m);

    copy.task = arena_copy(a, m->task);
    copy.name = arena_copy(a, m->name);
    copy.target = arena_copy(a, m->target);
    copy.body = arena_copy(a, buf_view(&body));
    copy.data = copy.source = copy.trace = SLICE_NONE;
    copy.story = arena_copy(a, m->story);
    return copy;
}

void messages_merge(const struct message_page *x, const struct message_page *y, size_t limit,
                    struct arena *a, struct message_page *ret)
{
    size_t i = 0;
    size_t k = 0;

    *ret = (struct message_page){.messages = arena_alloc(a, (limit + 1) * sizeof(struct message))};
    while (ret->count < limit && (i < x->count || k < y->count)) {
        bool first = k == y->count || (i < x->count && x->messages[i].seq < y->messages[k].seq);
        ret->messages[ret->count++] = first ? x->messages[i++] : y->messages[k++];
    }
    ret->more = i < x->count || k < y->count || x->more || y->more;
}

void outbox_census_of(int64_t fresh, int64_t waiting, int64_t dead, int64_t fresh_at,
                      int64_t waiting_at, size_t most, struct outbox_census *ret)
{
    *ret = (struct outbox_census){
        .waiting = (uint64_t)min_i64(fresh + waiting, (int64_t)most),
        .dead = (uint64_t)dead,
        .oldest_at = fresh_at && (!waiting_at || fresh_at < waiting_at) ? fresh_at : waiting_at,
    };
}

bool submission_fits(const struct submission_take *t, const struct submission_row *row,
                     size_t *bytes)
{
    size_t more = 0;

#define SIZE_PUT_IN(name, type) SIZE_PUT_IN_##type(row->name)
#define SIZE_PUT_IN_any(v)      more += (v).len;
#define SIZE_PUT_IN_text(v)
#define SIZE_PUT_IN_number(v)
#define SIZE_PUT_IN_time(v)
    SUBMISSION_COLUMNS(SIZE_PUT_IN, )
    if (t->bytes_max && *bytes > 0 && *bytes + more > t->bytes_max)
        return false;
    *bytes += more + 1; /* the first one counts even if it holds nothing */
    return true;
}

struct submission_row submission_copy(struct arena *a, const struct submission_row *row)
{
    struct submission_row copy = *row;

    copy.source = arena_copy(a, row->source);
    copy.key = arena_copy(a, row->key);
    SUBMISSION_COLUMNS(COPY, )
    return copy;
}

bool notice_fits(const struct notice_read *n, const struct notice_row *row, size_t *bytes)
{
    if (n->bytes_max && *bytes > 0 && *bytes + row->body.len > n->bytes_max)
        return false;
    *bytes += row->body.len + 1;
    return true;
}

struct notice_row notice_copy(struct arena *a, const struct notice_row *row)
{
    struct notice_row copy = *row;

    copy.owner = arena_copy(a, row->owner);
    NOTICE_COLUMNS(COPY, )
    return copy;
}

struct operation_row operation_copy(struct arena *a, const struct operation_row *row)
{
    struct operation_row copy = *row;

    copy.id = arena_copy(a, row->id);
    OPERATION_COLUMNS(COPY, )
    return copy;
}

struct schedule_row schedule_copy(struct arena *a, const struct schedule_row *row)
{
    struct schedule_row copy = *row;

    copy.name = arena_copy(a, row->name);
    SCHEDULE_COLUMNS(COPY, )
    return copy;
}

struct schedule_version_row schedule_version_of(const struct schedule_row *row)
{
    return (struct schedule_version_row){.name = row->name,
                                         .version = row->version,
                                         .text = row->text,
                                         .author = row->author,
                                         .stored_at = row->stored_at};
}

struct schedule_version_row schedule_version_copy(struct arena *a,
                                                  const struct schedule_version_row *row)
{
    struct schedule_version_row copy = *row;

    SCHEDULE_VERSION_COLUMNS(COPY, )
    return copy;
}

struct audit audit_copy(struct arena *a, const struct audit *audit)
{
    struct audit copy = *audit;

    AUDIT_COLUMNS(COPY, )
    return copy;
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

static bool is_between(int64_t at, int64_t from, int64_t before)
{
    return (from == 0 || at >= from) && (before == 0 || (at != 0 && at < before));
}

bool row_asks(const struct task_row *row, struct slice group)
{
    struct slice left = row->asked;

    while (left.len > group.len + 1) {
        const char *end = memchr(left.ptr + 1, ',', left.len - 1);
        if (!end)
            return false;
        if (slice_eq((struct slice){left.ptr + 1, (size_t)(end - left.ptr) - 1}, group))
            return true;
        left = (struct slice){end, left.len - (size_t)(end - left.ptr)};
    }
    return false;
}

static bool begins_with(struct slice text, struct slice prefix)
{
    return text.len >= prefix.len && memcmp(text.ptr, prefix.ptr, prefix.len) == 0;
}

bool name_is_like(struct slice name, struct slice pattern)
{
    if (pattern.len == 0 || pattern.ptr[pattern.len - 1] != '*')
        return slice_eq(name, pattern);
    return begins_with(name, (struct slice){pattern.ptr, pattern.len - 1});
}

bool name_is_within(struct slice name, const struct slice *patterns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (name_is_like(name, patterns[i]))
            return true;
    return false;
}

bool list_wants(const struct list_query *q, const struct task_row *row)
{
    if (q->states != 0 && !(q->states & 1U << row->state))
        return false;
    if (q->workflow.ptr && !slice_eq(row->workflow, q->workflow))
        return false;
    if (q->within && !name_is_within(row->workflow, q->within, q->within_count))
        return false;
    if (q->version != 0 && row->version != q->version)
        return false;
    if (q->id_prefix.ptr && !begins_with(row->id, q->id_prefix))
        return false;
    if (!wish_fits(q->paused, row->paused_at != 0) || !wish_fits(q->closed, row->closed_at != 0))
        return false;
    if (!wish_fits(q->children, row->parent.ptr != NULL))
        return false;
    if (q->parent.ptr && !slice_eq(row->parent, q->parent))
        return false;
    if (q->root.ptr && !slice_eq(row->root, q->root))
        return false;
    return is_between(row->submitted_at, q->submitted_after, q->submitted_before)
           && is_between(row->ended_at, q->ended_after, q->ended_before);
}

bool list_wants_doc(const struct list_query *q)
{
    return q->error.ptr || q->place_count > 0 || q->agent.ptr;
}

/* Is it a current step of its task (struct list_query)? */
static bool stands(const struct json *step)
{
    struct slice state = json_get_text(step, "state");

    if (slice_is(state, "waiting"))
        return json_get_int(step, "failure_count", 0) > 0 || json_get(step, "begun_at")
               || json_get(step, "round");
    return slice_is(state, "running") || slice_is(state, "undoing") || slice_is(state, "failed");
}

static bool is_place(const struct list_query *q, const struct task_row *row, struct slice step)
{
    for (size_t i = 0; i < q->place_count; i++) {
        const struct list_place *p = &q->places[i];
        if (slice_eq(p->step, step)
            && (!p->workflow.ptr
                || (p->version == row->version && slice_eq(p->workflow, row->workflow))))
            return true;
    }
    return false;
}

static bool stands_at_place(const struct list_query *q, const struct task_row *row,
                            const struct json *doc)
{
    const struct json *steps = json_get(doc, "steps");

    for (const struct json *s = steps ? steps->child : NULL; s; s = s->next)
        if (stands(s) && is_place(q, row, json_get_text(s, "name")))
            return true;
    return false;
}

bool list_doc_wanted(const struct list_query *q, const struct task_row *row)
{
    CLEANUP(arena_fini) struct arena a = {0};
    bool waits = q->agent.ptr && row_waits_for(row, q->agent);
    bool anywhere = q->place_count == 0 && !q->agent.ptr;
    struct json *doc = NULL;

    if (json_parse(&a, row->doc, &doc, NULL) != ERR_OK)
        return false;
    if (q->error.ptr && !slice_eq(json_get_text(json_get(doc, "error"), "code"), q->error))
        return false;
    return anywhere || waits || stands_at_place(q, row, doc);
}

static bool rule_is_for(const struct retire_rule *rule, const struct retire_seen *t)
{
    bool closed = t->state == TASK_ERROR && t->closed_at != 0;

    if (rule->workflow.ptr && !slice_eq(rule->workflow, t->workflow))
        return false;
    return (rule->states & RETIRE_STATES & 1U << t->state)
           || (closed && rule->states & RETIRE_CLOSED);
}

/* Does the task, which ended at `over_at`, have undelivered messages? Messages that were not set
 * aside have no index by task, but none is written after the end of its task. */
static bool is_untold(const struct retire_seen *t, int64_t over_at)
{
    return t->untold || (t->fresh_at != 0 && over_at >= t->fresh_at - SUBMITTED_SLACK_MS);
}

/* Nothing holds it back, whatever the rules say. */
static bool is_over(const struct retire_seen *t)
{
    int64_t over_at = max_i64(t->ended_at, t->closed_at);

    return !t->locked && t->ended_at != 0 && (RETIRE_STATES & 1U << t->state) != 0
           && !is_untold(t, over_at);
}

bool retire_orphan_goes(const struct retire_seen *t)
{
    return is_over(t) && (t->state != TASK_ERROR || t->closed_at != 0);
}

size_t retire_rule_of(const struct retire_look *r, const struct retire_seen *t)
{
    int64_t over_at = max_i64(t->ended_at, t->closed_at);

    if (t->child || !is_over(t))
        return SIZE_MAX;
    for (size_t i = 0; i < r->rule_count; i++) {
        const struct retire_rule *rule = &r->rules[i];
        if (!rule_is_for(rule, t))
            continue;
        bool goes =
            over_at < rule->ended_before && (rule->seq_before == 0 || t->seq < rule->seq_before);
        return goes ? i : SIZE_MAX;
    }
    return SIZE_MAX;
}

bool retire_is_past(const struct retire_look *r, int64_t seq, int64_t submitted_at)
{
    for (size_t i = 0; i < r->rule_count; i++) {
        const struct retire_rule *rule = &r->rules[i];
        if (submitted_at < rule->ended_before + SUBMITTED_SLACK_MS && rule->ended_before > 0
            && (rule->seq_before == 0 || seq < rule->seq_before))
            return false;
    }
    return true;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint64_t content_parse(struct slice hex)
{
    uint64_t content = 0;

    for (size_t i = 0; i < hex.len; i++) {
        int digit = digit_of(hex.ptr[i]);
        if (digit < 0 || hex.len != 16)
            return 0;
        content = content << 4 | (uint64_t)digit;
    }
    return content;
}

struct content doc_content(struct slice doc, struct arena *a)
{
    CLEANUP(arena_fini) struct arena own = {0};
    struct json *j = NULL;

    if (json_parse(&own, doc, &j, NULL) != ERR_OK)
        return (struct content){0};
    return (struct content){content_parse(json_get_text(j, "content")),
                            arena_copy(a, json_get_text(j, "sha256"))};
}

void census_add(struct census *c, const struct census_agent *list, size_t count, struct arena *a)
{
    struct census_agent *all = arena_alloc(a, (c->agent_count + count) * sizeof *all);
    size_t n = 0;

    for (size_t i = 0, k = 0; i < c->agent_count || k < count;) {
        int order = i == c->agent_count ? 1
                    : k == count        ? -1
                                        : slice_order(c->agents[i].agent, list[k].agent);
        all[n] = order <= 0 ? c->agents[i] : list[k];
        if (order == 0) {
            all[n].tasks =
                (uint64_t)min_i64((int64_t)(all[n].tasks + list[k].tasks), (int64_t)c->agents_most);
            all[n].first_submitted_at =
                min_i64(all[n].first_submitted_at, list[k].first_submitted_at);
        }
        i += order <= 0;
        k += order >= 0;
        n++;
    }
    c->agents = all;
    c->agent_count = n < CENSUS_AGENTS ? n : CENSUS_AGENTS;
}

void census_take_sleeping(struct census *c)
{
    size_t kept = 0;

    for (size_t i = 0; i < c->agent_count; i++)
        if (slice_eq(c->agents[i].agent, WAITING_TIME) || slice_eq(c->agents[i].agent, WAITING_WAIT)
            || slice_eq(c->agents[i].agent, WAITING_SIGNAL))
            c->sleeping += c->agents[i].tasks;
        else if (!census_is_lock(c->agents[i].agent))
            c->agents[kept++] = c->agents[i];
    c->agent_count = kept;
}

void owners_begin(struct owners_part *p, struct arena *a)
{
    p->owners = arena_alloc(a, (p->most + 1) * sizeof *p->owners);
    p->count = 0;
    p->over = false;
}

void owners_add(struct owners_part *p, struct slice owner)
{
    if (!owner.ptr)
        return;
    ASSERT(p->count < p->most);
    p->owners[p->count++] = owner;
}

void owners_move(struct owners_part *p, size_t rows, int64_t last_seq)
{
    static const enum task_state states[] = {TASK_PENDING, TASK_PROCESSING, TASK_COMPENSATING};
    size_t at = 0;

    p->after_seq = last_seq;
    if (rows >= p->most)
        return;
    while (states[at] != p->state)
        at++;
    p->over = at + 1 == COUNT_OF(states);
    p->state = p->over ? p->state : states[at + 1];
    p->after_seq = 0;
}
