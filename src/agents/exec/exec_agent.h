#ifndef AGENTS_EXEC_EXEC_AGENT_H
#define AGENTS_EXEC_EXEC_AGENT_H

/*
 * Agents whose actions are commands of this machine. All of them are driven by one loop on one
 * thread; each command has a keeper (keeper.h), and what they write is read as it comes.
 */

#include <intact/agent.h>

#include "agents/exec/exec_config.h"

struct exec_settings {
    /* As for intact_agent_set_*; NULL: the default. The instance: that of the configuration. */
    const char *server, *token, *ca, *instance;
};

/* Runs until SIGTERM or SIGINT: then no more work is fetched, and commands have the configured time
 * to end before they are terminated; a second signal terminates them at once. To be called by the
 * only thread of a process. */
enum intact_agent_result exec_agent_run(const struct exec_config *config,
                                        const struct exec_settings *settings);

#endif
