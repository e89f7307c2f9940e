#ifndef BACKGROUND_BACKGROUND_H
#define BACKGROUND_BACKGROUND_H

/* What background/ keeps of a node: server->background, from before the node is loaded. */

struct background;

struct background *background_new(void);
void background_free(struct background *b); /* all parts are freed */

#endif
