#ifndef CLI_VERBS_AGENT_PROGRAM_H
#define CLI_VERBS_AGENT_PROGRAM_H

/* Built-in agents: intact agent http, exec, amqp. */

#include "agents/http/http_config.h"
#include "cli/verb.h"
#include "config/source.h"

/* From the command line; NULL: not given. */
struct agent_start {
    const char *server, *token, *ca, *instance;
};

struct agent_program {
    const char *question; /* asked if no configuration is given */
    /* NULL: invalid, which was reported. The text outlives the result. */
    void *(*parse)(const char *file, struct slice text);
    int (*run)(const void *config, const struct agent_start *start); /* until it ends */
    void (*free)(void *config);
};

/* Reads the configuration and runs the agent, or only checks it (--check). Returns the exit
 * status. */
int agent_program_run(const struct invocation *in, const struct agent_program *p);

/* The flags of all built-in agents; the parameters differ. */
#define AGENT_PROGRAM_FLAGS(config_help, instance_initial)                                  \
    {.name = "config", .value = "FILE", .help = (config_help), .kind = WORD_FILE},          \
        {.name = "check", .help = "check the file, and list its mistakes"},                 \
        {.name = "server",                                                                  \
         .value = "URL",                                                                    \
         .help = "address of the server; several are separated by commas and used in turn", \
         .initial = "INTACT_SERVER, then http://127.0.0.1:7420"},                           \
        {.name = "token-file",                                                              \
         .value = "FILE",                                                                   \
         .help = "file with a token for these agents (agent:NAME or agent:*)",              \
         .initial = "INTACT_TOKEN, then none",                                              \
         .kind = WORD_FILE},                                                                \
        {.name = "ca",                                                                      \
         .value = "FILE",                                                                   \
         .help = "certificates that signed the server's",                                   \
         .initial = "INTACT_CA, then those of the system",                                  \
         .kind = WORD_FILE},                                                                \
        {.name = "installation",                                                            \
         .value = "ID",                                                                     \
         .help = "required installation of the server: its id, or any",                     \
         .initial = "INTACT_INSTALLATION, then the first that answers"},                    \
        {.name = "instance",                                                                \
         .value = "NAME",                                                                   \
         .help = "unique name of this process; the same after a restart",                   \
         .initial = (instance_initial)},                                                    \
    {                                                                                       \
        .name = "log", .value = "LEVEL", .help = "log level: debug, info, warn or error",   \
        .initial = "info", .kind = WORD_CHOICE, .choices = "debug info warn error"          \
    }

#define AGENT_PROGRAM_EXITS \
    "1 if the configuration is invalid, it had to stop, or results could not be returned"

/* The HTTP agent's configuration from a file. NULL: invalid, which was reported. */
struct http_config *http_config_of(const char *file);

#endif
