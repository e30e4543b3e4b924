/* SPDX-License-Identifier: Apache-2.0
 * Cores, and how fast they may run. */
#include "facts.h"

#include "cpus.h"
#include "launch.h"
#include "sysfs.h"
#include "topo.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* "0-3,8" */
static int count_list(const char *list)
{
    int count = 0;
    while (isdigit((unsigned char)*list)) {
        char *end;
        const long first = strtol(list, &end, 10);
        const long last = *end == '-' ? strtol(end + 1, &end, 10) : first;
        count += last >= first ? (int)(last - first) + 1 : 0;
        list = end + (*end == ',');
    }
    return count;
}

static void count_node(facts *f, const char *name, void *context)
{
    (void)context;
    f->cpu.numas += strncmp(name, "node", 4) == 0 && isdigit((unsigned char)name[4]);
}

/* Drivers that choose the frequency by themselves call their ordinary way powersave; there the
 * preference says what is meant. */
static bool saves_power(const char *governor, const char *driver, const char *preference)
{
    if (strcmp(driver, "intel_pstate") == 0 || strcmp(driver, "amd-pstate-epp") == 0)
        return strcmp(preference, "power") == 0 || strcmp(preference, "balance_power") == 0;
    return strcmp(governor, "powersave") == 0 || strcmp(governor, "conservative") == 0;
}

static void take_governor(facts *f, const char *name, void *context)
{
    static const char folder[] = "/sys/devices/system/cpu";
    facts_cpu *c = &f->cpu;
    char governor[32], driver[32], preference[40];
    (void)context;
    if (strncmp(name, "cpu", 3) != 0 || !isdigit((unsigned char)name[3]) ||
        !facts_line(f, governor, sizeof governor, "%s/%s/cpufreq/scaling_governor", folder, name))
        return;
    facts_line(f, driver, sizeof driver, "%s/%s/cpufreq/scaling_driver", folder, name);
    facts_line(f, preference, sizeof preference, "%s/%s/cpufreq/energy_performance_preference",
               folder, name);
    const bool slow = saves_power(governor, driver, preference);
    if (c->governor[0] == '\0' || (slow && c->slow_cpus == 0)) {
        memcpy(c->governor, governor, sizeof governor);
        memcpy(c->driver, driver, sizeof driver);
        memcpy(c->preference, preference, sizeof preference);
    }
    c->slow_cpus += slow;
}

static int ranks_here(void)
{
    launch_info launch;
    return launch_detect(&launch) == RING_OK ? launch.local_size : 0;
}

void facts_read_cpu(facts *f)
{
    char list[1024];
    sysfs_value(list, sizeof list, "Cpus_allowed_list", "%s/proc/self/status", f->root);
    f->cpu = (facts_cpu){
        .cpus = count_list(list),
        .local_ranks = ranks_here(),
        .hyper_threads = facts_number(f, "/sys/devices/system/cpu/smt/active") == 1,
        .quota = cpus_quota(f->root),
    };
    facts_each(f, count_node, NULL, "/sys/devices/system/node");
    facts_each(f, take_governor, NULL, "/sys/devices/system/cpu");
    facts_read_pids(f);
}
