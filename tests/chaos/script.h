#ifndef TESTS_CHAOS_SCRIPT_H
#define TESTS_CHAOS_SCRIPT_H

/*
 * A script of every operation of the SQLite store, and the state required afterwards.
 *
 * The model knows nothing of the store's code. For each task it has the revision and the mark in
 * its document after the last acknowledged batch, and the batches of unknown outcome, of which one
 * is stored as a whole or none is. Each batch also inserts a task of its own, by which it is found.
 * A batch that was found once must stay; a batch that was not found may appear at a later start as
 * long as nothing has been acknowledged since.
 */

#include "store/sqlite/sqlite.h"

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
    struct model there; /* if it is found */
};

struct script {
    char dir[100];
    struct store *store; /* NULL: failed to open, or closed */
    struct arena arena;
    struct error error;
    struct model sure;
    struct doubt doubts[SCRIPT_DOUBTS];
    size_t doubt_count;
    bool unread; /* resolve the doubts before anything else */
    unsigned batches;
    int64_t workflow_version; /* acknowledged */
    bool workflow_in_doubt;
    uint64_t boot;
    bool may_be_refused; /* a folder in which no start ever succeeded */
    bool has_secret;
    unsigned char secret[32];
    unsigned failures;          /* operations that did not return ERR_OK */
    void (*between)(void *arg); /* called after each operation; may be NULL */
    void *arg;
};

void script_init(struct script *s, const char *dir);
void script_fini(struct script *s);

/* Opens, runs every operation, closes. Fails the test if an operation breaks its contract; an error
 * alone does not break it. */
void script_run(struct script *s);

/* Without faults: opens the store and checks that exactly the required state is there. */
void script_verify(struct script *s);

/* Creates a folder, in memory if possible: syncs are free there, and the disk is simulated
 * anyway. */
bool script_folder(char *ret, size_t size);
void script_remove(const char *dir); /* with its contents */

#endif
