#ifndef AGENTS_HTTP_HTTP_JOB_H
#define AGENTS_HTTP_HTTP_JOB_H

/* A request in progress: from the handler until it is answered. */

#include "agents/http/service.h"

enum job_phase { JOB_WAITS, JOB_CALLS };

struct job {
    struct link link; /* in the service's jobs */
    struct heap_node wait;
    struct service *service;
    struct intact_request *request;
    struct arena arena; /* for the whole job */
    struct arena turn;  /* for one call and its answer */
    enum job_phase phase;
    struct form form;
    const struct action_config *action; /* NULL: the input contains the request */
    const struct expression *output;    /* NULL: .body */
    struct transfer *transfer;          /* during a call */
    const char *url;                    /* of the call */
    const char *poll_url;               /* where to poll for the outcome; NULL: not polling */
    struct buf place;                   /* text of poll_url */
    uint32_t tries;                     /* calls in total */
    uint32_t failures;                  /* consecutive failures of the current call */
    uint32_t asked, redirects;
    bool may_have_effect; /* some call may have had an effect */
    /* The last error. */
    char code[32];
    struct buf story;
    int64_t after_ms; /* as requested by the service; 0: not given */
};

void job_begin(struct intact_request *r, void *arg); /* the handler; `arg` is the service */
void job_done(struct job *j, CURLcode code);         /* its transfer has ended */
void job_go_on(struct job *j);                       /* its wait has ended */
void job_stop_if_asked(struct job *j);
void job_give_up(struct job *j); /* the agent ends: no more calls */

#endif
