#ifndef NODE_NAMES_H
#define NODE_NAMES_H

/* Names and ids in requests: which ones are valid, and new ones. */

#include "base/names.h"

struct server;

/* A new id, by RFC 9562, version 7: those given one after another lie together. */
enum { ID_TEXT_SIZE = 37 };
void id_give(struct server *sv, char ret[ID_TEXT_SIZE]);

#endif
