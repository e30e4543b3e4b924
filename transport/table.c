/* SPDX-License-Identifier: Apache-2.0
 * Lists all transports in order of preference. Two ranks use the first one that can connect
 * them. */
#include "table.h"

static const transport *const transports[] = {
    &transport_loop, &transport_shm, &transport_verbs, &transport_ucx, &transport_tcp,
};
enum { TRANSPORTS = sizeof transports / sizeof transports[0] };

const transport *const *transport_all(size_t *count)
{
    *count = TRANSPORTS;
    return transports;
}
