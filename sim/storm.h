#ifndef SIM_STORM_H
#define SIM_STORM_H

/* Crashes, suspensions, drains and other faults of nodes, at times drawn from the seed. */
void storm_begin(void);

#endif
