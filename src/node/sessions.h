#ifndef NODE_SESSIONS_H
#define NODE_SESSIONS_H

/*
 * Sessions of the console in memory: a browser that has signed in with a token sends a secret of
 * its own, in a cookie that scripts cannot read. The server knows only the secret's hash. They are
 * loaded with the tokens (background/token_list.h). What a session may do is what its token may.
 *
 * Event loop only.
 */

#include "http/http.h"
#include "store/store.h"

struct access;
struct bearer;
struct sessions;

enum { SESSIONS_MAX = 10000 }; /* with the codes */

#define SESSION_MS INT64_C(43200000) /* 12 h */
#define CODE_MS    INT64_C(60000)

struct sessions *sessions_new(void);
void sessions_free(struct sessions *ss); /* NULL is fine */

/* These, and no others, are there from now on. */
void sessions_load(struct sessions *ss, const struct session_row *rows, size_t count);

/* All of them and all codes, the oldest first; also what has expired. Valid until the next load. */
const struct session_row *sessions_list(const struct sessions *ss, size_t *ret_count);
/* By the hash of its secret, or of the code. NULL: none. */
const struct session_row *sessions_find(const struct sessions *ss,
                                        const unsigned char hash[TOKEN_HASH_SIZE]);

/* The token that this one stands for at `now`. NULL: it has ended, and *ret_why has the reason. */
const struct bearer *session_bearer(const struct session_row *row, struct access *a, int64_t now,
                                    const char **ret_why);

/* How a browser reaches the server: by TLS, without, or perhaps, as a proxy in front of it knows.
 * With TLS, a cookie is one that nobody else can have set (__Host-). */
enum cookie_kind { COOKIE_PLAIN, COOKIE_SECURE, COOKIE_EITHER };

/* The secret in the cookie. NONE: there is none. `ret_twice`: there is more than one. */
struct slice session_cookie(const struct http_request *r, enum cookie_kind kind, bool *ret_twice);

/* The header line that gives a browser the cookie; `secret` NULL: takes it away. */
void session_cookie_write(struct buf *b, bool secure, const char *secret, int64_t lifetime_ms);

#endif
