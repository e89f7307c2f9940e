#ifndef SIM_RETIRE_H
#define SIM_RETIRE_H

/*
 * Somebody deletes tasks that are over, as a leader does: looks for some, and deletes them later,
 * while everything goes on. In one run of four; what it draws it draws by itself, so that runs
 * without it are what they were.
 *
 * What it must not do is judged by rows alone (seen.h): nothing that is not over disappears, and no
 * id runs twice while it is reserved.
 */

void retire_begin(void);

/* All that was ever stored is there, or was deleted when it was over. */
void check_nothing_lost(void);

#endif
