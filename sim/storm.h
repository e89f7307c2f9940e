#ifndef SIM_STORM_H
#define SIM_STORM_H

/* Crashes, suspensions and drains of the node, at times drawn from the seed. */
void storm_begin(void);

#endif
