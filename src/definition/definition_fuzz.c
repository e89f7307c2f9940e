/*
 * Any bytes, as a definition, as a JSON text and as an expression. The oracle: no crash, and
 * whatever is accepted keeps its invariants (asserted inside).
 *
 * Built as a plain program it replays the files that it is given; `meson test` does so with
 * tests/corpus/definition. With libFuzzer: `./run fuzz definition`.
 */

#include <stdio.h>
#include <stdlib.h>

#include "definition/definition.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void as_definition(struct slice text)
{
    struct mistakes *m = calloc(1, sizeof *m);
    struct definition *d = NULL;

    ASSERT(m);
    if (definition_parse(text, &d, m) != ERR_OK)
        ASSERT(m->count > 0);
    definition_free(d);
    free(m);
}

static void as_json_and_expression(struct slice text)
{
    struct arena a = {0};
    struct json *root = NULL;
    struct expression *x = NULL;
    const struct json *value = NULL;
    struct error e = {0};
    size_t column = 0;

    if (json_parse(&a, text, &root, NULL) == ERR_OK)
        (void)json_hash(root);
    else
        root = NULL;
    if (expression_compile(text, &a, &x, &column, &e) == ERR_OK) {
        static const char input[] = "{\"a\":[1,2,{\"b\":\"x\"}],\"n\":null,\"t\":true}";
        struct json *j = NULL;
        enum err err = json_parse(&a, slice_of(input), &j, NULL);
        ASSERT(err == ERR_OK);
        err = expression_eval(x, j, &a, &value, &e);
        ASSERT(err == ERR_OK || e.text[0]);
    }
    arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct slice text = {(const char *)bytes, len};

    as_definition(text);
    as_json_and_expression(text);
    return 0;
}

#ifndef FUZZ
int main(int argc, char **argv)
{
    static char bytes[1 << 20];

    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        if (!f) {
            perror(argv[i]);
            return 1;
        }
        size_t len = fread(bytes, 1, sizeof bytes, f);
        (void)fclose(f);
        (void)LLVMFuzzerTestOneInput((const uint8_t *)bytes, len);
    }
    printf("%d inputs replayed\n", argc - 1);
    return argc > 1 ? 0 : 1;
}
#endif
