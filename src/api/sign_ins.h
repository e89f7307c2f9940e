#ifndef API_SIGN_INS_H
#define API_SIGN_INS_H

/*
 * How often the audit tells that a token signed in to the console, or out again. Any token may do
 * that, also one that may only read, and entries of the audit are kept for ever: so it tells of
 * SIGN_INS_TOLD a day. All of them are in the log.
 *
 * In memory, of this node alone. Event loop only.
 */

#include "base/base.h"

struct sign_ins;

enum { SIGN_INS_TOLD = 100 };

struct sign_ins *sign_ins_new(void);
void sign_ins_free(struct sign_ins *s); /* NULL is fine */

/* One more of the token of that name, at `now`. False: the audit has enough of them for today. */
bool sign_ins_told(struct sign_ins *s, struct slice token, int64_t now);

#endif
