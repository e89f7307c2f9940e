#ifndef BASE_MEETS_H
#define BASE_MEETS_H

/* For tests: two texts that have the same hash_stable(). Of a text that is made of them alone, any
 * may be replaced by the other one: there are 2^n texts of n of them with one hash. Found in
 * seconds, as FNV-1a adds up what bytes change, once the low byte after each half is given: four
 * lists of 2^22 halves, and D. Wagner's "A generalized birthday problem" (2002). */

#define MEETS_ONE   "abyAGkD9vR1HOSDy"
#define MEETS_OTHER "g8C6Dh9EBmux4vBT"

#endif
