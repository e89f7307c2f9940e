#ifndef AGENTS_EXEC_OUTCOME_H
#define AGENTS_EXEC_OUTCOME_H

/*
 * The answer for a command that has ended. By its exit status, as in sysexits.h:
 *
 *     0                    completed; standard output is the output
 *     64 to 68, 76 to 78   permanent, no effect: the request or the set-up is wrong
 *     69                   retryable, no effect: something that it needs is missing
 *     75, and all others   retryable, effect unknown
 *     a signal             retryable, effect unknown
 *
 * With a status other than 0 standard output may contain details: {"error": {"code", "message",
 * "retryable", "effect", "retry_after", "resume"}}, any of them.
 */

#include "agents/exec/command.h"

/* Answers its request, which is gone then. `ret_code`: the error's, for the log; "": none. */
void outcome_answer(struct command *c, char ret_code[64]);

/* The same for one that was not started. */
void outcome_not_started(struct intact_request *r, const char *why);

#endif
