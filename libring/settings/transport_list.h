/* SPDX-License-Identifier: Apache-2.0
 * transport list: RING_TRANSPORT as a set. */
#ifndef RING_TRANSPORT_LIST_H
#define RING_TRANSPORT_LIST_H

#include "settings.h"

/** Bit mask of transports that RING_TRANSPORT allows among @p names (bit i = names[i]);
 *  RING_ERR_CONFIG with the known names if one is unknown or nothing is left.
 *  @param asked  bits of those that are used only if they are named. */
ring_status settings_transports(const settings *s, const char *const *names, size_t count,
                                uint32_t asked, uint32_t *mask);

#endif
