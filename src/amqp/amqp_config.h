#ifndef AMQP_AMQP_CONFIG_H
#define AMQP_AMQP_CONFIG_H

/*
 * The section `amqp` of a server's configuration: the brokers, the queues with submissions, the
 * agents reached by queues, and the queues for status messages. docs/amqp.md is its reference.
 */

#include "base/arena.h"
#include "base/err.h"
#include "config/config_reader.h"
#include "config/secret.h"

enum {
    AMQP_PLACES_DEFAULT = 100,
    AMQP_PLACES_MAX = 1000,
    AMQP_CREDIT_DEFAULT = 100,
    AMQP_UNKNOWN_TASK_MS = 600000,
    AMQP_CREDIT_MAX = 1000,
    AMQP_LIST_MAX = 1000,       /* brokers, queues, agents */
    AMQP_QUEUE_NAME_MAX = 200,  /* bytes */
    AMQP_MESSAGE_MAX = 4 << 20, /* maximum bytes of a message */
};

struct broker_config {
    struct broker_config *next;
    struct slice name;
    struct slice host;
    uint16_t port;
    bool is_tls;
    const char *user;             /* NULL: none */
    struct secret_place password; /* or none */
    const char *ca, *cert, *key;  /* files; NULL: the system's, none */
    const char *addresses;        /* "/queue/{}" */
    const char *sasl;             /* NULL: chosen automatically */
    bool insecure;                /* allows a password over amqp:// */
    int64_t idle_ms;              /* a peer that is silent for longer is considered
                                   * gone */
};

/* What happens to a message that cannot be a task. */
enum amqp_poison { AMQP_RECORD, AMQP_REJECT };

struct submissions_config {
    struct submissions_config *next;
    struct slice queue, broker_name, workflow; /* workflow NONE: the message names it */
    struct broker_config *broker;
    enum amqp_poison poison;
    uint32_t credit;         /* unsettled messages at a time */
    int64_t unknown_task_ms; /* how long a signal waits for its task to exist */
};

struct agent_queue_config {
    struct agent_queue_config *next;
    struct slice agent, queue, broker_name;
    struct broker_config *broker;
    uint32_t places;
};

/* A queue name; * matches anything. */
struct queue_pattern {
    struct queue_pattern *next;
    const char *text;
};

struct amqp_config {
    struct broker_config *brokers;
    struct submissions_config *submissions;
    struct agent_queue_config *agents;
    struct slice messages_broker_name;
    struct broker_config *messages_broker; /* NULL: status messages to queues are off */
    struct queue_pattern *allow;
    struct slice replies; /* "{node}" is replaced by the node's name */
};

/* For a field of a configuration; the target is a struct amqp_config *, which is set. */
void amqp_config_read(struct reader *r, const struct json *j, const struct path *path,
                      void *target);

/* Whether status messages may go to that queue. */
bool amqp_config_allows(const struct amqp_config *c, struct slice queue);
/* "amqp:QUEUE", or NONE: submitters choose it, and RabbitMQ 3 ends the connection of everybody when
 * it reports an error with a name that is not ASCII. */
struct slice amqp_target_queue(struct slice target);

/* The address of a queue; the queue of an address, which may be a plain queue name. */
void amqp_address(const struct broker_config *b, struct slice queue, struct buf *ret);
struct slice amqp_queue_of(const struct broker_config *b, struct slice address);

/* The password of a broker, for secret_wipe; NULL: it has none, or *e says why it cannot be
 * read. */
enum err amqp_password(const struct broker_config *b, char **ret, struct error *e) MUST_USE;

#endif
