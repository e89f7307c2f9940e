#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/surroundings.h"

static const struct verb {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} verbs[] = {
    {"serve", cli_serve, "run the server"},
    {"submit", cli_submit, "submit tasks: one, or many from a file"},
    {"get", cli_get, "show one task"},
    {"list", cli_list, "list tasks, newest first"},
    {"cancel", cli_operate, "undo a task that is not wanted any more"},
    {"retry", cli_operate, "try a task that stopped in error again"},
    {"skip", cli_operate, "take a step for done"},
    {"undo", cli_operate, "turn a task back"},
    {"workflow", cli_workflow, "store, show and list workflow definitions"},
    {"token", cli_token, "make, list and delete access tokens"},
    {"validate", cli_validate, "check definitions, without a server"},
};

static void print_usage(FILE *to)
{
    fputs("usage: intact VERB [OPTIONS]\n\n", to);
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        fprintf(to, "  %-10s %s\n", verbs[i].name, verbs[i].help);
    fputs("\nintact VERB --help tells more. Clients find the server by --server or INTACT_SERVER"
          " [http://127.0.0.1:7420].\n",
          to);
}

static int run(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        puts("intact " INTACT_VERSION);
        return 0;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_usage(stdout);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(verbs); i++)
        if (strcmp(argv[1], verbs[i].name) == 0)
            return verbs[i].run(argc - 1, argv + 1);
    fprintf(stderr, "intact: there is no verb \"%s\"\n\n", argv[1]);
    print_usage(stderr);
    return 2;
}

int main(int argc, char **argv)
{
    surroundings_settle();
    return surroundings_leave(run(argc, argv));
}
