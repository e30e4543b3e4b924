/* SPDX-License-Identifier: Apache-2.0
 * What runs here: kernel, C library, and ranks that an earlier job has left. */
#include "facts.h"

#include "sysfs.h"

#include <ctype.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Orphans go to the first process, or to the user's own instance of systemd. */
static bool is_orphan(const facts *f, const char *pid)
{
    char parent[24], user[24], name[32];
    sysfs_value(parent, sizeof parent, "PPid", "%s/proc/%s/status", f->root, pid);
    sysfs_value(user, sizeof user, "Uid", "%s/proc/%s/status", f->root, pid);
    facts_line(f, name, sizeof name, "/proc/%s/comm", parent);
    return (strcmp(parent, "1") == 0 || strcmp(name, "systemd") == 0) &&
           (uid_t)strtoul(user, NULL, 10) == getuid();
}

static bool has_libring(const facts *f, const char *pid)
{
    char line[1024];
    bool found = false;
    if (!text_format(line, sizeof line, "%s/proc/%s/maps", f->root, pid))
        return false;
    FILE *maps = fopen(line, "re");
    while (maps != NULL && !found && fgets(line, sizeof line, maps) != NULL)
        found = strstr(line, "/libring.so") != NULL;
    if (maps != NULL)
        fclose(maps);
    return found;
}

/* Ranks that outlived their launcher hold ports, cores and memory. */
static void take_process(facts *f, const char *name, void *context)
{
    facts_versions *v = &f->versions;
    (void)context;
    if (!isdigit((unsigned char)*name) || v->leftover_count == FACTS_LEFTOVERS ||
        !is_orphan(f, name) || !has_libring(f, name))
        return;
    fact_leftover *l = &v->leftovers[v->leftover_count++];
    l->pid = (int)strtol(name, NULL, 10);
    facts_line(f, l->name, sizeof l->name, "/proc/%s/comm", name);
}

void facts_read_versions(facts *f)
{
    f->versions = (facts_versions){.leftover_count = 0};
    facts_line(f, f->versions.kernel, sizeof f->versions.kernel, "/proc/sys/kernel/osrelease");
    text_format(f->versions.glibc, sizeof f->versions.glibc, "%s", gnu_get_libc_version());
    facts_each(f, take_process, NULL, "/proc");
}
