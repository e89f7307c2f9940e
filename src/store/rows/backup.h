#ifndef STORE_ROWS_BACKUP_H
#define STORE_ROWS_BACKUP_H

/* A part of making a backup. */

#include <stdint.h>

/* A part of making a backup. */
struct backup_step {
    int64_t budget_us;   /* how long it may take, about */
    int64_t left, whole; /* out: bytes to be copied yet, and of the whole, as things are now */
    int64_t copied;      /* out: bytes that this step copied; what is written meanwhile adds to
                            `left`, and an undone transaction may even have it begin anew */
    int fd;              /* out: -1: call again. Otherwise it is whole */
};

#endif
