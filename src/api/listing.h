#ifndef API_LISTING_H
#define API_LISTING_H

/*
 * Answers that list what a node has in memory, rendered in slices of the event loop's time
 * (visit.h): ten thousand names take longer than others may wait. What is added meanwhile is not
 * listed; what is removed meanwhile may be left out. Event loop only.
 */

#include "base/arena.h"
#include "base/buf.h"
#include "base/list.h"
#include "node/exchange.h"
#include "node/part.h"

struct map;

/* A snapshot of names, and how many of them were rendered. */
struct listed_names {
    struct slice *list;
    size_t count, at;
};

struct listing {
    struct exchange x;
    struct link link;   /* in the order in which they came */
    struct arena arena; /* it lies in it */
    struct buf out;
    const struct listing_kind *kind;
    void *state;      /* of the kind */
    struct slice one; /* the only name; NONE: all of the kind */
    struct listed_names names;
    struct listed_names inner; /* of what the present name has; for the kind */
};

struct listing_kind {
    const char *key;                 /* of the list in the answer */
    void (*head)(struct listing *l); /* renders the members before the list; may be NULL */
    /* Takes a snapshot of the names to list. False: the request was answered instead. NULL: the
     * name is `one`. */
    bool (*names)(struct listing *l, struct http_request *r);
    /* Renders more of what has this name, if it is still there. False: there is still more. */
    bool (*render)(struct listing *l, struct slice name);
    void (*end)(void *state); /* frees it, answered or not; may be NULL */
};

/* Takes over a request that nothing else answers, and the state. `one` is copied. */
void listing_begin(struct server *sv, struct http_request *r, const struct listing_kind *kind,
                   struct slice one, void *state);
/* The keys of a map, sorted; `is_listed`, if it is not NULL, says which of them. */
void listing_snapshot(struct listing *l, struct listed_names *ret, const struct map *m,
                      bool (*is_listed)(const void *arg, struct slice name), const void *arg);

extern const struct part listings_part;

#endif
