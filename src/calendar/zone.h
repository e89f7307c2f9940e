#ifndef CALENDAR_ZONE_H
#define CALENDAR_ZONE_H

/*
 * Time zones by their IANA name ("Europe/Rome", "UTC"), with the rules that the system has in
 * /usr/share/zoneinfo, or in the folder that TZDIR names. The rules are read by GLib.
 *
 * A zone is immutable and may be used by several threads at once.
 */

#include "base/err.h"

struct zone;

/* *ret is to be closed with zone_close. ERR_INVALID: there is no such zone, and `e` says so. */
enum err zone_open(struct slice name, struct zone **ret, struct error *e) MUST_USE;
void zone_close(struct zone *z); /* NULL is allowed */

/* How far the local time is ahead of UTC at the moment `at` (milliseconds since 1970, also below
 * 0). Negative west of Greenwich. Exact to the second. */
int64_t zone_offset_ms(const struct zone *z, int64_t at);

/* The first moment in (at, until] from which another offset holds; `until` if there is none.
 * A change and its reversal within six hours may be missed. */
int64_t zone_change_after(const struct zone *z, int64_t at, int64_t until);

/* The moment at which clocks of the zone show `local` (milliseconds since 1970-01-01T00:00 on the
 * local clock). A local time that comes twice means the first one; a local time that clocks skip
 * means the moment of the change. */
int64_t zone_moment(const struct zone *z, int64_t local);

#endif
