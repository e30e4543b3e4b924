/* SPDX-License-Identifier: Apache-2.0
 * Limits of this process and of its cgroups. The kernel shows a process its limits as a file. */
#include "facts.h"

#include "cgroup.h"
#include "heap.h"
#include "sysfs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

enum { CAPABILITY_IPC_LOCK = 14 };

/* ---- Limits of the process ------------------------------------------------------------------- */

static double number_or_unlimited(const char *word)
{
    char *end;
    const double value = strtod(word, &end);
    return strncmp(word, "unlimited", 9) == 0 ? HUGE_VAL : end == word ? -1 : value;
}

/* "Max open files            1024                 1048576              files" */
static fact_limit read_limit(const facts *f, const char *key)
{
    char line[160], soft[32] = "", hard[32] = "";
    sysfs_value(line, sizeof line, key, "%s/proc/self/limits", f->root);
    if (sscanf(line, "%31s %31s", soft, hard) != 2)
        return (fact_limit){-1, -1};
    return (fact_limit){number_or_unlimited(soft), number_or_unlimited(hard)};
}

static bool may_lock(const facts *f)
{
    char mask[40];
    sysfs_value(mask, sizeof mask, "CapEff", "%s/proc/self/status", f->root);
    return (strtoull(mask, NULL, 16) >> CAPABILITY_IPC_LOCK & 1) != 0;
}

void facts_read_limits(facts *f)
{
    f->limits = (facts_limits){
        .locked = read_limit(f, "Max locked memory"),
        .files = read_limit(f, "Max open files"),
        .processes = read_limit(f, "Max processes"),
        .address_space = read_limit(f, "Max address space"),
        .may_lock = may_lock(f),
        .container = facts_exists(f, "/.dockerenv") || facts_exists(f, "/run/.containerenv"),
    };
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* "tmpfs /dev/shm tmpfs rw,nosuid,size=65536k 0 0"; a tmpfs without a size takes half of the
 * memory. @return -1 if it is not mounted. */
static double mounted_size(const facts *f)
{
    char line[1024], options[512];
    double size = -1;
    if (!text_format(line, sizeof line, "%s/proc/self/mounts", f->root))
        return -1;
    FILE *mounts = fopen(line, "re");
    while (mounts != NULL && fgets(line, sizeof line, mounts) != NULL) {
        if (sscanf(line, "%*s /dev/shm tmpfs %511s", options) != 1)
            continue;
        const char *given = strstr(options, "size=");
        size = given != NULL ? strtod(given + 5, NULL) * 1024 : f->memory.total / 2;
    }
    if (mounts != NULL)
        fclose(mounts);
    return size;
}

/* Below a root only its size is known, not what is free of it. */
static double shm_room(const facts *f)
{
    struct statvfs mount;
    const double size = mounted_size(f);
    if (*f->root != '\0' || size < 0 || statvfs("/dev/shm", &mount) != 0)
        return size;
    return (double)mount.f_bavail * (double)mount.f_frsize;
}

static double group_number(const cgroup *at, const char *file)
{
    char line[64], *end;
    sysfs_line(line, sizeof line, "%s/%s", at->folder, file);
    const double value = strtod(line, &end);
    return end == line ? -1 : value; /* "max" is no number */
}

/* As it is called without the root. */
static void keep_folder(const facts *f, const cgroup *at, char out[256])
{
    text_format(out, 256, "%s", at->folder + strlen(f->root));
}

static void take_memory(const cgroup *at, void *context)
{
    facts *f = context;
    facts_memory *m = &f->memory;
    const bool first = at->version == 1;
    const double limit = group_number(at, first ? "memory.limit_in_bytes" : "memory.max");
    const double used = group_number(at, first ? "memory.usage_in_bytes" : "memory.current");
    if (limit < 0 || limit >= m->total)
        return;
    if (m->group_limit < 0 || limit - used < m->group_limit - m->group_used) {
        m->group_limit = limit;
        m->group_used = used > 0 ? used : 0;
        m->group_version = at->version;
        keep_folder(f, at, m->group_folder);
    }
}

void facts_read_memory(facts *f)
{
    char total[64];
    sysfs_value(total, sizeof total, "MemTotal", "%s/proc/meminfo", f->root);
    f->memory = (facts_memory){.total = strtod(total, NULL) * 1024, .group_limit = -1};
    f->memory.shm = shm_room(f);
    cgroup_visit(f->root, "memory", take_memory, f);
    if (heap_open() != RING_OK)
        text_format(f->memory.heap_error, sizeof f->memory.heap_error, "%.300s", fail_text());
}

/* ---- Processes ------------------------------------------------------------------------------- */

static void take_pids(const cgroup *at, void *context)
{
    facts *f = context;
    facts_cpu *c = &f->cpu;
    const double most = group_number(at, "pids.max"), used = group_number(at, "pids.current");
    if (most >= 0 && (c->pids_max < 0 || most - used < c->pids_max - c->pids_used)) {
        c->pids_max = most;
        c->pids_used = used > 0 ? used : 0;
        keep_folder(f, at, c->pids_folder);
    }
}

void facts_read_pids(facts *f)
{
    f->cpu.pids_max = -1;
    cgroup_visit(f->root, "pids", take_pids, f);
}
