/* SPDX-License-Identifier: Apache-2.0
 * Checks the software of this host, the settings that ranks would have, and processes left over
 * from earlier jobs. */
#include "check_software.h"

#include "secret.h"
#include "settings.h"
#include "sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void check_versions(checking *c)
{
    const int version = ring_version();
    check_found(c, "libring %d.%d.%d, Linux %s, glibc %s%s", version / 10000, version / 100 % 100,
                version % 100, c->f->kernel, gnu_get_libc_version(),
                c->f->container ? ", in a container" : "");
}

static void check_settings(checking *c)
{
    settings s;
    const bool good = settings_read(&s) == RING_OK;
    check_found(c, good ? "understood" : "wrong");
    if (!good)
        check_fail(c, fail_text(), "unset %.*s", (int)strcspn(fail_text(), "="), fail_text());
}

static void check_variables(checking *c)
{
    char name[SETTINGS_NAME_MAX];
    const char *nearest;
    for (char **entry = environ; *entry != NULL; entry++) {
        if (!settings_unknown(*entry, name, &nearest))
            continue;
        c->subject = name;
        check_found(c, "no such setting");
        if (nearest == NULL) {
            check_warn(c, "it has no effect", "unset %s", name);
            continue;
        }
        check_judge(c, VERDICT_WARN, "it has no effect; did you mean %s?", nearest);
        check_command(c, "export %s=\"$%s\"; unset %s", nearest, name, name);
    }
}

/* @param is_open  other users may read the file. */
static void judge_secret(checking *c, const settings *s, bool is_open)
{
    unsigned char hash[CREDENTIAL_KEY];
    settings only_file = *s;
    bool found;
    only_file.secret_fd = -1;
    const bool good = secret_read(&only_file, hash, &found) == RING_OK;
    explicit_bzero(hash, sizeof hash);
    if (good)
        return;
    check_judge(c, VERDICT_FAIL, "ranks reject it: %.300s", fail_text());
    if (strstr(fail_text(), "is not a file") != NULL)
        check_command(c,
                      "export RING_SECRET_FILE=$HOME/ring-secret   # a file of 16 or more bytes");
    else if (is_open)
        check_command(c, "chmod 600 %.400s", s->secret_file);
    else if (strstr(fail_text(), "belongs to user") != NULL ||
             (access(s->secret_file, R_OK) != 0 && errno == EACCES))
        check_command(c, "sudo chown $(id -u) %.400s", s->secret_file);
    else
        check_command(c,
                      "(umask 077; head -c 32 /dev/urandom >%.400s)   # and copy it to every host",
                      s->secret_file);
}

static void check_secret(checking *c)
{
    settings s;
    struct stat file = {.st_mode = 0};
    if (settings_read(&s) != RING_OK || s.secret_file[0] == '\0') {
        check_nothing(c, "RING_SECRET_FILE is not set");
        return;
    }
    if (stat(s.secret_file, &file) == 0)
        check_found(c, "mode %04o: %.400s", file.st_mode & 07777u, s.secret_file);
    else
        check_found(c, "does not exist: %.400s", s.secret_file);
    judge_secret(c, &s, (file.st_mode & 077) != 0);
}

/* ---- Ranks that outlived their launcher, and still hold ports, cores and memory ---------------
 */

/* @return true if the process is an orphan of this user. Its parent is then process 1, or the
 * user's own instance of systemd. */
static bool is_orphan(const facts *f, const char *pid)
{
    char parent[24], user[24], name[32];
    sysfs_value(parent, sizeof parent, "PPid", "%s/proc/%s/status", f->root, pid);
    sysfs_value(user, sizeof user, "Uid", "%s/proc/%s/status", f->root, pid);
    sysfs_line(name, sizeof name, "%s/proc/%s/comm", f->root, parent);
    return (strcmp(parent, "1") == 0 || strcmp(name, "systemd") == 0) &&
           (uid_t)strtoul(user, NULL, 10) == getuid();
}

static bool is_libring(char *line, void *unused)
{
    (void)unused;
    return strstr(line, "/libring.so") != NULL;
}

/* Reports the process if it is an orphaned rank. */
static void take_process(const char *pid, void *context)
{
    checking *c = context;
    char name[32];
    if (!isdigit((unsigned char)*pid) || !is_orphan(c->f, pid) ||
        !sysfs_find(is_libring, NULL, "%s/proc/%s/maps", c->f->root, pid))
        return;
    sysfs_line(name, sizeof name, "%s/proc/%s/comm", c->f->root, pid);
    check_found(c, "process %s (%s) uses libring, and its parent has ended", pid, name);
    check_warn(c, "if it is left over from an earlier job, it holds cores, memory and ports",
               "kill %s", pid);
}

static void check_leftovers(checking *c)
{
    const size_t before = c->r->count;
    sysfs_each(take_process, c, "%s/proc", c->f->root);
    if (c->r->count == before)
        check_found(c, "none");
}

const check software_checks[] = {
    {OF_HOST, "software", "versions", check_versions},
    {OF_HOST, "software", "settings", check_settings},
    {OF_HOST, "software", "variables", check_variables},
    {OF_HOST, "software", "secret", check_secret},
    {OF_HOST, "software", "leftovers", check_leftovers},
    {0},
};
