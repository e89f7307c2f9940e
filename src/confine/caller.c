/* Confines a process that calls services (caller.h): the files it may read, and detection of
 * replaced ones. The rules themselves are in landlock.c and calls.c. */

#include "confine/caller.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "confine/calls.h"
#include "confine/landlock.h"

enum { LOOK_MS = 5000 };

/* Programs, certificates and resolver files: nothing secret. */
static const char *const folders[] = {"/usr",
                                      "/lib",
                                      "/lib32",
                                      "/lib64",
                                      "/libx32",        /* libraries may be loaded later */
                                      "/etc/ssl/certs", /* not /etc/ssl/private */
                                      "/etc/ca-certificates",
                                      "/etc/pki/tls/certs",
                                      "/etc/pki/ca-trust",
                                      "/etc/crypto-policies",
                                      "/etc/gnutls",
                                      "/etc/sasl2",
                                      "/etc/ld.so.conf.d",
                                      "/etc/alternatives",
                                      "/var/lib/ca-certificates",
                                      "/var/lib/sss/mc",
                                      "/var/lib/sss/pubconf",
                                      "/run/systemd/resolve",
                                      "/run/resolvconf",
                                      "/run/NetworkManager",
                                      "/run/nscd",
                                      "/sys/devices/system/cpu"};

static const char *const files[] = {"/etc/resolv.conf",       "/etc/hosts",
                                    "/etc/nsswitch.conf",     "/etc/host.conf",
                                    "/etc/gai.conf",          "/etc/services",
                                    "/etc/protocols",         "/etc/networks",
                                    "/etc/localtime",         "/etc/ld.so.cache",
                                    "/etc/ssl/openssl.cnf",   "/etc/ssl/cert.pem",
                                    "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/openssl.cnf",
                                    "/etc/pki/tls/cert.pem"};

static const char *const devices[] = {"/dev/null", "/dev/random", "/dev/urandom"};

/* OpenSSL's search paths, separated by colons. */
static const char *const variables[] = {"SSL_CERT_FILE", "SSL_CERT_DIR", "OPENSSL_CONF"};

enum { ENTRIES_MAX = 1000 /* maximum of a folder to scan */ };

static void allow(struct caller *c, const char *path, unsigned rights)
{
    if (c->ruleset >= 0)
        (void)landlock_allow(c->ruleset, path, rights); /* a missing path is skipped */
}

static void identify(const char *path, struct caller_file *ret)
{
    struct stat st;
    bool is_there = stat(path, &st) == 0;

    ret->device = is_there ? (uint64_t)st.st_dev : 0;
    ret->number = is_there ? (uint64_t)st.st_ino : 0;
}

static struct caller_file *watch(struct caller *c, const char *path)
{
    if (c->file_count == CALLER_FILES_MAX)
        return NULL; /* further ones can only be read until they are replaced */
    struct caller_file *f = &c->files[c->file_count++];
    *f = (struct caller_file){.path = strdup(path)};
    ASSERT(f->path);
    identify(path, f);
    return f;
}

/* The folder of a path; false: it cannot be allowed as a whole. */
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

void caller_reads(struct caller *c, const char *path)
{
    struct caller_file *f = path ? watch(c, path) : NULL;

    if (path)
        allow(c, path, LANDLOCK_READ);
    if (f)
        f->is_named = true;
}

static bool is_named(const struct caller *c, const char *path)
{
    struct caller_file this;

    identify(path, &this);
    for (size_t i = 0; i < c->file_count; i++)
        if (c->files[i].is_named && this.number != 0 && this.number == c->files[i].number
            && this.device == c->files[i].device)
            return true;
    return false;
}

/* Whether the folder contains other files than the named ones. Names with two leading dots are the
 * Kubernetes folders that the links beside them refer to. */
static bool has_others(const struct caller *c, const char *folder)
{
    CLEANUP(buf_fini) struct buf path = {0};
    DIR *d = opendir(folder);
    bool found = !d;
    size_t count = 0;

    for (const struct dirent *e = d ? readdir(d) : NULL; e && !found; e = readdir(d)) {
        if (strncmp(e->d_name, "..", 2) == 0 || strcmp(e->d_name, ".") == 0)
            continue;
        buf_clear(&path);
        buf_fmt(&path, "%s/%s", folder, e->d_name);
        found = ++count > ENTRIES_MAX || !is_named(c, path.ptr);
    }
    if (d)
        (void)closedir(d);
    return found;
}

/* For a link, both folders count. */
static void follow(struct caller *c, struct caller_file *f)
{
    char folder[4096];
    char target[4096];
    char *real = realpath(f->path, NULL);
    bool is_own = real && folder_of(f->path, folder, sizeof folder)
                  && folder_of(real, target, sizeof target) && !has_others(c, folder)
                  && !has_others(c, target);

    free(real);
    if (!is_own)
        return;
    allow(c, folder, LANDLOCK_READ);
    allow(c, target, LANDLOCK_READ);
    f->is_followed = true;
}

/* For system files: /etc/resolv.conf is often a link into /run, where the file is replaced. */
static void reads_of_system(struct caller *c, const char *path)
{
    char folder[4096];
    char *real = realpath(path, NULL);

    allow(c, path, LANDLOCK_READ);
    if (real && strncmp(real, "/run/", 5) == 0 && folder_of(real, folder, sizeof folder))
        allow(c, folder, LANDLOCK_READ);
    else
        (void)watch(c, path);
    free(real);
}

static void reads_of_variable(struct caller *c, const char *value)
{
    char *copy = value ? strdup(value) : NULL;
    char *rest = NULL;

    for (char *path = copy ? strtok_r(copy, ":", &rest) : NULL; path;
         path = strtok_r(NULL, ":", &rest))
        caller_reads(c, path);
    free(copy);
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
        reads_of_variable(c, getenv(variables[i]));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    allow(c, "/proc", LANDLOCK_READ); /* sanitizers read about their own process there */
#endif
#ifdef CONFINE_COUNTS
    allow(c, CONFINE_COUNTS, LANDLOCK_READ | LANDLOCK_WRITE); /* coverage counters */
#endif
}

void caller_enter(struct caller *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        if (c->files[i].is_named)
            follow(c, &c->files[i]);
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
        caller_end(c); /* without confinement, any file may be replaced */
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
        if (c->files[i].is_followed)
            continue;
        identify(c->files[i].path, &now);
        if (now.device != c->files[i].device || now.number != c->files[i].number) {
            log_line(LOG_INFO, "event=confinement_outdated file=\"%s\"", c->files[i].path);
            return true;
        }
    }
    return false;
}

void caller_look(struct caller *c)
{
    c->look_at_ms = 0;
}

void caller_end(struct caller *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        free(c->files[i].path);
    c->file_count = 0;
}
