#ifndef CLI_CLI_H
#define CLI_CLI_H

/* The exit status of the process. */
enum cli_status {
    CLI_OK = 0,
    CLI_NOT_WELL = 1,  /* the task did not end well, or the server refused what was asked */
    CLI_USAGE = 2,     /* the command line, or a file that it names */
    CLI_UNREACHED = 3, /* the server was not reached, or has too much to do */
};

/* All of the program but main(): tests run it within their own process. */
int cli_main(int argc, char **argv);

#endif
