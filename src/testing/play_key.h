#ifndef TESTING_PLAY_KEY_H
#define TESTING_PLAY_KEY_H

/* Which entry of `agents` in a test file acts for a request: AGENT.ACTION; for a step with `http`,
 * which names no action, AGENT.STEP, and AGENT.STEP.undo for its undo; otherwise AGENT. */

#include "testing/suite.h"

/* The best key for a request of a step, in `a`. `action` is that of the request. */
struct slice play_key(struct slice agent, struct slice action, struct slice step, bool is_undo,
                      struct arena *a);

/* Whether some request of that definition would be answered by that key. */
bool play_key_fits(const struct definition *d, struct slice key);

/* Whether that key answers forward requests of a step that has an undo. */
bool play_key_is_undone(const struct definition *d, struct slice key);

/* A key that the definition has and that differs from this one in one letter; NONE. */
struct slice play_key_near(const struct definition *d, struct slice key, struct arena *a);

#endif
