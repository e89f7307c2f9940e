#ifndef BASE_NAMES_H
#define BASE_NAMES_H

/* Names, ids and keys in requests: which ones are valid. */

#include "base/base.h"

enum { TAGS_MAX = 32, TAG_VALUE_MAX = 256 };

bool is_name(struct slice s);    /* of an id, agent, instance: 1 to 128 of [A-Za-z0-9._:-] */
bool is_task_id(struct slice s); /* the same, or with @: an id that the server made */
bool is_tag_key(struct slice s); /* 1 to 64 of [A-Za-z0-9._-] */

enum { SIGNAL_KEY_MAX = 128 };
bool is_signal_key(struct slice s); /* printable ASCII, so that it can be shown and sent again */

#endif
