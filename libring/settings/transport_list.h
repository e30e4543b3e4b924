/* SPDX-License-Identifier: Apache-2.0
 * transport_list: turns the value of RING_TRANSPORT into a set of transports. */
#ifndef RING_TRANSPORT_LIST_H
#define RING_TRANSPORT_LIST_H

#include "settings.h"

/** Computes the transports that RING_TRANSPORT allows.
 *  @param names  [count] the known transports.
 *  @param asked  bits of those that are used only if the list names them.
 *  @param[out] mask  bit i is set if names[i] is allowed.
 *  @return RING_ERR_CONFIG, with the known names, if a name is unknown or no transport is allowed.
 */
ring_status settings_transports(const settings *s, const char *const *names, size_t count,
                                uint32_t asked, uint32_t *mask);

#endif
