#ifndef LIBINTACT_PLACES_H
#define LIBINTACT_PLACES_H

/*
 * How the places of an agent are shared among the servers that it works for.
 *
 * Where the work is, is not known beforehand, and what a parked call asks for may come at any
 * moment. To ask all nodes for all places would bring more than there is room for whenever all have
 * work; to give each a fixed part would leave places empty whenever one has all of it. So:
 *
 *  - A place that is free is asked for at one node; several, in equal parts at all that have no
 *    call parked.
 *  - A call that was silent for a moment (`idle_ms`) is that of an idle node. It stays parked, and
 *    what it asks for is asked for at others, too.
 *  - When others have filled the places, and for more than `excess_ms` there are not even half of
 *    those that a parked call asks for, it is called home (`instead`), and asks anew for what there
 *    is. Handlers that are quicker than that cost no such call.
 *  - First asked is who brought work last. Every `neglect_ms` one that was not asked for so long
 *    comes first.
 *
 * So nodes that have work at all times are asked for as much as there is room for; what comes too
 * much comes of several idle nodes that get work in the same moment. It waits here, in the order in
 * which it came, and its time runs; `places_share` asks for nothing then.
 */

#include "base/base.h"

struct intact_agent;

/* Sets what each peer may ask for, `allowed`, and whose calls come home; and when to do so again
 * although nothing happened, `share_at`. */
void places_share(struct intact_agent *a, int64_t now);

#endif
