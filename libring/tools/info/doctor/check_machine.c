/* SPDX-License-Identifier: Apache-2.0
 * Checks the limits of this process and of its cgroups, which are read from /proc and /sys, and the
 * memory and CPUs that ranks can use. */
#include "check_machine.h"

#include "cgroup.h"
#include "cpus.h"
#include "heap.h"
#include "launch.h"
#include "sysfs.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define MIB 1048576.0
#define CPUS "%s/sys/devices/system/cpu"

/* ---- Limits ---------------------------------------------------------------------------------- */

typedef struct limit {
    const char *name, *key; /* name of the check, and of the line in /proc/self/limits */
    bool is_bytes;
    /* The verdict is FAIL below `few` and WARN below `enough`; the command sets `wanted`. */
    double few, enough, wanted;
    const char *word, *option;        /* name in limits.conf, and option of ulimit */
    const char *unit, *why_few, *why; /* reasons for FAIL and WARN; why_few NULL: both are `why` */
} limit;

enum { PROCESSES_ENOUGH = 256, PROCESSES_WANTED = 4096 };

/* Debian's default limit of locked memory is 8 MiB; less is not enough for even a few queues. */
static const limit limits[] = {
    {"memlock", "Max locked memory", true, 8 * MIB, 64 * MIB, HUGE_VAL, "memlock", "l", "",
     "adapters need locked memory: registering memory (ibv_reg_mr) will fail",
     "adapters need locked memory: larger buffers cannot be registered as a whole"},
    {"nofile", "Max open files", false, 64, 1024, 4096, "nofile", "n", " open files", NULL,
     "a rank needs a few descriptors for every rank that it communicates with"},
    {"nproc", "Max processes", false, 0, PROCESSES_ENOUGH, PROCESSES_WANTED, "nproc", "u",
     " processes and threads of this user", NULL,
     "each rank has several threads, and the limit is for all processes of the user together"},
    {"address_space", "Max address space", true, 0, HUGE_VAL, HUGE_VAL, "as", "v", "", NULL,
     "ranks map each other's memory; if the address space is too small, data is copied instead"},
};

static double amount_of(const char *word)
{
    return strcmp(word, "unlimited") == 0 ? HUGE_VAL : strtod(word, NULL);
}

static const char *amount_text(double value, bool is_bytes, char out[32])
{
    const bool is_small = value < MIB;
    if (isinf(value) || !is_bytes)
        snprintf(out, 32, isinf(value) ? "unlimited" : "%.10g", value);
    else
        snprintf(out, 32, "%.10g %s", is_small ? value / 1024 : floor(value / MIB * 10) / 10,
                 is_small ? "KiB" : "MiB");
    return out;
}

static void add_limit_command(checking *c, const limit *l, double hard)
{
    char wanted[32];
    amount_text(l->wanted, false, wanted);
    if (hard >= l->wanted)
        check_command(c, "ulimit -%s %s", l->option, wanted);
    else if (c->f->container)
        check_command(c, "docker run --ulimit %s=%.0f ...", l->word,
                      isinf(l->wanted) ? -1 : l->wanted);
    else
        check_command(
            c,
            "printf '* - %s %s\\n' | sudo tee /etc/security/limits.d/ring-%s.conf   # then "
            "log in again",
            l->word, wanted, l->word);
}

/* Reads "Max open files            1024                 1048576              files", the soft and
 * the hard limit. Locked memory is not judged if this process needs none or is exempt from the
 * limit. */
static void check_limit(checking *c)
{
    enum { CAPABILITY_IPC_LOCK = 14 };
    char line[160], soft[32], hard[32], text[32], mask[40];
    const char *exempt = "";
    const limit *l = limits;
    while (strcmp(l->name, c->name) != 0)
        l++;
    sysfs_value(line, sizeof line, l->key, "%s/proc/self/limits", c->f->root);
    if (sscanf(line, "%31s %31s", soft, hard) != 2) {
        check_nothing(c, "unknown");
        return;
    }
    const double now = amount_of(soft);
    sysfs_value(mask, sizeof mask, "CapEff", "%s/proc/self/status", c->f->root);
    if (l == limits && (strtoull(mask, NULL, 16) >> CAPABILITY_IPC_LOCK & 1) != 0)
        exempt = "; this process may lock more (CAP_IPC_LOCK)";
    else if (l == limits && c->f->port_count == 0)
        exempt = "; only needed with an RDMA adapter";
    check_found(c, "%s%s%s", amount_text(now, l->is_bytes, text), l->unit, exempt);
    if (*exempt != '\0' || now >= l->enough)
        return;
    check_judge(c, now < l->few ? VERDICT_FAIL : VERDICT_WARN, "%s",
                now < l->few && l->why_few != NULL ? l->why_few : l->why);
    add_limit_command(c, l, amount_of(hard));
}

/* ---- Limits of cgroups ----------------------------------------------------------------------- */

/* The tightest limit of this process's cgroups: the one with the least left. */
typedef struct group_limit {
    const facts *f;
    double below;                /* limits of at least this number are ignored */
    double most, used;           /* the limit (-1: no limit), and the usage */
    const char *const *files[2]; /* by version of cgroups, 1 or 2: files of the limit and usage */
    char file[320];              /* path of the file with the limit, without f->root */
    int version;
} group_limit;

static void take_group(const cgroup *at, void *context)
{
    group_limit *l = context;
    const char *const *files = l->files[at->version - 1];
    const double most = sysfs_number(-1, "%s/%s", at->folder,
                                     files[0]); /* -1 for "max", no limit */
    const double used = sysfs_number(0, "%s/%s", at->folder, files[1]);
    if (most < 0 || most >= l->below || (l->most >= 0 && most - used >= l->most - l->used))
        return;
    l->most = most;
    l->used = used;
    l->version = at->version;
    text_format(l->file, sizeof l->file, "%s/%s", at->folder + strlen(l->f->root), files[0]);
}

/* @param first, second  names of the files of limit and usage, for versions 1 and 2 of cgroups. */
static group_limit find_group(const facts *f, const char *controller, double below,
                              const char *const first[2], const char *const second[2])
{
    group_limit l = {.f = f, .below = below, .most = -1, .files = {first, second}};
    cgroup_visit(f->root, controller, take_group, &l);
    return l;
}

static void check_pids(checking *c)
{
    static const char *const files[] = {"pids.max", "pids.current"};
    const group_limit l = find_group(c->f, "pids", HUGE_VAL, files, files);
    if (l.most < 0)
        return;
    check_found(c, "%.0f of %.0f processes and threads of the cgroup are in use", l.used, l.most);
    if (l.most - l.used >= PROCESSES_ENOUGH)
        return;
    check_judge(c, VERDICT_WARN, "ranks may be unable to start their threads");
    if (c->f->container)
        check_command(c, "docker run --pids-limit %d ...", PROCESSES_WANTED);
    else
        check_command(c, "echo max | sudo tee %s", l.file);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { SHM_ENOUGH_MIB = 512, LEFT_FEW_MIB = 64, LEFT_ENOUGH_MIB = 1024 };

static void check_heap(checking *c)
{
    static const remedy remedies[] = {{"Too many open files", "ulimit -n 4096"},
                                      {NULL, "ulimit -v unlimited; ulimit -f unlimited"}};
    const bool works = heap_open() == RING_OK;
    check_found(c, works ? "works, by memfd" : "does not work");
    if (!works)
        check_fail(c, fail_text(), "%s", remedy_for(remedies, fail_text()));
}

static double machine_bytes(const facts *f)
{
    char total[64];
    sysfs_value(total, sizeof total, "MemTotal", "%s/proc/meminfo", f->root);
    return strtod(total, NULL) * 1024;
}

/* Reads the size of /dev/shm from a line such as "tmpfs /dev/shm tmpfs rw,nosuid,size=65536k 0 0".
 */
static bool take_mount(char *line, void *context)
{
    double *size = context;
    char options[512];
    if (sscanf(line, "%*s /dev/shm tmpfs %511s", options) != 1)
        return false;
    const char *given = strstr(options, "size=");
    *size = given != NULL ? strtod(given + 5, NULL) * 1024 : 0;
    return false; /* the search goes on: a later mount hides this one */
}

/* @return the free bytes of /dev/shm, or -1 if it is not mounted. A tmpfs that was mounted without
 * a size may use half of the memory. In a copied tree, only the size is known, not the free space.
 */
static double shm_room(const facts *f)
{
    struct statvfs mount;
    double size = -1;
    sysfs_find(take_mount, &size, "%s/proc/self/mounts", f->root);
    if (size < 0)
        return -1;
    if (*f->root == '\0' && statvfs("/dev/shm", &mount) == 0)
        return (double)mount.f_bavail * (double)mount.f_frsize;
    return size > 0 ? size : machine_bytes(f) / 2;
}

static void check_shm(checking *c)
{
    const double room = shm_room(c->f);
    if (room < 0) {
        check_nothing(c, "not mounted; libring does not need it");
        return;
    }
    check_found(c, "room for %.0f MiB", room / MIB);
    if (room < SHM_ENOUGH_MIB * MIB)
        check_warn(c,
                   "libring does not need it, but data loaders, NCCL and MPI crash below 512 MiB",
                   c->f->container ? "docker run --shm-size=1g ..."
                                   : "sudo mount -o remount,size=1g /dev/shm");
}

static void check_group_memory(checking *c)
{
    static const char *const first[] = {"memory.limit_in_bytes", "memory.usage_in_bytes"};
    static const char *const second[] = {"memory.max", "memory.current"};
    const group_limit l = find_group(c->f, "memory", machine_bytes(c->f), first, second);
    if (l.most < 0) {
        check_found(c, "no limit below the machine's %.0f MiB", l.below / MIB);
        return;
    }
    const double left = (l.most - l.used) / MIB;
    check_found(c, "%.0f of %.0f MiB are left", left, l.most / MIB);
    if (left >= LEFT_ENOUGH_MIB)
        return;
    check_judge(c, left < LEFT_FEW_MIB ? VERDICT_FAIL : VERDICT_WARN,
                "buffers must fit: processes that need more are killed");
    if (c->f->container)
        check_command(c, "docker run --memory=8g ...");
    else
        check_command(c, "echo %s | sudo tee %s", l.version == 1 ? "-1" : "max", l.file);
}

/* ---- Cores ----------------------------------------------------------------------------------- */

/* @return the number of CPUs that this process may use, from a list such as "0-3,8". */
static int allowed_cpus(const facts *f)
{
    char list[1024];
    int count = 0;
    sysfs_value(list, sizeof list, "Cpus_allowed_list", "%s/proc/self/status", f->root);
    for (char *at = list; isdigit((unsigned char)*at); at += *at == ',') {
        const long first = strtol(at, &at, 10);
        const long last = *at == '-' ? strtol(at + 1, &at, 10) : first;
        count += last >= first ? (int)(last - first) + 1 : 0;
    }
    return count;
}

static void count_node(const char *name, void *context)
{
    *(int *)context += strncmp(name, "node", 4) == 0 && isdigit((unsigned char)name[4]);
}

static void check_cpus(checking *c)
{
    int numas = 0;
    sysfs_each(count_node, &numas, "%s/sys/devices/system/node", c->f->root);
    check_found(c, "%d logical CPU%s, %d NUMA node%s, hyper-threads %s", allowed_cpus(c->f),
                plural(allowed_cpus(c->f)), numas > 0 ? numas : 1, plural(numas > 0 ? numas : 1),
                sysfs_number(0, CPUS "/smt/active", c->f->root) == 1 ? "on" : "off");
}

static void check_quota(checking *c)
{
    const double quota = cpus_quota(c->f->root);
    const int cpus = allowed_cpus(c->f);
    if (quota <= 0) {
        check_found(c, "none: the cgroup allows all CPUs");
        return;
    }
    check_found(c, "%.4g CPU%s (cgroup)", quota, plural(quota));
    if (quota >= cpus)
        return;
    check_judge(c, VERDICT_WARN,
                "less than the %d CPUs that ranks may run on: when it is used up, all ranks pause",
                cpus);
    if (c->f->container)
        check_command(c, "docker run --cpus=%d ...", cpus);
    else
        check_command(c, "ringrun -n %.0f PROGRAM   # at most one rank for each CPU of the quota",
                      fmax(quota, 1));
}

/* The governor of the first CPU that saves power; if there is none, of the first CPU. */
typedef struct governors {
    const char *root;
    int slow; /* number of CPUs that save power */
    char governor[32], driver[32], preference[40];
} governors;

/* The normal mode of drivers that choose the frequency themselves is called powersave, too; for
 * these drivers the preference decides. */
static bool saves_power(const governors *g)
{
    if (strcmp(g->driver, "intel_pstate") == 0 || strcmp(g->driver, "amd-pstate-epp") == 0)
        return strcmp(g->preference, "power") == 0 || strcmp(g->preference, "balance_power") == 0;
    return strcmp(g->governor, "powersave") == 0 || strcmp(g->governor, "conservative") == 0;
}

static void take_governor(const char *name, void *context)
{
    static const char files[] = CPUS "/%s/cpufreq/%s";
    governors *all = context, here = *all;
    if (strncmp(name, "cpu", 3) != 0 || !isdigit((unsigned char)name[3]) ||
        !sysfs_line(here.governor, sizeof here.governor, files, here.root, name,
                    "scaling_governor"))
        return;
    sysfs_line(here.driver, sizeof here.driver, files, here.root, name, "scaling_driver");
    sysfs_line(here.preference, sizeof here.preference, files, here.root, name,
               "energy_performance_preference");
    const bool slow = saves_power(&here);
    if (all->governor[0] == '\0' || (slow && all->slow == 0))
        *all = here;
    all->slow += slow;
}

static void check_governor(checking *c)
{
    governors g = {.root = c->f->root};
    sysfs_each(take_governor, &g, CPUS, g.root);
    const bool prefers = g.preference[0] != '\0';
    if (g.governor[0] == '\0') {
        check_nothing(c, "none: this system cannot choose the frequency");
        return;
    }
    check_found(c, "%s (%s%s%s)", g.governor, g.driver, prefers ? ", " : "", g.preference);
    if (g.slow == 0)
        return;
    check_judge(
        c, VERDICT_WARN,
        "%d CPU%s in a power-saving mode: short messages and reductions run at a low frequency",
        g.slow, plural(g.slow));
    check_command(c, "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/%s",
                  prefers ? "energy_performance_preference" : "scaling_governor");
}

static void check_ranks(checking *c)
{
    launch_info launch;
    const int ranks = launch_detect(&launch) == RING_OK ? launch.local_size : 0;
    const int cpus = allowed_cpus(c->f);
    if (ranks <= 1) {
        check_nothing(
            c, "this process is not a rank; run it by ringrun or another launcher to count ranks");
        return;
    }
    check_found(c, "%d on this host", ranks);
    if (ranks <= cpus)
        return;
    check_judge(c, VERDICT_WARN, "more than the %d CPU%s that they may run on: ranks take turns",
                cpus, plural(cpus));
    check_command(c, "ringrun -n %d PROGRAM", cpus);
}

const check machine_checks[] = {
    {OF_HOST, "limits", "memlock", check_limit},
    {OF_HOST, "limits", "nofile", check_limit},
    {OF_HOST, "limits", "nproc", check_limit},
    {OF_HOST, "limits", "address_space", check_limit},
    {OF_HOST, "limits", "pids", check_pids},
    {OF_HOST, "memory", "ring_mem_alloc", check_heap},
    {OF_HOST, "memory", "/dev/shm", check_shm},
    {OF_HOST, "memory", "cgroup", check_group_memory},
    {OF_HOST, "cpu", "cpus", check_cpus},
    {OF_HOST, "cpu", "quota", check_quota},
    {OF_HOST, "cpu", "governor", check_governor},
    {OF_HOST, "cpu", "ranks", check_ranks},
    {0},
};
