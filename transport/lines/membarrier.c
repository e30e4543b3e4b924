/* SPDX-License-Identifier: Apache-2.0
 * Two commands of membarrier(2), for which there is no wrapper in libc. */
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
    return false; /* it does not know the kernel's ordering */
#else
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
#endif
}

bool membarrier_all(void)
{
    return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}
