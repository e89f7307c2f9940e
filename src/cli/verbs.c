#include "cli/verbs.h"

#include "base/base.h"

static const struct verb verb_serve = {.name = "serve",
                                       .summary = "run the server",
                                       .main = cli_serve};
static const struct verb verb_submit = {.name = "submit",
                                        .summary = "submit tasks: one, or many from a file",
                                        .main = cli_submit};
static const struct verb verb_list = {.name = "list",
                                      .summary = "list tasks, newest first",
                                      .main = cli_list};
static const struct verb verb_cancel = {.name = "cancel",
                                        .summary = "undo a task that is not wanted any more",
                                        .main = cli_operate};
static const struct verb verb_retry = {.name = "retry",
                                       .summary = "try a task that stopped in error again",
                                       .main = cli_operate};
static const struct verb verb_skip = {.name = "skip",
                                      .summary = "take a step for done",
                                      .main = cli_operate};
static const struct verb verb_undo = {.name = "undo",
                                      .summary = "turn a task back",
                                      .main = cli_operate};
static const struct verb verb_workflow = {.name = "workflow",
                                          .summary = "store, show and list workflow definitions",
                                          .main = cli_workflow};
static const struct verb verb_token = {.name = "token",
                                       .summary = "make, list and delete access tokens",
                                       .main = cli_token};
static const struct verb verb_validate = {.name = "validate",
                                          .summary = "check definitions, without a server",
                                          .main = cli_validate};

/* In the order in which --help shows them. */
const struct verb *const verbs[] = {
    &verb_serve, &verb_submit,   &verb_get,    &verb_list,    &verb_watch, &verb_why,
    &verb_top,   &verb_cancel,   &verb_retry,  &verb_skip,    &verb_undo,  &verb_workflow,
    &verb_token, &verb_validate, &verb_backup, &verb_restore,
};
const size_t verb_count = COUNT_OF(verbs);
