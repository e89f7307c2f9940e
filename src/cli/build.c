/* The program's version with its build; the only file that is compiled anew for each. */
#include "cli/build.h"

#include "build_id.h"

const char *const build_version =
    sizeof BUILD_ID > 1 ? INTACT_VERSION "+" BUILD_ID : INTACT_VERSION;
