/* Makes and frees what the files of api/ keep of a node (room.h), which only this folder sees.
 * The parts fill it in when they are opened; server/server.c holds it as server->api.
 * background/background.c is the same for that folder. */

#include "api/api.h"

#include <stdlib.h>

#include "api/room.h"
#include "api/sign_ins.h"

struct api *api_new(void)
{
    struct api *a = calloc(1, sizeof *a);

    ASSERT(a);
    a->sign_ins = sign_ins_new();
    return a;
}

void api_free(struct api *a)
{
    if (a)
        sign_ins_free(a->sign_ins);
    free(a);
}
