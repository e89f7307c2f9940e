#ifndef CLI_OPERATION_START_H
#define CLI_OPERATION_START_H

#include "cli/verb.h"

/* Flags that select tasks. */
#define FILTER_FLAGS                                                                              \
    {.name = "state",                                                                             \
     .value = "STATE",                                                                            \
     .help = "tasks in that state; several with commas between",                                  \
     .initial = "those that are not over",                                                        \
     .kind = WORD_CHOICES,                                                                        \
     .choices = "pending processing processed compensating compensated error"},                   \
        {.name = "workflow", .value = "NAME", .help = "of that workflow", .kind = WORD_WORKFLOW}, \
        {.name = "version", .value = "N", .help = "of that version of it"},                       \
        {.name = "at-step",                                                                       \
         .value = "STEP",                                                                         \
         .help = "that stand at that step: it runs, has failed, or waits for another try"},       \
        {.name = "agent",                                                                         \
         .value = "AGENT",                                                                        \
         .help = "that stand at a step of that agent, or wait for it",                            \
         .kind = WORD_AGENT},                                                                     \
        {.name = "error", .value = "CODE", .help = "whose error has that code"},                  \
        {.name = "tag", .value = "KEY=VALUE", .help = "with that tag", .repeats = true},          \
        {.name = "after",                                                                         \
         .value = "DATE",                                                                         \
         .help = "submitted then or later: 2026-01-31T10:00:00Z"},                                \
        {.name = "before", .value = "DATE", .help = "submitted before that"},                     \
        {.name = "ended-after", .value = "DATE", .help = "that ended then or later"},             \
        {.name = "ended-before", .value = "DATE", .help = "that ended before that"},              \
        {.name = "closed",                                                                        \
         .value = "yes|no",                                                                       \
         .help = "that are closed, or not",                                                       \
         .kind = WORD_CHOICE,                                                                     \
         .choices = "yes no"},                                                                    \
        {.name = "paused",                                                                        \
         .value = "yes|no",                                                                       \
         .help = "that are paused, or not",                                                       \
         .kind = WORD_CHOICE,                                                                     \
         .choices = "yes no"},                                                                    \
    {                                                                                             \
        .name = "ids", .value = "ID,...", .help = "these"                                         \
    }

/* Flags for how to run it. */
#define OPERATION_FLAGS                                                                        \
    {.name = "dry-run", .help = "of many: tell what would be done, and do nothing"},           \
        {.name = "limit", .value = "N", .help = "of many: at most so many tasks, the newest"}, \
        {.name = "rate", .value = "N/s", .help = "of many: at most so many a second"},         \
        {.name = "yes", .help = "of many: do not ask, however many they are"},                 \
    {                                                                                          \
        .name = "no-wait", .help = "of many: do not wait until it is done"                     \
    }

/* For verbs that take one task, or many. */
#define MANY_FLAGS                                                                                 \
    {.name = "all",                                                                                \
     .help = "instead of TASK: all that the following flags name; without any of them, all tasks " \
             "that are not over"},                                                                 \
        FILTER_FLAGS, OPERATION_FLAGS

/* Applies the verb to all tasks that the flags select, and follows it. Returns the exit status. */
int operation_start(const struct invocation *in, const char *verb);

#endif
