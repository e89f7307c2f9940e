/* Hides the process from others of the same user, and forbids core files (hidden.h). The server
 * and the agents for HTTP and AMQP call it at their start; programs that they execute are
 * unaffected. */

#include "confine/hidden.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

void process_hide(void)
{
    const struct rlimit none = {0, 0};
    const char *wanted = getenv("INTACT_DUMPABLE");

    if (wanted && strcmp(wanted, "1") == 0)
        return;
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* cannot fail */
    (void)setrlimit(RLIMIT_CORE, &none);      /* lowering it is always allowed */
}
