#ifndef HTTP_AGENT_JOB_H
#define HTTP_AGENT_JOB_H

/* A request that is being worked on: from the handler until it is answered. */

#include "http_agent/service.h"

enum job_phase { JOB_WAITS, JOB_CALLS };

struct job {
    struct link link; /* of the service's */
    struct heap_node wait;
    struct service *service;
    struct intact_request *request;
    struct arena arena; /* of all of it */
    struct arena turn;  /* of the call and its answer */
    enum job_phase phase;
    struct form form;
    const struct action_config *action; /* NULL: the request itself says what to send */
    const struct expression *output;    /* NULL: .body */
    struct transfer *transfer;          /* while it calls */
    const char *url;                    /* of the call */
    const char *poll_url;               /* where to ask what has come of it; NULL: nowhere */
    struct buf place;                   /* its text */
    uint32_t tries;                     /* all of them */
    uint32_t failures;                  /* of the call that is being tried, one after another */
    uint32_t asked, redirects;
    bool may_have_effect; /* of all tries */
    /* What went wrong last. */
    char code[32];
    struct buf story;
    int64_t after_ms; /* the service's wish; 0: none */
};

void job_begin(struct intact_request *r, void *arg); /* the handler; `arg` is the service */
void job_done(struct job *j, CURLcode code);         /* its transfer has come to its end */
void job_go_on(struct job *j);                       /* it has waited */
void job_stop_if_asked(struct job *j);
void job_give_up(struct job *j); /* the agent ends: no more tries */

#endif
