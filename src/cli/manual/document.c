/*
 * Writes the documents of the command line, from the descriptions of its verbs:
 *
 *     intact-document man FOLDER          the manual pages, in FOLDER/man1
 *     intact-document completion FOLDER   the completions, where shells find them below FOLDER
 *     intact-document install             both, below $MESON_INSTALL_DESTDIR_PREFIX/share
 *     intact-document page                docs/command-line.md, on standard output
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/manual/manual.h"
#include "cli/verbs.h"

static int complain(const char *path)
{
    fprintf(stderr, "intact-document: %s: %s\n", path, strerror(errno));
    return CLI_NOT_WELL;
}

/* mkdir -p */
static bool make_folder(const char *path)
{
    char part[PATH_MAX];

    for (const char *at = path; *at; at += strcspn(at, "/")) {
        at += strspn(at, "/");
        (void)snprintf(part, sizeof part, "%.*s", (int)(at + strcspn(at, "/") - path), path);
        if (*part && mkdir(part, 0755) != 0 && errno != EEXIST)
            return false;
    }
    return true;
}

static int write_file(const char *folder, const char *name, const struct buf *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = make_folder(folder) ? fopen(path, "we") : NULL;
    if (!f)
        return complain(path);
    bool ok = fwrite(text->ptr, 1, text->len, f) == text->len;
    return fclose(f) == 0 && ok ? CLI_OK : complain(path);
}

static int write_manual(const char *folder)
{
    char man1[PATH_MAX - 100];
    int end = CLI_OK;

    (void)snprintf(man1, sizeof man1, "%s/man1", folder);
    for (size_t i = 0; i <= verb_count && end == CLI_OK; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        const struct verb *v = i < verb_count ? verbs[i] : NULL;
        char name[80];
        char file[84];
        if (v && v->is_hidden)
            continue;
        manual_page(v, &b);
        manual_name(v, name);
        (void)snprintf(file, sizeof file, "%s.1", name);
        end = write_file(man1, file, &b);
    }
    return end;
}

static int write_completions(const char *folder)
{
    static const char *const files[][3] = {
        {"bash", "bash-completion/completions", "intact"},
        {"zsh", "zsh/vendor-completions", "_intact"},
        {"fish", "fish/vendor_completions.d", "intact.fish"},
    };
    char path[PATH_MAX - 100];
    int end = CLI_OK;

    for (size_t i = 0; i < COUNT_OF(files) && end == CLI_OK; i++) {
        CLEANUP(buf_fini) struct buf b = {0};
        buf_str(&b, completion_script(files[i][0]));
        (void)snprintf(path, sizeof path, "%s/%s", folder, files[i][1]);
        end = write_file(path, files[i][2], &b);
    }
    return end;
}

static int install(void)
{
    const char *prefix = getenv("MESON_INSTALL_DESTDIR_PREFIX");
    char share[PATH_MAX - 300];
    char man[PATH_MAX - 200];

    if (!prefix) {
        fputs("intact-document: install is for meson install\n", stderr);
        return CLI_USAGE;
    }
    (void)snprintf(share, sizeof share, "%s/share", prefix);
    (void)snprintf(man, sizeof man, "%s/man", share);
    int end = write_manual(man);
    return end == CLI_OK ? write_completions(share) : end;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (argc == 3 && strcmp(what, "man") == 0)
        return write_manual(argv[2]);
    if (argc == 3 && strcmp(what, "completion") == 0)
        return write_completions(argv[2]);
    if (argc == 2 && strcmp(what, "install") == 0)
        return install();
    if (argc == 2 && strcmp(what, "page") == 0) {
        CLEANUP(buf_fini) struct buf b = {0};
        manual_markdown(&b);
        fputs(b.ptr, stdout);
        return fflush(stdout) == 0 ? CLI_OK : complain("standard output");
    }
    fputs("usage: intact-document man FOLDER | completion FOLDER | install | page\n", stderr);
    return CLI_USAGE;
}
