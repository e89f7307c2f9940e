#ifndef DEFINITION_TEMPLATE_H
#define DEFINITION_TEMPLATE_H

/* Templates, as definition.c needs them: all faults at once, and what their expressions refer to.
 */

#include "definition/expression.h"
#include "definition/machine.h"
#include "definition/reference.h"
#include "definition/shape.h"

/* Places are those in the decoded text of a string. */
struct template_watch {
    void *arg;
    void (*fault)(void *arg, const struct json *string, size_t at, const char *what);
    void (*reference)(void *arg, const struct json *string, size_t at, const struct reference *ref);
    void (*odd)(void *arg, const struct json *string, size_t at, const struct odd_name *odd);
    struct references refs; /* all of them together, but for their list */
};

/* Always returns a template, which must not be used if there were faults. */
struct template *template_read(const struct json *value, struct arena *a, struct template_watch *w);

/* The same of a string whose expressions stay apart from what stands around them: an array of texts
 * and values by turns, beginning with a text. Without expressions it is the string. */
struct template *template_read_parts(const struct json *string, struct arena *a,
                                     struct template_watch *w);
/* Is what was read by it, but for the values, fit for a path of a URL? */
bool template_path_is_plain(const struct template *parts);

/* Made of others. What a member needs, the object needs. */
struct template *template_new_raw(struct arena *a, struct slice json);
struct template *template_new_object(struct arena *a);
void template_add(struct template *object, struct arena *a, struct slice key,
                  struct template *member);

/* What all of its expressions need; for its owner to fill in and to read. */
struct needs *template_needs(struct template *t);

/* Is it "${ .steps.NAME.output }" and nothing else? The step is the one that it needs. */
bool template_is_output(const struct template *t);

/* As template_eval, within a budget. After a failure *ret_place is the path of the string in the
 * value (".a[2].b"; cut if it is long), and *e says the rest. */
struct template_place {
    char path[120];
};
enum err template_run(const struct template *t, const struct json *root, struct arena *a,
                      struct budget *budget, struct slice *ret, struct template_place *ret_place,
                      struct error *e) MUST_USE;

#endif
