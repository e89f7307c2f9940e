#ifndef LIBINTACT_CLIENT_H
#define LIBINTACT_CLIENT_H

/* A client: its blocking calls (client.c), and those that it drives (client_start.c). */

#include "base/list.h"
#include "libintact/installation.h"
#include "libintact/reply.h"
#include "net/reactor.h"

/* Before its first call a client of several servers asks each of them of which installation it is:
 * so those of two are noticed while both are there, and no call can have begun at one before it is
 * repeated at another. */
struct introduction {
    struct probe *probes; /* one for each server; NULL: none are under way */
    size_t open;          /* of them, that have not ended */
    bool is_over;         /* nothing is to be asked any more */
    struct buf conflict;  /* two installations: what to say */
};

struct intact_client {
    char *servers; /* as they were given; cut at the commas */
    const char *server, **all;
    size_t server_count, server_index; /* `server` is all[server_index]: the one that is called */
    char *token, *ca;
    struct installation installation;
    struct introduction introduction;
    /* Called once, when a server has answered as the installation that the client works with; also
     * for the first one of a list whose servers belong to two. NULL: nobody wants to know. */
    void (*confirmed)(const struct intact_client *c, const char *server, const char *id);
    char *challenge;                 /* for servers, as long as there is no token; NULL: none */
    int door;                        /* in place of the server's address, see door.h; 0: none */
    intact_token_finder *find_token; /* NULL: not any more */
    intact_token_finder *finder;     /* that has looked for `token`; NULL: it was given */
    void *arg;
    struct intact_reply last; /* of the blocking calls */
    const struct intact_reply
        *shown; /* what the caller is shown: `last`, or what find_token sees */
    struct buf path;
    intact_take *take; /* of the blocking call at work: gets the body of a good answer; or NULL */
    void *take_arg;
    bool refused; /* by `take` */

    struct reactor reactor;
    int wake_fd;                  /* eventfd: something was started */
    struct link waiting, started; /* of struct intact_call */
    size_t connections;
    size_t started_count, call_count;
    bool driven; /* by a call that has not returned */
    /* A token was found: connections from before are not used any more. Whoever has them need not
     * be who listens now, and it is the latter for whom the token was found. */
    bool fresh, stale; /* new ones for what is started; one that is kept for the blocking calls */
    struct intact_call *current; /* whose function is running */
};

struct question {
    const char *method, *path, *type, *body;
    size_t size;
    int64_t wait_ms;
    bool again; /* there is another server, which it may be repeated with if this one hangs */
};

/* The server is reached through that door (door.h), and by no address. Before any call. */
void client_set_door(struct intact_client *c, int door);

/* What a server has to answer with a proof that it knows a token (net/proof.h), before find_token
 * finds one for it. Before any call. */
void client_set_challenge(struct intact_client *c, const char *challenge);

/* Sets all options for a call. Its headers, to be freed when it is over; NULL: out of memory. */
struct curl_slist *client_prepare(const struct intact_client *c, struct intact_reply *r,
                                  const struct question *q);

/* ---- several servers (client_servers.c) ---- */

bool client_open_servers(struct intact_client *c, const char *urls) MUST_USE;
void client_close_servers(struct intact_client *c);

/* ---- of which installation they are (client_introduce.c) ---- */

bool introduction_is_needed(const struct intact_client *c);
/* Asks all servers, by `multi`: those transfers have no CURLOPT_PRIVATE. False: out of memory. */
bool introduction_begin(struct intact_client *c, CURLM *multi) MUST_USE;
void introduction_ended(struct intact_client *c, CURLM *multi, CURL *easy, CURLcode code);
void introduction_fini(struct intact_client *c, CURLM *multi); /* given up, or over */
/* All of it, for a call that blocks. */
void introduction_run(struct intact_client *c);

/* The answer to a call comes from another installation: `story` says so, unless it says already. */
bool client_is_foreign(struct intact_client *c, const char *server, const struct intact_reply *r,
                       CURLcode code, struct buf *story);
/* Whatever else became of a call that could not be done: it is refused, for that reason. */
enum intact_status client_refuse(struct intact_reply *r, struct slice story);

/* What may be done twice is done once by that: reading, and what has a name or an id. */
bool client_may_repeat(const char *method, const char *path);

/* A call to the server of that index has ended so. True: another one may do better; it is the one
 * in use now. `may_repeat` false: it must not have begun at the first. */
bool client_moves_on(struct intact_client *c, size_t index, const struct intact_reply *r,
                     CURLcode code, bool may_repeat);

/* If it submits tasks, and there are several servers to repeat it with: its body, with an id for
 * each that has none. False: it is good as it is, `ret` is empty. */
bool client_give_ids(const struct intact_client *c, const struct question *q, struct buf *ret);

/* A 401 came, to a call without a token. True: there is one now. */
bool client_finds_token(struct intact_client *c, const struct intact_reply *r);
/* Another server is called now: a token that was found was found for the one before. */
void client_forget_found(struct intact_client *c);

void client_add_escaped(struct buf *b, const char *text);
void client_add_wait(struct buf *path, int64_t wait_ms);

void client_start_fini(struct intact_client *c);

#endif
