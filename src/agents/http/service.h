#ifndef AGENTS_HTTP_SERVICE_H
#define AGENTS_HTTP_SERVICE_H

/*
 * One service in operation: an agent with its name, whose requests become calls.
 *
 *     server <--- agent (libintact) ---> job ---> transfer ---> service
 *                                         |  ^
 *                                         +--+ waits, then retries or polls
 *
 * One thread drives all services; nothing here blocks.
 */

#include <intact/agent.h>

#include "agents/http/http_config.h"
#include "agents/http/http_secrets.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/prng.h"
#include "net/reactor.h"
#include "net/transfer.h"

struct service {
    const struct service_config *config;
    struct secrets *const *secrets; /* the current ones */
    struct intact_agent *agent;
    struct reactor reactor;
    struct link idle;       /* of struct transfer */
    struct link jobs;       /* all of them */
    struct heap waits;      /* of struct job, by the end of their wait */
    struct map expressions; /* compiled outputs, by text */
    struct arena *expressions_arena;
    size_t job_count;
    struct prng prng;
    int64_t look_at; /* when to check next which requests must stop */
    bool is_stopping;
    bool is_over; /* its agent has ended */
};

/* False: out of descriptors, or libcurl cannot be used. Sets the handlers of the agent, and owns it
 * from now on. */
bool service_open(struct service *s, const struct service_config *config,
                  struct secrets *const *secrets, struct intact_agent *agent) MUST_USE;
void service_close(struct service *s);

void service_turn(struct service *s);       /* handles what arrived or is due */
int64_t service_wake_at(struct service *s); /* when it needs a turn even if nothing arrives */

/* No new calls: waiting requests are answered. */
void service_stop(struct service *s);

/* for http_job.c */
struct transfer *service_transfer(struct service *s); /* NULL: out of memory */
void service_rest(struct service *s, struct transfer *t);
/* NULL: invalid; *e says why. The result may lie in `a`. */
const struct expression *service_expression(struct service *s, struct slice text, struct arena *a,
                                            struct error *e);

#endif
