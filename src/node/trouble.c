/*
 * Remembers whether the store works. Scheduler and supervisor report failures here; readiness,
 * metrics, alerts and answers ask. Logs the beginning and the end of each trouble.
 */

#include "node/trouble.h"

#include "base/log.h"
#include "node/node.h"
#include "node/store_thread.h"

enum { STORE_SLOW_MS = 5000 /* a job that takes longer counts as trouble */ };

enum err server_trouble(const struct server *sv, char *ret_story, size_t story_size)
{
    int64_t since = store_thread_busy_since_ms(sv->thread);
    int64_t busy = since ? (int64_t)(uv_hrtime() / 1000000) - since : 0;

    if (sv->trouble.err != ERR_OK) {
        (void)snprintf(ret_story, story_size, "%s", sv->trouble.text);
        return sv->trouble.err;
    }
    if (busy < STORE_SLOW_MS)
        return ERR_OK;
    (void)snprintf(ret_story, story_size, "the store has not answered for %" PRId64 " s",
                   busy / 1000);
    return ERR_BUSY;
}

void store_trouble(void *arg, const struct error *e)
{
    struct server *sv = arg;

    /* the supervisor and the scheduler may both have met it */
    bool is_known = e && sv->trouble.err == e->code
                    && strncmp(sv->trouble.text, e->text, sizeof sv->trouble.text - 1) == 0;

    sv->trouble.scans_fail = false;
    if (is_known)
        return;
    sv->metrics.troubles += e && sv->trouble.err == ERR_OK;
    if (sv->trouble.err == ERR_OK)
        sv->trouble.since = server_now(sv);
    sv->trouble.err = e ? e->code : ERR_OK;
    (void)snprintf(sv->trouble.text, sizeof sv->trouble.text, "%s", e ? e->text : "");
    if (e)
        log_line(LOG_ERROR, "event=store_trouble reason=\"%s\"", e->text);
    else
        log_line(LOG_INFO, "event=store_works_again");
}

static uint64_t scans(const struct server *sv)
{
    struct supervisor_stats st;

    supervisor_stats(sv->supervisor, &st);
    return st.scans;
}

/* While nothing is written, only the supervisor detects that the store fails. */
void store_scan_failed(void *arg, const struct error *e)
{
    struct server *sv = arg;

    if (sv->trouble.err != ERR_OK)
        return;
    if (e->code == ERR_CONFLICT) { /* another supervisor leads */
        log_line(LOG_WARN, "event=scan_failed reason=\"%s\"", e->text);
        return;
    }
    store_trouble(sv, e);
    sv->trouble.scans_fail = true;
    sv->trouble.scans_until = scans(sv);
}

void store_scan_check(struct server *sv)
{
    if (sv->trouble.scans_fail && scans(sv) > sv->trouble.scans_until)
        store_trouble(sv, NULL);
}
