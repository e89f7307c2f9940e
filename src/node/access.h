#ifndef NODE_ACCESS_H
#define NODE_ACCESS_H

/*
 * Tokens, and what they may do. A token is "intact_" and 43 characters of base64url (32 random
 * bytes); the server knows only its SHA-256. A check takes one hash and one lookup in a map, which
 * is loaded at the start and after every change of a token, when the change is durable.
 *
 * Hashes are looked up like any key. A client that measures the time learns something about a hash
 * that it cannot choose, and nothing about a token.
 *
 * Event loop only.
 */

#include "base/buf.h"
#include "base/map.h"
#include "store/store.h"

enum {
    ACCESS_TOKEN_SIZE = 50,  /* characters of a token's text */
    ACCESS_SECRET_SIZE = 43, /* characters of a secret's text */
    ACCESS_ROLES_MAX = 64,   /* of one token */
    ACCESS_NAME_MAX = 64,    /* bytes of its name, of its person and of each group */
    ACCESS_GROUPS_MAX = 64,  /* of one token */
};

/* What a token may do, and (several of them) what a route asks for: any of these will do. The role
 * "operate" is SUBMIT, READ, DEFINE and REPAIR; "repair" is REPAIR and READ. */
enum role {
    ROLE_ANYBODY = 1, /* of routes: no token is needed */
    ROLE_BEARER = 2,  /* of routes: any good token will do */
    ROLE_SUBMIT = 4,  /* to every workflow; and what concerns the tasks of this token */
    ROLE_READ = 8,    /* all tasks, and all else */
    ROLE_DEFINE = 16,
    ROLE_REPAIR = 32,
    ROLE_AGENT = 64,      /* of the agent in the route's path */
    ROLE_ADMIN = 128,     /* may all */
    ROLE_SUBMIT_TO = 256, /* SUBMIT, to the workflows of "submit:NAME" alone */
    ROLE_READ_SOME = 512, /* the tasks of the workflows of "read:NAME", and nothing else */
    ROLE_APPROVE = 1024,  /* what a group of the token's person is asked */
    ROLE_SIGNAL = 2048,   /* signals to many: those of "signal:WORKFLOW/NAME" alone */
    ROLE_LINK = 4096,     /* makes links with which any person decides */
};

enum quota_kind {
    QUOTA_CALLS,
    QUOTA_SUBMISSIONS,
    QUOTA_BYTES,
    QUOTA_WAITING,
    QUOTA_CPU, /* milliseconds a second; used: microseconds */
    QUOTA_READINGS,
    QUOTA_OPEN_TASKS, /* that go on, of those that it submitted */
    QUOTA_KINDS
};

/* What a token may use, of each kind; 0: what the default is (quota.h). */
struct quota_limits {
    uint64_t max[QUOTA_KINDS];
};

/* A token in use. */
struct bearer {
    struct slice name, roles_json, groups_json;
    struct slice person;  /* whose it is: the token's name if no other was given. NONE: nobody's */
    struct slice *groups; /* of the person */
    size_t group_count;
    unsigned roles;       /* enum role; ROLE_AGENT: of every agent */
    struct slice *agents; /* of "agent:NAME" */
    size_t agent_count;
    struct slice *submits, *reads; /* of "submit:NAME", "read:NAME"; see name_is_like */
    size_t submit_count, read_count;
    struct slice *signals; /* of "signal:WORKFLOW/NAME": "WORKFLOW/NAME" */
    size_t signal_count;
    bool inner; /* the server's own, or there are no tokens: it owns nothing, and sees all tasks */
    int64_t created_at, expires_at; /* expires_at 0: never */
    unsigned char hash[TOKEN_HASH_SIZE];
    unsigned char previous_hash[TOKEN_HASH_SIZE]; /* of the text before, good ... */
    int64_t previous_until;                       /* ... until then; 0: there is none */
    struct quota_limits limits;
};

struct access;

/* `file`: where the admin token is, as answers to clients have it; NULL: no tokens are required. */
struct access *access_new(const char *file);
void access_free(struct access *a);
bool access_is_open(const struct access *a);
/* Without a token everything is allowed, but a known token stands for its bearer. */
void access_honour(struct access *a);
const char *access_file(const struct access *a);

/* These tokens, and no others, are good from now on. */
void access_load(struct access *a, const struct token_row *rows, size_t count);

/* One more (instead of one of that name), one less; until the next access_load. */
void access_add(struct access *a, const struct token_row *row);
void access_remove(struct access *a, struct slice name);

/* All of them, by name (added ones last). Valid until the next change. */
const struct bearer *access_list(const struct access *a, size_t *ret_count);

/* 32 random bytes in base64url, with a NUL; and the hash of such a text. */
enum err secret_make(char ret[ACCESS_SECRET_SIZE + 1], struct error *e) MUST_USE;
bool secret_hash(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE]) MUST_USE;

/* A new token's text (with its NUL), and the hash of one. */
enum err access_make(char ret[ACCESS_TOKEN_SIZE + 1], struct error *e) MUST_USE;
bool access_hash(struct access *a, struct slice text, unsigned char ret[TOKEN_HASH_SIZE]) MUST_USE;

/* The token in this Authorization header, at `now`. NULL: no good one, and *ret_why tells more. If
 * no tokens are required, it is one called "open" that may do everything. */
const struct bearer *access_who(struct access *a, struct slice authorization, int64_t now,
                                const char **ret_why);

/* The token with this hash, if it is good at `now`; otherwise as above. */
const struct bearer *access_by_hash(struct access *a, const unsigned char hash[TOKEN_HASH_SIZE],
                                    int64_t now, const char **ret_why);
/* The hash of the text in this header, which access_who accepts. */
bool access_hash_of(struct access *a, struct slice authorization,
                    unsigned char ret[TOKEN_HASH_SIZE]) MUST_USE;

/* Is that the text of a token, also of one that has expired or was rotated? */
bool access_knows(struct access *a, struct slice text);

/* Could this be a token that another node created and this one does not know yet? */
bool access_may_be_new(struct access *a, struct slice authorization);

/* Those of the server's child processes: one is every agent, the other one submits tasks, too. */
extern const struct bearer access_helper, access_amqp;

/* The groups of a person who may decide on approvals at `now`: those of all good tokens of that
 * person with the role. NULL: there is no such token. In `a`, as the list. */
const struct slice *access_groups_of(const struct access *ac, struct slice person, int64_t now,
                                     struct arena *a, size_t *ret_count);

/* Can this be a person, or a group? A person may be an e-mail address. */
bool access_is_person(struct slice s);
bool access_is_group(struct slice s);

/* May this token use a route that requires `may`? `agent`: the one in its path, or NONE. */
bool access_may(const struct bearer *b, unsigned may, struct slice agent);

/* May it send signals of that name to many tasks of that workflow? NULL: no. */
bool bearer_signals(const struct bearer *b, struct slice workflow, struct slice name);

/* "submit", "agent:payment", ...: is it a role, and which? *ret_name: what stands behind the colon:
 * the agent, "*" for all, the workflows, or the workflow and signal. */
bool role_parse(struct slice text, unsigned *ret, struct slice *ret_name) MUST_USE;
void role_write(struct buf *b, unsigned may, struct slice agent); /* "submit, read or admin" */

/*
 * What a token may do with tasks, kept for as long as its request takes: tokens come and go
 * meanwhile. A task belongs to the token that submitted it, by the token's name. NULL stands for
 * one that may do all, and to which no task belongs.
 */
struct grant {
    struct slice owner;
    struct slice person; /* whose token it is */
    bool submits_all, reads_all;
    bool repairs;                        /* may cancel the tasks of others */
    bool defines;                        /* may look at all definitions */
    const struct slice *submits, *reads; /* names of workflows, see name_is_like */
    size_t submit_count, read_count;
};

/* In `a`; b may be NULL: as for one of the server's own. */
const struct grant *grant_new(const struct bearer *b, struct arena *a);
const struct grant *grant_copy(const struct grant *g, struct arena *a);
bool grant_submits(const struct grant *g, struct slice workflow);
bool grant_reads(const struct grant *g, struct slice workflow); /* all tasks of it */
bool grant_reads_definition(const struct grant *g,
                            struct slice workflow); /* may look at its definition */
/* May it see that task? */
bool grant_sees(const struct grant *g, const struct task_row *row);

#endif
