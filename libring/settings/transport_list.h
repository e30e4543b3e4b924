/* SPDX-License-Identifier: Apache-2.0
 * transport_list: turns the value of RING_TRANSPORT into a set of transports. */
#ifndef RING_TRANSPORT_LIST_H
#define RING_TRANSPORT_LIST_H

#include "settings.h"

/** Bit mask of transports that RING_TRANSPORT allows among @p names (bit i = names[i]);
 *  RING_ERR_CONFIG, naming the known ones, if a name is unknown or the set is empty.
 *  @param asked  bits of the transports that are used only if the list names them. */
ring_status settings_transports(const settings *s, const char *const *names, size_t count,
                                uint32_t asked, uint32_t *mask);

#endif
