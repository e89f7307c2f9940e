#ifndef CLI_VERBS_SERVE_VIRTUAL_H
#define CLI_VERBS_SERVE_VIRTUAL_H

/* `intact serve --virtual-time`: its flags, what goes with them, and its store in memory. */

#include "base/err.h"
#include "cli/verb.h"
#include "node/virtual_time.h"

struct serve_settings; /* serve_settings.h */
struct store;          /* store/store.h */

/* *ret_is: is it given? CLI_OK, or what was misused. Without it the other flags are refused. */
int serve_virtual_read(const struct invocation *in, struct virtual_time *vt, bool *ret_is);

/* What makes no sense in a server that keeps nothing. CLI_OK, or what was misused. */
int serve_virtual_check(const struct invocation *in, const struct serve_settings *s);

enum err serve_virtual_open(struct virtual_time *vt, struct store **ret, struct error *e) MUST_USE;

/* The flags, for the table of serve. */
/* clang-format off */
#define SERVE_VIRTUAL_FLAGS \
    {.name = "virtual-time", \
     .help = "for tests: a server in memory, whose clock jumps to the next event when nothing is " \
             "under way; see docs/testing.md"}, \
    {.name = "clock", \
     .value = "MODE", \
     .help = "with --virtual-time, when the clock jumps by itself: auto, waits (while a client " \
             "waits for the end of a task) or manual (never)", \
     .initial = "auto", \
     .kind = WORD_CHOICE, \
     .choices = "auto waits manual"}, \
    {.name = "clock-at", \
     .value = "TIME", \
     .help = "with --virtual-time, the time at the start, such as 2026-01-01T09:00:00Z", \
     .initial = "now"}, \
    {.name = "end-with-stdin", \
     .help = "with --virtual-time, end at once when standard input ends, so that the server does " \
             "not outlive the test that started it"}
/* clang-format on */

#endif
