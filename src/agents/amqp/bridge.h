#ifndef AGENTS_AMQP_BRIDGE_H
#define AGENTS_AMQP_BRIDGE_H

/*
 * A bridge between queues and the server: it submits the messages of submission queues, is an agent
 * whose work is done by readers of its request queue, and sends status messages. It has no state
 * that a kill could lose: what it holds stays with the broker or the server until the other one has
 * it.
 *
 *     queue --submission--> offers.c   --POST /v1/tasks-->              server
 *     queue --signal------> offers.c, signals.c --POST /v1/tasks/ID/signals/NAME--> server
 *     queue <--request----- requests.c <--agent (libintact)--           server
 *     queue --reply-------> replies.c  --results, POST /v1/attempts-->  server
 *     queue <--CloudEvent-- messages.c <--channel--                     server (our parent)
 *
 * One thread drives all of it; nothing here blocks. Proton's engine (pn_connection_driver) has
 * neither threads nor sockets of its own, so there is no lock.
 *
 * The correlation id of a request is the attempt's token. A reply must bring it after any restart,
 * and only the agent and the broker see the queue, where the body is as secret. A name of our own
 * would have to be stored durably, for no gain: a reader of the reply queue could then end no
 * attempts, but a reader of the request queue is the agent. `message-id`, by which brokers detect
 * duplicates, has a part that follows from the token: a reply may quote it instead. Each queue has
 * a session of its own, because RabbitMQ ends a session for an error of one link.
 */

#include <intact/agent.h>
#include <intact/client.h>

#include "agents/amqp/amqp_agent.h"
#include "agents/http/inside.h"
#include "amqp/amqp_message.h"
#include "amqp/broker.h"
#include "base/map.h"
#include "base/prng.h"
#include "confine/caller.h"
#include "json/json.h"

struct bridge;

/* A message that becomes a task, or a signal to one, until that is durable. Those of one task are
 * offered one by one, in the order in which they came; but a submission passes signals that wait
 * for their task to exist. */
struct offer {
    struct link link;              /* in the bridge's list */
    struct buf task;               /* whose it is; empty: nothing says so */
    struct offer *before, *behind; /* of the same task; it waits for the one before it */
    struct buf path, key;          /* of a signal: those of its call; empty: it is a submission */
    struct bridge *bridge;
    struct arrival *arrival;
    const struct submissions_config *queue;
    struct intact_call *call; /* NULL: none is running */
    struct buf body;          /* of the call */
    struct buf submission;    /* of a refusal: the refused submission; empty: there was none */
    bool is_held;             /* a signal whose task does not exist, until retry_at */
    bool is_refusal;          /* the call records a refusal */
    bool is_bare;             /* ... without the content */
    bool is_kept;             /* ... with the content; otherwise the broker must keep the message */
    char reason[400];
    uint32_t tries;
    int64_t retry_at;
};

/* A submission queue. */
struct offers {
    struct link link; /* in the bridge's list */
    struct bridge *bridge;
    const struct submissions_config *queue;
    struct receiver *receiver;
};

/* One agent and its request queue. */
struct requests {
    struct link link; /* in the bridge's list */
    struct bridge *bridge;
    const struct agent_queue_config *config;
    struct broker *broker;
    struct intact_agent *agent;
    struct buf reply_to; /* the address of the node's reply queue */
    struct link jobs;
    bool is_over;
    int64_t wake_at;
};

/* A request that a reader of the queue works on. */
struct job {
    struct link link; /* in its agent's list */
    struct requests *requests;
    struct intact_request *request; /* NULL: the agent has dropped it */
    struct slice token, name;       /* owned; name: the message's id */
    struct arrival *reply;          /* NULL: none yet. Settled when its outcome is durable */
    bool is_sending;                /* the broker has not confirmed it yet */
    int64_t send_at;                /* when to send it again; 0: never */
};

/* A reply to no known request, on its way to the server. */
struct stray {
    struct link link; /* in the bridge's list */
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
    struct caller caller;    /* of a child: its remaining permissions */
    struct broker **brokers; /* in the order of the configuration */
    size_t broker_count;
    struct intact_client *client;
    struct link queues;           /* of struct offers */
    struct link agents;           /* of struct requests */
    struct link offers, strays;   /* in progress */
    struct link early;            /* of struct arrival: replies that came before their request */
    struct map by_token, by_name; /* of struct job */
    struct map last_of;           /* of struct offer: the last one of each task */
    struct link unknown;          /* of struct unknown (signals.c) ... */
    struct map unknown_by_name;   /* ... and by the name of their signal */
    struct prng prng;
    bool is_stopping;
    uint32_t shut_out; /* consecutive calls for which the server refused the token */
    int64_t tell_at;   /* earliest time of the next log line about that */
    bool could_tell;   /* the broker of messages was available */
    int64_t stop_by;
};

struct broker *bridge_broker(const struct bridge *b, const struct broker_config *c);
/* Exponential backoff, 100 ms to 10 s, with jitter. */
int64_t bridge_again_at(struct bridge *b, uint32_t tries);
/* Whether the content was refused, for good and not because of the token. */
bool bridge_is_refused(const struct intact_reply *r);
/* Call for each answer of the server: logs that the token is refused, or accepted again. */
void bridge_answered(struct bridge *b, const struct intact_reply *r);

void offers_open(struct bridge *b);
void offers_turn(struct bridge *b, int64_t now);
int64_t offers_wake_at(struct bridge *b);
void offers_stop(struct bridge *b); /* releases what is not under way */

void offers_close(struct bridge *b);

/* Is it a signal? */
bool signal_is_meant(const struct json *said, const struct amqp_message *m);
/* NULL, or why it cannot be one. `event_id`: of the CloudEvent. */
const char *signal_read(struct offer *o, const struct json *said, const struct amqp_message *m,
                        struct slice event_id);
/* Its task does not exist: it is held for a while, then released for others, and set aside when it
 * has been so for too long. */
enum unknown_next { UNKNOWN_HOLD, UNKNOWN_RELEASE, UNKNOWN_SET_ASIDE };
enum unknown_next signal_unknown(struct offer *o);
void signal_known(struct offer *o); /* it is settled otherwise */
void signals_close(struct bridge *b);

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
/* The reply to a request that the agent dropped; the server does not know the outcome yet. */
void replies_stray(struct bridge *b, struct arrival *a, struct slice token);

/* Handles a packet of the server: a status message to send. */
void messages_take(struct bridge *b, struct slice packet);
/* Reports to the server that the broker of messages is available again. */
void messages_turn(struct bridge *b);

#endif
