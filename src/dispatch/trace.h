#ifndef DISPATCH_TRACE_H
#define DISPATCH_TRACE_H

/*
 * W3C trace context, the header `traceparent`: the trace that a task belongs to. It comes with the
 * submission, is kept with the task, and goes to the agents with each request (with a span of our
 * own) and into the task's messages. An invalid header is ignored, as the standard requires.
 * tracestate is neither kept nor passed on.
 */

#include "base/arena.h"
#include "base/buf.h"

enum { TRACE_SIZE = 55 /* "00-", 32 digits, "-", 16 digits, "-01" */ };

/* The trace in the form of version 00, in `a`; NONE: invalid. Later versions are read as far as
 * they agree with version 00; unknown flags are dropped. */
struct slice trace_read(struct arena *a, struct slice text);

/* The traceparent of a request to an agent: the trace of `trace`, as trace_read wrote it (if it is
 * NONE or anything else: a trace made from the task's id), and this span, which may be 0. In
 * `a`. */
struct slice trace_of_request(struct arena *a, struct slice trace, struct slice task,
                              uint64_t span);

#endif
