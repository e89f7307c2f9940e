/* The installation of a client or an agent: learns it from the first answer unless it was set,
 * and compares those of later answers with it (installation.h). Its state may be remembered
 * beyond the process by cli/client/remembered.c. client_introduce.c and meet.c ask several
 * servers. */

#include "libintact/installation.h"

#include <stdlib.h>

static void set_id(struct installation *i, const char *id)
{
    memcpy(i->id, id, UUID_SIZE);
    (void)snprintf(i->line, sizeof i->line, INSTALLATION_HEADER ": %s", id); /* always fits */
}

void installation_state(struct installation *i, const char *id)
{
    const char *text = id && id[0] ? id : getenv(INSTALLATION_ENV);
    char found[UUID_SIZE];

    installation_fini(i);
    *i = (struct installation){0};
    if (!text || !text[0] || strcmp(text, "any") == 0)
        return;
    if (uuid_read(slice_of(text), found))
        set_id(i, found);
    else
        (void)snprintf(
            i->mistake, sizeof i->mistake,
            "the installation is \"%.40s\", expected an installation id (a UUID) or \"any\"", text);
}

void installation_fini(struct installation *i)
{
    free(i->server);
    i->server = NULL;
}

void installation_learn(struct installation *i, const char *server, const char *id)
{
    i->server = strdup(server);
    if (!i->server)
        abort();
    set_id(i, id);
}

bool installation_heard(CURL *easy, char ret[UUID_SIZE])
{
    struct curl_header *h = NULL;

    return curl_easy_header(easy, INSTALLATION_HEADER, 0, CURLH_HEADER, -1, &h) == CURLHE_OK
           && uuid_read(slice_of(h->value), ret);
}

bool installation_is_ours(struct installation *i, const char *server, CURL *easy,
                          char ret[UUID_SIZE])
{
    if (!installation_heard(easy, ret))
        return true;
    if (!i->id[0])
        installation_learn(i, server, ret);
    bool is_ours = strcmp(i->id, ret) == 0;
    i->is_confirmed = i->is_confirmed || is_ours;
    return is_ours;
}

void installation_explain(struct buf *b, const struct installation *i, const char *server,
                          const char *other)
{
    buf_fmt(b, "%s belongs to the installation %s", server, other);
    if (!i->server)
        buf_fmt(b, ", but %s was expected (--installation or INTACT_INSTALLATION)", i->id);
    else if (strcmp(i->server, server) == 0)
        buf_fmt(b, " now, but belonged to %s before; if it was replaced intentionally, %s", i->id,
                i->is_remembered ? "pass --installation once" : "restart this program");
    else
        buf_fmt(b,
                ", but %s, which answered before, belongs to %s; name servers of one installation "
                "only, or select one (--installation or INTACT_INSTALLATION)",
                i->server, i->id);
}

void installation_remember(struct installation *i, const char *id, const char *server)
{
    installation_learn(i, server, id);
    i->is_remembered = true;
}
