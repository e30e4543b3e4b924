/* SPDX-License-Identifier: Apache-2.0
 * Reports the host, its CPUs, memory, network and devices, and the limits of this process. */
#include "info_report.h"

#include "heap.h"
#include "topo.h"
#include "watched.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

static void gather_host(report *r)
{
    char name[256];
    struct utsname system;
    topo_hostname(name, sizeof name);
    report_text(r, "host", "name", "%s", name);
    if (uname(&system) == 0)
        report_text(r, "host", "kernel", "%s %s %s", system.sysname, system.release,
                    system.machine);
}

static void judge_quota(report *r, const topo_cpu *cpu)
{
    const double most = fmax(1, floor(cpu->quota));
    if (cpu->quota <= 0)
        return;
    report_number(r, "cpu", "quota", cpu->quota,
                  cpu->quota == 1 ? "CPU (cgroup)" : "CPUs (cgroup)");
    if (cpu->quota < cpu->allowed)
        report_judge(r, VERDICT_WARN,
                     "the quota of the cgroup is less than the %d CPU%s that this process may use; "
                     "start at most %.0f rank%s, or raise the quota",
                     cpu->allowed, plural(cpu->allowed), most, plural(most));
}

static void gather_cpu(report *r)
{
    topo_cpu cpu;
    if (topo_cpu_read(&cpu) != RING_OK) {
        report_text(r, "cpu", "cores", "unknown");
        report_judge(r, VERDICT_FAIL, "%s", fail_text());
        return;
    }
    report_text(r, "cpu", "model", "%s", cpu.model[0] != '\0' ? cpu.model : "unknown");
    report_number(r, "cpu", "packages", cpu.packages, "");
    report_number(r, "cpu", "numa_nodes", cpu.numas, "");
    report_number(r, "cpu", "cores", (double)cpu.core_count, "this process may use");
    report_number(r, "cpu", "logical_cpus", cpu.allowed, "this process may use");
    report_number(r, "cpu", "online", cpu.online, "of the machine, logical");
    judge_quota(r, &cpu);
    report_text(r, "cpu", "source", "%s", cpu.source);
    topo_cpu_free(&cpu);
}

/* libring allocates shared memory as an anonymous file (memfd), so it does not need /dev/shm. */
static void gather_shared_memory(report *r)
{
    struct statvfs mount;
    if (heap_open() == RING_OK) {
        report_text(r, "memory", "ring_mem_alloc", "works, by memfd");
        report_judge(r, VERDICT_OK, "%s", "");
    } else {
        report_text(r, "memory", "ring_mem_alloc", "does not work");
        report_judge(r, VERDICT_FAIL, "%s", fail_text());
    }
    if (statvfs("/dev/shm", &mount) == 0)
        report_text(r, "memory", "/dev/shm", "%.0f MiB free; libring does not use it",
                    (double)mount.f_bavail * (double)mount.f_frsize / (1 << 20));
    else
        report_text(r, "memory", "/dev/shm", "not mounted; libring does not need it");
}

static void gather_memory(report *r)
{
    topo_memory memory;
    topo_memory_read(&memory);
    report_bytes(r, "memory", "total", (double)memory.total);
    report_bytes(r, "memory", "available", (double)memory.available);
    if (memory.limit > 0)
        report_bytes(r, "memory", "cgroup_limit", (double)memory.limit);
    gather_shared_memory(r);
}

/* Adds a row with a limit of this process. @param in_bytes  the limit is a number of bytes. */
static void report_limit(report *r, const char *name, int resource, bool in_bytes)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        report_text(r, "limits", name, "unlimited");
    else if (in_bytes)
        report_bytes(r, "limits", name, (double)limit.rlim_cur);
    else
        report_number(r, "limits", name, (double)limit.rlim_cur, "");
}

static void gather_limits(report *r)
{
    enum { FILES_ENOUGH = 256 };
    struct rlimit files;
    char why[200] = "";
    report_limit(r, "open_files", RLIMIT_NOFILE, false);
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES_ENOUGH)
        report_judge(r, VERDICT_WARN,
                     "a rank needs a few descriptors for every other rank; raise the limit (ulimit "
                     "-n 1024)");
    report_limit(r, "processes", RLIMIT_NPROC, false);
    report_limit(r, "address_space", RLIMIT_AS, true);
    report_limit(r, "locked_memory", RLIMIT_MEMLOCK, true);
    report_limit(r, "core_file", RLIMIT_CORE, true);
    /* Without userfaultfd, the transport verbs copies memory that is not registered. */
    report_text(r, "limits", "userfaultfd", "%s",
                watched_probe(why, sizeof why) ? "available (detects when memory is unmapped)"
                                               : why);
}

static void describe_interface(report *r, const topo_interface *interface)
{
    char text[512], speed[48] = "speed unknown";
    size_t used = 0;
    if (interface->speed_mbits > 0)
        snprintf(speed, sizeof speed, "%.4g Gbit/s", (double)interface->speed_mbits / 1000);
    if (interface->loopback)
        snprintf(speed, sizeof speed, "loopback");
    text[0] = '\0';
    for (size_t i = 0; i < interface->address_count; i++) {
        if (text_format(text + used, sizeof text - used, " %s", interface->addresses[i]))
            used = strlen(text);
    }
    report_text(r, "network", interface->name, "%s, %s, MTU %d,%s", interface->up ? "up" : "down",
                speed, interface->mtu, used > 0 ? text : " no address");
}

static void gather_network(report *r)
{
    topo_net net;
    if (topo_net_read(&net) != RING_OK) {
        report_text(r, "network", "interfaces", "unknown");
        report_judge(r, VERDICT_WARN, "%s", fail_text());
        return;
    }
    for (size_t i = 0; i < net.count; i++)
        describe_interface(r, &net.interfaces[i]);
    const char *address = topo_net_public_address(&net);
    if (address != NULL)
        report_text(r, "network", "for_other_hosts", "%s", address);
    else
        report_text(r, "network", "for_other_hosts", "none: only ranks of this host can join");
    topo_net_free(&net);
}

/* Adds a row for each device of a list. @param none  the reason if the list is empty.
 * @param use  the row "used". */
static void gather_devices(report *r, const char *kind, const char *none, const char *use,
                           size_t (*list)(topo_device devices[TOPO_DEVICES]))
{
    topo_device devices[TOPO_DEVICES];
    const size_t count = list(devices);
    for (size_t i = 0; i < min_size(count, TOPO_DEVICES); i++)
        report_text(r, kind, devices[i].name, "%s", devices[i].state);
    if (count == 0)
        report_text(r, kind, "found", "none (%s)", none);
    report_text(r, kind, "used", "%s", use);
}

void gather_machine(report *r)
{
    gather_host(r);
    gather_cpu(r);
    gather_memory(r);
    gather_limits(r);
    gather_network(r);
    gather_devices(r, "gpu", "no display controller of NVIDIA, AMD or Intel on the PCI bus",
                   "GPUs of NVIDIA that the driver lists", topo_gpus);
    gather_gpus(r);
    gather_devices(r, "infiniband", "nothing in /sys/class/infiniband",
                   "by the transport verbs, see below; 'ringinfo doctor' checks ports and counters",
                   topo_infiniband);
}
