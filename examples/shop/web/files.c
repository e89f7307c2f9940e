/* Reads files, and serves the pages of the shop from one folder: plain names only, so that
 * nothing outside the folder can be read. shop.h shows the whole web server. */

#include "shop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *file_read(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    errno = 0;
    FILE *in = fopen(path, "re");
    if (!in || getdelim(&text, &size, '\0', in) < 0) {
        fprintf(stderr, "shop-web: %s: %s\n", path, errno ? strerror(errno) : "it is empty");
        free(text);
        text = NULL;
    }
    if (in)
        fclose(in);
    return text;
}

static const char *type_of(const char *path)
{
    static const char *const types[][2] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
    };
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; ending && i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(ending, types[i][0]) == 0)
            return types[i][1];
    return NULL;
}

/* A plain name below the folder: no hidden files, and no way up. */
static bool is_plain(const char *path)
{
    return path[strspn(path, "abcdefghijklmnopqrstuvwxyz0123456789-_./")] == '\0'
           && !strstr(path, "/.") && !strstr(path, "//");
}

enum MHD_Result page_get(struct request *r)
{
    const char *path = strcmp(r->path, "/") == 0 ? "/index.html" : r->path;
    const char *type = type_of(path);
    char name[4096];
    struct stat found;

    if (!type || !is_plain(path)
        || (size_t)snprintf(name, sizeof(name), "%s%s", r->shop->pages, path) >= sizeof(name))
        return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is no such page.");
    int file = open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &found) != 0 || !S_ISREG(found.st_mode)) {
        if (file >= 0)
            close(file);
        return answer_error(r, MHD_HTTP_NOT_FOUND, NULL, "There is no such page.");
    }
    struct MHD_Response *response = MHD_create_response_from_fd64((uint64_t)found.st_size, file);
    if (!response)
        close(file);
    return answer(r, MHD_HTTP_OK, response, type);
}
