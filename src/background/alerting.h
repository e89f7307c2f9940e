#ifndef BACKGROUND_ALERTING_H
#define BACKGROUND_ALERTING_H

/* What alerts.c, alert_queries.c and alert_asked.c share. */

#include "alerts/watch.h"
#include "background/alert_sinks.h"
#include "background/alerts.h"
#include "node/node.h"

/* An agent that tasks wait for. */
struct absent {
    char agent[132];
    uint64_t tasks;
    int64_t first_submitted_at;      /* of the one that comes next */
    bool busy;                       /* another node has work of it */
    const struct list_place *places; /* of the look */
    size_t place_count;
};

/* A condition that holds, as found in the store. */
struct found_condition {
    enum alert_condition condition;
    const char *label;
    char value[132], example[132], story[160];
    uint64_t count;
    int64_t at;
};

/* What a step asks a group of persons, of all tasks; the newest question, and the newest tasks. */
struct found_question {
    char workflow[132], step[132], group[132]; /* without a workflow: of all that had no room */
    char tasks[ALERT_EXAMPLES][132], story[160];
    size_t task_count;
    uint64_t count;
    int64_t first_at, latest_at, repeat_ms;
};

enum { ALERT_QUESTIONS = 2 * CONDITION_GROUPS };

struct found_questions {
    struct found_question list[ALERT_QUESTIONS];
    size_t count;
};

enum { ALERT_FOUND = 160 /* targets, sources, operations and schedules */ };

struct alerting {
    struct server *server;
    struct alerts_settings own_settings; /* without any */
    const struct alerts_settings *settings;
    struct alert_sinks *sinks;
    struct watch *watch;
    uv_timer_t timer;
    int64_t due_at; /* of the timer, by the server's clock */
    uv_check_t check;
    bool closed;
    struct link trials; /* of struct alert_trial */
    /* agents that are not there */
    struct store_job census_job;
    struct arena census_arena;
    struct census census;
    enum err census_err;
    int64_t census_now, census_at; /* at: steady */
    bool counting;
    struct absent absents[CENSUS_AGENTS], waitings[CENSUS_AGENTS];
    size_t absent_count, waiting_count; /* waitings: as of the last look */
    /* what was found in the store; fresh: by the queries in progress */
    struct found_condition found[ALERT_FOUND], fresh[ALERT_FOUND];
    size_t found_count, fresh_count;
    /* people who are asked: a page of tasks of the query in progress, and its pages so far */
    struct row_page asked;
    int64_t asked_before;
    int asked_pages;
    struct found_questions questions, fresh_questions;
};

/* alert_queries.c: asks the store, if it is time. */
void alerts_query_store(struct alerting *al);
/* The last query has ended. */
void alerts_query_over(struct alerting *al);

/* alert_asked.c: goes on with who is asked, page by page. */
void alerts_query_asked(struct alerting *al);

#endif
