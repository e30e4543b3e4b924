/* SPDX-License-Identifier: Apache-2.0
 * The table of checks, and the rows that they add. */
#include "checks.h"

#include <stdio.h>
#include <string.h>

static const check table[] = {
    {"limits", "memlock", check_memlock},
    {"limits", "nofile", check_nofile},
    {"limits", "nproc", check_nproc},
    {"limits", "address_space", check_address_space},
    {"limits", "pids", check_pids},
    {"memory", "ring_mem_alloc", check_heap},
    {"memory", "/dev/shm", check_shm},
    {"memory", "cgroup", check_group_memory},
    {"cpu", "cpus", check_cpus},
    {"cpu", "quota", check_quota},
    {"cpu", "governor", check_governor},
    {"cpu", "ranks", check_ranks},
    {"network", "link", check_interfaces},
    {"network", "for_other_hosts", check_chosen},
    {"network", "hostname", check_hostname},
    {"network", "errors", check_net_errors},
    {"adapters", "link", check_port_link},
    {"adapters", "state", check_port_state},
    {"adapters", "rate", check_port_rate},
    {"adapters", "mtu", check_port_mtu},
    {"adapters", "pkeys", check_port_pkeys},
    {"adapters", "gids", check_gids},
    {"adapters", "gid_netdev", check_gid_devices},
    {"adapters", "gid_address", check_gid_addresses},
    {"adapters", "traffic_class", check_traffic_class},
    {"adapters", "firmware", check_port_firmware},
    {"adapters", "self_test", check_port_trial},
    {"adapters", "counters", check_port_counters},
    {"gpudirect", "gpus", check_gpus},
    {"gpudirect", "driver", check_driver},
    {"gpudirect", "peer_memory", check_peer_memory},
    {"gpudirect", "pcie", check_pcie},
    {"gpudirect", "distance", check_distance},
    {"gpudirect", "acs", check_access_control},
    {"gpudirect", "iommu", check_iommu},
    {"software", "versions", check_versions},
    {"software", "settings", check_settings},
    {"software", "variables", check_variables},
    {"software", "secret", check_secret},
    {"software", "leftovers", check_leftovers},
};

void checks_run(const facts *f, report *r)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        table[i].judge(f, &(checking){r, table[i].section, table[i].name});
}

/* ---- Rows ------------------------------------------------------------------------------------ */

static void add(checking *c, verdict v, const char *subject, const char *format, va_list args)
{
    char name[64], value[512];
    if (subject == NULL)
        snprintf(name, sizeof name, "%s", c->name);
    else
        snprintf(name, sizeof name, "%.40s %.20s", subject, c->name);
    vsnprintf(value, sizeof value, format, args);
    text_make_printable(value, sizeof value);
    report_text(c->r, c->section, name, "%s", value);
    report_judge(c->r, v, "%s", "");
}

void check_found(checking *c, const char *subject, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(c, VERDICT_OK, subject, format, args);
    va_end(args);
}

void check_nothing(checking *c, const char *subject, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(c, VERDICT_NONE, subject, format, args);
    va_end(args);
}

void check_judge(checking *c, verdict v, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    text_make_printable(why, sizeof why);
    report_judge(c->r, v, "%s", why);
}

void check_mend(checking *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_mend(c->r, format, args);
    va_end(args);
}
