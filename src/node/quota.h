#ifndef NODE_QUOTA_H
#define NODE_QUOTA_H

/*
 * What one token may use of this node, so that one client cannot starve the others: calls,
 * submissions and reads per second, bytes per second that it sends, open calls, time of the event
 * loop, and open tasks that it submitted. A call beyond a limit is answered 429 with Retry-After.
 *
 * The time of the event loop is what handlers take, by the clock, since others wait for that. It is
 * limited only if another token called within OTHERS_S seconds.
 *
 * Rates are leaky buckets that hold BURST_S seconds. A call is accepted while the bucket is not
 * full, and is then charged as a whole, so one large body, or one batch of many lines, always fits.
 *
 * The open tasks of a token are counted in the store from time to time (open_tasks.c). Between two
 * counts a node adds the tasks that it accepts and subtracts those that it sees end. So the number
 * is approximately right after restarts and with other nodes on the same database, and changes of
 * tasks cost nothing more. A batch is accepted as a whole: the limit protects the store, and is not
 * exact.
 *
 * In memory, of this node alone. Event loop only.
 */

#include "base/buf.h"
#include "http/http.h"
#include "node/access.h"
#include "node/fair.h"
#include "json/json.h"

/* An object such as {"calls": 100}, or NULL, JSON null: all defaults. False: *ret_wrong names the
 * member that is wrong. */
bool quota_limits_read(const struct json *j, struct quota_limits *ret,
                       struct slice *ret_wrong) MUST_USE;
void quota_limits_write(struct buf *b, const struct quota_limits *l); /* what is not 0, as JSON */

struct quotas;
struct quota; /* of one token, by its name; it outlives the token */

struct quotas *quotas_new(void);
void quotas_free(struct quotas *qs);

/* The name of its token; NONE for NULL. */
struct slice quota_name(const struct quota *q);

/* Accepts a call. NULL: it was answered 429. It is open until quota_leave. Whether a call for work
 * may wait is asked later, because a call that brings results need not wait. */
struct quota *quota_enter(struct quotas *qs, const struct bearer *b, struct http_request *r,
                          int64_t now, bool is_work);
/* A call for work is let in, and must not wait if this is false. NULL: it may. */
bool quota_may_wait(const struct quota *q);
void quota_refuse_to_wait(struct quota *q, struct http_request *r); /* 429 */
/* May one more of its requests wait, of `all` places, so many of which it has? Tokens leave places
 * to each other: half of them if others are there, else a sixteenth. */
bool quota_share_has_room(const struct quotas *qs, const struct quota *q, size_t has, size_t all);
size_t quota_open(const struct quota *q); /* its calls */
/* Its requests that wait to see something; one more or one less. */
size_t quota_readers(const struct quota *q);
void quota_reads(struct quota *q, bool more);
void quota_leave(struct quota *q);               /* NULL: nothing */
struct fair_share *quota_share(struct quota *q); /* of the loop's time; NULL: NULL */
/* Its handler took so long; NULL: nothing. */
void quota_worked(struct quota *q, uint64_t now_ns, uint64_t took_ns);
/* So many submissions came with the call that is being handled. False: it was answered 429. */
bool quota_submits(struct quotas *qs, struct quota *q, struct http_request *r, uint64_t count);
bool quota_reading(struct quota *q, struct http_request *r); /* the same of one reading */

/* A task of that token (NONE: of none) was accepted here, or came to its end. */
void quotas_task(struct quotas *qs, struct slice owner, bool begins);
/* A count of all stored tasks that go on: it begins, has found one of that owner, and is done. One
 * that fails is not ended, and the next one begins. */
void quotas_count_begin(struct quotas *qs);
void quotas_counted(struct quotas *qs, struct slice owner);
void quotas_count_end(struct quotas *qs);
bool quotas_want_count(const struct quotas *qs); /* it was asked for, or a token is near */
bool quotas_near(const struct quotas *qs);       /* a token is near its limit */

/* "limits", "use", "recent" and "last_used_at" of a token, as members of the object that is open.
 */
void quota_render(struct quotas *qs, const struct bearer *b, uint64_t now_ns, struct buf *out);

#endif
