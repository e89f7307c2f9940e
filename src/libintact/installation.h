#ifndef LIBINTACT_INSTALLATION_H
#define LIBINTACT_INSTALLATION_H

/*
 * The installation of a client or an agent: the one that was set, otherwise that of the first
 * answer. Each answer of a server names its installation. Each request names the intended one, so
 * that a server of another installation refuses it (421) before it does anything.
 */

#include <curl/curl.h>

#include "base/buf.h"
#include "base/uuid.h"

#define INSTALLATION_HEADER "Intact-Installation"
#define INSTALLATION_ENV    "INTACT_INSTALLATION"

struct installation {
    char id[UUID_SIZE]; /* "": unknown so far */
    char line[64];      /* the header line, once it is known */
    char *server;       /* the first to answer; NULL: the id was set */
    bool is_confirmed;  /* a server has answered with this id */
    bool is_remembered; /* by the command line, from an earlier answer */
    char mistake[120];  /* the id that was set is invalid; "": it is not */
};

/* `id`, or INTACT_INSTALLATION of the environment. Without either, and for "any", the first answer
 * decides. Forgets the previous one. */
void installation_state(struct installation *i, const char *id);
void installation_learn(struct installation *i, const char *server, const char *id);
/* The same, for an answer to an earlier process. */
void installation_remember(struct installation *i, const char *id, const char *server);
void installation_fini(struct installation *i);

/* The installation of an answer; false: it names none. */
bool installation_heard(CURL *easy, char ret[UUID_SIZE]);

/* False: the answer in `easy`, of `server`, comes from another installation, whose id is in `ret`.
 * An answer without an id (an older server, a proxy) is accepted. */
bool installation_is_ours(struct installation *i, const char *server, CURL *easy,
                          char ret[UUID_SIZE]);

/* The error and its remedy: `server` answered as `other`. */
void installation_explain(struct buf *b, const struct installation *i, const char *server,
                          const char *other);

#endif
