/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_rooms: memory of the host that GPUs of several processes read and write. Where GPUs cannot
 * access each other's memory, their messages go through it. A room is a memfd, which has no name in
 * any file system, so that nothing remains of it when its processes are killed. Each process maps
 * it and registers the mapping with the driver.
 */
#ifndef RING_CUDA_ROOMS_H
#define RING_CUDA_ROOMS_H

#include "accelerator_programs.h"
#include "cuda_memory.h"

/** A room as it is mapped in this process. */
typedef struct cuda_room {
    void *at; /* NULL: not open */
    CUdeviceptr there;
    size_t bytes;
} cuda_room;

/** Creates a zeroed room, whose pages take memory when it is first opened.
 *  @param[out] file  its descriptor, which the caller closes when all processes have opened it. */
ring_status cuda_room_new(size_t bytes, int *file);
/** Describes a room to processes of this host. */
ring_status cuda_room_describe(int file, accelerator_room *out);
/** Maps a room and registers it. The thread has entered the device's context.
 *  @return RING_ERR_UNSUPPORTED: this process may not open files of the other one. */
ring_status cuda_room_open(const accelerator_room *room, cuda_room *out);
/** Unmaps a room, which need not be open. Others may go on using it. */
void cuda_room_close(cuda_room *r);

#endif
