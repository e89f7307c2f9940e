#include "base/test.h"
#include "json/json.h"
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct arena a = {0};
        struct json *j;
        struct json_fault f;
        if (json_parse(&a, slice_of(argv[i]), &j, &f) == ERR_OK)
            printf("%s => ok %s [%.*s]\n", argv[i], json_type_text(j->type), SLICE_ARG(j->raw));
        else
            printf("%s => %u:%u %s\n", argv[i], f.line, f.column, f.what);
        arena_fini(&a);
    }
}
