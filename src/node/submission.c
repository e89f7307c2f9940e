/*
 * Reads a submission: its members, its workflow, its input, its content for comparing it with an
 * earlier one. Used for requests (api/tasks_submit.c), for the lines of a batch (api/tasks_many.c)
 * and for the inbox. Large ones are read on a thread, where nothing but the text may be touched.
 */

#include "node/submission.h"

#include "base/names.h"
#include "base/when.h"
#include "definition/definition.h"
#include "definition/registry.h"
#include "dispatch/trace.h"
#include "node/access.h"
#include "node/content.h"
#include "node/json_answer.h"
#include "node/new_id.h"
#include "node/node.h"
#include "node/offload.h"
#include "node/overview.h"
#include "node/quota.h"
#include "node/strict.h"
#include "outbox/reply_to.h"
#include "json/json.h"

void submission_fails(struct submission *s, int status, const char *type, const char *fmt, ...)
{
    va_list ap;

    s->status = status;
    s->problem_type = type;
    va_start(ap, fmt);
    text_format(s->problem, sizeof s->problem, fmt, ap);
    va_end(ap);
}

static void give_id(struct server *sv, struct submission *s)
{
    id_give(sv, s->id);
    s->ask.id = slice_of(s->id);
}

enum { SUBMISSION_SIGNALS_MAX = 100 };

static bool id_ok(struct slice id)
{
    return is_name(id) && !slice_is(id, ".") && !slice_is(id, "..");
}

static bool keys_ok(struct submission *s, const struct json *j)
{
    CLEANUP(buf_fini) struct buf story = {0};

    if (members_known(j,
                      NAMES("workflow", "version", "id", "input", "priority", "not_before",
                            "reply_to", "tags", "paused", "traceparent", "signals"),
                      "a submission", &story))
        return true;
    submission_fails(s, 422, "unknown-member", "%s", story.ptr);
    return false;
}

/* How a wrong value is shown. */
static struct slice shown(const struct json *j)
{
    return slice_cut(j->raw, 60);
}

static bool tags_ok(struct submission *s, const struct json *tags)
{
    if (!tags || tags->type == JSON_NULL)
        return true;
    if (tags->type != JSON_OBJECT || tags->count > TAGS_MAX) {
        submission_fails(s, 422, "bad-tags", "tags must be an object of at most %d strings",
                         TAGS_MAX);
        return false;
    }
    for (const struct json *m = tags->child; m; m = m->next)
        if (m->type != JSON_STRING || m->text.len > TAG_VALUE_MAX || !is_tag_key(m->key)) {
            submission_fails(
                s, 422, "bad-tags",
                "tag \"%.*s\" must be a string of at most %d bytes, its key 1 to 64 of "
                "[A-Za-z0-9._-]",
                SLICE_ARG(m->key), TAG_VALUE_MAX);
            return false;
        }
    s->ask.tags = tags->raw;
    return true;
}

static bool priority_ok(struct submission *s, const struct json *priority)
{
    int64_t p = 5;

    if (priority && (!json_int(priority, &p) || p < 0 || p > 9)) {
        submission_fails(s, 422, "bad-priority",
                         "priority is %.*s, expected a whole number from 0 to 9",
                         SLICE_ARG(shown(priority)));
        return false;
    }
    s->ask.priority = (int)p;
    return true;
}

/* A time and not a duration: a repeated submission means the same time. */
static bool not_before_ok(struct submission *s, const struct json *not_before)
{
    if (!not_before || not_before->type == JSON_NULL)
        return true;
    if (not_before->type == JSON_STRING && time_parse(not_before->text, &s->ask.not_before))
        return true;
    submission_fails(s, 422, "bad-not-before",
                     "not_before is %.*s, expected a time such as \"2026-01-31T10:00:00.000Z\"",
                     SLICE_ARG(shown(not_before)));
    return false;
}

static bool reply_to_ok(struct submission *s, const struct json *reply_to)
{
    struct reply reply;
    struct error e = {0};

    if (!reply_to || reply_to->type == JSON_NULL)
        return true;
    if (reply_check(reply_to, &reply, &e) != ERR_OK) {
        submission_fails(s, 422, "bad-reply-to", "%s", e.text);
        return false;
    }
    s->ask.reply_to = arena_copy(&s->arena, reply_text(reply_to));
    s->named.reply_target = arena_copy(&s->arena, reply.to);
    return true;
}

static bool paused_ok(struct submission *s, const struct json *paused)
{
    s->ask.paused = paused && paused->type == JSON_TRUE;
    if (!paused || paused->type == JSON_TRUE || paused->type == JSON_FALSE)
        return true;
    submission_fails(s, 422, "bad-paused", "paused is %.*s, expected true or false",
                     SLICE_ARG(shown(paused)));
    return false;
}

static bool signal_ok(struct submission *s, const struct json *j, struct signal *ret)
{
    CLEANUP(buf_fini) struct buf story = {0};
    struct slice data = json_get_raw(j, "data");

    *ret = (struct signal){.key = arena_copy(&s->arena, json_get_text(j, "id")),
                           .name = arena_copy(&s->arena, json_get_text(j, "name")),
                           .data.json = data.ptr ? data : SLICE("null")};
    if (j->type != JSON_OBJECT)
        submission_fails(s, 422, "bad-signal", "signals: expected objects {id, name, data}");
    else if (!members_known(j, NAMES("id", "name", "data"), "a signal", &story))
        submission_fails(s, 422, "unknown-member", "%s", story.ptr);
    else if (!is_signal_key(ret->key))
        submission_fails(s, 422, "bad-signal",
                         "the id of a signal is %.*s, expected 1 to %d printable characters "
                         "without spaces",
                         SLICE_ARG(json_get(j, "id") ? shown(json_get(j, "id")) : SLICE("missing")),
                         SIGNAL_KEY_MAX);
    else if (!is_name(ret->name))
        submission_fails(s, 422, "bad-signal", "the signal %.*s has no valid name",
                         SLICE_ARG(ret->key));
    else if (ret->data.json.len > SIGNAL_DATA_MAX)
        submission_fails(s, 422, "bad-signal", "the signal %.*s has %zu bytes, expected at most %d",
                         SLICE_ARG(ret->key), ret->data.json.len, SIGNAL_DATA_MAX);
    else
        return true;
    return false;
}

/* Their values stay in the text. */
static bool read_signals(struct submission *s, const struct json *list, struct contents *contents)
{
    static const struct json nothing = {.type = JSON_NULL, .raw = {"null", 4}};

    if (!list || list->type == JSON_NULL)
        return true;
    if (list->type != JSON_ARRAY || list->count > SUBMISSION_SIGNALS_MAX) {
        submission_fails(s, 422, "bad-signal", "signals: expected an array of at most %d objects",
                         SUBMISSION_SIGNALS_MAX);
        return false;
    }
    s->ask.signals = arena_alloc(&s->arena, (list->count + 1) * sizeof *s->ask.signals);
    for (const struct json *j = list->child; j; j = j->next) {
        struct signal *one = &s->ask.signals[s->ask.signal_count].signal;
        const struct json *data = json_get(j, "data");
        if (!signal_ok(s, j, one))
            return false;
        one->content = content_of_value(contents, data ? data : &nothing, &s->arena);
        s->ask.signal_count++;
    }
    return true;
}

/* The trace context is in the submission itself, in its tags (SQL has no other place), or in the
 * request. An invalid one is ignored, as the standard requires. */
static void read_trace(struct submission *s, const struct json *j)
{
    const struct slice named[] = {json_get_text(j, "traceparent"),
                                  json_get_text(json_get(j, "tags"), "traceparent"), s->trace};

    for (size_t i = 0; i < COUNT_OF(named) && !s->ask.trace.ptr; i++)
        if (named[i].ptr)
            s->ask.trace = trace_read(&s->arena, named[i]);
}

static bool read_options(struct submission *s, const struct json *j)
{
    return priority_ok(s, json_get(j, "priority")) && not_before_ok(s, json_get(j, "not_before"))
           && reply_to_ok(s, json_get(j, "reply_to")) && tags_ok(s, json_get(j, "tags"))
           && paused_ok(s, json_get(j, "paused"));
}

static bool find_workflow(struct server *sv, struct submission *s, struct slice name, int64_t v)
{
    s->ask.definition = registry_find(&sv->workflows, name, v);
    if (s->ask.definition)
        return true;
    const struct definition *newest = registry_find(&sv->workflows, name, 0);
    struct slice short_name = slice_cut(name, 80);
    if (newest)
        submission_fails(s, 422, "no-such-workflow",
                         "there is no version %" PRId64
                         " of workflow \"%.*s\", the newest is %" PRId64,
                         v, SLICE_ARG(short_name), newest->workflow.version);
    else
        submission_fails(s, 422, "no-such-workflow", "there is no workflow \"%.*s\"",
                         SLICE_ARG(short_name));
    return false;
}

static bool workflow_ok(struct submission *s, const struct json *j)
{
    const struct json *workflow = json_get(j, "workflow");
    const struct json *version = json_get(j, "version");

    if (!workflow || workflow->type != JSON_STRING) {
        submission_fails(s, 422, "bad-workflow", "workflow is %s, expected the name of a workflow",
                         workflow ? json_type_text(workflow->type) : "missing");
        return false;
    }
    if (version && (!json_int(version, &s->named.version) || s->named.version < 1)) {
        submission_fails(s, 422, "bad-workflow", "version is %.*s, expected a whole number from 1",
                         SLICE_ARG(shown(version)));
        return false;
    }
    s->named.workflow = arena_copy(&s->arena, workflow->text);
    return true;
}

static bool workflow_known(struct server *sv, struct submission *s)
{
    if (!grant_submits(s->grant, s->named.workflow)) {
        struct slice name = slice_cut(s->named.workflow, 80);
        submission_fails(s, 403, "forbidden",
                         "the token \"%.*s\" may not submit to workflow \"%.*s\"",
                         SLICE_ARG(s->grant->owner), SLICE_ARG(name));
        return false;
    }
    return find_workflow(sv, s, s->named.workflow, s->named.version);
}

/* In memory of its own, most of which is not needed any longer: trees are many times as large as
 * their texts. */
static bool read_input(struct submission *s)
{
    CLEANUP(arena_fini) struct arena trees = {0};
    struct slice input = s->named.input.ptr ? s->named.input : SLICE("null");
    struct error e = {0};
    struct slice checked;

    if (!s->ask.definition->has_inputs) {
        s->ask.input = input; /* it may be anything */
        return true;
    }
    if (definition_check_input(s->ask.definition, input, &trees, &checked, &e) != ERR_OK) {
        submission_fails(s, 422, "bad-input", "%s", e.text);
        return false;
    }
    s->ask.input = checked.ptr == input.ptr ? input : arena_copy(&s->arena, checked);
    return true;
}

/* Read first, so that the answer to a line can name it whatever else is wrong. */
static bool read_id(struct submission *s, const struct json *j)
{
    const struct json *id = json_get(j, "id");

    if (!id)
        return true;
    if (id->type == JSON_STRING && (s->made_here ? is_task_id(id->text) : id_ok(id->text))) {
        s->ask.id = arena_copy(&s->arena, id->text);
        return true;
    }
    submission_fails(s, 422, "bad-id",
                     "id is %.*s, expected 1 to 128 characters of [A-Za-z0-9._:-], not . or ..",
                     SLICE_ARG(shown(id)));
    return false;
}

static bool read_tree(struct submission *s, const struct json *j)
{
    if (j->type != JSON_OBJECT) {
        submission_fails(s, 422, "not-an-object", "a submission is an object, this is %s",
                         json_type_text(j->type));
        return false;
    }
    if (!read_id(s, j) || !keys_ok(s, j) || !workflow_ok(s, j))
        return false;
    s->named.names_workflow = true;
    return read_options(s, j);
}

/* What a text may take while it is parsed. */
struct bounds {
    unsigned depth;
    size_t tree;
};

static struct bounds bounds_of(const struct server *sv)
{
    return (struct bounds){(unsigned)sv->limits.json_depth, trees_max(sv)};
}

/* All that follows from the text alone. Any thread, with `contents` of its own. What is wrong with
 * it is the problem, unless its workflow turns out to be: that comes first. */
static void submission_parse(struct submission *s, struct slice text, struct bounds max,
                             struct contents *contents)
{
    CLEANUP(arena_fini) struct arena tree = {0};
    CLEANUP(buf_fini) struct buf story = {0};
    struct json_fault fault = {0};
    struct json *j = NULL;

    s->ask.kind = ASK_SUBMIT;
    s->ask.by_id = s->made_here;
    s->ask.user = s;
    enum err err = json_parse_bounded(&tree, text, max.depth, max.tree, &j, &fault);
    if (err == ERR_TOO_BIG) {
        submission_fails(s, 413, "too-big",
                         "its values need more memory than this server has (--limit memory)");
        return;
    }
    if (err != ERR_OK) {
        refusal_write(&story, text, &fault, s->line);
        submission_fails(s, 400, "not-json", "not JSON: %s", story.ptr);
        return;
    }
    if (!read_tree(s, j))
        return;
    read_trace(s, j);
    s->named.input = json_get_raw(j, "input");
    if (!read_signals(s, json_get(j, "signals"), contents))
        return;
    s->ask.content = content_of(contents, j, &s->arena);
}

struct family_problem family_problem(enum family_wrong what)
{
    switch (what) {
    case FAMILY_UNKNOWN:
        return (struct family_problem){422, "no-such-workflow"};
    case FAMILY_SUBMITTER:
        return (struct family_problem){422, "no-submitter"};
    case FAMILY_CYCLE:
    case FAMILY_TOO_DEEP:
    case FAMILY_TOO_MANY:
    case FAMILY_PIVOT:
    case FAMILY_LOCK:
        return (struct family_problem){422, "bad-family"};
    }
    UNREACHABLE();
}

/* A child has the family of its root. */
static void fix_family(struct server *sv, struct submission *s)
{
    const struct family_source source = {registry_newest, &sv->workflows, s->ask.submitter.ptr};
    struct family_fault f;

    if (s->ask.parent.ptr || s->problem_type
        || family_resolve(s->ask.definition, &source, &s->arena, &s->ask.family, &f) == ERR_OK)
        return;
    const struct family_problem p = family_problem(f.what);
    submission_fails(s, p.status, p.type, "children: found %s, expected %s", f.path, f.expected);
    s->ask.only_if_exists = true;
}

/* What is known here of what the text names. False: it has its problem. */
static bool submission_place(struct server *sv, struct submission *s)
{
    struct error e = {0};

    if (!s->named.names_workflow || !workflow_known(sv, s) || s->problem_type)
        return false;
    if (s->named.reply_target.ptr && !channels_take(sv, s->named.reply_target, &e)) {
        submission_fails(s, 422, "bad-reply-to", "%s", e.text);
        /* What was accepted once is accepted again, even if the configuration names it no more. */
        s->ask.only_if_exists = true;
    }
    if (s->grant) {
        s->ask.owner = s->grant->owner;
        s->ask.submitter = s->grant->person;
    }
    if (s->ask.definition->needs_submitter && !s->ask.submitter.ptr) {
        submission_fails(s, 422, "no-submitter",
                         "workflow \"%.*s\" has an approval by another person than its submitter, "
                         "who is not known: submit it over HTTP with a token",
                         SLICE_ARG(slice_cut(s->named.workflow, 80)));
        s->ask.only_if_exists = true;
    }
    fix_family(sv, s);
    s->ask.own_only = !grant_reads(s->grant, s->ask.definition->workflow.name);
    s->ask.signals_own_only = s->grant && !s->grant->repairs; /* as for a single signal */
    s->ask.reads_all = !s->grant || s->grant->reads_all;
    return true;
}

/* Any thread. What was accepted once is accepted again, even if a newer version asks for other
 * inputs. */
static void submission_check(struct submission *s)
{
    if (!read_input(s))
        s->ask.only_if_exists = true;
}

static bool submission_finish(struct server *sv, struct submission *s)
{
    if (s->ask.only_if_exists && !s->ask.id.ptr) {
        s->ask.only_if_exists = false; /* nobody is asked */
        return false;
    }
    if (!s->ask.id.ptr)
        give_id(sv, s);
    return true;
}

bool submission_read(struct server *sv, struct submission *s, struct slice text)
{
    submission_parse(s, text, bounds_of(sv), sv->contents);
    bool ok = submission_place(sv, s);
    if (ok) {
        submission_check(s);
        ok = submission_finish(sv, s);
    }
    sv->metrics.tasks_refused += !ok;
    return ok;
}

/* ---- the same, on a thread ---- */

/* It lies in the submission's arena. */
struct offloaded_reading {
    struct offload_job job;
    struct server *server;
    struct submission *s;
    struct slice text, token;
    struct bounds max;
    void (*then)(struct submission *s, bool ok);
};

static void reading_offload(struct offloaded_reading *rd)
{
    offload_add(rd->server->bodies, rd->token, OFFLOAD_SOON, &rd->job);
}

static void reading_end(struct offloaded_reading *rd, bool ok)
{
    struct server *sv = rd->server;

    sv->load.exchanges--;
    sv->load.asks_open--;
    sv->metrics.tasks_refused += !ok;
    rd->then(rd->s, ok);
}

static void check_on_thread(struct offload_job *j)
{
    submission_check(CONTAINER_OF(j, struct offloaded_reading, job)->s);
}

static void checked(struct offload_job *j)
{
    struct offloaded_reading *rd = CONTAINER_OF(j, struct offloaded_reading, job);

    reading_end(rd, submission_finish(rd->server, rd->s));
}

static void parse_on_thread(struct offload_job *j)
{
    struct offloaded_reading *rd = CONTAINER_OF(j, struct offloaded_reading, job);

    struct contents *contents = contents_new();

    submission_parse(rd->s, rd->text, rd->max, contents);
    contents_free(contents);
}

static void parsed(struct offload_job *j)
{
    struct offloaded_reading *rd = CONTAINER_OF(j, struct offloaded_reading, job);

    if (!submission_place(rd->server, rd->s)) {
        reading_end(rd, false);
        return;
    }
    j->run = check_on_thread;
    j->done = checked;
    reading_offload(rd);
}

void submission_read_offloaded(struct server *sv, struct submission *s, struct slice text,
                               struct slice token, void (*then)(struct submission *s, bool ok))
{
    struct offloaded_reading *rd = arena_alloc(&s->arena, sizeof *rd);

    *rd = (struct offloaded_reading){
        .job = {.run = parse_on_thread, .done = parsed, .bytes = text.len},
        .server = sv,
        .s = s,
        .text = text,
        .token = token,
        .max = bounds_of(sv),
        .then = then,
    };
    sv->load.exchanges++;
    sv->load.asks_open++;
    reading_offload(rd);
}

struct slice submission_trace(const struct http_request *r, struct arena *a)
{
    if (http_header_count(r, "traceparent") != 1)
        return SLICE_NONE;
    return arena_copy(a, http_header(r, "traceparent"));
}

/* ---- answering ---- */

void submission_problem(struct buf *b, int status, const char *type, struct slice detail)
{
    CLEANUP(buf_fini) struct buf urn = {0};

    buf_fmt(&urn, "urn:intact:problem:%s", type);
    json_open(b, '{');
    json_member_text(b, "type", buf_view(&urn));
    json_member_number(b, "status", status);
    json_member_text(b, "detail", detail);
    json_close(b, '}');
}

void submission_signals(struct buf *b, const char *key, const struct submission *s)
{
    static const char *const fates[] = {[CARRIED_ACCEPTED] = "accepted",
                                        [CARRIED_REPEATED] = "repeated",
                                        [CARRIED_REFUSED] = "refused"};
    CLEANUP(buf_fini) struct buf urn = {0};

    if (s->ask.signal_count == 0)
        return;
    json_key(b, key);
    json_open(b, '[');
    for (size_t i = 0; i < s->ask.signal_count; i++) {
        const struct carried_signal *one = &s->ask.signals[i];
        json_open(b, '{');
        json_member_text(b, "id", one->signal.key);
        json_member_text(b, "name", one->signal.name);
        json_member_text(b, "status", slice_of(fates[one->fate]));
        buf_clear(&urn);
        buf_fmt(&urn, "urn:intact:problem:%s",
                s->ask.signals_not_own ? "forbidden" : signal_problem(one->refusal));
        json_member_text(b, "problem", one->fate == CARRIED_REFUSED ? buf_view(&urn) : SLICE_NONE);
        json_close(b, '}');
    }
    json_close(b, ']');
}

static void count_submission(struct metrics *m, const struct ask *a)
{
    m->tasks_existed += a->outcome == ERR_OK && a->existed;
    m->tasks_refused += a->outcome == ERR_CONFLICT || a->outcome == ERR_TAKEN
                        || a->outcome == ERR_INVALID || a->outcome == ERR_TOO_BIG;
}

static void accepted_new(struct server *sv, const struct ask *a)
{
    quotas_task(sv->quotas, a->owner, true);
    overview_submitted(sv->overview, server_turn_now(sv));
}

static void accepted(struct submission *s)
{
    s->status = s->ask.existed ? 200 : 201;
    s->problem_type = NULL;
}

void submission_answered(struct server *sv, struct ask *a)
{
    struct submission *s = a->user;

    count_submission(&sv->metrics, a);
    if (a->outcome == ERR_OK && !a->existed && !a->deleted)
        accepted_new(sv, a);
    if (a->outcome == ERR_INVALID && a->only_if_exists)
        ; /* it keeps the problem that was found */
    else if (a->outcome == ERR_OK)
        accepted(s);
    else if (a->outcome == ERR_INVALID && a->bad_key)
        submission_fails(s, 422, "bad-input", "%s", a->story);
    else if (a->outcome == ERR_CONFLICT && a->overran)
        submission_fails(s, 409, "task-overran", "%s", a->story);
    else if (a->outcome == ERR_CONFLICT)
        submission_fails(s, 409, "task-exists", "%s", a->story);
    else
        submission_fails(s, err_http_status(a->outcome), trouble_type(a->outcome), "%s%s", a->story,
                         err_is_transient(a->outcome) ? "; try again" : "");
    s->answered(s);
}
