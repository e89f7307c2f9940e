#ifndef TESTS_CHAOS_SCRIPT_H
#define TESTS_CHAOS_SCRIPT_H

/*
 * A script of every operation of the store on SQLite, and what must be there afterwards.
 *
 * The model knows nothing of the store's code. It holds of each task the revision and the mark in
 * its document, as the last batch that was acknowledged left them, and the batches whose outcome is
 * unknown: one of them is there as a whole, or none. Each batch also inserts a task of its own, by
 * which it is found. What was found once must stay; what was not found may come up at a later start
 * as long as nothing was acknowledged since.
 */

#include "store/sqlite.h"

enum { SCRIPT_TASKS = 64, SCRIPT_DOUBTS = 8 };

struct fact {
    char id[16];
    uint64_t revision; /* 0: there is no such task */
    char mark[16];
    bool claimed;
};

struct model {
    struct fact facts[SCRIPT_TASKS];
    size_t count;
};

/* A batch of unknown outcome. */
struct doubt {
    char id[16];        /* the task by which it is found */
    struct model there; /* if it is there */
};

struct script {
    char dir[100];
    struct store *store; /* NULL: it did not open, or was closed */
    struct arena arena;
    struct error error;
    struct model sure;
    struct doubt doubts[SCRIPT_DOUBTS];
    size_t doubt_count;
    bool unread; /* the doubts must be looked at before anything else */
    unsigned batches;
    int64_t workflow_version; /* acknowledged */
    bool workflow_in_doubt;
    uint64_t boot;
    bool may_be_refused; /* a folder in which no start ever succeeded */
    bool has_secret;
    unsigned char secret[32];
    unsigned failures;          /* operations that did not end ERR_OK */
    void (*between)(void *arg); /* called after each operation; may be NULL */
    void *arg;
};

void script_init(struct script *s, const char *dir);
void script_fini(struct script *s);

/* Opens, does everything, closes. Fails the test if an operation breaks its promise; that one fails
 * is no breach. */
void script_run(struct script *s);

/* Without faults: opens the store and looks whether all is there that must be, and nothing else. */
void script_verify(struct script *s);

/* A new folder, in memory if that can be: syncs cost nothing there, and the disk is ours anyway. */
bool script_folder(char *ret, size_t size);
void script_remove(const char *dir); /* with all that is in it */

#endif
