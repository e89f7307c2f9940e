/* The words of virtual time, the list of advances, and the header of all answers
 * (virtual_time.h). When the clock jumps: server/virtual_clock.c. */

#include "node/virtual_time.h"

#include <string.h>

#include "base/when.h"
#include "node/installation.h"
#include "node/node.h"

static const char *const modes[] = {
    [VIRTUAL_AUTO] = "auto",
    [VIRTUAL_WAITS] = "waits",
    [VIRTUAL_MANUAL] = "manual",
};

const char *virtual_mode_text(enum virtual_mode mode)
{
    return modes[mode];
}

bool virtual_mode_find(const char *text, enum virtual_mode *ret)
{
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        if (strcmp(modes[i], text) == 0) {
            *ret = (enum virtual_mode)i;
            return true;
        }
    return false;
}

void virtual_advance(struct virtual_time *vt, struct advance *a)
{
    ASSERT(a->ended);
    if (a->to == 0) /* what only looks does not wait for those that move */
        list_push_front(&vt->advances, &a->link);
    else
        list_push(&vt->advances, &a->link);
    vt->woken(vt->arg);
}

void virtual_take_back(struct virtual_time *vt, struct advance *a)
{
    link_remove(&a->link);
    vt->woken(vt->arg);
}

void advance_fini(struct advance *a)
{
    buf_fini(&a->held);
    buf_fini(&a->held_text);
    buf_fini(&a->excused);
}

void virtual_headers(struct server *sv)
{
    struct virtual_time *vt = sv->config.virtual_time;
    int64_t now = atomic_load(&vt->now_ms);

    if (vt->header_ms == now || !sv->http)
        return;
    vt->header_ms = now;
    http_say_always(sv->http, installation_headers(sv));
}
