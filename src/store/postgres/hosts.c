/*
 * Where the database is: the given connection string, completed by service file, environment and
 * defaults as libpq does it, and its list of hosts. Hosts are tried one by one in connect.c and not
 * by libpq, which would spend all the time on a silent host.
 *
 * libpq quotes from a connection string that it cannot parse, perhaps with the password, so these
 * messages are our own.
 */
#include "store/postgres/body.h"

#include <stdlib.h>

/* A password with one of "@/?#" in it has to be written with %40 and so on: otherwise a part of it
 * is taken for something else, and shown. */
static bool url_is_clear(const char *text)
{
    const char *start = strstr(text, "://");
    const char *query = NULL;
    const char *at = NULL;

    if (!start)
        return true;
    query = start + strcspn(start, "?");
    at = memchr(start, '@', (size_t)(query - start));
    if (strchr(query, '@') || strchr(start, '#'))
        return false;
    return !at
           || (!memchr(at + 1, '@', (size_t)(query - at - 1))
               && !memchr(start + 3, '/', (size_t)(at - start - 3)));
}

static bool is_url(const char *text)
{
    return strncmp(text, "postgres://", 11) == 0 || strncmp(text, "postgresql://", 13) == 0;
}

static const char *option_of(const PQconninfoOption *o, const char *name)
{
    for (; o && o->keyword; o++)
        if (strcmp(o->keyword, name) == 0)
            return o->val;
    return NULL;
}

bool postgres_conninfo_has_password(const char *conninfo)
{
    PQconninfoOption *o = PQconninfoParse(conninfo, NULL);
    const char *password = option_of(o, "password");
    bool has = password && *password;

    PQconninfoFree(o);
    return has;
}

static enum err check_text(const char *conninfo, struct error *e)
{
    char *why = NULL;
    PQconninfoOption *o = NULL;

    if (is_url(conninfo) && !url_is_clear(conninfo))
        return error_set(e, ERR_INVALID,
                         "the URL of the database has '@', '/', '?' or '#' where none can be: in a "
                         "password they are written %%40, %%2F, %%3F and %%23");
    o = PQconninfoParse(conninfo, &why);
    PQfreemem(why);
    if (!o)
        return error_set(e, ERR_INVALID,
                         "how to reach the database is not understood, expected "
                         "postgres://USER@HOST:PORT/DB?OPTION=VALUE or words such as host=HOST "
                         "dbname=DB user=USER with options that libpq knows");
    PQconninfoFree(o);
    return ERR_OK;
}

static bool is_number_list(const char *text)
{
    return !text || strspn(text, "0123456789,") == strlen(text);
}

static enum err check_options(const struct postgres_store *s, struct error *e)
{
    static const char *const writable[] = {"any", "read-write", "primary"};
    const char *target = option_of(s->options, "target_session_attrs");

    if (!is_number_list(option_of(s->options, "port")))
        return error_set(e, ERR_INVALID, "a port of the database is no number");
    for (size_t i = 0; target && i < COUNT_OF(writable); i++)
        if (strcmp(target, writable[i]) == 0)
            return ERR_OK;
    if (!target)
        return ERR_OK;
    return error_set(e, ERR_INVALID,
                     "target_session_attrs is \"%s\", expected read-write or primary: a node "
                     "writes",
                     target);
}

/* The part of a list with commas; NULL for an empty one. To be freed. */
static char *part_of(const char *list, size_t n)
{
    for (; list && n > 0; n--) {
        list += strcspn(list, ",");
        list = *list ? list + 1 : NULL;
    }
    size_t len = list ? strcspn(list, ",") : 0;
    char *part = len ? strndup(list, len) : NULL;

    ASSERT(part || len == 0);
    return part;
}

static size_t parts_of(const char *list)
{
    size_t count = 1;

    for (; list && *list; list++)
        count += *list == ',';
    return count;
}

static enum err split(struct postgres_store *s, struct error *e)
{
    const char *host = option_of(s->options, "host");
    const char *address = option_of(s->options, "hostaddr");
    const char *port = option_of(s->options, "port");
    size_t count = parts_of(address && *address ? address : host);

    if (count > PG_HOSTS_MAX)
        return error_set(e, ERR_INVALID, "the database has %zu hosts, expected at most %d", count,
                         PG_HOSTS_MAX);
    if ((parts_of(port) != 1 && parts_of(port) != count)
        || (host && address && *host && *address && parts_of(host) != count))
        return error_set(e, ERR_INVALID,
                         "the database has %zu hosts and %zu ports, expected one port or as many",
                         count, parts_of(port));
    for (size_t i = 0; i < count; i++)
        s->hosts[i] = (struct pg_host){.host = part_of(host, i),
                                       .address = part_of(address, i),
                                       .port = part_of(port, parts_of(port) == 1 ? 0 : i)};
    s->host_count = count;
    return ERR_OK;
}

enum err pg_hosts_read(struct postgres_store *s, const char *conninfo, struct error *e)
{
    const char *const names[] = {"dbname", NULL};
    const char *const values[] = {conninfo, NULL};
    enum err err = check_text(conninfo, e);

    if (err != ERR_OK)
        return err;
    /* Nothing else reads service files and the environment. It is not waited for until it
     * connects. */
    PGconn *c = PQconnectStartParams(names, values, 1);
    s->options = c ? PQconninfo(c) : NULL;
    if (!option_of(s->options, "user")) {
        const char *why = c ? PQerrorMessage(c) : "there is no memory";
        error_set(e, ERR_INVALID, "cannot tell where the database is: %.*s",
                  (int)strcspn(why, "\n"), why);
        PQfinish(c);
        return ERR_INVALID;
    }
    PQfinish(c);
    err = check_options(s, e);
    return err == ERR_OK ? split(s, e) : err;
}

void pg_hosts_free(struct postgres_store *s)
{
    for (size_t i = 0; i < s->host_count; i++) {
        free(s->hosts[i].host);
        free(s->hosts[i].address);
        free(s->hosts[i].port);
    }
    PQconninfoFree(s->options);
}
