#ifndef DISPATCH_TRACE_H
#define DISPATCH_TRACE_H

/*
 * W3C trace context, the header `traceparent`: which trace a task belongs to. It comes with the
 * submission, is kept with the task, goes to the agents with each request (with a span of our own)
 * and into the task's messages. What is no such text is as if nothing were there, as the standard
 * wants it. tracestate is neither kept nor passed on.
 */

#include "base/arena.h"
#include "base/buf.h"

enum { TRACE_SIZE = 55 /* "00-", 32 digits, "-", 16 digits, "-01" */ };

/* As version 00 writes it, in `a`; NONE: it is none. Later versions are read as far as they agree
 * with that, and of the flags those that are known stay. */
struct slice trace_read(struct arena *a, struct slice text);

/* That of a request to an agent: the trace of `trace`, as trace_read wrote it (NONE or anything
 * else: a trace made of the task's id), and this span, which may be 0. In `a`. */
struct slice trace_of_request(struct arena *a, struct slice trace, struct slice task,
                              uint64_t span);

#endif
