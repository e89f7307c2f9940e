#ifndef CLI_CLI_H
#define CLI_CLI_H

/* The exit status of the process. */
enum cli_status {
    CLI_OK = 0,
    CLI_NOT_WELL = 1,  /* the task did not end well, or the server refused */
    CLI_USAGE = 2,     /* an error in the command line, or in a file that it names */
    CLI_UNREACHED = 3, /* the server was not reached, or is overloaded */
};

/* The whole program except main(): tests run it in their own process. */
int cli_main(int argc, char **argv);

#endif
