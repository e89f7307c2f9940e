/* A schedule and its state, from and to the row of the store, and the submission of a run
 * (row.h). Touches no store: ticker.c and api/schedules_change.c write the row. */

#include "schedule/row.h"

#include <stdlib.h>

enum err schedule_decode(const struct schedule_row *row, struct arena *a,
                         struct schedule **ret_schedule, struct schedule_state *ret_state,
                         struct error *e)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct schedule *s = NULL;

    ASSERT(m);
    enum err err = schedule_parse(row->text, SOURCE_YAML, &s, m, NULL);
    if (err != ERR_OK)
        err = error_set(e, ERR_CORRUPT, "schedule %.*s cannot be read: line %" PRIu32 ", %s",
                        SLICE_ARG(row->name), m->list[0].line, m->list[0].expected);
    free(m);
    if (err != ERR_OK)
        return err;
    *ret_state = (struct schedule_state){.last = row->last_at,
                                         .waiting = row->waiting_at,
                                         .run = row->run,
                                         .paused_at = row->paused_at,
                                         .gap_at = row->gap_at};
    err = schedule_state_read(row->doc, a, ret_state, e);
    if (err != ERR_OK) {
        schedule_free(s);
        return err;
    }
    *ret_schedule = s;
    return ERR_OK;
}

void schedule_encode(const struct schedule *s, const struct schedule_state *st, int64_t now,
                     struct buf *doc, struct schedule_row *row)
{
    schedule_state_write(st, doc);
    row->revision++;
    row->workflow = s->workflow;
    row->text = s->text;
    row->paused_at = st->paused_at;
    row->next_at = plan_wakes_at(s, st, now);
    row->last_at = st->last;
    row->waiting_at = st->waiting;
    row->run = st->run;
    row->waits = plan_waits(st);
    row->gap_at = st->gap_at;
    row->doc = buf_view(doc);
}

static void begin_person(struct buf *b, int64_t version)
{
    buf_i64(b, version);
    buf_byte(b, ' ');
}

struct slice schedule_person(const struct schedule_row *row)
{
    CLEANUP(buf_fini) struct buf b = {0};
    struct slice text = row->person;

    begin_person(&b, row->version);
    if (!text.ptr || text.len <= b.len || memcmp(text.ptr, b.ptr, b.len) != 0)
        return SLICE_NONE;
    return (struct slice){text.ptr + b.len, text.len - b.len};
}

struct slice schedule_person_text(int64_t version, struct slice person, struct arena *a)
{
    CLEANUP(buf_fini) struct buf b = {0};

    if (!person.ptr)
        return SLICE_NONE;
    begin_person(&b, version);
    buf_slice(&b, person);
    return arena_copy(a, buf_view(&b));
}

struct submission_row run_submission(const struct schedule *s, struct slice person, struct slice id,
                                     struct slice input, int64_t now)
{
    static const struct slice digits = {"0123456789", 10};

    ASSERT(s->priority >= 0 && s->priority <= 9);
    return (struct submission_row){.source = SLICE(SCHEDULE_SOURCE),
                                   .id = id,
                                   .key = id,
                                   .workflow = s->workflow,
                                   .priority = {digits.ptr + s->priority, 1},
                                   .reply_to = s->reply_to,
                                   .tags = s->tags,
                                   .input = input,
                                   .submitter = person,
                                   .submitted_at = now};
}
