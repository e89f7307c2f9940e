/*
 * Any bytes, as what a client sends. The oracle: no crash, and the same requests and the same
 * refusal however the bytes are cut into pieces.
 *
 * Built as a plain program it replays the folders that it is given; `meson test` does so
 * with tests/corpus/http. As a fuzzer:
 *
 *     clang -g -O1 -std=c17 -D_GNU_SOURCE -DHTTP_FUZZ -DLLHTTP_STRICT_MODE=1 \
 *         -fsanitize=fuzzer,address,undefined -Isrc -I$LLHTTP/include src/http/http_fuzz.c \
 *         src/http/{head,message,reader}.c src/base/{arena,base,buf}.c $LLHTTP/{llhttp,api,http}.c
 *     ./a.out tests/corpus/http
 */

#include "http/transcript.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct http_limits limits = {.body_max = 300, .head_max = 400, .header_count_max = 8};

static void compare(struct slice in, const struct buf *whole, size_t first, size_t further)
{
    CLEANUP(buf_fini) struct buf cut = {0};

    transcript_write(&cut, &limits, in, first, further);
    ASSERT(slice_eq(buf_view(&cut), buf_view(whole)));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    CLEANUP(buf_fini) struct buf whole = {0};
    struct slice in = {(const char *)bytes, len};

    if (len < 2 || len > 4096)
        return 0;
    transcript_write(&whole, &limits, in, len, len);
    compare(in, &whole, 1, 1);
    compare(in, &whole, 1 + (size_t)(bytes[len - 1] * 7) % (len - 1), 1 + bytes[0] % 13);
    return 0;
}

#ifndef HTTP_FUZZ

    #include <dirent.h>
    #include <stdio.h>
    #include <stdlib.h>

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t bytes[4097];

    ASSERT(file);
    size_t len = fread(bytes, 1, sizeof bytes, file);
    (void)fclose(file); /* it was only read */
    (void)LLVMFuzzerTestOneInput(bytes, len);
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
    unsigned count = 0;

    for (int i = 1; i < argc; i++)
        count += replay_folder(argv[i]);
    printf("%u inputs replayed\n", count);
    return count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
