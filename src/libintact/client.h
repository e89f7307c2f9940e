#ifndef LIBINTACT_CLIENT_H
#define LIBINTACT_CLIENT_H

/* A client: blocking calls (client.c), and calls driven by an event loop (client_start.c). */

#include "base/list.h"
#include "libintact/installation.h"
#include "libintact/reply.h"
#include "net/reactor.h"

/* Before its first call, a client of several servers asks each for its installation. So two
 * installations are detected while both are reachable, and no call can begin at one and be repeated
 * at another. */
struct introduction {
    struct probe *probes; /* one for each server; NULL: not running */
    size_t open;          /* probes that have not ended */
    bool is_over;         /* nothing is left to ask */
    struct buf conflict;  /* the error message for two installations */
};

struct intact_client {
    char *servers; /* as given; cut at the commas */
    const char *server, **all;
    size_t server_count, server_index; /* `server` is all[server_index]: the current one */
    char *token, *ca;
    struct installation installation;
    struct introduction introduction;
    /* Called once, when a server has answered as the client's installation; also for the first one
     * of a list whose servers belong to two. May be NULL. */
    void (*confirmed)(const struct intact_client *c, const char *server, const char *id);
    char *challenge;                 /* sent while there is no token; NULL: none */
    int door;                        /* replaces the server's address, see door.h; 0: none */
    intact_token_finder *find_token; /* NULL: not any more */
    intact_token_finder *finder;     /* the finder that found `token`; NULL: the token was given */
    void *arg;
    struct intact_reply last; /* of the blocking calls */
    const struct intact_reply
        *shown; /* the reply visible to the caller: `last`, or what find_token sees */
    struct buf path;
    intact_take *take; /* receives a successful body of the running blocking call, or NULL */
    void *take_arg;
    bool refused; /* by `take` */

    struct reactor reactor;
    int wake_fd;                  /* eventfd: a call was started */
    struct link waiting, started; /* of struct intact_call */
    size_t connections;
    size_t started_count, call_count;
    bool driven; /* by a call that has not returned */
    /* A token was found, so earlier connections are not reused: their peer may differ from the
     * process that listens now, for which the token was found. */
    bool fresh, stale; /* new connections for started calls; one kept for the blocking calls */
    struct intact_call *current; /* whose function is running */
    const char *key;             /* of the blocking call that is being made; NULL: none */
    bool may_repeat;             /* that call, although its path does not say so */
};

struct question {
    const char *method, *path, *type, *body;
    const char *key; /* Idempotency-Key; NULL: none */
    size_t size;
    int64_t wait_ms;
    bool again; /* another server can take it if this one hangs */
};

/* Reaches the server only through that door (door.h). Before any call. */
void client_set_door(struct intact_client *c, int door);

/* The challenge that a server must answer with a proof that it knows a token (net/proof.h) before
 * find_token is asked for it. Before any call. */
void client_set_challenge(struct intact_client *c, const char *challenge);

/* Sets all options for a call. Returns its headers, to be freed afterwards; NULL: out of memory. */
struct curl_slist *client_prepare(const struct intact_client *c, struct intact_reply *r,
                                  const struct question *q);

/* ---- several servers (client_servers.c) ---- */

bool client_open_servers(struct intact_client *c, const char *urls) MUST_USE;
void client_close_servers(struct intact_client *c);

/* ---- introductions (client_introduce.c) ---- */

bool introduction_is_needed(const struct intact_client *c);
/* Asks all servers through `multi`: those transfers have no CURLOPT_PRIVATE. False: out of
 * memory. */
bool introduction_begin(struct intact_client *c, CURLM *multi) MUST_USE;
void introduction_ended(struct intact_client *c, CURLM *multi, CURL *easy, CURLcode code);
void introduction_fini(struct intact_client *c, CURLM *multi); /* done, or abandoned */
/* The whole introduction, for a blocking call. */
void introduction_run(struct intact_client *c);

/* Whether the answer comes from another installation: then `story` says so, unless it does
 * already. */
bool client_is_foreign(struct intact_client *c, const char *server, const struct intact_reply *r,
                       CURLcode code, struct buf *story);
/* Turns a call that was not possible into a refused one, with that reason. */
enum intact_status client_refuse(struct intact_reply *r, struct slice story);

/* Whether the call may be repeated without a second effect: reads, and calls with a name or id. */
bool client_may_repeat(const char *method, const char *path);

/* A call to the server of that index has ended. True: another one, which is now the current one,
 * may succeed. `may_repeat` false: only if the call was not begun. */
bool client_moves_on(struct intact_client *c, size_t index, const struct intact_reply *r,
                     CURLcode code, bool may_repeat);

/* For a submission that could be repeated at another server: its body, with an id for each task
 * without one. False: nothing to change, `ret` is empty. */
bool client_give_ids(const struct intact_client *c, const struct question *q, struct buf *ret);

/* After a 401 without a token. True: there is one now. */
bool client_finds_token(struct intact_client *c, const struct intact_reply *r);
/* Another server is used now: drops a token that was found for the previous one. */
void client_forget_found(struct intact_client *c);

void client_add_escaped(struct buf *b, const char *text);
void client_add_wait(struct buf *path, int64_t wait_ms);

/* Names a call that was just started: sent again, it is the same. */
void client_call_set_key(struct intact_call *call, const char *key);

void client_start_fini(struct intact_client *c);

#endif
