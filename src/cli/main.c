/* The process: prepares its descriptors, and runs cli_main (cli.c). */

#include "cli/cli.h"
#include "cli/surroundings.h"

#include "base/map.h"

int main(int argc, char **argv)
{
    surroundings_settle();
    map_key_draw();
    return surroundings_leave(cli_main(argc, argv));
}
