#ifndef HTTP_AGENT_SERVICE_H
#define HTTP_AGENT_SERVICE_H

/*
 * One service at work: an agent of its name, whose requests it keeps and turns into calls.
 *
 *     server <--- agent (libintact) ---> job ---> transfer ---> service
 *                                         |  ^
 *                                         +--+ waits, and tries or asks again
 *
 * One thread drives all services; nothing here waits.
 */

#include <intact/agent.h>

#include "base/heap.h"
#include "base/map.h"
#include "base/prng.h"
#include "http_agent/config.h"
#include "http_agent/secrets.h"
#include "net/reactor.h"
#include "net/transfer.h"

struct service {
    const struct service_config *config;
    struct secrets *const *secrets; /* those that hold now */
    struct intact_agent *agent;
    struct reactor reactor;
    struct link idle;       /* of struct transfer */
    struct link jobs;       /* all of them */
    struct heap waits;      /* of struct job, by when it goes on */
    struct map expressions; /* compiled outputs, by their text */
    struct arena *expressions_arena;
    size_t job_count;
    struct prng prng;
    int64_t look_at; /* when it looks again which requests are to be stopped */
    bool is_stopping;
    bool is_over; /* its agent has ended */
};

/* False: out of descriptors, or libcurl cannot be used. Sets the handlers of the agent, which is
 * its own from now on. */
bool service_open(struct service *s, const struct service_config *config,
                  struct secrets *const *secrets, struct intact_agent *agent) MUST_USE;
void service_close(struct service *s);

void service_turn(struct service *s);       /* whatever has come, or is due */
int64_t service_wake_at(struct service *s); /* when it has to have a turn, though nothing came */

/* No new tries: what waits for one is answered. */
void service_stop(struct service *s);

/* For job.c. */
struct transfer *service_transfer(struct service *s); /* NULL: out of memory */
void service_rest(struct service *s, struct transfer *t);
/* NULL: it is none; *e says why. It may lie in `a`. */
const struct expression *service_expression(struct service *s, struct slice text, struct arena *a,
                                            struct error *e);

#endif
