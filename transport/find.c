/* SPDX-License-Identifier: Apache-2.0
 * Finds a transport in the table by its name, for users' settings and for peers' offers. */
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
