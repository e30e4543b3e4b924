/* SPDX-License-Identifier: Apache-2.0
 * Ports that were used: whether that works, how long it takes and how fast it is. */
#include "checks.h"

#include <string.h>

static bool is_any_active(const facts *f)
{
    for (size_t i = 0; i < f->port_count; i++)
        if (check_is_active(&f->ports[i]))
            return true;
    return false;
}

static void judge_failure(checking *c, const fact_trial *t)
{
    check_found(c, t->port, "does not send to itself");
    check_judge(c, VERDICT_FAIL, "%.380s", t->error);
    check_mend(c,
               "ibv_rc_pingpong -d %.*s & sleep 1; ibv_rc_pingpong -d %.*s localhost   # of "
               "ibverbs-utils: does it fail without libring, too? add -g INDEX for RoCE",
               (int)strcspn(t->port, ":"), t->port, (int)strcspn(t->port, ":"), t->port);
}

static void judge_speed(checking *c, const fact_trial *t)
{
    if (t->rate > 0 && t->bytes_per_second < 0.8 * t->rate) {
        check_judge(c, VERDICT_WARN,
                    "less than 80 %% of the %.3g GB/s that the port is made for: its slot, the "
                    "IOMMU, or memory of another NUMA node",
                    t->rate / 1e9);
        check_mend(c,
                   "numactl --cpunodebind=netdev:$(ls /sys/class/infiniband/%.*s/device/net | "
                   "head -n 1) ringinfo doctor   # and see the rows pcie and iommu",
                   (int)strcspn(t->port, ":"), t->port);
    } else if (t->slow_us > 3 * t->median_us && t->rate > 0) {
        check_judge(c, VERDICT_WARN,
                    "one of a hundred takes more than three times the median: the processor saves "
                    "power, or does something else");
        check_mend(c, "sudo cpupower frequency-set -g performance");
    }
}

void check_port_trial(const facts *f, checking *c)
{
    if (f->no_trial[0] != '\0' && is_any_active(f)) {
        check_found(c, NULL, "no port can be used");
        check_judge(c, VERDICT_FAIL, "%.380s", f->no_trial);
        check_mend(c, "sudo apt install libibverbs1 ibverbs-providers   # then ibv_devinfo");
    }
    for (size_t i = 0; i < f->trial_count; i++) {
        const fact_trial *t = &f->trials[i];
        if (t->error[0] != '\0') {
            judge_failure(c, t);
            continue;
        }
        check_found(c, t->port, "%.3g us there and back (99 of 100: %.3g us), %.3g GB/s to itself",
                    t->median_us, t->slow_us, t->bytes_per_second / 1e9);
        judge_speed(c, t);
    }
}
