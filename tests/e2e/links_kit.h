#ifndef E2E_LINKS_KIT_H
#define E2E_LINKS_KIT_H

/*
 * What the tests of links share, with which people decide in a browser: a server with some
 * workflows whose step "allow" asks finance, persons, and a client that has nothing but a link.
 */

#include "kit.h"

#define FORM    "application/x-www-form-urlencoded"
#define APPROVE "decision=approve"
#define REJECT  "decision=reject&comment=no"
#define HOST    "Host: localhost:7420\r\n"

extern struct node node, ann, bob, zoe, mailer; /* bob is bob@example.org; zoe is not asked */
extern int links_ids;                           /* of the newest task */

int links_start(void **state);
void links_begin(void); /* the server again, after a kill */

/* A new task that asks; its id is good until the next one. */
const char *asks_as(const struct node *n, const char *workflow, const char *input);
const char *asks(const char *workflow);

void makes(const struct node *n, struct reply *r, const char *id, const char *body);
char *link_for(const char *id, const char *who); /* the path of a new one; to be freed */

/* Nobody sends a token with a link. */
void opens(struct reply *r, const char *path);
void sends(struct reply *r, const char *path, const char *form);
/* With these header lines, and a form unless it is NULL. */
void call(struct reply *r, const char *method, const char *path, const char *fields,
          const char *form);

bool body_has(const struct reply *r, const char *text);
void expect_page(const struct reply *r, int status, const char *text);
int64_t agreed(const char *id);                   /* how many, while it asks */
void votes(const struct node *n, const char *id); /* with its token */

#endif
