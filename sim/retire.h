#ifndef SIM_RETIRE_H
#define SIM_RETIRE_H

/*
 * Deletes ended tasks while everything runs, as a leader does: looks for some, and deletes them
 * later. In one run of four; it has its own random source, so that other runs are unaffected.
 *
 * What it must not do is checked by rows alone (seen.h): nothing that has not ended disappears, and
 * no id runs twice while it is reserved.
 */

void retire_begin(void);

/* Everything that was ever stored exists, or was deleted after its end. */
void check_nothing_lost(void);

#endif
