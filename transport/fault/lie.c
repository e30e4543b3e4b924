/* SPDX-License-Identifier: Apache-2.0
 * Falsifies headers the way a faulty peer might, for the fault "lie". */
#include "fault.h"

enum { DICE_WHAT = 4, DICE_VALUE, DICE_WAY };

/* @return a value close to the true one, or far from it. */
static uint64_t other_than(uint64_t truth, uint64_t way, uint64_t value)
{
    const uint64_t others[] = {0,     truth + 1, truth - 1, truth ^ UINT64_C(1) << value % 64,
                               value, UINT64_MAX};
    return others[way % (sizeof others / sizeof *others)];
}

static void lie_in_long(transport_frame *frame, uint64_t what, uint64_t way, uint64_t value)
{
    uint64_t *const wide[] = {&frame->ext.count, &frame->ext.src_ref, &frame->ext.dst_ref,
                              &frame->ext.bytes};
    /* The link itself checks a carried payload's length, and src_ref without FRAME_REF. */
    const bool refers = frame->flags != FRAME_LONG;
    if (what % 6 == 4)
        frame->ext.segment = (uint32_t)other_than(frame->ext.segment, way, value);
    else if (what % 6 == 5)
        frame->ext.root = (int32_t)other_than((uint64_t)frame->ext.root, way, value);
    else if (refers || what % 6 == 0 || what % 6 == 2)
        *wide[what % 6] = other_than(*wide[what % 6], way, value);
}

void fault_lie(const fault_link *l, transport_frame *frame)
{
    const uint64_t number = l->head.frames_sent, what = fault_random(l, DICE_WHAT, number);
    const uint64_t value = fault_random(l, DICE_VALUE, number);
    const uint64_t way = fault_random(l, DICE_WAY, number);
    switch (what % 5) {
    case 0:
        frame->call = (uint16_t)other_than(frame->call, way, value);
        break;
    case 1:
        frame->signature = other_than(frame->signature, way, value);
        break;
    case 2:
        frame->message = other_than(frame->message, way, value);
        break;
    default:
        if (frame->flags & FRAME_LONG)
            lie_in_long(frame, what / 5, way, value);
        else if (what / 5 % 2 == 0)
            frame->length = (uint8_t)(value % (TRANSPORT_INLINE + 1));
        else
            frame->data[value % TRANSPORT_INLINE] ^= (unsigned char)(1 + (value >> 8) % 255);
    }
}
