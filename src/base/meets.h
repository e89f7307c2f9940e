#ifndef BASE_MEETS_H
#define BASE_MEETS_H

/* For tests: two texts with the same hash_stable(). A text made of n of them has 2^n variants with
 * one hash. They are found in seconds, because FNV-1a adds up what bytes change once the low byte
 * after each half is fixed: four lists of 2^22 halves, and D. Wagner's "A generalized birthday
 * problem" (2002). */

#define MEETS_ONE   "abyAGkD9vR1HOSDy"
#define MEETS_OTHER "g8C6Dh9EBmux4vBT"

#endif
