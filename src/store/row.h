#ifndef STORE_ROW_H
#define STORE_ROW_H

/* What all bodies of the store hold against a row, and how they copy one. */

#include "store/store.h"

/* Can this change be stored at all? ERR_OK, ERR_INVALID, ERR_TOO_BIG. Asserts what is the
 * caller's promise: revisions that count from 1, changes that have an id. */
enum err row_check(const struct change *c) MUST_USE;

/* A copy of *row whose texts (not its payloads) lie in `a`. */
struct task_row row_copy(struct arena *a, const struct task_row *row);

/* The same of a submission, all of it. */
/* Whether one more fits into that, `bytes` being what the others hold: then it is added to it. */
bool submission_fits(const struct submission_take *t, const struct submission_row *row,
                     size_t *bytes);
bool notice_fits(const struct notice_read *n, const struct notice_row *row, size_t *bytes);
struct notice_row notice_copy(struct arena *a, const struct notice_row *row);
struct submission_row submission_copy(struct arena *a, const struct submission_row *row);

/* Does the row belong to the listing, as far as its columns go? Read are state, workflow, version,
 * submitted_at, ended_at, paused_at, closed_at, and, if the query is about them, parent (of
 * `children` only whether there is one) and root. */
bool list_wants(const struct list_query *q, const struct task_row *row);
bool list_wants_doc(const struct list_query *q); /* is that not enough? */
/* Does it as far as its document (and waiting_for, workflow, version) goes? */
bool list_doc_wanted(const struct list_query *q, const struct task_row *row);
/* What a body knows of a task that it looks at to let it go. */
struct retire_seen {
    int64_t seq;
    struct slice workflow;
    enum task_state state;
    int64_t ended_at, closed_at; /* 0: it did not, was not */
    bool child;
    bool locked;      /* or holds a lock, which it would take along */
    bool untold;      /* a message of it was set aside, and is still to be delivered */
    int64_t fresh_at; /* when the oldest message that was not set aside came to be; 0: none is */
};
/* Which rule lets it go; SIZE_MAX: none. */
size_t retire_rule_of(const struct retire_look *r, const struct retire_seen *t);
/* A child whose root is gone: is it over, too? */
bool retire_orphan_goes(const struct retire_seen *t);
/* Was a task submitted too late to go? So were all behind it. */
bool retire_is_past(const struct retire_look *r, int64_t seq, int64_t submitted_at);
/* The content of its submission that a stored document has, in `a`; hash 0: none. */
struct content doc_content(struct slice doc, struct arena *a);
uint64_t content_parse(struct slice hex); /* 16 digits; 0: it is none */

/* Sorts after the prefix of several agents (struct task_row), and before the name of any. */
#define CENSUS_BEFORE        ",~"
#define CENSUS_BEFORE_AGENTS SLICE(CENSUS_BEFORE)
/* Behind all queues of locks: there may be very many, so a census steps over them. */
#define CENSUS_BEHIND_LOCKS "@lock0"
bool census_is_lock(struct slice waiting_for);
/* Adds what is counted apart; the list stays in the order of the names, and at its length. */
void census_add(struct census *c, const struct census_agent *list, size_t count, struct arena *a);
/* Times and queues of locks are no agents: takes them out of the list. */
void census_take_sleeping(struct census *c);
/* A part of a count by owner: before its rows are read, one owner of them (NONE: none), and then
 * that so many rows were read, of which the last one is `last_seq`. */
void owners_begin(struct owners_part *p, struct arena *a);
void owners_add(struct owners_part *p, struct slice owner);
void owners_move(struct owners_part *p, size_t rows, int64_t last_seq);
struct operation_row operation_copy(struct arena *a, const struct operation_row *row);
struct schedule_row schedule_copy(struct arena *a, const struct schedule_row *row);
/* The version that the row has now. */
struct schedule_version_row schedule_version_of(const struct schedule_row *row);
struct schedule_version_row schedule_version_copy(struct arena *a,
                                                  const struct schedule_version_row *row);
struct audit audit_copy(struct arena *a, const struct audit *audit);
struct message message_copy(struct arena *a, const struct message *m);
/* One page of two, each the oldest first: in `a`, with texts of theirs. */
void messages_merge(const struct message_page *x, const struct message_page *y, size_t limit,
                    struct arena *a, struct message_page *ret);
/* A census from counts and oldest times (0: none) of messages set aside and of the others. */
void outbox_census_of(int64_t fresh, int64_t waiting, int64_t dead, int64_t fresh_at,
                      int64_t waiting_at, size_t most, struct outbox_census *ret);
/* The reason of a definition that was stored: "order, version 3". */
struct slice audit_workflow_reason(struct arena *a, struct slice name, int64_t version);

/* The text's part before the slash, slash included: "n1/" of "n1/12". ASSERTs that it has one. */
struct slice owner_node(struct slice locked_by);
uint64_t owner_boot(struct slice locked_by); /* 12 of "n1/12"; 0 if that is not a number */

#endif
