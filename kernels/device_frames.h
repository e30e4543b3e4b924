/* SPDX-License-Identifier: Apache-2.0
 *
 * device_frames: defines the frames that accelerators exchange when they run programs, and the
 * receipts for them. The kernels of an accelerator write and read both; if two accelerators are on
 * different hosts, the engine carries them over a link (device_proxy.h). C and C++ include this.
 */
#ifndef RING_DEVICE_FRAMES_H
#define RING_DEVICE_FRAMES_H

#include <stdint.h>

/** device_frame.call of a message of a pair, with its bytes in all lanes. */
#define DEVICE_PAIR_CALL(bytes) (UINT64_C(1) << 63 | (bytes))

/** How the bytes of a frame are delivered. */
enum { DEVICE_CARRIED, DEVICE_REFERRED, DEVICE_STORED };

typedef struct device_frame {
    uint64_t stamp;     /* its number on the link, from 1; written last                 */
    uint64_t call;      /* the call's number on the communicator, or DEVICE_PAIR_CALL() */
    uint64_t signature; /* of the call                                                  */
    uint64_t at;        /* referred to: the sender's address; carried: the offset in the box */
    uint64_t dst;       /* address of the sender's dst; 0 if it has none                     */
    uint64_t bytes;     /* of the frame; if stored, of the message                           */
    uint32_t way;       /* DEVICE_CARRIED, DEVICE_REFERRED or DEVICE_STORED                  */
    uint32_t last;      /* 1 for the last frame of a message                                 */
    uint64_t unused;
} device_frame;

/** The receiver's progress, in the sender's memory. */
typedef struct device_receipt {
    uint64_t taken;    /* frames that the receiver has read                           */
    uint64_t released; /* messages of which it no longer needs the sender's memory    */
} device_receipt;

#endif
