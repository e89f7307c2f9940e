#ifndef STORE_CODEC_CODEC_H
#define STORE_CODEC_CODEC_H

/*
 * A task as a row, and back. The document holds, as JSON, what has no column of its own; names in
 * it are those of the API, so that plain SQL (views task_step, task_attempt) reads well:
 *
 *   {"input":..., "output":..., "error":{"code","message"}, "cause":{"step","code","message"},
 *    "stop":"undo", "content":"16 hex digits", "sha256":"base64url", "deadline_passed":true,
 *    "undo_complete_by":ms, "payloads":n, "traceparent":"...", "owner":"name of a token",
 *    "signals":[{"key","name","state","step","at","content","data"}],
 *    "steps":[{"name","state","direction","attempt","failure_count","begun_at","wait_until",
 *              "round","round_at","repeat_until","corrected","complete_by","in_doubt","input",
 *              "output","undo_input","error","resume","key_generation","supplied","resolved",
 *              "dropped":{"count","effect","until","attempt"},
 *              "attempts":[{"attempt","direction","outcome","effect","instance","started_at",
 *                           "ended_at","complete_by","resent","tries","elsewhere",
 *                           "round","output","error"}]}]}
 *
 * What is zero, false or NONE is left out; times in it are ms. A value longer than
 * PAYLOAD_INLINE_MAX (of a signal: SIGNAL_INLINE_MAX) is written as "input_payload": number, and
 * its text goes to the payload table. A step that has the task's own input has its number; or 0, if
 * the task's input is in the document.
 *
 * Steps that rest may lie in the payload table as well, in groups, so that a document does not grow
 * with its steps: it is written whole at each change. In its place such a step is the number of a
 * payload, an object that has it under its position: {"0":{"name",...},"1":{...}}. What else that
 * has is of no more account. A document with a group begins with {"grouped":true.
 *
 * A step with for_each has "items", with sums of those at rest, the numbers of the payloads that
 * have the list, and the items in its slots, each as a step without a name:
 *
 *   {"items":{"count","begun","completed","failed","skipped","undone","effects","doubts","to_undo",
 *             "contradicted","child_base","undo_below","parts","first_part","output":true,
 *             "at_work":[{"item","slot_index","slot":"back","state",...}]}}
 *
 * Its parts are consecutive payloads. "slot_index" is the place of the item among the slots of the
 * step. An item that has come to rest (SLOT_RESTING) is no part of the document: it is a row of
 * table `item`, with all its values, however long; only the task's input is referred to, if it is
 * payload 1. The output of the step is not written: "output" says that it is ITEMS_OUTPUT.
 *
 * To change the format: add keys, never give a key a second meaning; readers ignore what they do
 * not know. task_valid() is tested after decoding.
 */

#include "base/buf.h"
#include "store/store.h"

/* Fills *ret from *t: columns and document (which is appended to `doc`), and the payloads that were
 * given numbers just now (they lie in `a`; the task's values get their numbers, so that they are
 * stored once), and the items that came to rest with the payloads that nothing refers to any more.
 * The same task gives the same until it is stored. Columns that are the scheduler's business are
 * left for the caller: workflow and version are copied from `w`, but waiting_for, rank, request,
 * wake_at are zeroed. ret->doc points into `doc` and is good until more is appended; the texts of
 * columns are borrowed from *t and *w.
 */
void task_encode(const struct workflow *w, struct task *t, struct arena *a, struct buf *doc,
                 struct task_row *ret);

/* For few steps the document stays short enough. */
enum { STEPS_FEW = 8 };

/* What the steps of a task were written as, by the one who writes it again at each of its changes:
 * a step that rests is written once and copied as long as it has not changed, and once there is
 * enough of that it goes to the payload table, in a group. Otherwise the work would grow with the
 * square of the steps. It lies in `a`, grows there by the text of each step that comes to rest, and
 * is good as long as the task's own memory is. NULL for few steps: nothing is kept of them. */
struct encoded;
struct encoded *encoded_new(const struct workflow *w, struct arena *a);

/* That step (-1: any) may have changed since it was written: whoever changes one calls this. The
 * others are assumed unchanged, apart from a sample. NULL: nothing. */
void encoded_look_at(struct encoded *kept, int step);

/* The same as task_encode, by what `kept` has, which it adds to. NULL: nothing is kept, and the
 * document has all steps. */
void task_encode_again(const struct workflow *w, struct task *t, struct encoded *kept,
                       struct arena *a, struct buf *doc, struct task_row *ret);

/* A value in the payload table whose row was read without it (overdue, list) decodes with its
 * number and an empty text, and is encoded again by its number. Groups of steps have to be there.
 *
 * Fills *ret from a row; everything is copied to or allocated in `a`. ERR_CORRUPT if the document
 * does not parse, does not fit the workflow, or breaks task_valid(). */
enum err task_decode(const struct workflow *w, const struct task_row *row, struct arena *a,
                     struct task *ret, struct error *e) MUST_USE;

/* The same, for one who will write it again: `kept` (may be NULL), which is new, learns which steps
 * lie in groups. */
enum err task_decode_kept(const struct workflow *w, const struct task_row *row,
                          struct encoded *kept, struct arena *a, struct task *ret,
                          struct error *e) MUST_USE;

/* An item of a step (by its index) from its row, to be brought back; everything is in `a`. Its slot
 * is SLOT_FREE. ERR_CORRUPT as above. */
enum err item_decode(const struct workflow *w, uint16_t step, const struct item_row *row,
                     struct arena *a, struct step *ret, struct error *e) MUST_USE;

/* The same for one of many: `tree` gets what is needed meanwhile. */
enum err item_decode_with(const struct workflow *w, uint16_t step, const struct item_row *row,
                          struct arena *tree, struct arena *a, struct step *ret,
                          struct error *e) MUST_USE;

/* The owner that a document names, as in struct task, without the rest of it: in `a`. */
struct slice doc_owner(struct slice doc, struct arena *a);

/* Has it steps in groups? */
bool doc_is_grouped(struct slice doc);

/* The numbers of its groups, each once, in their order, in `a`; none if it cannot be read. */
size_t doc_groups(struct slice doc, struct arena *a, uint32_t **ret);

#endif
