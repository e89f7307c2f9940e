#ifndef E2E_SSE_H
#define E2E_SSE_H

/* A client of server-sent events that reads only when a function asks for it. */

#include "kit.h"

struct sse {
    int fd;
    int status;
    struct buf in; /* received bytes, without the head */
    size_t at;     /* bytes of `in` already returned */
    bool ended;    /* the stream has ended */
    char id[64];   /* the latest one */
    char lone[64]; /* the latest that came without an event since the last one; "": none did */
    int comments;  /* so many lines have come */
};

struct sse_event {
    char name[16];
    char id[64];       /* of this event; "": none */
    struct reply data; /* in the form of an answer's body, for at() */
};

#define SSE       CLEANUP(sse_fini) struct sse
#define SSE_EVENT CLEANUP(sse_event_fini) struct sse_event

/* Requests the stream with HTTP/1.0, so that it comes without chunks. `last` NULL: from the
 * start. */
void sse_open(const struct node *n, struct sse *s, const char *path, const char *last);
void sse_open_slow(const struct node *n, struct sse *s, const char *path); /* slow reader */
void sse_head(struct sse *s); /* waits for the head and sets `status` */
void sse_fini(struct sse *s);
void sse_event_fini(struct sse_event *e);

/* The next event; skips comments and lone ids. False: the stream has ended. */
bool sse_next(struct sse *s, struct sse_event *ret);
bool sse_waits(struct sse *s, int ms); /* whether nothing arrives for `ms` */
void sse_comment(struct sse *s);       /* waits for a comment; leaves events for sse_next() */

#endif
