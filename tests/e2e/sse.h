#ifndef E2E_SSE_H
#define E2E_SSE_H

/* A client of server-sent events that reads when it is told to, and not before. */

#include "kit.h"

struct sse {
    int fd;
    int status;
    struct buf in; /* what has come; the head is taken off */
    size_t at;     /* what of it was given out */
    bool ended;    /* nothing more will come */
    char id[64];   /* the latest one */
};

struct sse_event {
    char name[16];
    char id[64];       /* of this event; "": it had none */
    struct reply data; /* as if it were an answer's body, so that at() finds its members */
};

#define SSE       CLEANUP(sse_fini) struct sse
#define SSE_EVENT CLEANUP(sse_event_fini) struct sse_event

/* Asks for the stream, as HTTP/1.0 does: without chunks. `last` NULL: from the start. */
void sse_open(const struct node *n, struct sse *s, const char *path, const char *last);
void sse_open_slow(const struct node *n, struct sse *s, const char *path); /* takes little */
void sse_head(struct sse *s); /* waits for the head; status is set then */
void sse_fini(struct sse *s);
void sse_event_fini(struct sse_event *e);

/* The next event; comments and mere ids are passed over. False: the stream has ended. */
bool sse_next(struct sse *s, struct sse_event *ret);
bool sse_waits(struct sse *s, int ms); /* does nothing come for so long? */

#endif
