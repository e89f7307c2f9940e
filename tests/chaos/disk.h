#ifndef TESTS_CHAOS_DISK_H
#define TESTS_CHAOS_DISK_H

/*
 * What a power cut leaves of the files that went through the VFS (vfs.h).
 *
 * From disk_record() on, all that is not yet synced is written down, by sectors of 512 bytes. When
 * the power is cut, in the middle of the n-th change, no call does anything any more. After the
 * store was closed, disk_return() makes the files what a real disk may have:
 *
 *   - what was there at the last successful sync is there;
 *   - of what was written since, any subset of its sectors, in any of the versions it had;
 *   - a truncation not synced took place, or not; a file made or deleted is there, or not, until
 * its folder was synced;
 *   - a sync that failed wrote nothing, and later ones need not write what it left: the kernel
 * takes these pages for clean. Only writing to a page again makes it (all of it) dirty again.
 *
 * The shared memory (-shm) is gone: it is never synced.
 */

#include "base/base.h"

enum { DISK_SECTOR = 512, DISK_PAGE = 4096 };

extern bool disk_forgets;

void disk_record(uint64_t seed);
void disk_cut_after(uint32_t changes); /* writes, truncations, syncs, deletions from now on */
bool disk_is_cut(void);
uint32_t disk_changes(void); /* since disk_record() */
void disk_cut_now(void);
void disk_return(void); /* all files are closed: what survived; ends the recording */

/* What the VFS did. */
void disk_opened(const char *path, bool existed);
void disk_wrote(const char *path, const void *bytes, size_t count, int64_t at);
void disk_truncated(const char *path, int64_t size);
void disk_synced(const char *path, bool with_folder);
void disk_sync_failed(const char *path);
void disk_deleted(const char *path, bool with_folder);

#endif
