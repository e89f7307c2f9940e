#ifndef LIBINTACT_PLACES_H
#define LIBINTACT_PLACES_H

/*
 * How the places of an agent are shared among its servers.
 *
 * Which node has work is unknown in advance, and a parked call may bring requests at any time.
 * Asking all nodes for all places would bring too much when all have work; a fixed share for each
 * would leave places empty when one node has all of it. So:
 *
 *  - One free place is offered to one node; several are divided equally among all nodes without a
 *    parked call.
 *  - A call that was silent for `idle_ms` belongs to an idle node. It stays parked, and its places
 *    are offered to others, too.
 *  - If others have filled the places, and for more than `excess_ms` less than half of those that a
 *    parked call asks for are free, the call is ended (`instead`), and asks for what there is.
 *    Handlers that are faster cause no such call.
 *  - The node that had work last is asked first. Every `neglect_ms`, one that was not asked for so
 *    long comes first.
 *
 * So nodes that always have work are asked for what there is room for. An excess comes only from
 * several idle nodes that get work at the same time. It waits here in order of arrival, while its
 * time runs; `places_share` asks for nothing then.
 */

#include "base/base.h"

struct intact_agent;

/* Sets what each peer may ask for (`allowed`), whose calls are ended, and when to run again without
 * an event (`share_at`). */
void places_share(struct intact_agent *a, int64_t now);

#endif
