#ifndef SIM_VOTERS_H
#define SIM_VOTERS_H

/*
 * Persons who vote: at bad times, twice, in races, on old questions, after the end, and where they
 * are not asked. Each is a letter: A, B and C are asked by every approval, and so is S, who submits
 * all tasks, unless the step excludes the submitter; H is asked after a while, if at all; X never.
 * Each has two tokens.
 */

#include "sim/subject.h"

#define VOTER_SUBMITS 'S'
#define VOTER_LATER   'H'
#define VOTER_NEVER   'X'

void voters_begin(void);

/* In calm times those vote without whom a task would wait for ever. */
void voters_look(void);

/* The person, with its groups; it lives as long as the run. */
struct ballot voters_ballot(const struct sent_vote *v);

/* The name of the token that it is cast with, which is not the person's. */
enum { VOTER_TOKEN_SIZE = 8 };
void voters_token(const struct sent_vote *v, char ret[VOTER_TOKEN_SIZE]);

#endif
