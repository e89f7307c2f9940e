#ifndef CLI_CLI_H
#define CLI_CLI_H

/*
 * The verbs of the program. Each takes its own name as argv[0], like a main(), and returns the
 * exit status of the process.
 */

enum cli_status {
    CLI_OK = 0,
    CLI_NOT_WELL = 1,  /* the task did not end well, or the server refused what was asked */
    CLI_USAGE = 2,     /* the command line, or a file that it names */
    CLI_UNREACHED = 3, /* the server was not reached, or has too much to do */
};

int cli_serve(int argc, char **argv);

int cli_submit(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_operate(int argc, char **argv);  /* retry, skip, undo, cancel: by argv[0] */
int cli_workflow(int argc, char **argv); /* put, list, get */
int cli_token(int argc, char **argv);    /* create, list, delete */
int cli_validate(int argc, char **argv); /* asks no server */

#endif
