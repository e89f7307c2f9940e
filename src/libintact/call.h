#ifndef LIBINTACT_CALL_H
#define LIBINTACT_CALL_H

/* A repeated POST to /v1/agents/{agent}/work (or /heartbeats), or GET of /v1/nodes, over a
 * persistent connection. */

#include "libintact/request.h"
#include "libintact/wire.h"

struct intact_agent;

struct call {
    struct peer *peer;
    const char *url;            /* the peer's */
    struct curl_slist *headers; /* the agent's */
    CURL *easy;                 /* NULL until needed: there are many idle agents */
    bool busy;
    bool called_home; /* it was asked to end early */
    size_t max;       /* requests that it asks for */
    int64_t sent_at;
    struct buf body;
    struct delivery *answer; /* being received */
    struct link results;     /* results being sent */
    size_t result_count;
    char why[CURL_ERROR_SIZE];
};

struct call_form {
    size_t max;
    int64_t wait_ms;
    int64_t hand_in_ms; /* time limit for the answer if it asks for no work or carries results */
    bool instead;       /* replaces the parked call */
    bool holding;       /* includes the tokens that are held */
    size_t result_max;  /* maximum number of results to send */
};

enum {
    CALL_WITHIN_MS = 15000,       /* then the server is considered lost */
    CALL_BUFFER_SIZE = 4096,      /* allocated while a call is parked */
    CALL_BODY_SOFT_MAX = 1 << 20, /* no result is added to a longer body */
    CALL_LIST_MAX = 1000,         /* results, tokens: the server's limit for one call */
};

void call_init(struct call *c, struct peer *p, const char *url, struct curl_slist *headers);
/* Creates its handle; sending does so, too. False: libcurl rejects the address. */
bool call_make_handle(struct call *c) MUST_USE;
void call_drop_handle(struct call *c); /* until the next call. Not while it is busy */
void call_fini(struct call *c);        /* not while it is busy */

/* Sends it, with results from `ready`. False: out of memory; nothing was taken. */
bool call_start(struct call *c, struct intact_agent *a, const struct call_form *f,
                struct link *ready) MUST_USE;

/* Sends the contents of `body`; the answer must come within that time. */
bool call_send(struct call *c, struct intact_agent *a, int64_t within_ms) MUST_USE;
/* The same without a body, as a GET. `fresh`: over a new connection. */
bool call_get(struct call *c, struct intact_agent *a, int64_t within_ms, bool fresh) MUST_USE;

/* Removes it from libcurl, finished or not. */
void call_end(struct call *c, CURLM *multi);
void call_return_results(struct call *c, struct link *ready); /* appends them */

bool call_heard_nothing(const struct call *c); /* no byte of the answer was received */

#endif
