/* SPDX-License-Identifier: Apache-2.0
 * Finds a transport in the table by the name that a user has set or a peer has offered. */
#include "transport.h"

#include <string.h>

const transport *transport_find(const char *name)
{
    size_t count;
    const transport *const *all = transport_all(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(all[i]->name, name) == 0)
            return all[i];
    return NULL;
}
