/* The version of this program with its build, from the one file that is made anew for each. */
#include "cli/build.h"

#include "build_id.h"

const char *const build_version =
    sizeof BUILD_ID > 1 ? INTACT_VERSION "+" BUILD_ID : INTACT_VERSION;
