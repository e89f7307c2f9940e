/* What the services in C share (service.h): an SQLite database of their own, a lock around it,
 * log lines, and the file MODE by which the console makes them misbehave. stock.c and payment.c
 * are the services. */

#include "service.h"

#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { TURN_MS = 100, SLOW_MS = 2000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char mode_path[4096];

static void find_mode(const char *path)
{
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;

    (void)snprintf(mode_path, sizeof mode_path, "%.*sMODE", folder, path);
}

sqlite3 *service_open(const char *path, const char *schema)
{
    sqlite3 *db = NULL;
    /* What was answered has to be on the disk: FULL. */
    static const char settings[] = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;";

    find_mode(path);
    if (sqlite3_open(path, &db) == SQLITE_OK && sqlite3_busy_timeout(db, 10000) == SQLITE_OK
        && sqlite3_exec(db, settings, NULL, NULL, NULL) == SQLITE_OK
        && sqlite3_exec(db, schema, NULL, NULL, NULL) == SQLITE_OK)
        return db;
    service_log("%s: %s", path, sqlite3_errmsg(db));
    sqlite3_close(db);
    return NULL;
}

void service_lock(void)
{
    pthread_mutex_lock(&lock);
}

void service_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

int service_sql(sqlite3 *db, const char *sql, const struct service_value *values, char *ret,
                size_t size)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

    if (rc != SQLITE_OK)
        return rc;
    for (const struct service_value *v = values; v && v->name; v++) {
        int at = sqlite3_bind_parameter_index(stmt, v->name);
        if (at > 0)
            sqlite3_bind_text(stmt, at, v->text, -1, SQLITE_STATIC);
    }
    rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW && ret) {
        const char *text = (const char *)sqlite3_column_text(stmt, 0);
        (void)snprintf(ret, size, "%s", text ? text : "");
    }
    sqlite3_finalize(stmt);
    return rc;
}

static bool mode_is(const char *wanted)
{
    char word[16] = "";
    FILE *f = fopen(mode_path, "re");

    if (!f)
        return false;
    bool is = fscanf(f, "%15s", word) == 1 && strcmp(word, wanted) == 0;
    (void)fclose(f);
    return is;
}

static void pause_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&t, NULL);
}

enum service_mode service_wait(bool (*is_heard)(void *arg), void *arg)
{
    while (mode_is("hanging")) {
        if (!is_heard(arg))
            return SERVICE_UNHEARD;
        pause_ms(TURN_MS);
    }
    if (mode_is("slow"))
        pause_ms(SLOW_MS);
    return mode_is("failing") ? SERVICE_FAILING : SERVICE_OK;
}

void service_log(const char *format, ...)
{
    char line[600];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line, sizeof line, format, args);
    va_end(args);
    for (char *c = line; *c; c++) /* what others say cannot make lines of its own */
        if (iscntrl((unsigned char)*c))
            *c = '?';
    (void)fprintf(stderr, "%s\n", line);
}
