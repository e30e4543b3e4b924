/* SPDX-License-Identifier: Apache-2.0
 *
 * checks: what the doctor judges. A check is a row of one table; it looks at facts alone, and adds
 * a row to the report for each thing that it looks at: what was found, and where that is not right,
 * why, and the command that mends it.
 */
#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H

#include "facts.h"
#include "info_report.h"

/** The report, and the check that adds to it. */
typedef struct checking {
    report *r;
    const char *section, *name;
} checking;

typedef struct check {
    const char *section, *name;
    void (*judge)(const facts *f, checking *c);
} check;

/** Runs all checks. */
void checks_run(const facts *f, report *r);

/* ---- For checks */

/** Adds a row, which is right unless judged otherwise. @param subject  of several things that the
 *  check looks at: "mlx5_0:1"; NULL: there is one. */
void check_found(checking *c, const char *subject, const char *format, ...) RING_PRINTF(3, 4);
/** Adds a row about what is not there, or cannot be judged. */
void check_nothing(checking *c, const char *subject, const char *format, ...) RING_PRINTF(3, 4);
/** Judges the latest row. @p format: why. */
void check_judge(checking *c, verdict v, const char *format, ...) RING_PRINTF(3, 4);
/** The command that mends what the latest row says. */
void check_mend(checking *c, const char *format, ...) RING_PRINTF(2, 3);

/* ---- The checks */

void check_memlock(const facts *f, checking *c);
void check_nofile(const facts *f, checking *c);
void check_nproc(const facts *f, checking *c);
void check_address_space(const facts *f, checking *c);
void check_pids(const facts *f, checking *c);

void check_shm(const facts *f, checking *c);
void check_heap(const facts *f, checking *c);
void check_group_memory(const facts *f, checking *c);

void check_cpus(const facts *f, checking *c);
void check_quota(const facts *f, checking *c);
void check_governor(const facts *f, checking *c);
void check_ranks(const facts *f, checking *c);

void check_interfaces(const facts *f, checking *c);
void check_chosen(const facts *f, checking *c);
void check_hostname(const facts *f, checking *c);
void check_net_errors(const facts *f, checking *c);

void check_port_link(const facts *f, checking *c);
void check_port_state(const facts *f, checking *c);
void check_port_rate(const facts *f, checking *c);
void check_port_mtu(const facts *f, checking *c);
void check_port_pkeys(const facts *f, checking *c);
void check_port_firmware(const facts *f, checking *c);
void check_port_counters(const facts *f, checking *c);
void check_port_trial(const facts *f, checking *c);

void check_gids(const facts *f, checking *c);
void check_gid_devices(const facts *f, checking *c);
void check_gid_addresses(const facts *f, checking *c);
void check_traffic_class(const facts *f, checking *c);

void check_gpus(const facts *f, checking *c);
void check_driver(const facts *f, checking *c);
void check_peer_memory(const facts *f, checking *c);
void check_pcie(const facts *f, checking *c);
void check_distance(const facts *f, checking *c);
void check_access_control(const facts *f, checking *c);
void check_iommu(const facts *f, checking *c);

void check_versions(const facts *f, checking *c);
void check_settings(const facts *f, checking *c);
void check_variables(const facts *f, checking *c);
void check_secret(const facts *f, checking *c);
void check_leftovers(const facts *f, checking *c);

/* ---- What several of them need */

/** "mlx5_0:1" */
const char *check_port_name(const fact_port *p, char out[48]);
bool check_is_roce(const fact_port *p);
bool check_is_active(const fact_port *p);
/** @return the interface that a RoCE port's GIDs belong to; NULL. */
const fact_interface *check_port_interface(const facts *f, const fact_port *p);
/** The GID that hosts should use: RoCE v2 before v1, IPv4 before others, link-local last.
 *  @return NULL: there is none. */
const fact_gid *check_best_gid(const fact_port *p);
/** The value that a RoCE port's packets carry: the setting's, else the device's; 0 by default. */
int check_traffic_class_of(const fact_port *p);
/** The largest MTU of InfiniBand that fits the interface's. */
int check_active_mtu(long interface_mtu);

#endif
