/* Reads `approve` of a step: which groups are asked what, how many persons must agree, and when
 * they are reminded or others are asked, too. The question is evaluated when it is asked (scope.c).
 */
#include "definition/reader/approve_step.h"

enum { GROUP_LEN_MAX = 64 };

static bool is_group(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr("._:-", c))))
            return false;
    }
    return s.len >= 1 && s.len <= GROUP_LEN_MAX;
}

static bool has_group(const struct groups *g, struct slice name)
{
    for (uint16_t i = 0; i < g->count; i++)
        if (slice_eq(g->list[i], name))
            return true;
    return false;
}

static void add_group(struct reader *r, const struct json *j, const struct path *path,
                      struct groups *g)
{
    if (j->type != JSON_STRING || !is_group(j->text))
        mistake_in(r, path, j, "a group: 1 to %d characters of [A-Za-z0-9._:-]", GROUP_LEN_MAX);
    else if (has_group(g, j->text))
        mistake_in(r, path, j, "each group once");
    else
        g->list[g->count++] = j->text;
}

static void read_groups(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct groups *g = target;
    size_t at = 0;

    if (j->type != JSON_ARRAY) {
        add_group(r, j, path, g);
        return;
    }
    if (j->count == 0 || j->count > APPROVE_GROUPS_MAX) {
        mistake_in(r, path, j, "1 to %d groups", APPROVE_GROUPS_MAX);
        return;
    }
    for (const struct json *m = j->child; m; m = m->next, at++) {
        struct path place = {path, SLICE_NONE, at};
        add_group(r, m, &place, g);
    }
}

static void read_question(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    struct approve_draft *d = target;

    if (j->type == JSON_STRING && j->text.len > 0)
        read_template(r, j, path, &d->question);
    else
        mistake_in(r, path, j, "a text, which may hold ${ expressions }");
}

static void read_people(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct approve_draft *d = target;
    int64_t v = 0;

    if (!json_int(j, &v) || v < 1 || v > APPROVE_PEOPLE_MAX)
        mistake_in(r, path, j, "a whole number from 1 to %d", APPROVE_PEOPLE_MAX);
    else
        d->people = (uint16_t)v;
}

static void read_not(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct approve_draft *d = target;

    d->not_submitter = j->type == JSON_STRING && slice_is(j->text, "submitter");
    if (!d->not_submitter)
        mistake_in(r, path, j, "submitter");
}

static void read_remind(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct approve_draft *d = target;

    d->remind = j;
    read_length(r, j, path, &d->remind_ms);
    if (d->remind_ms > 0 && d->remind_ms < APPROVE_REMIND_MIN_MS)
        mistake_in(r, path, j, "a duration of at least 1m");
}

static void read_after(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct approve_draft *d = target;

    d->after = j;
    read_length(r, j, path, &d->escalate_ms);
}

static void read_escalate(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    static const struct field fields[] = {
        REQUIRED("after", read_after, 0),
        REQUIRED("to", read_groups, offsetof(struct approve_draft, to)),
    };

    if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), target);
    else
        mistake_in(r, path, j, "an object with after and to: {after: 2d, to: [cfo]}");
}

void read_approve(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("by", read_groups, offsetof(struct approve_draft, by)),
        REQUIRED("question", read_question, 0),
        FIELD("people", read_people, 0),
        FIELD("not", read_not, 0),
        FIELD("remind", read_remind, 0),
        FIELD("escalate", read_escalate, 0),
    };

    if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), target);
    else
        mistake_in(r, path, j, "an object with by and question: {by: finance, question: \"Pay?\"}");
}

void refuse_beside_approve(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    (void)target;
    mistake_in(r, path, j,
               "no such key: a step with approve has name, approve, complete_by, default, if, "
               "after, on_failure");
}

static const struct slice *groups_keep(struct reader *r, const struct groups *g)
{
    struct slice *kept = arena_alloc(r->arena, (g->count + 1u) * sizeof *kept);

    memcpy(kept, g->list, g->count * sizeof *kept);
    return kept;
}

/* What happens only after the decision has no effect. */
static void check_earlier(struct reader *r, const struct path *at, const struct json *j, int64_t ms,
                          int64_t complete_by_ms)
{
    if (j && complete_by_ms > 0 && ms >= complete_by_ms)
        mistake_in(r, at, j, "a duration shorter than complete_by");
}

void settle_approve(struct reader *r, const struct json *j, const struct path *path,
                    const struct approve_draft *d, const struct signal_draft *limits,
                    struct approve_spec *ret)
{
    struct path at = {path, SLICE("complete_by"), 0};
    struct path approve = {path, SLICE("approve"), 0};
    struct path at_remind = {&approve, SLICE("remind"), 0};
    struct path escalate = {&approve, SLICE("escalate"), 0};
    struct path at_after = {&escalate, SLICE("after"), 0};

    if (limits->otherwise && !limits->complete_by)
        mistake_at(r, &at, j->at, "nothing",
                   "a key \"complete_by\": default is the output if nobody decides by then");
    check_earlier(r, &at_remind, d->remind, d->remind_ms, limits->complete_by_ms);
    check_earlier(r, &at_after, d->after, d->escalate_ms, limits->complete_by_ms);
    *ret = (struct approve_spec){
        .by = groups_keep(r, &d->by),
        .to = groups_keep(r, &d->to),
        .by_count = d->by.count,
        .to_count = d->to.count,
        .people = d->people ? d->people : 1,
        .not_submitter = d->not_submitter,
        .remind_ms = d->remind_ms,
        .escalate_ms = d->escalate_ms,
        .complete_by_ms = limits->complete_by_ms,
        .otherwise = limits->otherwise ? limits->otherwise->raw : SLICE_NONE,
    };
}

void count_people(struct reader *r, const struct path *path, const struct json *j,
                  const struct approve_spec *spec)
{
    struct path approve = {path, SLICE("approve"), 0};
    struct path at = {&approve, SLICE("people"), 0};
    struct reading *g = reading_of(r);
    bool had_room = g->people <= VOTES_MAX;

    g->people += spec->people;
    if (had_room && g->people > VOTES_MAX)
        mistake_at(r, &at, j->at, "too many people", "%d of them at most, in all steps together",
                   VOTES_MAX);
}
