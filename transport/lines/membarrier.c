/* SPDX-License-Identifier: Apache-2.0
 * Calls membarrier(2) directly, because libc has no wrapper for it. */
#include "membarrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

bool membarrier_join(void)
{
#if defined(__SANITIZE_THREAD__)
    return false; /* ThreadSanitizer does not understand the kernel's barriers */
#else
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
#endif
}

bool membarrier_all(void)
{
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
