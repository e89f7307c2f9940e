/* Reads the section `messages` of a server's configuration, which applies to all status messages
 * (serve_messages.h). serve_settings.c calls it with the whole file. */

#include "cli/verbs/serve_messages.h"

enum { SOURCE_MAX = 200 };

/* Is it a URI reference? Receivers would refuse other characters. */
static bool is_source(struct slice s)
{
    static const char marks[] = "-._~:/?#[]@!$&'()*+,;=%";

    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == 0 || !strchr(marks, c)))
            return false;
    }
    return s.len > 0 && s.len <= SOURCE_MAX;
}

static void read_source_name(struct reader *r, const struct json *j, const struct path *path,
                             void *target)
{
    const char **source = target;

    if (j->type == JSON_STRING && is_source(j->text))
        *source = arena_copy(r->arena, j->text).ptr;
    else
        mistake_in(r, path, j, "a URI of 1 to 200 characters, such as /shop");
}

void read_messages(struct reader *r, const struct json *j, const struct path *path, void *target)
{
    static const struct field fields[] = {
        FIELD("source", read_source_name, offsetof(struct messages_settings, source)),
        FIELD("give_up", read_length, offsetof(struct messages_settings, give_up_ms)),
    };

    read_object(r, j, path, fields, COUNT_OF(fields), target);
}
