/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps the callback that wakes sleeping threads. The core sets it, so that lower rooms, such as
 * the transports, can report a completion without depending on the core.
 */
#include "ticket.h"

#include <stddef.h>

static void (*_Atomic on_wake)(void);

void ticket_on_wake(void (*wake)(void))
{
    atomic_store(&on_wake, wake);
}

void ticket_wake_all(void)
{
    void (*wake)(void) = atomic_load(&on_wake);
    if (wake != NULL)
        wake();
}
