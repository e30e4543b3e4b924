/* SPDX-License-Identifier: Apache-2.0
 * Limits of the process. */
#include "checks.h"

#include <math.h>
#include <stdio.h>

#define MIB 1048576.0

enum {
    LOCKED_FEW_MIB = 8,     /* Debian's limit; below it not even a few queues can be registered */
    LOCKED_ENOUGH_MIB = 64, /* below it buffers are registered piece by piece                   */
    FILES_FEW = 64,
    FILES_ENOUGH = 1024,
    PROCESSES_ENOUGH = 256,
};

static const char *bytes_text(double bytes, char out[32])
{
    if (isinf(bytes))
        snprintf(out, 32, "unlimited");
    else if (bytes < MIB)
        snprintf(out, 32, "%.10g KiB", bytes / 1024);
    else
        snprintf(out, 32, "%.10g MiB", floor(bytes / MIB * 10) / 10);
    return out;
}

static const char *count_text(double count, char out[32])
{
    snprintf(out, 32, isinf(count) ? "unlimited" : "%.10g", count);
    return out;
}

/* @param word  the limit's in limits.conf. @param option  ulimit's. @param wanted  for both. */
static void mend_limit(const facts *f, checking *c, const char *word, char option, double hard,
                       double wanted)
{
    char value[32];
    count_text(wanted, value);
    if (hard >= wanted)
        check_mend(c, "ulimit -%c %s", option, value);
    else if (f->limits.container)
        check_mend(c, "docker run --ulimit %s=%.0f ...", word, isinf(wanted) ? -1 : wanted);
    else
        check_mend(c,
                   "printf '* - %s %s\\n' | sudo tee /etc/security/limits.d/ring-%s.conf   # then "
                   "log in again",
                   word, value, word);
}

void check_memlock(const facts *f, checking *c)
{
    char text[32];
    const fact_limit limit = f->limits.locked;
    if (limit.soft < 0) {
        check_nothing(c, NULL, "not known");
        return;
    }
    check_found(c, NULL, "%s%s%s", bytes_text(limit.soft, text),
                f->limits.may_lock ? "; this process may lock more (CAP_IPC_LOCK)" : "",
                f->port_count == 0 ? "; of use with an adapter only" : "");
    if (f->port_count == 0 || f->limits.may_lock || limit.soft >= LOCKED_ENOUGH_MIB * MIB)
        return;
    if (limit.soft < LOCKED_FEW_MIB * MIB)
        check_judge(
            c, VERDICT_FAIL,
            "memory that an adapter reads and writes is locked, and less than %d MiB is not "
            "enough for its queues: registering memory (ibv_reg_mr) will fail",
            LOCKED_FEW_MIB);
    else
        check_judge(c, VERDICT_WARN,
                    "memory that an adapter reads and writes is locked; buffers above the limit "
                    "cannot be registered as a whole");
    mend_limit(f, c, "memlock", 'l', limit.hard, HUGE_VAL);
}

void check_nofile(const facts *f, checking *c)
{
    char text[32];
    const fact_limit limit = f->limits.files;
    if (limit.soft < 0)
        return;
    check_found(c, NULL, "%s open files", count_text(limit.soft, text));
    if (limit.soft >= FILES_ENOUGH)
        return;
    check_judge(c, limit.soft < FILES_FEW ? VERDICT_FAIL : VERDICT_WARN,
                "a rank holds a few descriptors for every rank that it talks to");
    mend_limit(f, c, "nofile", 'n', limit.hard, 4 * FILES_ENOUGH);
}

void check_nproc(const facts *f, checking *c)
{
    char text[32];
    const fact_limit limit = f->limits.processes;
    if (limit.soft < 0)
        return;
    check_found(c, NULL, "%s processes and threads of this user", count_text(limit.soft, text));
    if (limit.soft >= PROCESSES_ENOUGH)
        return;
    check_judge(c, VERDICT_WARN,
                "each rank has threads of its own, and the limit holds for all processes of the "
                "user together");
    mend_limit(f, c, "nproc", 'u', limit.hard, 16 * PROCESSES_ENOUGH);
}

void check_address_space(const facts *f, checking *c)
{
    char text[32];
    const fact_limit limit = f->limits.address_space;
    if (limit.soft < 0)
        return;
    check_found(c, NULL, "%s", bytes_text(limit.soft, text));
    if (isinf(limit.soft))
        return;
    check_judge(c, VERDICT_WARN,
                "ranks map each other's memory: where there is no room for that, what they send is "
                "copied");
    mend_limit(f, c, "as", 'v', limit.hard, HUGE_VAL);
}

void check_pids(const facts *f, checking *c)
{
    const double most = f->cpu.pids_max, used = f->cpu.pids_used;
    if (most < 0)
        return;
    check_found(c, NULL, "%.0f of %.0f processes and threads of the cgroup are in use", used, most);
    if (most - used >= PROCESSES_ENOUGH)
        return;
    check_judge(c, VERDICT_WARN, "each rank has threads of its own, which could not be started");
    if (f->limits.container)
        check_mend(c, "docker run --pids-limit %d ...", 16 * PROCESSES_ENOUGH);
    else
        check_mend(c, "echo max | sudo tee %s/pids.max", f->cpu.pids_folder);
}
