/* SPDX-License-Identifier: Apache-2.0
 * Versions, settings, the secret, and ranks that were left behind. */
#include "checks.h"

#include "secret.h"
#include "settings.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

void check_versions(const facts *f, checking *c)
{
    const int version = ring_version();
    check_found(c, NULL, "libring %d.%d.%d, Linux %s, glibc %s%s", version / 10000,
                version / 100 % 100, version % 100, f->versions.kernel, f->versions.glibc,
                f->limits.container ? ", in a container" : "");
}

void check_settings(const facts *f, checking *c)
{
    settings s;
    (void)f;
    const bool good = settings_read(&s) == RING_OK;
    check_found(c, NULL, good ? "understood" : "wrong");
    if (good)
        return;
    const char *text = fail_text();
    check_judge(c, VERDICT_FAIL, "%s", text);
    check_mend(c, "unset %.*s", (int)strcspn(text, "="), text);
}

void check_variables(const facts *f, checking *c)
{
    extern char **environ;
    char name[SETTINGS_NAME_MAX];
    const char *nearest;
    (void)f;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (!settings_unknown(*entry, name, &nearest))
            continue;
        check_found(c, name, "no such setting");
        check_judge(c, VERDICT_WARN, "it does nothing%s%s%s",
                    nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                    nearest != NULL ? "?" : "");
        if (nearest != NULL)
            check_mend(c, "export %s=\"$%s\"; unset %s", nearest, name, name);
        else
            check_mend(c, "unset %s", name);
    }
}

static void judge_secret(checking *c, const settings *s, const struct stat *file)
{
    unsigned char hash[CREDENTIAL_KEY];
    settings only_file = *s;
    bool found;
    only_file.secret_fd = -1;
    const bool good = secret_read(&only_file, hash, &found) == RING_OK;
    explicit_bzero(hash, sizeof hash);
    if (good)
        return;
    check_judge(c, VERDICT_FAIL, "ranks refuse it: %.300s", fail_text());
    if (file != NULL && (file->st_mode & 077) != 0)
        check_mend(c, "chmod 600 %.400s", s->secret_file);
    else
        check_mend(c, "(umask 077; head -c 32 /dev/urandom >%.400s)   # and copy it to every host",
                   s->secret_file);
}

void check_secret(const facts *f, checking *c)
{
    settings s;
    struct stat file;
    (void)f;
    if (settings_read(&s) != RING_OK || s.secret_file[0] == '\0') {
        check_nothing(c, NULL, "RING_SECRET_FILE is not set");
        return;
    }
    const bool there = stat(s.secret_file, &file) == 0;
    if (there)
        check_found(c, NULL, "mode %04o: %.400s", file.st_mode & 07777u, s.secret_file);
    else
        check_found(c, NULL, "not there: %.400s", s.secret_file);
    judge_secret(c, &s, there ? &file : NULL);
}

void check_leftovers(const facts *f, checking *c)
{
    if (f->versions.leftover_count == 0)
        check_found(c, NULL, "none");
    for (size_t i = 0; i < f->versions.leftover_count; i++) {
        const fact_leftover *l = &f->versions.leftovers[i];
        check_found(c, NULL, "process %d (%s) uses libring and has no parent", l->pid, l->name);
        check_judge(c, VERDICT_WARN,
                    "if an earlier job left it behind, it holds cores, memory and ports");
        check_mend(c, "kill %d", l->pid);
    }
}
