#ifndef CLI_AGENT_CONFIG_H
#define CLI_AGENT_CONFIG_H

/* Configurations of agents that are part of the program. */

#include "http_agent/config.h"

/* Reads a file. NULL: it was said what is wrong with it. */
struct http_config *http_config_of(const char *file);

#endif
