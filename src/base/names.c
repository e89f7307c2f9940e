/* Which names, ids and keys are valid in requests: see names.h. Pure; the readers of definitions
 * have their own rules for what stands in a definition. */

#include "base/names.h"

static bool is_made_of(struct slice s, const char *more, size_t max)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
              || (c && strchr(more, c))))
            return false;
    }
    return s.ptr && s.len >= 1 && s.len <= max;
}

bool is_name(struct slice s)
{
    return is_made_of(s, "._:-", 128);
}

bool is_task_id(struct slice s)
{
    return is_made_of(s, "._:-@", 128);
}

bool is_tag_key(struct slice s)
{
    return is_made_of(s, "._-", 64);
}

bool is_signal_key(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f)
            return false;
    return s.ptr && s.len >= 1 && s.len <= SIGNAL_KEY_MAX;
}
