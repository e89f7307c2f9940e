#ifndef AGENTS_EXEC_EXEC_CONFIG_H
#define AGENTS_EXEC_EXEC_CONFIG_H

/*
 * What the exec agent may run, by its configuration: agents, their actions, and of each the command
 * that does it and the one that undoes it. Nothing else is ever run, and no shell unless one is
 * named here.
 *
 * Settings of an agent apply to its actions, and those of an action to its undo, unless these have
 * their own.
 */

#include <sys/types.h>

#include "config/config_reader.h"

enum exec_source {
    EXEC_VALUE,     /* the text in the configuration */
    EXEC_FILE,      /* a secret: what is in that file when the command starts */
    EXEC_INHERITED, /* of the agent's own environment; left out if it is not there */
};

struct exec_variable {
    struct slice name, text; /* each with a NUL behind it */
    enum exec_source source;
    bool is_secret; /* of EXEC_INHERITED: it is not disclosed either */
};

enum exec_output { EXEC_JSON, EXEC_TEXT, EXEC_NONE };

struct exec_user {
    const char *name; /* NULL: the agent's own */
    const char *home;
    uid_t uid;
    gid_t gid, *groups;
    int group_count;
};

struct exec_paths {
    const char **list;
    size_t count;
};

enum {
    EXEC_OUTPUT_MAX = 512 << 10,
    EXEC_VARIABLES_MAX = 100,
    EXEC_ARGUMENTS_MAX = 1000,
    EXEC_PATHS_MAX = 100,
};

struct exec_command {
    char **argv; /* ends with NULL; NULL: there is none */
    const char *directory;
    struct exec_user user;
    struct exec_variable *variables; /* a later one of a name is the one that counts */
    size_t variable_count;
    int64_t memory;     /* bytes of address space of each process; 0: no limit */
    int64_t output_max; /* bytes on standard output */
    int64_t time_ms;    /* 0: the attempt's */
    int64_t grace_ms;   /* from SIGTERM to SIGKILL, at most */
    enum exec_output output;
    bool beats;             /* by itself, with its progress; else the agent does for it */
    bool no_new_privileges; /* neither by sudo nor by any other set-user-id program */
    bool is_confined;       /* to the files that follow, and what every program needs */
    struct exec_paths readable, writable;
};

struct exec_action {
    struct slice name;
    struct exec_command forward, undo;
};

struct exec_agent_config {
    struct slice name;
    const char *instance; /* NULL: the library's default */
    int64_t places;
    struct exec_action *actions;
    size_t action_count;
};

struct exec_config {
    struct arena arena;
    struct exec_agent_config *agents;
    size_t agent_count;
    int64_t stop_wait_ms;
};

/* Reads it: all mistakes in one go; warnings of what is not as it should be on this machine. NULL:
 * there are mistakes. `text` must outlive it. */
struct exec_config *exec_config_read(struct slice text, enum source_format format,
                                     struct mistakes *mistakes, struct mistakes *warnings) MUST_USE;
void exec_config_free(struct exec_config *c);

#endif
