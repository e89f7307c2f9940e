/* Reads the sections `retention`, `archive` and `reserve` of a server's configuration, and checks
 * that every rule can be reached (serve_retention.h). serve_settings.c calls it with the whole
 * file; background/retention.c applies the rules. */

#include "cli/verbs/serve_retention.h"

#include "base/when.h"

enum { FILE_SIZE_MIN = 4096 };

void serve_retention_init(struct retention *r)
{
    *r = (struct retention){.reserve_ms = RESERVE_MS_DEFAULT};
}

/* ---- a rule ---- */

/* A rule from the file, on top of the defaults. */
struct draft {
    struct retention_rule rule;
    bool has_keep, archive;
};

static void read_keep(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct draft *d = target;
    int64_t ms = 0;

    d->has_keep = true;
    if (j->type == JSON_STRING && slice_is(j->text, "forever"))
        d->rule.keep_ms = KEEP_FOR_EVER;
    else if (j->type == JSON_STRING && duration_parse(j->text, &ms) && ms >= MS_PER_MIN)
        d->rule.keep_ms = ms;
    else
        mistake_in(r, path, j, "a duration of a minute at least, such as 30d, or forever");
}

static void read_keep_last(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct draft *d = target;

    if (read_whole(r, j, path, 1, KEEP_LAST_MAX, &d->rule.keep_last) && !d->has_keep)
        d->rule.keep_ms = 0;
}

static bool state_of(const struct json *j, uint32_t *states)
{
    enum task_state state;

    if (j->type == JSON_STRING && slice_is(j->text, "closed")) {
        *states |= RETIRE_CLOSED;
        return true;
    }
    if (j->type != JSON_STRING || !task_state_parse(j->text, &state)
        || !(RETIRE_STATES & 1U << state))
        return false;
    *states |= 1U << state;
    return true;
}

static void read_states(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct draft *d = target;
    struct path at = {path, SLICE_NONE, 0};

    d->rule.states = 0;
    if (j->type != JSON_ARRAY || !j->child) {
        mistake_in(r, path, j, "an array of processed, compensated, closed and error");
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at.index++)
        if (!state_of(m, &d->rule.states))
            mistake_in(r, &at, m, "processed, compensated, closed or error");
}

static void read_rule(struct reader *r, const struct json *j, const struct path *path,
                      struct retention_rule *ret)
{
    static const struct field fields[] = {
        FIELD("workflow", read_name, offsetof(struct draft, rule.workflow)),
        FIELD("states", read_states, 0),
        FIELD("keep", read_keep, 0),
        FIELD("keep_last", read_keep_last, 0),
        FIELD("archive", read_bool, offsetof(struct draft, rule.archive)),
    };
    struct draft d = {.rule = {.states = RETENTION_STATES, .keep_ms = KEEP_FOR_EVER}};

    if (j->type == JSON_OBJECT && !json_get(j, "keep") && !json_get(j, "keep_last"))
        mistake_in(r, path, j, "keep: DURATION, keep_last: NUMBER, or keep: forever");
    d.has_keep = j->type == JSON_OBJECT && json_get(j, "keep");
    read_object(r, j, path, fields, COUNT_OF(fields), &d);
    *ret = d.rule;
}

/* The first matching rule applies to a task, so a rule that earlier ones cover completely is a
 * mistake. */
static void check_reached(struct reader *r, const struct json *j, const struct path *path,
                          const struct retention_rule *rules)
{
    const struct retention_rule *rule = &rules[path->index];
    uint32_t taken = 0;

    for (size_t i = 0; i < path->index; i++)
        if (rules[i].workflow.len == 0 || slice_eq(rules[i].workflow, rule->workflow))
            taken |= rules[i].states;
    if (taken & 1U << TASK_ERROR)
        taken |= RETIRE_CLOSED; /* closed or not */
    if (rule->states != 0 && (rule->states & ~taken) == 0)
        mistake_in(r, path, j,
                   "it before the rules that are for the same tasks: the first one counts");
}

void read_retention(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct retention *ret = target;
    struct path at = {path, SLICE_NONE, 0};

    if (j->type != JSON_ARRAY || j->count > RETENTION_RULES_MAX) {
        mistake_in(r, path, j, "an array of at most %d rules", RETENTION_RULES_MAX);
        return;
    }
    struct retention_rule *rules = arena_alloc(r->arena, (j->count + 2) * sizeof *rules);
    for (const struct json *m = j->child; m; m = m->next, at.index++) {
        read_rule(r, m, &at, &rules[at.index]);
        check_reached(r, m, &at, rules);
    }
    ret->rules = rules;
    ret->rule_count = j->count;
}

/* ---- the archive, and reserved ids ---- */

static void read_folder(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct archive_config *c = target;

    if (j->type == JSON_STRING && j->text.len > 0 && !memchr(j->text.ptr, 0, j->text.len))
        c->folder = arena_copy(r->arena, j->text).ptr;
    else
        mistake_in(r, path, j, "a folder");
}

static void read_max_size(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct archive_config *c = target;
    int64_t v = 0;

    if (size_parse(j, &v) && v >= FILE_SIZE_MIN)
        c->max_size = v;
    else
        mistake_in(r, path, j, "a size such as 256MiB, at least 4KiB");
}

static void read_compress(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct archive_config *c = target;
    bool compress = true;

    read_bool(r, j, path, &compress);
    c->plain = !compress;
}

void read_archive(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("folder", read_folder, 0),
        FIELD("max_size", read_max_size, 0),
        FIELD("compress", read_compress, 0),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), &((struct retention *)target)->archive);
}

void read_reserve(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct retention *ret = target;
    int64_t v = 0;

    if (j->type == JSON_STRING && duration_parse(j->text, &v))
        ret->reserve_ms = v;
    else if (json_int(j, &v) && v == 0)
        ret->reserve_ms = 0;
    else
        mistake_in(r, path, j, "a duration such as 90d, or 0: ids are free at once");
}

/* A rule that does not mention the archive uses it if there is one. */
void serve_retention_check(struct reader *r, const struct json *root, struct retention *ret)
{
    struct path at_root = {0};
    const struct path at_rules = {&at_root, SLICE("retention"), 0};
    struct path at_rule = {&at_rules, SLICE_NONE, 0};
    const struct path at = {&at_rule, SLICE("archive"), 0};
    const struct json *rules = root->type == JSON_OBJECT ? json_get(root, "retention") : NULL;
    bool any = ret->archive.folder;

    if (!rules || rules->type != JSON_ARRAY || ret->rule_count == 0)
        return;
    struct retention_rule *list = arena_alloc(r->arena, (ret->rule_count + 1) * sizeof *list);
    memcpy(list, ret->rules, ret->rule_count * sizeof *list);
    for (const struct json *m = rules->child; m; m = m->next, at_rule.index++) {
        const struct json *says = m->type == JSON_OBJECT ? json_get(m, "archive") : NULL;
        if (!says)
            list[at_rule.index].archive = any;
        else if (list[at_rule.index].archive && !any)
            mistake_in(r, &at, says, "archive: {folder: DIR} beside retention: there is none");
    }
    ret->rules = list;
}

void serve_retention_keep(struct retention *r, struct arena *a, int64_t keep_ms)
{
    if (keep_ms == 0)
        return;
    struct retention_rule *list = arena_alloc(a, (r->rule_count + 1) * sizeof *list);
    if (r->rule_count > 0)
        memcpy(list, r->rules, r->rule_count * sizeof *list);
    list[r->rule_count++] = (struct retention_rule){.states = RETENTION_STATES,
                                                    .keep_ms = keep_ms,
                                                    .archive = r->archive.folder};
    r->rules = list;
}
