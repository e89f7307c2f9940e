/* What a process that calls services may still do: the lists of files, and who watches them. */

#include "confine/caller.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "confine/calls.h"
#include "confine/landlock.h"

enum { LOOK_MS = 5000 };

/* Programs' own files, certificates, and what resolvers keep: nothing there is secret. */
static const char *const folders[] = {"/usr",
                                      "/lib",
                                      "/lib32",
                                      "/lib64",
                                      "/libx32", /* libraries are loaded late, too */
                                      "/etc/ssl",
                                      "/etc/ca-certificates",
                                      "/etc/pki",
                                      "/etc/crypto-policies",
                                      "/etc/gnutls",
                                      "/etc/sasl2",
                                      "/etc/ld.so.conf.d",
                                      "/etc/alternatives",
                                      "/var/lib/ca-certificates",
                                      "/var/lib/sss",
                                      "/run/systemd/resolve",
                                      "/run/resolvconf",
                                      "/run/NetworkManager",
                                      "/run/nscd",
                                      "/sys/devices/system/cpu"};

static const char *const files[] = {"/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf",
                                    "/etc/host.conf",   "/etc/gai.conf", "/etc/services",
                                    "/etc/protocols",   "/etc/networks", "/etc/localtime",
                                    "/etc/ld.so.cache"};

static const char *const devices[] = {"/dev/null", "/dev/random", "/dev/urandom"};

/* Where OpenSSL is told to look. */
static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"};

static void allow(struct caller *c, const char *path, unsigned rights)
{
    if (c->ruleset >= 0)
        (void)landlock_allow(c->ruleset, path, rights); /* what is not there is not read */
}

static void identify(const char *path, struct caller_file *ret)
{
    struct stat st;
    bool is_there = stat(path, &st) == 0;

    ret->device = is_there ? (uint64_t)st.st_dev : 0;
    ret->number = is_there ? (uint64_t)st.st_ino : 0;
}

static void watch(struct caller *c, const char *path)
{
    if (c->file_count == CALLER_FILES_MAX)
        return; /* those beyond it are read as long as they stay */
    struct caller_file *f = &c->files[c->file_count++];
    f->path = strdup(path);
    ASSERT(f->path);
    identify(path, f);
}

/* The folder of a path; false: it is not one whose files are all of a kind. */
static bool folder_of(const char *path, char *ret, size_t size)
{
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;

    if (path[0] != '/' || len == 0 || len >= size)
        return false;
    memcpy(ret, path, len);
    ret[len] = 0;
    return strcmp(ret, "/etc") != 0;
}

/* A link leads elsewhere: both folders count. */
void caller_reads(struct caller *c, const char *path)
{
    char folder[4096];
    char *real = path ? realpath(path, NULL) : NULL;

    if (path) {
        bool has_folder = folder_of(path, folder, sizeof folder);
        if (has_folder)
            allow(c, folder, LANDLOCK_READ);
        if (real && strcmp(real, path) != 0 && folder_of(real, folder, sizeof folder) && has_folder)
            allow(c, folder, LANDLOCK_READ);
        else if (!has_folder)
            watch(c, path);
        allow(c, path, LANDLOCK_READ);
    }
    free(real);
}

/* Of the system: /etc/resolv.conf is often a link into /run, whose file is replaced. */
static void reads_of_system(struct caller *c, const char *path)
{
    char folder[4096];
    char *real = realpath(path, NULL);

    allow(c, path, LANDLOCK_READ);
    if (real && strncmp(real, "/run/", 5) == 0 && folder_of(real, folder, sizeof folder))
        allow(c, folder, LANDLOCK_READ);
    else
        watch(c, path);
    free(real);
}

void caller_begin(struct caller *c)
{
    *c = (struct caller){.ruleset = landlock_open(true)};
    c->refusal = errno;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        allow(c, folders[i], LANDLOCK_READ);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        reads_of_system(c, files[i]);
    for (size_t i = 0; i < COUNT_OF(devices); i++)
        allow(c, devices[i], LANDLOCK_READ | LANDLOCK_WRITE);
    for (size_t i = 0; i < COUNT_OF(variables); i++)
        if (getenv(variables[i]))
            allow(c, getenv(variables[i]), LANDLOCK_READ);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    allow(c, "/proc", LANDLOCK_READ); /* where sanitizers look at their own process */
#endif
#ifdef CONFINE_COUNTS
    allow(c, CONFINE_COUNTS, LANDLOCK_READ | LANDLOCK_WRITE); /* lines that were run are counted */
#endif
}

void caller_enter(struct caller *c)
{
    bool has_files = c->ruleset >= 0 && landlock_enter(c->ruleset);
    int files_err = c->ruleset >= 0 ? errno : c->refusal;
    bool has_calls = calls_give_up();
    int calls_err = errno;

    if (c->ruleset >= 0)
        (void)close(c->ruleset);
    c->ruleset = -1;
    if (!has_files) {
        log_line(LOG_WARN, "event=not_confined what=files reason=\"no Landlock: %s\"",
                 strerror(files_err));
        caller_end(c); /* then any file may be replaced */
    }
    if (!has_calls)
        log_line(LOG_WARN, "event=not_confined what=calls reason=\"no seccomp: %s\"",
                 strerror(calls_err));
}

bool caller_is_outdated(struct caller *c, int64_t now_ms)
{
    if (now_ms < c->look_at_ms)
        return false;
    c->look_at_ms = now_ms + LOOK_MS;
    for (size_t i = 0; i < c->file_count; i++) {
        struct caller_file now;
        identify(c->files[i].path, &now);
        if (now.device != c->files[i].device || now.number != c->files[i].number) {
            log_line(LOG_INFO, "event=confinement_outdated file=\"%s\"", c->files[i].path);
            return true;
        }
    }
    return false;
}

void caller_end(struct caller *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        free(c->files[i].path);
    c->file_count = 0;
}
