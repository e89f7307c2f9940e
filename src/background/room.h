#ifndef BACKGROUND_ROOM_H
#define BACKGROUND_ROOM_H

/*
 * What this folder keeps of a node. Each member points to a struct that only its file knows. Other
 * folders do not include this header: they call functions that take the node.
 */

#include "base/log.h"
#include "node/node.h"

struct background {
    struct admin_token *admin_token;
    struct token_reload *token_reload;
    struct unknown_tokens *unknown_tokens;
    struct task_poller *task_poller;
    struct waits *waits;
    struct nodes *nodes;
    struct inbox *inbox;
    struct notices *notices;
    struct log_burst signals_refused; /* limits the log lines for refused signals by SQL */
    struct operations *operations;
    struct schedules *schedules;
    struct messages *messages;
    struct alerting *alerting;
    struct retention_job *retention;
    struct archive_writer *archive; /* NULL: none is kept */
    bool archive_busy;              /* something is being written there */
    struct open_tasks *open_tasks;
    struct helper *helpers[HELPERS_MAX]; /* NULL: none */
};

#endif
