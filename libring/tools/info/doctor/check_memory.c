/* SPDX-License-Identifier: Apache-2.0
 * Memory: shared, and of the cgroup. */
#include "checks.h"

#define MIB 1048576.0

enum { SHM_ENOUGH_MIB = 512, LEFT_FEW_MIB = 64, LEFT_ENOUGH_MIB = 1024 };

void check_heap(const facts *f, checking *c)
{
    const char *error = f->memory.heap_error;
    check_found(c, NULL, *error == '\0' ? "works, by memfd" : "does not work");
    if (*error == '\0')
        return;
    check_judge(c, VERDICT_FAIL, "%.300s", error);
    check_mend(c, "ulimit -v unlimited; ulimit -f unlimited");
}

void check_shm(const facts *f, checking *c)
{
    if (f->memory.shm < 0) {
        check_nothing(c, NULL, "not there; libring does not need it");
        return;
    }
    check_found(c, NULL, "room for %.0f MiB", f->memory.shm / MIB);
    if (f->memory.shm >= SHM_ENOUGH_MIB * MIB)
        return;
    check_judge(c, VERDICT_WARN,
                "libring does without, but what often runs beside it does not: data loaders of "
                "PyTorch, NCCL and MPI fail or crash (SIGBUS) below %d MiB",
                SHM_ENOUGH_MIB);
    if (f->limits.container)
        check_mend(c, "docker run --shm-size=1g ...");
    else
        check_mend(c, "sudo mount -o remount,size=1g /dev/shm");
}

void check_group_memory(const facts *f, checking *c)
{
    const facts_memory *m = &f->memory;
    const double left = (m->group_limit - m->group_used) / MIB;
    if (m->group_limit < 0) {
        check_found(c, NULL, "no limit below the machine's %.0f MiB", m->total / MIB);
        return;
    }
    check_found(c, NULL, "%.0f of %.0f MiB are left", left, m->group_limit / MIB);
    if (left >= LEFT_ENOUGH_MIB)
        return;
    check_judge(c, left < LEFT_FEW_MIB ? VERDICT_FAIL : VERDICT_WARN,
                "buffers and what ranks send ahead must fit; ring_mem_alloc refuses what does not, "
                "and processes that take more are killed");
    if (f->limits.container)
        check_mend(c, "docker run --memory=8g ...");
    else
        check_mend(c, "echo %s | sudo tee %s/%s", m->group_version == 1 ? "-1" : "max",
                   m->group_folder, m->group_version == 1 ? "memory.limit_in_bytes" : "memory.max");
}
