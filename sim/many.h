#ifndef SIM_MANY_H
#define SIM_MANY_H

/* Many runs, in several processes: a run that fails or crashes ends only its process. */

#include "base/base.h"

struct many {
    uint64_t from, count;
    uint32_t jobs;   /* processes at a time */
    bool keep_going; /* after a failure; then only its rule is printed */
    void (*run)(uint64_t seed, const void *arg);
    void (*failed)(uint64_t seed, const char *rule, const void *arg); /* in the parent */
    const void *arg;
};

/* Returns the number of failures. Without keep_going it ends soon after the first. */
uint64_t many_run(const struct many *m);

#endif
