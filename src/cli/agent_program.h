#ifndef CLI_AGENT_PROGRAM_H
#define CLI_AGENT_PROGRAM_H

/* Built-in agents: intact agent http, exec, amqp. */

#include "cli/verb.h"
#include "config/source.h"
#include "http_agent/config.h"

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
#define AGENT_PROGRAM_FLAGS(config_help, instance_initial)                                         \
    {.name = "config", .value = "FILE", .help = (config_help), .kind = WORD_FILE},                 \
        {.name = "check", .help = "only say whether the file has mistakes, and which"},            \
        {.name = "server",                                                                         \
         .value = "URL",                                                                           \
         .help = "where Intact is; several with commas between",                                   \
         .initial = "INTACT_SERVER, then http://127.0.0.1:7420"},                                  \
        {.name = "token-file",                                                                     \
         .value = "FILE",                                                                          \
         .help = "file that holds a token with the roles of these agents, or agent:*",             \
         .initial = "INTACT_TOKEN, then none",                                                     \
         .kind = WORD_FILE},                                                                       \
        {.name = "ca",                                                                             \
         .value = "FILE",                                                                          \
         .help = "certificates that an https server's is signed by",                               \
         .initial = "INTACT_CA, then the system's",                                                \
         .kind = WORD_FILE},                                                                       \
        {.name = "installation",                                                                   \
         .value = "ID",                                                                            \
         .help = "the one that the server has to belong to: its id, or any",                       \
         .initial = "INTACT_INSTALLATION, then the one that answers first"},                       \
        {.name = "instance",                                                                       \
         .value = "NAME",                                                                          \
         .help = "of this process, unlike that of all others, and the same after a restart: then " \
                 "the server knows at once what was lost",                                         \
         .initial = (instance_initial)},                                                           \
    {                                                                                              \
        .name = "log", .value = "LEVEL", .help = "what is logged: debug, info, warn or error",     \
        .initial = "info", .kind = WORD_CHOICE, .choices = "debug info warn error"                 \
    }

#define AGENT_PROGRAM_EXITS \
    "1 if the configuration has mistakes, it had to stop, or answers could not be handed in"

/* The HTTP agent's configuration from a file. NULL: invalid, which was reported. */
struct http_config *http_config_of(const char *file);

#endif
