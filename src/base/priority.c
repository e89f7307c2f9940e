/* Threads for work that nobody's deadline hangs on: they get the processor when others leave it. */

#include "base/beside.h"

#include <stdbool.h>
#include <sys/resource.h>

enum { LOWER_BY = 10 /* a ninth of the share of the thread that serves */ };

/* On Linux a nice value is the calling thread's. Should the system not allow it, the thread goes on
 * as it is. */
void thread_is_beside(void)
{
    static _Thread_local bool is_lower;

    if (is_lower)
        return;
    is_lower = true;
    int now = getpriority(PRIO_PROCESS, 0);
    (void)setpriority(PRIO_PROCESS, 0, now + LOWER_BY < 19 ? now + LOWER_BY : 19);
}
