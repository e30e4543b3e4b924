/* SPDX-License-Identifier: Apache-2.0
 * The order of reading: counters twice, and the ports are tried between. */
#include "facts.h"

#include "facts_devices.h"
#include "facts_files.h"
#include "facts_net.h"
#include "rdma_trial.h"

static void read_counters(facts *f, int reading)
{
    facts_read_port_counters(f, reading);
    facts_read_net_counters(f, reading);
}

void facts_read(facts *f)
{
    f->container = facts_exists(f, "/.dockerenv") || facts_exists(f, "/run/.containerenv");
    facts_line(f, f->kernel, sizeof f->kernel, "/proc/sys/kernel/osrelease");
    facts_read_net(f);
    facts_read_ports(f);
    facts_read_pci(f);
    read_counters(f, 0);
    rdma_try_ports(f);
    if (f->seconds > 0)
        clock_sleep(f->seconds);
    read_counters(f, 1);
}
