/* Makes and frees what the files of background/ keep of a node (room.h), which only this folder
 * sees. The parts fill it in when they are opened; server/server.c holds it as
 * server->background. api/api.c is the same for that folder. */

#include "background/background.h"

#include <stdlib.h>

#include "background/admin_token.h"
#include "background/room.h"

struct background *background_new(void)
{
    struct background *b = calloc(1, sizeof *b);

    ASSERT(b);
    b->admin_token = admin_token_new();
    return b;
}

void background_free(struct background *b)
{
    admin_token_free(b->admin_token);
    free(b);
}
