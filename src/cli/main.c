/* The main function: prepares the descriptors and signals of the process, draws the key of all
 * maps (base/map.h), and runs cli_main (cli.c). The tests of verbs link cli.c without this
 * file. */

#include "cli/cli.h"
#include "cli/surroundings.h"

#include "base/map.h"

int main(int argc, char **argv)
{
    surroundings_settle();
    map_key_draw();
    return surroundings_leave(cli_main(argc, argv));
}
