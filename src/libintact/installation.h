#ifndef LIBINTACT_INSTALLATION_H
#define LIBINTACT_INSTALLATION_H

/*
 * Which installation a client or an agent works with: the one that was stated, else the one that
 * answered first. Each answer of a server says of which it is; each request says for which it is
 * meant, so that a server of another one refuses it (421) before it does anything.
 */

#include <curl/curl.h>

#include "base/buf.h"
#include "base/uuid.h"

#define INSTALLATION_HEADER "Intact-Installation"
#define INSTALLATION_ENV    "INTACT_INSTALLATION"

struct installation {
    char id[UUID_SIZE]; /* "": not known yet */
    char line[64];      /* of the requests, once it is known */
    char *server;       /* that answered first; NULL: the id was stated */
    bool is_confirmed;  /* a server has answered as it */
    bool is_remembered; /* by the command line, from an answer to an earlier one */
    char mistake[120];  /* what was stated is no id; "": nothing is wrong */
};

/* `id`, or the environment's INTACT_INSTALLATION. Without either, and for "any", the first answer
 * counts. Forgets what was known before. */
void installation_state(struct installation *i, const char *id);
void installation_learn(struct installation *i, const char *server, const char *id);
/* The same, of what an earlier process was answered. */
void installation_remember(struct installation *i, const char *id, const char *server);
void installation_fini(struct installation *i);

/* Whose answer it is; false: it does not say. */
bool installation_heard(CURL *easy, char ret[UUID_SIZE]);

/* False: the answer in `easy`, of `server`, comes from another installation, whose id is in `ret`.
 * An answer that does not say (an older server, a proxy) is taken for one of ours. */
bool installation_is_ours(struct installation *i, const char *server, CURL *easy,
                          char ret[UUID_SIZE]);

/* What is wrong, and what to do about it: `server` answered as `other`. */
void installation_explain(struct buf *b, const struct installation *i, const char *server,
                          const char *other);

#endif
