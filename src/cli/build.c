/* The program's version with its build, which tools/build-id finds. In a file of its own because
 * only this file is compiled again for each commit. build.h declares it; cli.c and verbs/serve.c
 * show it. */

#include "cli/build.h"

#include "build_id.h"

const char *const build_version =
    sizeof BUILD_ID > 1 ? INTACT_VERSION "+" BUILD_ID : INTACT_VERSION;
