#ifndef SERVER_ALERTING_H
#define SERVER_ALERTING_H

/* What alerts.c and alerts_http.c share. */

#include "alerts/watch.h"
#include "base/log.h"
#include "server/alert_sinks.h"
#include "server/internal.h"

/* An agent that tasks wait for. */
struct absent {
    char agent[132];
    uint64_t tasks;
    int64_t first_submitted_at;      /* of the one that comes next */
    bool busy;                       /* another node had work in its hands */
    const struct list_place *places; /* of the look */
    size_t place_count;
};

/* What others of this node said that holds. */
struct said {
    enum alert_condition condition;
    const char *label;
    char value[132], example[132], story[160];
    uint64_t count;
    int64_t at;
};

enum { ALERT_FOUND = 110 /* targets, sources and operations */ };

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
    struct link tests; /* of struct test in alerts_http.c */
    /* agents that are not there */
    struct store_job census_job;
    struct arena census_arena;
    struct census census;
    enum err census_err;
    int64_t census_now, census_at; /* at: steady */
    bool counting;
    struct absent absents[CENSUS_AGENTS], waitings[CENSUS_AGENTS];
    size_t absent_count, waiting_count; /* waitings: as of the last look */
    struct said said[ALERT_SAID];
    size_t said_count;
    /* what the store was found to have; fresh: of the look that goes on */
    struct said found[ALERT_FOUND], fresh[ALERT_FOUND];
    size_t found_count, fresh_count;
};

/* alerts_http.c: what became of one sink of a test; all tests end unanswered. */
void alerts_tested(void *test, size_t sink, bool took, const char *story);
void alerts_tests_end(struct alerting *al);

/* alert_look.c: asks the store, if it is time. */
void alerting_look(struct alerting *al);

#endif
