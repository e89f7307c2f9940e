#ifndef LIBINTACT_CALL_H
#define LIBINTACT_CALL_H

/* One POST to /v1/agents/{agent}/work (or /heartbeats), or GET of /v1/nodes, again and again over a
 * connection that is kept. */

#include "libintact/request.h"
#include "libintact/wire.h"

struct intact_agent;

struct call {
    struct peer *peer;
    const char *url;            /* the peer's */
    struct curl_slist *headers; /* the agent's */
    CURL *easy; /* NULL until there is something to call for: idle agents are many */
    bool busy;
    bool called_home; /* it was asked to come home before its time */
    size_t max;       /* requests it asks for */
    int64_t sent_at;
    struct buf body;
    struct delivery *answer; /* being received */
    struct link results;     /* being handed in */
    size_t result_count;
    char why[CURL_ERROR_SIZE];
};

struct call_form {
    size_t max;
    int64_t wait_ms;
    int64_t hand_in_ms; /* in which it has to be answered, if it asks for nothing or hands in */
    bool instead;       /* of what is parked */
    bool holding;       /* say which tokens we hold */
    size_t result_max;  /* hand in no more results than this */
};

enum {
    CALL_WITHIN_MS = 15000,       /* then we take a server for lost */
    CALL_BUFFER_SIZE = 4096,      /* held for as long as a call is parked */
    CALL_BODY_SOFT_MAX = 1 << 20, /* no result is added to a body that is longer */
    CALL_LIST_MAX = 1000,         /* results, tokens: what a server takes in one call */
};

void call_init(struct call *c, struct peer *p, const char *url, struct curl_slist *headers);
/* Makes its handle; sending does it, too. False: libcurl does not take the address. */
bool call_make_handle(struct call *c) MUST_USE;
void call_drop_handle(struct call *c); /* until the next one is sent. Not while it is busy */
void call_fini(struct call *c);        /* not while it is busy */

/* Sends it, with results taken from `ready`. False: out of memory; nothing was taken. */
bool call_start(struct call *c, struct intact_agent *a, const struct call_form *f,
                struct link *ready) MUST_USE;

/* Sends what stands in `body`; the answer has to come within that time. */
bool call_send(struct call *c, struct intact_agent *a, int64_t within_ms) MUST_USE;
/* The same without a body, as a GET. `fresh`: over a connection of its own. */
bool call_get(struct call *c, struct intact_agent *a, int64_t within_ms, bool fresh) MUST_USE;

/* Takes it from the wire, finished or not. */
void call_end(struct call *c, CURLM *multi);
void call_return_results(struct call *c, struct link *ready); /* to its end */

bool call_heard_nothing(const struct call *c); /* no byte of the answer has come */

#endif
