/* The main function of a fuzz target that is built as an ordinary test: it replays every input in
 * the given folders, none of which may be empty. tools/fuzz links the same targets with libFuzzer
 * instead; see fuzz.h. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fuzz.h"

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat st;

    ASSERT(file);
    int rc = fstat(fileno(file), &st);
    ASSERT(rc == 0);
    size_t size = (size_t)st.st_size;
    uint8_t *bytes = malloc(size ? size : 1); /* exact size, for the sanitizer */
    ASSERT(bytes);
    size_t len = fread(bytes, 1, size, file);
    ASSERT(len == size);
    (void)fclose(file); /* it was only read */
    (void)LLVMFuzzerTestOneInput(bytes, len);
    free(bytes);
}

static unsigned replay_folder(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, alphasort);
    unsigned replayed = 0;

    for (int i = 0; i < count; i++) {
        CLEANUP(buf_fini) struct buf name = {0};
        buf_fmt(&name, "%s/%s", path, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            replay(name.ptr);
            replayed++;
        }
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        unsigned count = replay_folder(argv[i]);
        printf("%u inputs of %s replayed\n", count, argv[i]);
        if (count == 0)
            return EXIT_FAILURE;
    }
    return argc > 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}
