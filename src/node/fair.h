#ifndef NODE_FAIR_H
#define NODE_FAIR_H

/*
 * Fair shares of the event loop's time. While several tokens call, each may use FAIR_SLICE_NS in
 * one round of the loop; its further requests wait for the next rounds, in their order. So a
 * request waits for one slice of every other token, and not for all that they have sent.
 *
 * A request cannot be interrupted. A token whose request took longer than a slice rests for twice
 * the excess, a quarter of a second at most. So two thirds of the time are left to the others,
 * however much it sends.
 *
 * A token is alone if no other token has called for a second, and none waits: then none of this
 * applies. Event loop only.
 */

#include <uv.h>

#include "base/list.h"
#include "http/http.h"

#define FAIR_SLICE_NS UINT64_C(500000)

struct fair;
struct server;

/* The share of one token. Zeroed at first. It outlives the requests that wait. */
struct fair_share {
    struct link link;    /* among those that have something waiting */
    struct link waiting; /* requests */
    uint64_t round, spent_ns, rests_until_ns;
};

/* `serve` is called with a request that has waited, if its client is still there. */
struct fair *fair_new(struct server *sv, uv_loop_t *loop,
                      void (*serve)(struct server *sv, struct http_request *r));
void fair_close(struct fair *f); /* nothing waits any more */
void fair_free(struct fair *f);  /* when the loop has let go of its handles */

/* Has no other token called for a second? Its own last request may be older, and still take long.
 */
bool fair_is_alone(const struct fair *f, const struct fair_share *s);

/* True: the request waits, and is served later. False: it is its turn. `s` NULL: always. */
bool fair_holds(struct fair *f, struct fair_share *s, struct http_request *r) MUST_USE;
/* Serving a request took so long. */
void fair_charge(struct fair *f, struct fair_share *s, uint64_t now_ns, uint64_t took_ns);

/* The earliest time at which a token that has used its share may go on. 0: now. */
uint64_t fair_rests_until(const struct fair *f, struct fair_share *s, uint64_t now_ns);

/* Begins a round: serves those that wait, as far as the slices go. */
void fair_turn(struct fair *f);
uint64_t fair_round(const struct fair *f); /* the number of the present one */

size_t fair_waiting(const struct fair *f); /* requests */

#endif
