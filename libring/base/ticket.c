/* SPDX-License-Identifier: Apache-2.0
 * The waiter that is woken. */
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
