#ifndef NODE_TASK_JSON_H
#define NODE_TASK_JSON_H

/* A task as JSON: its whole record, its summary in lists, and entries of the audit. Any thread. */

#include "scheduler/scheduler.h"

/* A record of which more was read is rendered on the thread that read it: that takes longer than
 * handing it over. */
enum { RECORD_LARGE = 32 << 10 };

void render_task(struct buf *b, const struct pulses *pulses, const struct workflow *w,
                 const struct task *t, const struct task_row *row,
                 const struct audit_page *operations);
/* The same for the archive: in one line, with all signals. Items at rest are in lines before it. */
void render_archived(struct buf *b, const struct workflow *w, const struct task *t,
                     const struct task_row *row, const struct audit_page *operations);

/* Members of a task's document that are in its summary, as JSON; NONE: null. */
struct summary_faults {
    struct slice error, cause;
};

void render_summary(struct buf *b, const struct task_row *row, const struct summary_faults *f);
/* Without the address: a caller that may see a task may not be allowed to read the audit. */
void render_audit(struct buf *b, const struct audit *a);
/* The same, with the object left open for further members. */
void render_audit_open(struct buf *b, const struct audit *a);

/* Items of one step, by their numbers: those of a page, from rows and from the task. */
struct item_page {
    uint16_t step;
    uint32_t from, limit;
    const struct step *rows; /* at rest, by their numbers */
    size_t row_count;
    bool of_state; /* of the page only those in this state */
    enum step_state state;
};
void render_items(struct buf *b, const struct pulses *pulses, const struct workflow *w,
                  const struct task *t, const struct item_page *page);

/* Items at rest of one list, for the archive, in one line. */
struct archived_items {
    uint16_t step;
    uint32_t generation; /* of the step when it had this list */
    uint32_t part;       /* which of the lines of the task it is, from 1 */
    const struct step *rows;
    size_t row_count;
};
void render_archived_items(struct buf *b, const struct workflow *w, const struct task *t,
                           const struct archived_items *page);

/* The signals that no step has taken yet, with their values. */
void render_signals(struct buf *b, const struct task *t);

/* Removes the line breaks behind `from`, where there is JSON: they are between its values, as
 * somebody sent it. Inside of texts they are escaped. */
void render_one_line(struct buf *b, size_t from);

/* What the step asks, of whom, and who has said what: members of an object. */
void render_approval(struct buf *b, const struct workflow *w, const struct task *t, uint16_t step);

#endif
