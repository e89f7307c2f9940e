#ifndef TESTS_CHAOS_DISK_H
#define TESTS_CHAOS_DISK_H

/*
 * What a power cut leaves of the files behind the VFS (vfs.h).
 *
 * From disk_record() on, all unsynced changes are recorded in sectors of 512 bytes. When the power
 * is cut, in the middle of the n-th change, every further call is without effect. After the store
 * was closed, disk_return() turns the files into what a real disk may have:
 *
 *   - the state of the last successful sync;
 *   - any subset of the sectors written since, in any of the versions they had;
 *   - an unsynced truncation took place or not; a created or deleted file exists or not, until its
 *     folder was synced;
 *   - a failed sync wrote nothing, and later syncs need not write those pages either, because the
 *     kernel considers them clean. Only another write to a page makes all of it dirty again.
 *
 * The shared memory (-shm) is lost: it is never synced.
 */

#include "base/base.h"

enum { DISK_SECTOR = 512, DISK_PAGE = 4096 };

extern bool disk_forgets;

void disk_record(uint64_t seed);
void disk_cut_after(uint32_t changes); /* writes, truncations, syncs, deletions from now on */
bool disk_is_cut(void);
uint32_t disk_changes(void); /* since disk_record() */
void disk_cut_now(void);
void disk_return(void); /* once all files are closed; ends the recording */

/* Calls from the VFS. */
void disk_opened(const char *path, bool existed);
void disk_wrote(const char *path, const void *bytes, size_t count, int64_t at);
void disk_truncated(const char *path, int64_t size);
void disk_synced(const char *path, bool with_folder);
void disk_sync_failed(const char *path);
void disk_deleted(const char *path, bool with_folder);

#endif
