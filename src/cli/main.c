#include "cli/cli.h"
#include "cli/surroundings.h"

int main(int argc, char **argv)
{
    surroundings_settle();
    return surroundings_leave(cli_main(argc, argv));
}
