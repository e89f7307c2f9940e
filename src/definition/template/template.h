#ifndef DEFINITION_TEMPLATE_TEMPLATE_H
#define DEFINITION_TEMPLATE_TEMPLATE_H

/* Templates as reading a definition needs them: all faults at once, and the references of the
 * expressions. */

#include "definition/expression/expression.h"
#include "definition/expression/machine.h"
#include "definition/template/reference.h"
#include "definition/template/shape.h"

/* Positions are offsets in the decoded text of a string. */
struct template_watch {
    void *arg;
    void (*fault)(void *arg, const struct json *string, size_t at, const char *what);
    void (*reference)(void *arg, const struct json *string, size_t at, const struct reference *ref);
    void (*odd)(void *arg, const struct json *string, size_t at, const struct odd_name *odd);
    struct references refs; /* of all expressions together, without their list */
};

/* Always returns a template; it must not be used if there were faults. */
struct template *template_read(const struct json *value, struct arena *a, struct template_watch *w);

/* The same for a string whose expressions must stay separate from the text around them: an array
 * that alternates texts and values, beginning with a text. Without expressions it is the string. */
struct template *template_read_parts(const struct json *string, struct arena *a,
                                     struct template_watch *w);
/* Whether its texts contain only characters that are allowed in the path of a URL. */
bool template_path_is_plain(const struct template *parts);

/* Built from others. An object needs the values that its members need. */
struct template *template_new_raw(struct arena *a, struct slice json);
struct template *template_new_object(struct arena *a);
void template_add(struct template *object, struct arena *a, struct slice key,
                  struct template *member);

/* The values that its expressions need. The owner fills it in. */
struct needs *template_needs(struct template *t);

/* Whether its value is a string, whatever its expressions give. */
bool template_is_text(const struct template *t);

/* Whether it is exactly "${ .steps.NAME.output }". The step is then the only one it needs. */
bool template_is_output(const struct template *t);

/* As template_eval, within a budget. After a failure *ret_place is the path of the string in the
 * value (".a[2].b", truncated if long), and *e has the message. */
struct template_place {
    char path[120];
};
enum err template_run(const struct template *t, const struct json *root, struct arena *a,
                      struct budget *budget, struct slice *ret, struct template_place *ret_place,
                      struct error *e) MUST_USE;

#endif
