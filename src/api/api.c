/* What api/ keeps of a node. The parts fill it in when they are opened. */

#include "api/api.h"

#include <stdlib.h>

#include "api/room.h"

struct api *api_new(void)
{
    struct api *a = calloc(1, sizeof *a);

    ASSERT(a);
    return a;
}

void api_free(struct api *a)
{
    free(a);
}
