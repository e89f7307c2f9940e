/* An operation as data: from requests, to and from rows, refusal counts. Touches no store (page.c)
 * and no scheduler (runner.c). */

#include "operations/operation.h"

#include <string.h>

#include "base/names.h"
#include "json/text.h"

const char *operation_state_text(enum operation_state s)
{
    static const char *const texts[] = {
#define X(name, text) text,
        OPERATION_STATES(X)
#undef X
    };
    return texts[s];
}

static bool state_parse(struct slice text, enum operation_state *ret)
{
    for (int i = 0; i <= OPERATION_DONE; i++)
        if (slice_is(text, operation_state_text((enum operation_state)i))) {
            *ret = (enum operation_state)i;
            return true;
        }
    return false;
}

bool operation_kind_parse(struct slice text, enum ask_kind *ret)
{
    static const enum ask_kind kinds[] = {ASK_RETRY, ASK_UNDO,   ASK_SKIP,    ASK_CANCEL,
                                          ASK_PAUSE, ASK_RESUME, ASK_SUPPLY,  ASK_CORRECT,
                                          ASK_CLOSE, ASK_REOPEN, ASK_RESOLVE, ASK_SIGNAL};

    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (slice_is(text, ask_kind_text(kinds[i]))) {
            *ret = kinds[i];
            return true;
        }
    return false;
}

/* ---- requests ---- */

static enum err invalid(struct error *e, const char *what)
{
    return error_set(e, ERR_INVALID, "%s", what);
}

/* The arguments of each verb: forbidden, optional or required. */
enum need { NO, MAY, MUST };

static const struct takes {
    enum need step, from, input, output, effect, name, data;
} takes[] = {
    [ASK_RETRY] = {.step = MAY, .from = MAY},       [ASK_SKIP] = {.step = MUST, .output = MAY},
    [ASK_SUPPLY] = {.step = MUST, .output = MUST},  [ASK_CORRECT] = {.step = MAY, .input = MUST},
    [ASK_RESOLVE] = {.step = MUST, .effect = MUST}, [ASK_SIGNAL] = {.name = MUST, .data = MAY},
};

static enum err need(enum need n, bool given, const char *name, const char *verb, struct error *e)
{
    if (n == MUST && !given)
        return error_set(e, ERR_INVALID, "%s needs arguments.%s", verb, name);
    if (n == NO && given)
        return error_set(e, ERR_INVALID, "%s takes no arguments.%s", verb, name);
    return ERR_OK;
}

static enum err check_arguments(const struct json *j, const struct operation *op, struct error *e)
{
    const struct takes *t = &takes[op->kind];
    const char *verb = ask_kind_text(op->kind);

    enum err err = need(t->step, json_get(j, "step") != NULL, "step", verb, e);
    if (err == ERR_OK)
        err = need(t->from, json_get(j, "from") != NULL, "from", verb, e);
    if (err == ERR_OK)
        err = need(t->input, op->input.ptr != NULL, "input", verb, e);
    if (err == ERR_OK)
        err = need(t->output, op->output.ptr != NULL, "output", verb, e);
    if (err == ERR_OK)
        err = need(t->effect, json_get(j, "effect") != NULL, "effect", verb, e);
    if (err == ERR_OK)
        err = need(t->name, json_get(j, "name") != NULL, "name", verb, e);
    if (err == ERR_OK)
        err = need(t->data, json_get(j, "data") != NULL, "data", verb, e);
    if (err == ERR_OK && json_get(j, "effect") && !slice_is(json_get_text(j, "effect"), "none"))
        return invalid(e, "arguments.effect: expected \"none\"; for steps that took effect, use "
                          "supply with their output");
    if (err == ERR_OK && json_get(j, "step") && json_get(j, "from"))
        return invalid(e, "arguments: give either step, to retry that step, or from, to restart it "
                          "and all steps after it");
    return err;
}

static enum err read_signal(const struct json *j, struct signal *ret, struct error *e)
{
    struct slice data = json_get_raw(j, "data");

    ret->name = json_get_text(j, "name");
    ret->data.json = data.ptr ? data : SLICE("null");
    if (!is_name(ret->name))
        return invalid(e, "arguments.name: expected the name of a signal");
    if (data.len > SIGNAL_DATA_MAX)
        return error_set(e, ERR_INVALID, "arguments.data has %zu bytes, expected at most %d",
                         data.len, SIGNAL_DATA_MAX);
    return ERR_OK;
}

static enum err read_arguments(const struct json *j, struct operation *op, struct error *e)
{
    if (j && j->type != JSON_OBJECT)
        return invalid(e, "arguments: expected an object");
    for (const struct json *m = j ? j->child : NULL; m; m = m->next) {
        bool names = slice_is(m->key, "step") || slice_is(m->key, "from");
        if (!names && !slice_is(m->key, "output") && !slice_is(m->key, "input")
            && !slice_is(m->key, "effect") && !slice_is(m->key, "name")
            && !slice_is(m->key, "data"))
            return error_set(e, ERR_INVALID, "arguments: there is no member \"%.*s\"",
                             SLICE_ARG(m->key));
        if (names && m->type != JSON_STRING)
            return error_set(e, ERR_INVALID, "arguments.%.*s: expected the name of a step",
                             SLICE_ARG(m->key));
    }
    op->from = json_get(j, "from") != NULL;
    op->step = json_get_text(j, op->from ? "from" : "step");
    op->input = json_get_raw(j, "input");
    op->output = json_get_raw(j, "output");
    op->arguments_json = j ? j->raw : SLICE_NONE;
    enum err err = check_arguments(j, op, e);
    return err == ERR_OK && op->kind == ASK_SIGNAL ? read_signal(j, &op->signal, e) : err;
}

static bool digits(const char **at, int64_t *ret)
{
    const char *from = *at;

    *ret = 0;
    for (; **at >= '0' && **at <= '9' && *at - from < 9; (*at)++)
        *ret = *ret * 10 + (**at - '0');
    return *at > from;
}

/* "200/s" */
static bool read_rate(struct slice text, int64_t *ret)
{
    char word[32];
    const char *at = word;

    if (!text.ptr || text.len >= sizeof word)
        return false;
    memcpy(word, text.ptr, text.len);
    word[text.len] = 0;
    return digits(&at, ret) && strcmp(at, "/s") == 0 && *ret > 0 && *ret <= OPERATION_RATE_MAX;
}

static enum err read_limits(const struct json *j, struct operation *op, struct error *e)
{
    const struct json *limit = json_get(j, "limit");
    const struct json *rate = json_get(j, "rate");

    if (limit && (!json_int(limit, &op->limit) || op->limit < 1))
        return invalid(e, "limit: expected a number of tasks, from 1 on");
    if (rate && (rate->type != JSON_STRING || !read_rate(rate->text, &op->rate)))
        return invalid(e, "rate: expected tasks a second, from \"1/s\" to \"100000/s\"");
    return ERR_OK;
}

enum { REASON_BYTES_MAX = 4096 };

static enum err read_members(struct arena *a, const struct json *j, struct operation *ret,
                             struct error *e)
{
    const struct json *arguments = json_get(j, "arguments");

    *ret = (struct operation){.state = OPERATION_RUNNING};
    if (!operation_kind_parse(json_get_text(j, "verb"), &ret->kind))
        return error_set(e, ERR_INVALID, "verb: expected %s", OPERATION_VERBS);
    enum err err = filter_read(a, json_get(j, "filter"), &ret->filter, e);
    if (err != ERR_OK)
        return err;
    ret->filter_json = json_get_raw(j, "filter");
    ret->reason = json_get_text(j, "reason");
    if (ret->reason.len == 0)
        return invalid(e, "a reason is required: {\"reason\": \"...\"}");
    if (ret->reason.len > REASON_BYTES_MAX)
        return invalid(e, "the reason is longer than 4096 bytes");
    if (arguments && arguments->raw.len > OPERATION_ARGUMENTS_MAX)
        return error_set(e, ERR_INVALID, "arguments: expected at most %d bytes, found %zu",
                         OPERATION_ARGUMENTS_MAX, arguments->raw.len);
    err = read_arguments(arguments, ret, e);
    return err == ERR_OK ? read_limits(j, ret, e) : err;
}

enum err operation_read(struct arena *a, const struct json *j, struct operation *ret,
                        struct error *e)
{
    CLEANUP(arena_fini) struct arena tried = {0};
    struct json *own = NULL;

    /* Before the copy, so that nothing large is parsed a second time. */
    enum err err = read_members(&tried, j, ret, e);
    if (err != ERR_OK)
        return err;
    err = json_parse(a, arena_copy(a, j->raw), &own, NULL);
    ASSERT(err == ERR_OK); /* it was valid JSON before */
    return read_members(a, own, ret, e);
}

/* ---- rows ---- */

static void put_count(struct buf *b, const char *key, uint64_t v)
{
    json_key(b, key);
    json_number(b, (int64_t)v);
}

static void put_refused(struct buf *b, const struct operation *op)
{
    json_key(b, "refused");
    json_open(b, '{');
    for (size_t i = 0; i < op->refused_count; i++) {
        json_key_slice(b, op->refused[i].reason);
        json_number(b, (int64_t)op->refused[i].count);
    }
    json_close(b, '}');
}

static void put_page(struct buf *b, const struct operation *op)
{
    json_key(b, "page");
    json_open(b, '[');
    for (size_t i = 0; i < op->page_count; i++)
        json_string(b, op->page[i]);
    json_close(b, ']');
}

void operation_encode(const struct operation *op, struct buf *doc, struct operation_row *ret)
{
    json_open(doc, '{');
    json_key(doc, "filter");
    json_raw(doc, op->filter_json);
    if (op->arguments_json.ptr) {
        json_key(doc, "arguments");
        json_raw(doc, op->arguments_json);
    }
    json_member_text_if(doc, "content", op->signal.content);
    if (op->by_admin) {
        json_key(doc, "by_admin");
        json_bool(doc, true);
    }
    put_count(doc, "limit", (uint64_t)op->limit);
    put_count(doc, "rate", (uint64_t)op->rate);
    put_count(doc, "matched", op->matched);
    put_count(doc, "done", op->done);
    put_count(doc, "failed", op->failed);
    put_count(doc, "gone", op->gone);
    put_refused(doc, op);
    put_count(doc, "cursor", (uint64_t)op->cursor);
    json_key(doc, "seen_all");
    json_bool(doc, op->seen_all);
    put_page(doc, op);
    json_close(doc, '}');
    *ret = (struct operation_row){
        .seq = op->seq,
        .id = op->id,
        .revision = op->revision,
        .open = op->state == OPERATION_RUNNING,
        .state = slice_of(operation_state_text(op->state)),
        .verb = slice_of(ask_kind_text(op->kind)),
        .actor = op->actor,
        .reason = op->reason,
        .started_at = op->started_at,
        .ended_at = op->ended_at,
        .doc = buf_view(doc),
    };
}

static void read_counts(const struct json *j, struct operation *op)
{
    const struct json *refused = json_get(j, "refused");

    op->limit = json_get_int(j, "limit", 0);
    op->rate = json_get_int(j, "rate", 0);
    op->matched = (uint64_t)json_get_int(j, "matched", 0);
    op->done = (uint64_t)json_get_int(j, "done", 0);
    op->failed = (uint64_t)json_get_int(j, "failed", 0);
    op->gone = (uint64_t)json_get_int(j, "gone", 0);
    op->cursor = json_get_int(j, "cursor", 0);
    op->seen_all = json_get_bool(j, "seen_all", false);
    for (const struct json *m = refused ? refused->child : NULL; m; m = m->next) {
        int64_t count = 0;
        if (op->refused_count < OPERATION_REASONS && json_int(m, &count))
            op->refused[op->refused_count++] = (struct operation_refusals){m->key, (uint64_t)count};
    }
}

static bool read_page(const struct json *j, struct operation *op)
{
    const struct json *page = json_get(j, "page");

    if (!page || page->type != JSON_ARRAY || page->count > OPERATION_PAGE_MAX)
        return false;
    for (const struct json *one = page->child; one; one = one->next) {
        if (one->type != JSON_STRING)
            return false;
        op->page[op->page_count++] = one->text;
    }
    return true;
}

/* Tasks keep it with the signal, and expect its length. */
static bool read_content(const struct json *j, struct operation *op)
{
    op->signal.content = json_get_text(j, "content");
    return op->kind != ASK_SIGNAL || op->signal.content.len == CONTENT_SHA256_LEN;
}

enum err operation_decode(struct arena *a, const struct operation_row *row, struct operation *ret,
                          struct error *e)
{
    struct operation_row copy = *row;
    struct json *j = NULL;

    *ret = (struct operation){.seq = row->seq,
                              .revision = row->revision,
                              .started_at = row->started_at,
                              .ended_at = row->ended_at};
    copy.doc = arena_copy(a, row->doc);
    ret->id = arena_copy(a, row->id);
    ret->actor = arena_copy(a, row->actor);
    ret->reason = arena_copy(a, row->reason);
    ret->signal.key = ret->id;
    bool ok = json_parse(a, copy.doc, &j, NULL) == ERR_OK && state_parse(row->state, &ret->state)
              && operation_kind_parse(row->verb, &ret->kind) && read_page(j, ret)
              && filter_read(a, json_get(j, "filter"), &ret->filter, e) == ERR_OK
              && read_arguments(json_get(j, "arguments"), ret, e) == ERR_OK && read_content(j, ret);
    if (!ok)
        return error_set(e, ERR_CORRUPT, "operation %.*s cannot be read", SLICE_ARG(row->id));
    ret->filter_json = json_get_raw(j, "filter");
    ret->by_admin = json_get_bool(j, "by_admin", false);
    read_counts(j, ret);
    return ERR_OK;
}

/* ---- counts ---- */

void operation_refused(struct operation *op, struct slice reason, struct arena *a)
{
    size_t i = 0;

    reason = slice_cut(reason, OPERATION_REASON_MAX);
    reason.len = text_utf8_end(reason); /* a story may be cut in the middle of a character */
    while (i < op->refused_count && !slice_eq(op->refused[i].reason, reason))
        i++;
    if (i == OPERATION_REASONS - 1 && i == op->refused_count)
        reason = SLICE("other");
    if (i == OPERATION_REASONS)
        i--; /* counted as "other" */
    if (i == op->refused_count)
        op->refused[op->refused_count++] = (struct operation_refusals){arena_copy(a, reason), 0};
    op->refused[i].count++;
}

void operation_obstacle(struct buf *b, enum obstacle o, const struct task *t)
{
    static const char *const words[] = {
        [OBSTACLE_NEW] = "the step has not started, and no step after it has",
        [OBSTACLE_CLOSED] = "the task was closed; reopen it first",
        [OBSTACLE_OPEN] = "the step is running",
        [OBSTACLE_DOUBT] = "the step is in doubt",
        [OBSTACLE_EFFECT] = "the step already took effect",
        [OBSTACLE_ENDED] = "the step has already ended",
        [OBSTACLE_TASK_UNDONE] = "the task is being undone",
        [OBSTACLE_STOPPED] = "the task has stopped in error",
        [OBSTACLE_STOPPING] = "the task is about to stop in error",
        [OBSTACLE_PIVOT] = "a pivot took effect, or may have",
        [OBSTACLE_KNOWN] = "the step is not in doubt",
        [OBSTACLE_EARLY] = "an attempt of the step may still take effect",
        [OBSTACLE_KIND] = "the step is a wait, which has no attempts and no input",
        [OBSTACLE_SIGNAL_UNWANTED] = "no step waits for that signal",
        [OBSTACLE_SIGNAL_FULL] = "too many signals are kept",
        [OBSTACLE_SIGNAL_MANY] = "too many signals were sent",
        [OBSTACLE_SIGNAL_OTHER] = "the key is that of another signal",
        [OBSTACLE_VOTE_UNASKED] = "the step asks nobody",
        [OBSTACLE_VOTE_ANEW] = "the step was asked anew",
        [OBSTACLE_VOTE_GROUP] = "no group of the person is asked",
        [OBSTACLE_VOTE_SUBMITTER] = "the person submitted the task",
        [OBSTACLE_VOTE_OTHER] = "the person has said the opposite",
        [OBSTACLE_VOTE_FULL] = "the task has as many votes as it may",
        [OBSTACLE_ADMIN] = "people decide, and only an admin may in their place",
        [OBSTACLE_CHILD] = "the task is a child; only the root of its family can be told so",
        [OBSTACLE_CHILD_RUNS] = "the child of the step is running",
        [OBSTACLE_CHILD_STOPPED] = "the child of the step stopped in error",
        [OBSTACLE_UNTIL] = "the task was processed too long ago to be undone",
        [OBSTACLE_UNDOING] = "the step is being undone",
        [OBSTACLE_NEWER] = "an attempt of the step started after the operation",
    };

    if ((size_t)o < COUNT_OF(words) && words[o])
        buf_str(b, words[o]);
    else if (t)
        buf_fmt(b, "not possible while the task is %s%s%s", task_state_text(t->state),
                operator_direction_text(t), t->paused_at != 0 ? ", paused" : "");
}

uint64_t operation_refused_count(const struct operation *op)
{
    uint64_t count = 0;

    for (size_t i = 0; i < op->refused_count; i++)
        count += op->refused[i].count;
    return count;
}

static void put_mark(struct buf *b, const struct operation *op)
{
    buf_fmt(b, "operation %.*s: ", SLICE_ARG(op->id));
}

struct slice operation_audit_reason(const struct operation *op, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    put_mark(&b, op);
    buf_slice(&b, op->reason);
    return arena_copy(a, buf_view(&b));
}

bool operation_did(const struct operation *op, const struct audit *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    put_mark(&b, op);
    struct slice mark = buf_view(&b);
    return a->reason.ptr && a->reason.len >= mark.len
           && memcmp(a->reason.ptr, mark.ptr, mark.len) == 0;
}

size_t operation_page_size(const struct operation *op)
{
    uint64_t most = OPERATION_PAGE_MAX;

    if (op->rate > 0 && op->rate < OPERATION_PAGE_MAX)
        most = (uint64_t)op->rate; /* of one second */
    if (op->limit > 0 && (uint64_t)op->limit - op->matched < most)
        most = (uint64_t)op->limit - op->matched;
    return (size_t)most;
}
