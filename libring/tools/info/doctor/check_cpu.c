/* SPDX-License-Identifier: Apache-2.0
 * Cores, and the time that they give. */
#include "checks.h"

void check_cpus(const facts *f, checking *c)
{
    check_found(c, NULL, "%d logical CPUs, %d NUMA node%s, hyper-threads %s", f->cpu.cpus,
                f->cpu.numas > 0 ? f->cpu.numas : 1, f->cpu.numas > 1 ? "s" : "",
                f->cpu.hyper_threads ? "on" : "off");
}

void check_quota(const facts *f, checking *c)
{
    const double quota = f->cpu.quota;
    if (quota <= 0) {
        check_found(c, NULL, "none: the cgroup grants all CPUs");
        return;
    }
    check_found(c, NULL, "%.4g CPUs' worth of time (cgroup)", quota);
    if (quota >= f->cpu.cpus)
        return;
    check_judge(c, VERDICT_WARN,
                "less than the %d CPUs that ranks may run on: when it is used up all of them stand "
                "still, and the others wait for them",
                f->cpu.cpus);
    if (f->limits.container)
        check_mend(c, "docker run --cpus=%d ...", f->cpu.cpus);
    else
        check_mend(c, "ringrun -n %.0f PROGRAM   # at most one rank for each",
                   quota < 1 ? 1 : quota);
}

void check_governor(const facts *f, checking *c)
{
    const facts_cpu *cpu = &f->cpu;
    if (cpu->governor[0] == '\0') {
        check_nothing(c, NULL, "none: the frequency is not this system's to choose");
        return;
    }
    check_found(c, NULL, "%s (%s%s%s)", cpu->governor, cpu->driver,
                cpu->preference[0] != '\0' ? ", " : "", cpu->preference);
    if (cpu->slow_cpus == 0)
        return;
    check_judge(c, VERDICT_WARN,
                "%d CPUs save power: short messages and folds run at a low frequency",
                cpu->slow_cpus);
    check_mend(c, "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/%s",
               cpu->preference[0] != '\0' ? "energy_performance_preference" : "scaling_governor");
}

void check_ranks(const facts *f, checking *c)
{
    const int ranks = f->cpu.local_ranks;
    if (ranks <= 1) {
        check_nothing(c, NULL, "not in a job; under ringrun or another launcher they are counted");
        return;
    }
    check_found(c, NULL, "%d on this host", ranks);
    if (ranks <= f->cpu.cpus)
        return;
    check_judge(c, VERDICT_WARN,
                "more than the %d CPUs that they may run on: each step waits until all had their "
                "turn",
                f->cpu.cpus);
    check_mend(c, "ringrun -n %d PROGRAM", f->cpu.cpus);
}
