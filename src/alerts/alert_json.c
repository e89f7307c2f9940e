/*
 * Alerts as JSON: the `doc` of a row, which alerts_load reads back, and the form for people and
 * sinks. New members of `doc` must be optional. At present:
 *   {"condition", "labels": {}, "count", "total", "first_at", "latest_at", "since", "over_since",
 *    "examples": [], "story", "times", "notice", "kind", "notice_at", "reminders",
 *    "told": {SINK: NOTICE}, "repeat_ms" (if it has an interval of its own)}
 */

#include "alerts/internal.h"

#include <stdio.h>

#include "json/json.h"

const char *alert_state(const struct alert *al)
{
    return al->resolved_at != 0 ? "resolved" : al->acknowledged_at != 0 ? "acknowledged" : "open";
}

static void put_labels(const struct alert *al, struct buf *b)
{
    json_key(b, "labels");
    json_open(b, '{');
    for (size_t i = 0; i < al->label_count; i++) {
        json_member_text(b, al->labels[i].name, slice_of(al->labels[i].value));
    }
    json_close(b, '}');
}

static void put_examples(const struct alert *al, struct buf *b)
{
    json_key(b, "examples");
    json_open(b, '[');
    for (size_t i = 0; i < al->example_count; i++)
        json_string(b, slice_of(al->examples[i]));
    json_close(b, ']');
}

static void put_text(struct buf *b, const char *key, const char *text)
{
    json_member_text(b, key, *text ? slice_of(text) : SLICE_NONE);
}

static void put_told(const struct alerts *a, const struct alert *al, struct buf *b)
{
    json_key(b, "told");
    json_open(b, '{');
    for (size_t i = 0; i < a->config.sink_count; i++)
        if (al->told[i] > 0) {
            json_key_slice(b, slice_of(a->config.sinks[i].name));
            json_number(b, al->told[i]);
        }
    json_close(b, '}');
}

void alert_write(const struct alerts *a, const struct alert *al, struct buf *b)
{
    json_open(b, '{');
    put_text(b, "condition", condition_text(al->condition));
    put_labels(al, b);
    json_member_number(b, "count", (int64_t)al->count);
    json_member_number(b, "total", (int64_t)al->total);
    json_member_number(b, "first_at", al->first_at);
    json_member_number(b, "latest_at", al->latest_at);
    json_member_number(b, "since", al->since);
    json_member_number(b, "over_since", al->over_since);
    put_examples(al, b);
    put_text(b, "story", al->story);
    json_member_number(b, "times", al->times);
    json_member_number(b, "notice", al->notice);
    put_text(b, "kind", notice_text(al->kind));
    json_member_number(b, "notice_at", al->notice_at);
    json_member_number(b, "reminders", al->reminders);
    put_told(a, al, b);
    if (al->repeat_ms != 0)
        json_member_number(b, "repeat_ms", al->repeat_ms);
    json_close(b, '}');
}

void alert_sentence(const struct alert *al, struct buf *b)
{
    buf_str(b, condition_about(al->condition));
    for (size_t i = 0; i < al->label_count; i++)
        buf_fmt(b, "%s %s %s", i ? "," : ":", al->labels[i].name, al->labels[i].value);
    if (al->count > 1)
        buf_fmt(b, " (%" PRIu64 ")", al->count);
}

void alert_render(const struct alert *al, struct buf *b)
{
    CLEANUP(buf_fini) struct buf sentence = {0};

    alert_sentence(al, &sentence);
    json_open(b, '{');
    put_text(b, "id", al->id);
    put_text(b, "condition", condition_text(al->condition));
    put_labels(al, b);
    put_text(b, "state", alert_state(al));
    put_text(b, "summary", sentence.ptr);
    put_text(b, "story", al->story);
    json_member_number(b, "count", (int64_t)al->count);
    json_member_number(b, "total", (int64_t)al->total);
    json_member_time(b, "first_at", al->first_at);
    json_member_time(b, "latest_at", al->latest_at);
    put_examples(al, b);
    json_member_time(b, "opened_at", al->opened_at);
    json_member_number(b, "notices", al->notice);
    json_member_time(b, "told_at", al->notice_at);
    json_member_time(b, "acknowledged_at", al->acknowledged_at);
    put_text(b, "acknowledged_by", al->acknowledged_at ? al->acknowledged_by : "");
    put_text(b, "acknowledged_why", al->acknowledged_at ? al->acknowledged_why : "");
    json_member_time(b, "resolved_at", al->resolved_at);
    json_close(b, '}');
}

/* ---- reading ---- */

/* The fixed set of label names; a row with another name is rejected. */
static const char *label_name(struct slice name)
{
    static const char *const names[] = {"workflow",  "step",     "code", "agent",
                                        "operation", "schedule", "node", "target",
                                        "group",     "source",   "token"};

    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (slice_is(name, names[i]))
            return names[i];
    return NULL;
}

static bool read_labels(const struct json *j, struct alert *al)
{
    if (!j || j->type != JSON_OBJECT)
        return false;
    for (const struct json *m = j->child; m; m = m->next) {
        const char *name = label_name(m->key);
        if (!name || m->type != JSON_STRING || al->label_count == ALERT_LABELS)
            return false;
        al->labels[al->label_count].name = name;
        text_copy(al->labels[al->label_count++].value, m->text);
    }
    return true;
}

static void read_examples(const struct json *j, struct alert *al)
{
    const struct json *m = j && j->type == JSON_ARRAY ? j->child : NULL;

    for (; m && al->example_count < ALERT_EXAMPLES; m = m->next)
        if (m->type == JSON_STRING)
            text_copy(al->examples[al->example_count++], m->text);
}

static void read_told(const struct alerts *a, const struct json *j, struct alert *al)
{
    for (size_t i = 0; i < a->config.sink_count; i++) {
        int64_t told = json_get_int(j, a->config.sinks[i].name, -1);
        if (told < 0) /* a new sink: a resolved alert need not be sent to it */
            told = al->kind == NOTICE_RESOLVED ? al->notice : 0;
        al->told[i] = told > al->notice ? al->notice : (uint32_t)told;
    }
}

static uint32_t small(const struct json *j, const char *key)
{
    int64_t v = json_get_int(j, key, 0);

    return v < 0 || v > UINT32_MAX ? 0 : (uint32_t)v;
}

static uint64_t amount(const struct json *j, const char *key)
{
    return (uint64_t)max_i64(json_get_int(j, key, 0), 0);
}

static enum notice_kind read_kind(struct slice text)
{
    for (int k = NOTICE_OPENED; k <= NOTICE_RESOLVED; k++)
        if (slice_is(text, notice_text((enum notice_kind)k)))
            return (enum notice_kind)k;
    return NOTICE_NONE;
}

static bool read_doc(const struct alerts *a, const struct json *j, struct alert *al)
{
    if (!j || j->type != JSON_OBJECT
        || !condition_parse(json_get_text(j, "condition"), &al->condition)
        || !read_labels(json_get(j, "labels"), al))
        return false;
    al->count = amount(j, "count");
    al->total = amount(j, "total");
    al->first_at = json_get_int(j, "first_at", 0);
    al->latest_at = json_get_int(j, "latest_at", 0);
    al->since = json_get_int(j, "since", 0);
    al->over_since = json_get_int(j, "over_since", 0);
    read_examples(json_get(j, "examples"), al);
    text_copy(al->story, json_get_text(j, "story"));
    al->times = small(j, "times");
    al->notice = small(j, "notice");
    al->kind = read_kind(json_get_text(j, "kind"));
    al->notice_at = json_get_int(j, "notice_at", 0);
    al->reminders = small(j, "reminders");
    al->repeat_ms = alert_repeat_ms(json_get_int(j, "repeat_ms", 0));
    read_told(a, json_get(j, "told"), al);
    return al->notice > 0 && al->kind != NOTICE_NONE;
}

static void take_columns(const struct alert_stored *row, struct alert *al)
{
    (void)snprintf(al->id, sizeof al->id, "%.*s", SLICE_ARG(row->id));
    al->opened_at = row->opened_at;
    al->resolved_at = row->resolved_at;
    al->acknowledged_at = row->acknowledged_at;
    text_copy(al->acknowledged_by, row->acknowledged_by);
    text_copy(al->acknowledged_why, row->acknowledged_why);
    al->stored_notice = al->notice;
}

static bool read_row(const struct alerts *a, const struct alert_stored *row, struct alert *ret)
{
    CLEANUP(arena_fini) struct arena arena = {0};
    struct json *j = NULL;

    if (json_parse(&arena, row->doc, &j, NULL) != ERR_OK || !read_doc(a, j, ret)
        || row->opened_at <= 0 || row->id.len >= sizeof ret->id)
        return false;
    take_columns(row, ret);
    return true;
}

bool alert_render_row(const struct alert_stored *row, struct slice state, struct buf *b)
{
    static const struct alerts nobody;
    struct alert al = {0};

    if (!read_row(&nobody, row, &al) || (state.ptr && !slice_is(state, alert_state(&al))))
        return false;
    alert_render(&al, b);
    return true;
}

bool alert_render_for_task(const struct alert_stored *row, struct slice task, struct buf *b)
{
    static const struct alerts nobody;
    struct alert al = {0};
    size_t kept = 0;

    if (!read_row(&nobody, row, &al))
        return false;
    for (size_t i = 0; i < al.example_count; i++)
        if (slice_is(task, al.examples[i])) {
            (void)snprintf(al.examples[kept++], sizeof al.examples[0], "%.*s", SLICE_ARG(task));
            break;
        }
    al.example_count = kept;
    al.count = al.total = kept;
    al.story[0] = al.acknowledged_by[0] = al.acknowledged_why[0] = 0;
    alert_render(&al, b);
    return true;
}

/* The record of a group replaces what was seen of it before it was loaded. */
enum err alerts_load(struct alerts *a, const struct alert_stored *row, int64_t now)
{
    CLEANUP(buf_fini) struct buf key = {0};
    struct alert al = {0};

    if (!read_row(a, row, &al))
        return ERR_INVALID;
    al.stored_at = now;
    alert_key(&al, &key);
    if (!slice_eq(buf_view(&key), row->key))
        return ERR_INVALID;
    struct alert *there = map_get(&a->by_key, row->key);
    if (!there) {
        (void)alert_new(a, &al);
        return ERR_OK;
    }
    al.key = there->key;
    *there = al;
    return ERR_OK;
}
