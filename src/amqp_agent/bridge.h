#ifndef AMQP_AGENT_BRIDGE_H
#define AMQP_AGENT_BRIDGE_H

/*
 * Between queues and the server: it submits what submission queues bring, is an agent whose work is
 * done by whoever reads its request queue, and sends status messages. It keeps nothing that a kill
 * could take: what it holds is the broker's or the server's until the other one has it.
 *
 *     queue --submission--> offers.c   --POST /v1/tasks-->              server
 *     queue <--request----- requests.c <--agent (libintact)--           server
 *     queue --reply-------> replies.c  --results, POST /v1/attempts-->  server
 *     queue <--CloudEvent-- told.c     <--channel--                     server (that we are a child
 * of)
 *
 * One thread drives all of it; nothing here waits.
 */

#include <intact/agent.h>
#include <intact/client.h>

#include "amqp/broker.h"
#include "amqp/message.h"
#include "amqp_agent/run.h"
#include "base/map.h"
#include "base/prng.h"
#include "confine/caller.h"
#include "http_agent/inside.h"
#include "json/json.h"

struct bridge;

/* A message that is to become a task, until that is durable. */
struct offer {
    struct link link; /* the bridge's */
    struct bridge *bridge;
    struct arrival *arrival;
    const struct submissions_config *queue;
    struct intact_call *call; /* NULL: none is under way */
    struct buf body;          /* of the call */
    struct buf submission;    /* of a refusal: what the server refused; empty: it was none */
    bool is_refusal;          /* the call tells of what cannot be a task */
    bool is_bare;             /* ... without what it was */
    bool is_kept; /* ... with what it was; otherwise the broker has to keep the message */
    char reason[400];
    uint32_t tries;
    int64_t retry_at;
};

/* A submission queue. */
struct offers {
    struct link link; /* the bridge's */
    struct bridge *bridge;
    const struct submissions_config *queue;
    struct receiver *receiver;
};

/* One agent and its request queue. */
struct requests {
    struct link link; /* the bridge's */
    struct bridge *bridge;
    const struct agent_queue_config *config;
    struct broker *broker;
    struct intact_agent *agent;
    struct buf reply_to; /* the address of the node's reply queue */
    struct link jobs;
    bool is_over;
    int64_t wake_at;
};

/* A request that whoever reads the queue works on. */
struct job {
    struct link link; /* its agent's */
    struct requests *requests;
    struct intact_request *request; /* NULL: the agent has forgotten it */
    struct slice token, name;       /* own memory; name: the message's id */
    struct arrival *reply;          /* NULL: none has come. Settled when its outcome is durable */
    bool is_sending;                /* the broker has not said what became of it */
    int64_t send_at;                /* it is to be sent again; 0: not */
};

/* A reply that belongs to no request at hand, on its way to the server. */
struct stray {
    struct link link; /* the bridge's */
    struct bridge *bridge;
    struct arrival *arrival;
    struct intact_call *call;
    struct buf path, body;
    uint32_t tries;
    int64_t retry_at;
};

struct bridge {
    const struct amqp_config *config;
    const struct amqp_agent_options *options;
    struct inside inside;
    struct caller caller;    /* of a child: what it may still do */
    struct broker **brokers; /* in the order of the configuration */
    size_t broker_count;
    struct intact_client *client;
    struct link queues;           /* of struct offers */
    struct link agents;           /* of struct requests */
    struct link offers, strays;   /* at work */
    struct link early;            /* of struct arrival: replies that wait for their request */
    struct map by_token, by_name; /* of struct job */
    struct prng prng;
    bool is_stopping;
    uint32_t shut_out; /* calls in a row of which the server refused our token */
    int64_t tell_at;   /* not sooner is it told again */
    bool could_tell;   /* the broker of messages was there */
    int64_t stop_by;
};

struct broker *bridge_broker(const struct bridge *b, const struct broker_config *c);
/* Longer and longer: 100 ms to 10 s, with chance in it. */
int64_t bridge_again_at(struct bridge *b, uint32_t tries);
/* Is it a refusal of what we said, and not of the moment or of our token? */
bool bridge_is_refused(const struct intact_reply *r);
/* Of each answer of the server: tells that it does not let us in, and that it does again. */
void bridge_answered(struct bridge *b, const struct intact_reply *r);

void offers_open(struct bridge *b);
void offers_turn(struct bridge *b, int64_t now);
int64_t offers_wake_at(struct bridge *b);
void offers_stop(struct bridge *b); /* what is not under way goes back */

void offers_close(struct bridge *b);

bool requests_open(struct bridge *b) MUST_USE;
void requests_turn(struct bridge *b, int64_t now);
int64_t requests_wake_at(struct bridge *b);
bool requests_are_over(struct bridge *b);
void requests_close(struct bridge *b);
void job_send(struct job *j);

void replies_open(struct bridge *b);
void replies_turn(struct bridge *b, int64_t now);
int64_t replies_wake_at(struct bridge *b);
void replies_close(struct bridge *b);
/* The reply of a request that the agent dropped: what came of it the server does not know yet. */
void replies_stray(struct bridge *b, struct arrival *a, struct slice token);

/* A packet of the server: a status message to be sent. */
void told_take(struct bridge *b, struct slice packet);
/* Tells the server when the broker of messages is there again. */
void told_turn(struct bridge *b);

#endif
