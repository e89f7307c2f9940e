#ifndef STORE_CODEC_TEST_KIT_H
#define STORE_CODEC_TEST_KIT_H

/*
 * What the tests of the codec and of the stores share: tasks drawn at random, and a comparison of
 * all that a task has. The fields come from the declarations in core/task.h (core/fields reads
 * them when the tests are built), so a field that is added there is drawn and compared without a
 * word here.
 */

#include "base/prng.h"
#include "base/test.h"
#include "store/codec/codec.h"

#define KIT_SHA256 "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"

/* Few steps, with a pivot; few steps, of which two are of on_undo; few steps, of which two are
 * waits and one is repeated; few steps, of which two have items; and so many that they lie in
 * groups. */
extern const struct workflow kit_workflow, kit_workflow_back, kit_workflow_wait, kit_workflow_items;
const struct workflow *kit_workflow_long(void);

struct value random_value(struct prng *p, struct arena *a);
struct step valid_step(struct prng *p, struct arena *a, const struct workflow_step *ws,
                       enum direction d);
/* A step with for_each, and what is in its slots. */
void random_each(const struct workflow *w, struct task *t, uint16_t i, struct prng *p,
                 struct arena *a);
struct task random_task(const struct workflow *w, struct prng *p, struct arena *a);

/* Fields that a test leaves alone, "task.id", each with the reason. Ends with NULL. */
struct field_except {
    const char *name, *why;
};

/* Gives some field of the task, its steps or their attempts another value, by its declared type
 * alone, so that the task stays valid. False: it was not to be this time, and nothing changed.
 * *ret_step is the step that it is of; -1: none. */
bool change_a_field(const struct workflow *w, struct prng *p, struct arena *a,
                    const struct field_except *except, struct task *t, int *ret_step);

/* The items that came to rest are stored, and the others in the slots that a reader puts them in.
 */
void slots_settle(const struct workflow *w, struct task *t);
void slots_tally(const struct workflow *w, struct task *t);

/* Fails the test unless each field of *x, but those, is in *y what it is there. Of fields that are
 * not empty in *x it keeps count. */
void tasks_equal_but(const struct task *x, const struct task *y, const struct field_except *but);
void tasks_equal(const struct task *x, const struct task *y);
/* The same of an item in a slot, and one that is in none. */
void items_equal(const struct step *x, const struct step *y);

/* Fails the test unless each field was compared while it was not empty, `least` times or more, but
 * for those; and unless all of `but` are fields. Counting begins anew. */
void all_fields_were_compared(unsigned least, const struct field_except *but);

#endif
