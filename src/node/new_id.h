#ifndef NODE_NEW_ID_H
#define NODE_NEW_ID_H

/* Ids that the server makes. Which ids are valid: base/names.h. */

struct server;

/* A new id, by RFC 9562, version 7: those given one after another lie together. */
enum { ID_TEXT_SIZE = 37 };
void id_give(struct server *sv, char ret[ID_TEXT_SIZE]);

#endif
