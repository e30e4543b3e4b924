/* SPDX-License-Identifier: Apache-2.0
 * slot_format: how a frame stands in a slot, and whether all of it has come. */
#ifndef RING_SLOT_FORMAT_H
#define RING_SLOT_FORMAT_H

#include "verbs.h"

verbs_slot verbs_slot_of(const transport_frame *frame, uint64_t number);
/** @return false while some of slot @p number is not here. */
bool verbs_read_slot(const verbs_link *l, uint64_t number, verbs_slot *out);
/** The last word of a slot, which is polled. */
const _Atomic uint32_t *verbs_stamp_word(const verbs_link *l, uint64_t number);
bool verbs_is_stamped(const verbs_link *l, uint64_t number);
/** @return true if a frame is here that nobody has looked at, or a part of one. */
bool verbs_has_frame(const verbs_link *l);
/** Slots that have come in a row, taken or not. */
uint64_t verbs_arrived(const verbs_link *l);

#endif
