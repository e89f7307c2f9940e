#ifndef BACKGROUND_RETIRE_H
#define BACKGROUND_RETIRE_H

/*
 * Deletes ended tasks by rule, part by part, between the store's other work. Event loop only.
 *
 *     floors -> look -> (read -> archive -> delete, some at a time) -> part_done -> look ...
 *
 * The last looks are for the children of what went; see store/rows/retire.h.
 *
 * "Floors" is done once, for rules that keep the newest: how far down they reach. What is to be
 * archived is read as a whole, made into lines, and on the archive's disk before it is deleted; if
 * it cannot be written, nothing is deleted and the part ends with the error. A record that cannot
 * be read is not deleted. A task with items is dealt with alone: its items are read and written
 * page by page, before its record (retire_items.h). A part ends when all tasks found in one look
 * are deleted or left.
 */

#include <uv.h>

#include "background/retention.h"
#include "background/retire_items.h"
#include "node/store_thread.h"

struct server;

bool retire_archives(const struct server *sv); /* it keeps an archive */

/* So many of one workflow went, or would go, in one state. */
struct retired_count {
    struct slice workflow;
    enum task_state state;
    uint64_t tasks;
};

struct retirer {
    struct server *server;
    /* set by the caller, before retirer_begin: */
    bool dry;
    const struct audit *audit; /* goes with the first deletion; may be NULL */
    void (*part_done)(struct retirer *r);
    /* what came of it, since the beginning: */
    struct retired_count *counts;
    size_t count_count;
    uint64_t tasks, archived, unreadable;
    bool more; /* there is another part */
    bool archive_failed;
    enum err err;
    struct error error;
    int64_t took_us; /* of the store, for the part */
    int64_t after_seq;
    /* its own: */
    struct store_job job;
    uv_work_t work;
    struct arena rules_arena, arena, names_arena; /* of the rules, a part, the counts */
    struct retire_rule *rules;
    struct retire_need {
        bool archive;
        int64_t keep_last, counted; /* the floor is looked for while counted < keep_last */
    } * needs;
    size_t rule_count;
    size_t floor;       /* the rule whose floor is looked for */
    int64_t before_seq; /* ... from there down */
    int64_t written_at;
    struct row_page page;
    struct retire_look look;
    struct retire delete;
    struct retired *batch; /* what is being deleted */
    size_t batch_count;
    size_t at, end; /* of what was found: [at, end) is being dealt with */
    struct retire_record *records;
    size_t room;     /* for so many in both */
    bool with_items; /* the record is that of one task with items */
    struct retire_items items;
    bool holds_archive; /* no other part writes there */
    struct buf lines;
};

/* Takes those rules that are for the workflow (NONE: any; then none keeps the newest), which stay
 * the caller's, as of the moment `now`. It continues after r->after_seq. Then retirer_part. */
void retirer_begin(struct retirer *r, const struct retention_rule *rules, size_t count,
                   struct slice workflow, int64_t now);
/* One part; r->part_done is called, later. While it is at work sv->load.exchanges counts it. */
void retirer_part(struct retirer *r);
void retirer_end(struct retirer *r); /* frees what it holds; not while a part is at work */

#endif
