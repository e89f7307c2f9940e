#ifndef API_API_H
#define API_API_H

/* What api/ keeps of a node: server->api, from before the node is loaded. */

struct api;

struct api *api_new(void);
void api_free(struct api *a); /* all parts are freed */

#endif
