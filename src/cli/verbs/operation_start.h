#ifndef CLI_VERBS_OPERATION_START_H
#define CLI_VERBS_OPERATION_START_H

#include "cli/verb.h"

/* Flags that select tasks. */
#define FILTER_FLAGS                                                                              \
    {.name = "state",                                                                             \
     .value = "STATE",                                                                            \
     .help = "in this state; several separated by commas",                                        \
     .initial = "those that have not ended",                                                      \
     .kind = WORD_CHOICES,                                                                        \
     .choices = "pending processing processed compensating compensated error"},                   \
        {.name = "workflow", .value = "NAME", .help = "of this workflow", .kind = WORD_WORKFLOW}, \
        {.name = "version", .value = "N", .help = "of this version of the workflow"},             \
        {.name = "at-step",                                                                       \
         .value = "STEP",                                                                         \
         .help = "at this step: it runs, has failed, or waits for a retry"},                      \
        {.name = "agent",                                                                         \
         .value = "AGENT",                                                                        \
         .help = "at a step of this agent, or waiting for it",                                    \
         .kind = WORD_AGENT},                                                                     \
        {.name = "error", .value = "CODE", .help = "with this error code"},                       \
        {.name = "tag", .value = "KEY=VALUE", .help = "with this tag", .repeats = true},          \
        {.name = "after",                                                                         \
         .value = "DATE",                                                                         \
         .help = "submitted then or later: 2026-01-31T10:00:00Z"},                                \
        {.name = "before", .value = "DATE", .help = "submitted before"},                          \
        {.name = "ended-after", .value = "DATE", .help = "ended then or later"},                  \
        {.name = "ended-before", .value = "DATE", .help = "ended before"},                        \
        {.name = "closed",                                                                        \
         .value = "yes|no",                                                                       \
         .help = "closed or not",                                                                 \
         .kind = WORD_CHOICE,                                                                     \
         .choices = "yes no"},                                                                    \
        {.name = "paused",                                                                        \
         .value = "yes|no",                                                                       \
         .help = "paused or not",                                                                 \
         .kind = WORD_CHOICE,                                                                     \
         .choices = "yes no"},                                                                    \
        {.name = "children",                                                                      \
         .help = "tasks that are children, too, whatever the other filters are"},                 \
        {.name = "parent", .value = "ID", .help = "children of this task", .kind = WORD_TASK},    \
        {.name = "root",                                                                          \
         .value = "ID",                                                                           \
         .help = "all descendants of this task, which has no parent",                             \
         .kind = WORD_TASK},                                                                      \
        {.name = "ids", .value = "ID,...", .help = "these ids"},                                  \
    {                                                                                             \
        .name = "id-prefix", .value = "TEXT", .help = "whose ids begin so"                        \
    }

/* Flags for how to run it. */
#define OPERATION_FLAGS                                                                           \
    {.name = "dry-run", .help = "for many: show what would be done, and do nothing"},             \
        {.name = "limit", .value = "N", .help = "for many: maximum number of tasks, the newest"}, \
        {.name = "rate", .value = "N/s", .help = "for many: maximum number a second"},            \
        {.name = "yes", .help = "for many: do not ask for confirmation"},                         \
    {                                                                                             \
        .name = "no-wait", .help = "for many: do not wait for the end"                            \
    }

/* For verbs that take one task, or many. */
#define MANY_FLAGS                                                                             \
    {.name = "all",                                                                            \
     .help = "instead of TASK: all tasks that match the filter flags; without any, all tasks " \
             "that have not ended"},                                                           \
        FILTER_FLAGS, OPERATION_FLAGS

/* Applies the verb to all tasks that the flags select, and follows it. Returns the exit status. */
int operation_start(const struct invocation *in, const char *verb);

#endif
