#ifndef BACKGROUND_ALERTING_H
#define BACKGROUND_ALERTING_H

/* What alerts.c and alert_queries.c share. */

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

/* A group of persons who are asked something. */
struct found_question {
    char workflow[132], task[132], group[68], story[160];
    int64_t at, repeat_ms;
};

enum { ALERT_QUESTIONS = CONDITION_GROUPS };

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
    struct row_page asked; /* tasks of which somebody is asked, as of the query in progress */
    struct found_question questions[ALERT_QUESTIONS];
    size_t question_count;
};

/* alert_queries.c: asks the store, if it is time. */
void alerts_query_store(struct alerting *al);

#endif
