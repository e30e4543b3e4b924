/* SPDX-License-Identifier: Apache-2.0
 * Checks the link, state, rate, partitions and addresses of RDMA ports, their speed in a short
 * test, and their error counters. */
#include "check_adapters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_any_active(const facts *f)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (f->ports[i].is_active)
            return true;
    return false;
}

/* @return FAIL if no port is active, else WARN: adapters often have a second port that is not used.
 */
static verdict verdict_of_down_port(const checking *c)
{
    return is_any_active(c->f) ? VERDICT_WARN : VERDICT_FAIL;
}

/* @return the name of a port's network interface; if it is unknown, a command that prints it, to be
 * inserted into another command. */
static const char *interface_of(const fact_port *p, char out[96])
{
    if (p->net != NULL)
        return p->net->name;
    snprintf(out, 96, "$(ls /sys/class/infiniband/%.48s/device/net)", p->device);
    return out;
}

static void add_enable_command(checking *c)
{
    const fact_port *p = c->port;
    char room[96];
    if (p->is_roce)
        check_command(c, "sudo ip link set %s up", interface_of(p, room));
    else
        check_command(c, "sudo ibportstate -C %s -D 0 %d enable   # of infiniband-diags", p->device,
                      p->number);
}

/* ---- Link and state -------------------------------------------------------------------------- */

static void check_presence(checking *c)
{
    if (c->f->port_count == 0)
        check_nothing(c, "no adapter in /sys/class/infiniband");
}

static void check_link(checking *c)
{
    const char *state = c->port->phys_state;
    check_found(c, "%s, %s", state, c->port->link_layer);
    if (strcmp(state, "LinkUp") == 0)
        return;
    if (strcmp(state, "Disabled") == 0) {
        check_judge(c, verdict_of_down_port(c), "the port is switched off");
        add_enable_command(c);
        return;
    }
    check_judge(c, verdict_of_down_port(c),
                strcmp(state, "Polling") == 0 ? "no signal from the other end of the cable: the "
                                                "cable is broken, or the other port is off"
                                              : "the physical link is not up");
    check_command(
        c,
        "ethtool -m $(ls /sys/class/infiniband/%s/device/net | head -n 1)   # is a cable detected?",
        c->port->device);
}

static void check_state(checking *c)
{
    const fact_port *p = c->port;
    if (!p->is_active && strcmp(p->phys_state, "LinkUp") != 0) {
        check_nothing(c, "%s, because its link is down", p->state);
        return;
    }
    check_found(c, "%s", p->state);
    if (strcmp(p->state, "INIT") == 0 && !p->is_roce) {
        check_fail(c, "the link is up, but no subnet manager (SM) has configured the network",
                   "sudo apt install opensm && sudo systemctl start opensm   # on one host");
    } else if (strcmp(p->state, "ARMED") == 0) {
        check_warn(c, "the subnet manager has not finished configuring the port",
                   "sudo systemctl restart opensm   # where it runs");
    } else if (!p->is_active) {
        const bool begins = strcmp(p->state, "INIT") == 0;
        check_judge(c, begins ? VERDICT_FAIL : verdict_of_down_port(c),
                    "the port is not ACTIVE: nothing can be sent through it");
        add_enable_command(c);
    }
}

/* ---- Rate, MTU, partitions, firmware --------------------------------------------------------- */

static bool is_same_board(const fact_port *a, const fact_port *b)
{
    return strcmp(a->model, b->model) == 0 && strcmp(a->board, b->board) == 0;
}

static void check_rate(checking *c)
{
    const fact_port *p = c->port;
    char room[96];
    double best = 0; /* rate of the fastest active port of the same board */
    for (const fact_port *other = c->f->ports; other < c->f->ports + c->f->port_count; other++)
        if (other->is_active && is_same_board(other, p))
            best = fmax(best, strtod(other->rate, NULL));
    const bool infiniband = strcmp(p->link_layer, "InfiniBand") == 0;
    check_found(c, "%s", p->rate);
    if (infiniband && strstr(p->rate, "(1X") != NULL)
        check_judge(c, VERDICT_WARN, "only one of four lanes is up");
    else if (infiniband && strstr(p->rate, " SDR)") != NULL)
        check_judge(c, VERDICT_WARN, "SDR, the lowest speed: both ends fell back to it");
    else if (strtod(p->rate, NULL) < best)
        check_judge(c, VERDICT_WARN, "another port of the same board has %.4g Gb/s", best);
    else
        return;
    if (p->is_roce)
        check_command(c, "sudo ethtool -s %s autoneg on   # else another cable",
                      interface_of(p, room));
    else
        check_command(
            c, "sudo ibportstate -C %s -D 0 %d reset   # of infiniband-diags; then another cable",
            p->device, p->number);
}

static void check_mtu(checking *c)
{
    enum { LARGEST = 4096, INTERFACE_MTU = 4200 }; /* the latter includes headers of RoCE */
    const fact_port *p = c->port;
    if (p->mtu == 0)
        return;
    check_found(c, "%d, from MTU %ld of %s", p->mtu, p->net->mtu, p->net->name);
    if (p->mtu == LARGEST)
        return;
    check_judge(
        c, VERDICT_WARN,
        "ports support an MTU of %d; packets of %d bytes need more headers, and more work of "
        "the adapter",
        LARGEST, p->mtu);
    check_command(c, "sudo ip link set %s mtu %d   # on all hosts, and the switch must let it pass",
                  p->net->name, INTERFACE_MTU);
}

static bool has_pkey(const fact_port *p, unsigned key)
{
    for (size_t i = 0; i < p->pkey_count; i++)
        if (p->pkeys[i] == key)
            return true;
    return false;
}

/* A P_Key is a partition (15 bits) and a bit for full members. Full members communicate with all
 * members of the partition, limited members with full members only. */
static void check_pkeys(checking *c)
{
    enum { FULL_MEMBER = 0x8000 };
    const unsigned full = c->f->pkey | FULL_MEMBER, limited = c->f->pkey & ~(unsigned)FULL_MEMBER;
    const bool is_full = has_pkey(c->port, full), is_limited = has_pkey(c->port, limited);
    check_found(c, "%zu in the table, 0x%04x is %s", c->port->pkey_count, full,
                is_full      ? "present"
                : is_limited ? "present as a limited member"
                             : "missing");
    if (is_full)
        return;
    check_judge(c, is_limited ? VERDICT_WARN : VERDICT_FAIL,
                is_limited ? "two limited members of a partition cannot talk to each other"
                           : "the port is not in the partition: its packets are dropped");
    if (c->port->is_roce)
        check_command(c, "ringinfo doctor   # without --pkey: RoCE only has the partition 0xffff");
    else
        check_command(
            c,
            "echo 'ring=0x%04x, ipoib : ALL=full;' | sudo tee -a /etc/opensm/partitions.conf && "
            "sudo systemctl restart opensm   # where the subnet manager runs",
            limited);
}

/* Checks the adapter of a port; an adapter of several ports is checked with its first port. */
static void check_firmware(checking *c)
{
    const fact_port *p = c->port;
    if (p->firmware[0] == '\0' || (p > c->f->ports && strcmp(p->device, p[-1].device) == 0))
        return;
    c->subject = p->device;
    check_found(c, "%s, %s", p->firmware, p->model);
    for (const fact_port *other = c->f->ports; other < p; other++) {
        if (!is_same_board(other, p) || strcmp(other->firmware, p->firmware) == 0)
            continue;
        check_judge(c, VERDICT_WARN, "%s has firmware %s on the same board", other->device,
                    other->firmware);
        check_command(c, "sudo mstflint -d %s -i FIRMWARE.bin burn   # then restart the host",
                      p->pci);
        return;
    }
}

/* ---- Addresses ------------------------------------------------------------------------------- */

static bool is_link_local(const fact_gid *g)
{
    return strncmp(g->gid, "fe80", 4) == 0;
}

/* @return a number that is higher for better GIDs. */
static int worth(const fact_gid *g)
{
    const bool is_ipv4 = strncmp(g->gid, "0000:0000:0000:0000:0000:ffff:", 30) == 0;
    return 4 * (strcmp(g->type, "RoCE v2") == 0) + 2 * !is_link_local(g) + is_ipv4;
}

/* @return the GID that hosts should use; NULL if the port has no GID. RoCE v2 is better than v1,
 * then other addresses are better than link-local ones, then IPv4 is better than IPv6. */
static const fact_gid *best_gid(const fact_port *p)
{
    const fact_gid *best = NULL;
    for (size_t i = 0; i < p->gid_count; i++)
        if (best == NULL || worth(&p->gids[i]) > worth(best))
            best = &p->gids[i];
    return best;
}

static void check_gids(checking *c)
{
    const fact_port *p = c->port;
    const fact_gid *best = best_gid(p);
    char room[96];
    if (best == NULL) {
        check_found(c, "none");
        check_fail(c, "a port without an address cannot be reached", "sudo ip link set %s up",
                   interface_of(p, room));
        return;
    }
    check_found(c, "%zu; the best is %d, %s%s%s", p->gid_count, best->index,
                p->is_roce ? best->type : "InfiniBand", *best->netdev != '\0' ? " of " : "",
                best->netdev);
    if (!p->is_roce || worth(best) >= 4)
        return;
    check_judge(c, VERDICT_WARN,
                "RoCE v1 only: it does not pass routers, and cannot communicate with v2 hosts");
    if (strncmp(p->device, "mlx4", 4) == 0)
        check_command(c,
                      "echo 'options mlx4_core roce_mode=2' | sudo tee /etc/modprobe.d/roce.conf   "
                      "# then restart the host");
    else
        check_command(c, "sudo mstconfig -d %s set ROCE_CONTROL=2   # then restart the host",
                      p->pci);
}

static void check_gid_devices(checking *c)
{
    const fact_port *p = c->port;
    int lost = -1;
    size_t count = 0;
    for (size_t i = 0; i < p->gid_count; i++) {
        const bool none = p->gids[i].netdev[0] == '\0';
        lost = none && lost < 0 ? p->gids[i].index : lost;
        count += none;
    }
    if (lost < 0 && p->gid_count > 0)
        check_found(c, "each GID has an interface");
    if (lost < 0)
        return;
    check_found(c, "GID %d has no interface", lost);
    check_judge(c, count == p->gid_count ? VERDICT_FAIL : VERDICT_WARN,
                "its interface is gone or in another network namespace: queues cannot connect "
                "(ibv_modify_qp: Invalid argument)");
    check_command(
        c, "sudo rdma system set netns shared   # or start the container with --network=host");
}

static void check_gid_addresses(checking *c)
{
    const fact_gid *best = best_gid(c->port);
    if (best == NULL)
        return;
    check_found(c, "%s", best->gid);
    if (is_link_local(best))
        check_warn(c, "the address is link-local: the port reaches only its own network",
                   "sudo ip address add ADDRESS/24 dev %s",
                   *best->netdev != '\0' ? best->netdev : "eth0");
}

static void check_traffic_class(checking *c)
{
    enum { LOSSLESS = 106 }; /* DSCP 26, which is lossless on switches that are set up for RoCE */
    const fact_port *p = c->port;
    check_found(c, "%d", p->sent_class);
    if (p->sent_class > 0)
        return;
    check_judge(
        c, VERDICT_WARN,
        "RoCE is in the same class as all other traffic: a congested switch drops its packets");
    if (p->traffic_class >= 0)
        check_command(c, "echo %d | sudo tee /sys/class/infiniband/%s/tc/%d/traffic_class",
                      LOSSLESS, p->device, p->number);
    else
        check_command(c, "export NCCL_IB_TC=%d   # if this class is lossless on the switches",
                      LOSSLESS);
}

/* ---- In use ---------------------------------------------------------------------------------- */

/* @param device  length of the device's name, with which the port's name begins. */
static void judge_trial(checking *c, const fact_trial *t, int device)
{
    check_found(c, "round trip %.3g us (99th percentile: %.3g us), %.3g GB/s to itself",
                t->measured.median_us, t->measured.slow_us, t->measured.bytes_per_second / 1e9);
    if (t->measured.bytes_per_second < 0.8 * t->rate) {
        check_judge(
            c, VERDICT_WARN,
            "less than 80 %% of its nominal %.3g GB/s: check its slot, the IOMMU and its NUMA node",
            t->rate / 1e9);
        check_command(c,
                      "numactl --cpunodebind=netdev:$(ls /sys/class/infiniband/%.*s/device/net | "
                      "head -n 1) ringinfo doctor   # see also the rows pcie and iommu",
                      device, t->port);
    } else if (t->rate > 0 && t->measured.slow_us > 3 * t->measured.median_us) {
        check_warn(
            c, "the 99th percentile is over three times the median: the CPU saves power or is busy",
            "sudo cpupower frequency-set -g performance");
    }
}

static void check_trials(checking *c)
{
    static const remedy remedies[] = {
        {"without libibverbs",
         "sudo apt install libibverbs-dev && cmake -B build && cmake --build build"},
        {"ulimit -l", REMEDY_MEMLOCK},
        {"no RDMA device", "rdma link   # of iproute2; none: sudo modprobe mlx5_ib, or its driver"},
        {"is not used", "ibv_devinfo -v   # of ibverbs-utils: the state of the port"},
        {NULL, "sudo apt install libibverbs1 ibverbs-providers   # then ibv_devinfo"}};
    if (c->f->no_trial[0] != '\0' && is_any_active(c->f)) {
        check_found(c, "no port can be used");
        check_fail(c, c->f->no_trial, "%s", remedy_for(remedies, c->f->no_trial));
    }
    for (const fact_trial *t = c->f->trials; t < c->f->trials + c->f->trial_count; t++) {
        const int device = (int)strcspn(t->port, ":");
        c->subject = t->port;
        if (t->error[0] == '\0') {
            judge_trial(c, t, device);
            continue;
        }
        check_found(c, "cannot send to itself");
        if (strstr(t->error, "cannot register") != NULL) {
            check_fail(c, t->error, REMEDY_MEMLOCK);
            continue;
        }
        check_fail(c, t->error,
                   "ibv_rc_pingpong -d %.*s & sleep 1; ibv_rc_pingpong -d %.*s localhost   # of "
                   "ibverbs-utils: does it fail without libring, too? add -g INDEX for RoCE",
                   device, t->port, device, t->port);
    }
}

static void check_counters(checking *c)
{
    const fact_port *p = c->port;
    char risen[256] = "", room[96];
    size_t used = 0, known = 0;
    for (size_t k = 0; k < FACTS_COUNTERS; k++) {
        const double rise = p->counters[1][k] - p->counters[0][k];
        known += p->counters[0][k] >= 0;
        if (p->counters[0][k] >= 0 && rise > 0 && used < sizeof risen)
            used += (size_t)snprintf(risen + used, sizeof risen - used, "%s%s +%.0f",
                                     used > 0 ? ", " : "", strchr(fact_counters[k], '/') + 1, rise);
    }
    if (c->f->seconds <= 0)
        return;
    if (known == 0) {
        check_nothing(c, "the driver has no counters");
        return;
    }
    check_found(c, "%s", used > 0 ? risen : "no counter rises");
    if (used == 0)
        return;
    check_judge(
        c, VERDICT_WARN,
        "in %.3g s; no counter rises in a healthy network: symbol and link errors mean bad "
        "cables, ack and sequence errors mean lost packets, rnr errors mean a slow receiver",
        c->f->seconds);
    if (p->is_roce)
        check_command(c, "ethtool -S %s   # which packets were lost; then another cable or port",
                      interface_of(p, room));
    else
        check_command(
            c, "perfquery -C %s -P %d -x   # of infiniband-diags; then another cable or port",
            p->device, p->number);
}

const check adapters_checks[] = {
    {OF_HOST, "adapters", "link", check_presence},
    {OF_PORTS, "adapters", "link", check_link},
    {OF_PORTS, "adapters", "state", check_state},
    {OF_ACTIVE_PORTS, "adapters", "rate", check_rate},
    {OF_ACTIVE_PORTS, "adapters", "mtu", check_mtu},
    {OF_ACTIVE_PORTS, "adapters", "pkeys", check_pkeys},
    {OF_ACTIVE_PORTS, "adapters", "gids", check_gids},
    {OF_ACTIVE_ROCE, "adapters", "gid_netdev", check_gid_devices},
    {OF_ACTIVE_ROCE, "adapters", "gid_address", check_gid_addresses},
    {OF_ACTIVE_ROCE, "adapters", "traffic_class", check_traffic_class},
    {OF_PORTS, "adapters", "firmware", check_firmware},
    {OF_HOST, "adapters", "self_test", check_trials},
    {OF_PORTS, "adapters", "counters", check_counters},
    {0},
};
