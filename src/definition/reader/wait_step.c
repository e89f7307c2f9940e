/* Reads `wait` of a step: a length ("3d"), or a moment ({until, plus}) that is evaluated when the
 * step begins (scope.c). Checks that the waits fit into the task's complete_by. */
#include "definition/reader/wait_step.h"

#include "base/when.h"

/* A moment without an expression is known now. */
static void check_moment(struct reader *r, const struct json *j, const struct path *path)
{
    int64_t at = 0;

    if (!memmem(j->text.ptr, j->text.len, "${", 2) && !time_parse(j->text, &at))
        mistake_in(r, path, j, "a time with Z or an offset: 2027-01-31T10:00:00Z");
}

static void read_until(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct wait_draft *d = target;

    if (j->type != JSON_STRING) {
        mistake_in(r, path, j, "a text: a time, or an ${ expression } that gives one");
        return;
    }
    check_moment(r, j, path);
    read_template(r, j, path, &d->until);
}

/* A duration, perhaps with a sign. */
static void read_plus(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct wait_draft *d = target;
    struct slice text = j->type == JSON_STRING ? j->text : SLICE("");
    bool is_minus = text.len > 0 && text.ptr[0] == '-';
    int64_t ms = 0;

    if (is_minus)
        text = (struct slice){text.ptr + 1, text.len - 1};
    if (!duration_parse(text, &ms))
        mistake_in(r, path, j, "a duration like 2h or -2d");
    else
        d->plus_ms = is_minus ? -ms : ms;
}

void read_wait(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        REQUIRED("until", read_until, 0),
        FIELD("plus", read_plus, 0),
    };
    struct wait_draft *d = target;

    d->json = j;
    if (j->type == JSON_OBJECT)
        read_object(r, j, path, fields, COUNT_OF(fields), d);
    else if (j->type == JSON_STRING)
        read_length(r, j, path, &d->ms);
    else
        mistake_in(r, path, j, "a duration like 3d, or an object with until");
}

void refuse_beside_wait(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    (void)target;
    mistake_in(r, path, j, "no such key: a step with wait has name, wait, if, after, on_failure");
}

void check_wait_lengths(struct reader *r, const struct workflow_step *steps, const uint16_t *order,
                        uint16_t count, int64_t complete_by_ms)
{
    /* When a step ends at the earliest, by waits that always take place. In the order, each is set
     * before it is read, which analysers do not know. */
    int64_t end[STEPS_MAX] = {0};
    CLEANUP(buf_fini) struct buf sum = {0};

    for (uint16_t k = 0; k < count && complete_by_ms > 0; k++) {
        uint16_t i = order[k];
        int64_t begin = 0;
        for (uint16_t n = 0; n < steps[i].before_count; n++)
            begin = max_i64(begin, end[steps[i].before[n]]);
        int64_t own_end = begin + steps[i].wait_ms;
        end[i] = json_get(reader_step(r, i), "if") ? begin : own_end;
        if (begin >= complete_by_ms || own_end < complete_by_ms)
            continue; /* the first step that is too late is reported, not those after it */
        struct path list;
        struct path step = reader_step_path(r, i, &list);
        struct path at = {&step, SLICE("wait"), 0};
        buf_clear(&sum);
        buf_str(&sum, "waits of ");
        duration_write(&sum, own_end);
        mistake_at(r, &at, json_get(reader_step(r, i), "wait")->at, sum.ptr,
                   "less than the task's complete_by, together with the waits before it");
    }
}
