/* Reads the configuration of the exec agent and reports all mistakes with their places. Looks at
 * the files and users that it names, and warns of those that are missing. */

#include "agents/exec/exec_config.h"

#include <ctype.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "confine/landlock.h"

enum { PLACES_MAX = 1000, INSTANCE_MAX = 150, GROUPS_MAX = 1000 };

static const char *copy_text(struct reader *r, struct slice s)
{
    return arena_copy(r->arena, s).ptr;
}

/* ---- values ---- */

static void read_absolute(struct reader *r, const struct json *j, const struct path *path,
                          void *target)
{
    if (j->type != JSON_STRING || j->text.len == 0 || j->text.ptr[0] != '/')
        mistake_in(r, path, j, "an absolute path, which begins with /");
    else
        *(const char **)target = copy_text(r, j->text);
}

static void read_directory(struct reader *r, const struct json *j, const struct path *path,
                           void *target)
{
    struct stat st;
    const char *found = NULL;

    read_absolute(r, j, path, &found);
    if (!found)
        return;
    *(const char **)target = found;
    if (stat(found, &st) != 0 || !S_ISDIR(st.st_mode))
        warn_at(r, path, j->at, j->raw, "a folder that is there");
}

static void read_limits(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    static const struct field fields[] = {
        SIZE_FIELD("memory", struct exec_command, memory, INT64_MAX,
                   "a size such as 64KiB, 512MiB or 2GiB"),
        SIZE_FIELD("output", struct exec_command, output_max, EXEC_OUTPUT_MAX,
                   "a size such as 64KiB, at most 512KiB"),
        FIELD("time", read_length, offsetof(struct exec_command, time_ms)),
        FIELD("grace", read_duration, offsetof(struct exec_command, grace_ms)),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), target);
}

static void read_user(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    struct exec_user *u = target;
    const struct passwd *p = j->type == JSON_STRING ? getpwnam(j->text.ptr) : NULL;
    gid_t groups[GROUPS_MAX];
    int count = GROUPS_MAX;

    if (!p) {
        mistake_in(r, path, j, "the name of a user of this machine");
        return;
    }
    if (geteuid() != 0 && geteuid() != p->pw_uid) {
        mistake_in(r, path, j, "the user that the agent runs as, unless that is root");
        return;
    }
    if (getgrouplist(p->pw_name, p->pw_gid, groups, &count) < 0) {
        mistake_in(r, path, j, "a user of at most %d groups", GROUPS_MAX);
        return;
    }
    *u = (struct exec_user){.name = copy_text(r, j->text),
                            .home = copy_text(r, slice_of(p->pw_dir)),
                            .uid = p->pw_uid,
                            .gid = p->pw_gid,
                            .group_count = count};
    u->groups = arena_alloc(r->arena, (size_t)count * sizeof *u->groups + 1);
    memcpy(u->groups, groups, (size_t)count * sizeof *u->groups);
}

/* ---- what it may not do ---- */

static void read_paths(struct reader *r, const struct json *j, const struct path *path,
                       void *target)
{
    struct exec_paths *p = target;

    if (j->type != JSON_ARRAY || j->count > EXEC_PATHS_MAX) {
        mistake_in(r, path, j, "a list of at most %d absolute paths", EXEC_PATHS_MAX);
        return;
    }
    p->list = arena_alloc(r->arena, (j->count + 1u) * sizeof *p->list);
    p->count = 0;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, SLICE_NONE, p->count};
        const char **one = &p->list[p->count++];
        read_absolute(r, m, &at, one);
        if (*one && access(*one, F_OK) != 0)
            warn_at(r, &at, m->at, m->raw, "a file or folder that is there");
    }
}

/* It replaces all of the outer `confine`. */
static void read_confine(struct reader *r, const struct json *j, const struct path *path,
                         void *target)
{
    static const struct field fields[] = {
        FIELD("read", read_paths, offsetof(struct exec_command, readable)),
        FIELD("write", read_paths, offsetof(struct exec_command, writable)),
    };
    struct exec_command *c = target;

    c->readable = c->writable = (struct exec_paths){0};
    c->is_confined = true;
    read_object(r, j, path, fields, COUNT_OF(fields), c);
    if (landlock_version() == 0)
        warn_at(r, path, j->at, j->raw,
                "a kernel with Landlock: without it the command is not run");
}

/* A confined process could otherwise have a program with more rights do what it may not. */
static void check_privileges(struct reader *r, const struct json *j, const struct path *path,
                             const struct exec_command *c)
{
    const struct json *said = json_get(j, "no_new_privileges");

    if (c->is_confined && !c->no_new_privileges)
        mistake_at(r, path, said ? said->at : j->at, "confine and no_new_privileges: false",
                   "one of them: who is confined gets no new privileges");
}

/* ---- environment ---- */

static bool is_variable_name(struct slice s)
{
    if (s.len == 0 || s.len > 128 || isdigit((unsigned char)s.ptr[0]))
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (!isalnum((unsigned char)s.ptr[i]) && s.ptr[i] != '_')
            return false;
    return true;
}

/* Mostly the name of a variable shows whether it holds a secret. */
static bool names_secret(struct slice name)
{
    static const char *const words[] = {"SECRET", "TOKEN", "PASSW", "CREDENTIAL", "_KEY", "APIKEY"};

    for (size_t i = 0; i < COUNT_OF(words); i++)
        for (size_t at = 0; at + strlen(words[i]) <= name.len; at++)
            if (strncasecmp(name.ptr + at, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

/* "{from: OTHER}" or "{from: OTHER, secret: BOOL}". */
static bool read_inherited(struct reader *r, const struct json *j, const struct path *path,
                           struct exec_variable *ret)
{
    const struct json *other = json_get(j, "from");
    const struct json *secret = json_get(j, "secret");
    struct path from = {path, SLICE("from"), 0};
    struct path is_secret = {path, SLICE("secret"), 0};

    if (other->type != JSON_STRING || !is_variable_name(other->text)) {
        mistake_in(r, &from, other, "the name of a variable of the agent's environment");
        return false;
    }
    if (secret && secret->type != JSON_TRUE && secret->type != JSON_FALSE) {
        mistake_in(r, &is_secret, secret, "true or false");
        return false;
    }
    ret->source = EXEC_INHERITED;
    ret->text = other->text;
    ret->is_secret =
        secret ? secret->type == JSON_TRUE : names_secret(ret->name) || names_secret(other->text);
    return true;
}

/* "NAME: text", "NAME: {file: PATH}" or "NAME: {from: OTHER}". */
static bool read_variable(struct reader *r, const struct json *j, const struct path *path,
                          struct exec_variable *ret)
{
    const char *file = NULL;
    const struct json *other = json_get(j, "from");
    size_t members = other && json_get(j, "secret") ? 2 : 1;

    ret->name = arena_copy(r->arena, j->key);
    ret->source = EXEC_VALUE;
    ret->text = j->text;
    if (j->type == JSON_STRING)
        return true;
    if (j->type != JSON_OBJECT || j->count != members || !(other || json_get(j, "file"))) {
        mistake_in(r, path, j, "a text, {file: PATH} or {from: NAME}");
        return false;
    }
    if (!other) {
        struct path at = {path, SLICE("file"), 0};
        read_absolute(r, j->child, &at, &file);
        ret->source = EXEC_FILE;
        ret->text = slice_of(file);
        if (file && access(file, R_OK) != 0)
            warn_at(r, &at, j->child->at, j->child->raw, "a file that can be read");
        return file;
    }
    return read_inherited(r, j, path, ret);
}

/* Those of the level above stay; ours are behind them. */
static void read_environment(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    struct exec_command *c = target;

    if (j->type != JSON_OBJECT || c->variable_count + j->count > EXEC_VARIABLES_MAX) {
        mistake_in(r, path, j, "an object of at most %d variables", EXEC_VARIABLES_MAX);
        return;
    }
    struct exec_variable *all =
        arena_alloc(r->arena, (c->variable_count + j->count + 1) * sizeof *all);
    if (c->variable_count > 0)
        memcpy(all, c->variables, c->variable_count * sizeof *all);
    ASSERT(c->variable_count <= EXEC_VARIABLES_MAX);
    c->variables = all;
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        if (!is_variable_name(m->key) || (m->key.len >= 7 && memcmp(m->key.ptr, "INTACT_", 7) == 0))
            mistake_at(r, &at, m->key_at, "this name",
                       "letters, digits and _, and not INTACT_ at its beginning");
        else if (read_variable(r, m, &at, &all[c->variable_count]))
            c->variable_count++;
    }
}

/* ---- commands ---- */

static void warn_of_program(struct reader *r, const struct json *j, const struct path *path,
                            const char *program)
{
    ASSERT(program);
    if (program[0] == '/' && access(program, X_OK) != 0)
        warn_at(r, path, j->at, j->raw, "a program that is there");
}

static void read_argv(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    size_t count = 0;

    if (j->type != JSON_ARRAY || j->count == 0 || j->count > EXEC_ARGUMENTS_MAX) {
        mistake_in(r, path, j, "a list: the program, and its arguments; no shell reads it");
        return;
    }
    char **argv = arena_alloc(r->arena, (j->count + 1u) * sizeof *argv);
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, SLICE_NONE, count};
        if (m->type != JSON_STRING) {
            mistake_in(r, &at, m, "a text%s", r->is_yaml ? ", in quotes" : "");
            return;
        }
        argv[count++] = arena_bytes(r->arena, m->text.len + 1);
        memcpy(argv[count - 1], m->text.ptr, m->text.len + 1);
    }
    struct path first = {path, SLICE_NONE, 0};
    ASSERT(j->child); /* argv[0] is its text */
    if (!argv[0][0] || (strchr(argv[0], '/') && argv[0][0] != '/')) {
        mistake_in(r, &first, j->child, "an absolute path, or a name to be found in PATH");
        return;
    }
    warn_of_program(r, j->child, &first, argv[0]);
    ASSERT(count == j->count);
    *(char ***)target = argv;
}

static const char *const output_words[] = {
    [EXEC_JSON] = "json", [EXEC_TEXT] = "text", [EXEC_NONE] = "none", NULL};
static const char *const heartbeat_words[] = {"automatic", "command",
                                              NULL}; /* by exec_command.beats */

_Static_assert(EXEC_OUTPUT_MAX == 512 << 10, "read_limits() names it");

struct action_read {
    struct exec_command command;
    const struct json *undo;
};

/* clang-format off */
#define COMMON(at)                                                                    \
    FIELD("directory", read_directory, (at) + offsetof(struct exec_command, directory)), \
    FIELD("environment", read_environment, (at)),                                   \
    FIELD("user", read_user, (at) + offsetof(struct exec_command, user)),      \
    FIELD("limits", read_limits, (at)),                                   \
    WORD_FIELD("output", at, struct exec_command, output, output_words, NULL),    \
    WORD_FIELD("heartbeats", at, struct exec_command, beats, heartbeat_words, NULL),     \
    FIELD("confine", read_confine, (at)),                                            \
    FIELD("no_new_privileges", read_bool, (at) + offsetof(struct exec_command, no_new_privileges))
/* clang-format on */

static void read_undo(struct reader *r, const struct json *j, const struct path *path,
                      struct exec_command *c)
{
    static const struct field fields[] = {
        REQUIRED("command", read_argv, offsetof(struct exec_command, argv)),
        COMMON(0),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), c);
    check_privileges(r, j, path, c);
}

static void read_one_action(struct reader *r, const struct json *j, const struct path *path,
                            const struct exec_command *above, struct exec_action *a)
{
    static const struct field fields[] = {
        FIELD("command", read_argv, offsetof(struct action_read, command.argv)),
        FIELD("undo", read_node, offsetof(struct action_read, undo)),
        COMMON(offsetof(struct action_read, command)),
    };
    struct action_read read = {.command = *above};

    read_object(r, j, path, fields, COUNT_OF(fields), &read);
    if (read.command.argv)
        check_privileges(r, j, path, &read.command);
    ASSERT(read.command.variable_count <= EXEC_VARIABLES_MAX);
    a->forward = a->undo = read.command;
    a->undo.argv = NULL;
    if (read.undo) {
        struct path at = {path, SLICE("undo"), 0};
        read_undo(r, read.undo, &at, &a->undo);
    }
    if (j->type == JSON_OBJECT && !json_get(j, "command") && !read.undo)
        mistake_at(r, path, j->at, "nothing to run", "a command, or an undo with one, or both");
}

static void read_actions(struct reader *r, const struct json *j, const struct path *path,
                         const struct exec_command *above, struct exec_agent_config *a)
{
    if (j->type != JSON_OBJECT || j->count == 0) {
        mistake_in(r, path, j, "an object of actions, each by its name");
        return;
    }
    a->actions = arena_alloc(r->arena, j->count * sizeof *a->actions);
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct exec_action *one = &a->actions[a->action_count++];
        struct json name = {.type = JSON_STRING, .text = m->key, .raw = m->key, .at = m->key_at};
        one->name = arena_copy(r->arena, m->key);
        read_action(r, &name, &at, &name.text);
        read_one_action(r, m, &at, above, one);
    }
}

struct agent_read {
    struct exec_command common;
    struct exec_agent_config agent;
    const struct json *actions;
};

static void read_one_agent(struct reader *r, const struct json *j, const struct path *path,
                           struct exec_agent_config *a)
{
    static const struct field fields[] = {
        TEXT_FIELD("instance", struct agent_read, agent.instance, INSTANCE_MAX),
        NUMBER_FIELD("places", struct agent_read, agent.places, 1, PLACES_MAX),
        REQUIRED("actions", read_node, offsetof(struct agent_read, actions)),
        COMMON(offsetof(struct agent_read, common)),
    };
    struct agent_read read = {
        .agent = *a,
        .common = {.directory = "/",
                   .output_max = EXEC_OUTPUT_MAX,
                   .grace_ms = 5000,
                   .no_new_privileges = true},
    };
    struct path at = {path, SLICE("actions"), 0};

    read.agent.places = 1;
    read_object(r, j, path, fields, COUNT_OF(fields), &read);
    if (read.actions)
        read_actions(r, read.actions, &at, &read.common, &read.agent);
    ASSERT(read.agent.places > 0 || r->mistakes->count > 0);
    *a = read.agent;
}

static void read_agents(struct reader *r, const struct json *j, const struct path *path,
                        void *target)
{
    struct exec_config *c = target;

    if (j->type != JSON_OBJECT || j->count == 0) {
        mistake_in(r, path, j, "an object of agents, each by its name");
        return;
    }
    c->agents = arena_alloc(r->arena, j->count * sizeof *c->agents);
    c->agent_count = 0; /* it may occur twice, which is a mistake */
    for (const struct json *m = j->child; m; m = m->next) {
        struct path at = {path, m->key, 0};
        struct exec_agent_config *a = &c->agents[c->agent_count++];
        struct json name = {.type = JSON_STRING, .text = m->key, .raw = m->key, .at = m->key_at};
        a->name = arena_copy(r->arena, m->key);
        read_name(r, &name, &at, &name.text);
        read_one_agent(r, m, &at, a);
    }
}

struct exec_config *exec_config_read(struct slice text, enum source_format format,
                                     struct mistakes *mistakes, struct mistakes *warnings)
{
    static const struct field fields[] = {
        REQUIRED("intact_exec", read_version, 0),
        REQUIRED("agents", read_agents, 0),
        FIELD("stop_wait", read_duration, offsetof(struct exec_config, stop_wait_ms)),
    };
    struct exec_config *c = calloc(1, sizeof *c);
    struct json *tree = NULL;
    const struct path root = {0};

    if (!c)
        out_of_memory(sizeof *c);
    /* cppcheck-suppress nullPointerRedundantCheck ; out_of_memory does not return */
    c->stop_wait_ms = 30000;
    struct reader r = {.arena = &c->arena, .mistakes = mistakes, .warnings = warnings};
    enum err err = read_source(&r, text, format, &tree);
    if (err == ERR_OK)
        read_object(&r, tree, &root, fields, COUNT_OF(fields), c);
    mistakes_sort(mistakes);
    if (err == ERR_OK && mistakes->count == 0)
        return c;
    exec_config_free(c);
    return NULL;
}

void exec_config_free(struct exec_config *c)
{
    if (!c)
        return;
    arena_fini(&c->arena);
    free(c);
}
