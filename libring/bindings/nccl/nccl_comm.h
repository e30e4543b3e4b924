/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_comm: declares NCCL's communicator over one of libring, and what the files of libnccl.so.2
 * share: results with their texts, and the open group of a thread.
 *
 * Every function of NCCL that takes a communicator enters it first and leaves it last, so that
 * ncclCommAbort() in another thread can free it when no thread is inside.
 */
#ifndef RING_NCCL_COMM_H
#define RING_NCCL_COMM_H

#include "nccl.h"

#include "cuda_driver.h"

#include <stdatomic.h>

#define NCCL_TRY(expr) \
    do { \
        const ncclResult_t try_result = (expr); \
        if (try_result != ncclSuccess) \
            return try_result; \
    } while (0)

/** An operation of ncclRedOpCreatePreMulSum(). */
typedef struct premultiplied {
    bool used;
    ncclDataType_t type;
    const double *on_device; /* the factor in memory of the GPU; NULL: `factor` */
    double factor;
} premultiplied;

struct ncclComm {
    ring_comm *ring;
    int device;
    CUcontext context;
    bool blocking;
    _Atomic bool ready;   /* the start has ended */
    _Atomic bool aborted; /* no thread may enter any more */
    _Atomic bool flushes; /* ncclCommFinalize() has returned ncclInProgress */
    _Atomic int users;    /* threads inside */
    pthread_mutex_t lock; /* of the operations */
    premultiplied *operations;
    int operation_count;
};

/* ---- results.c ---- */
/** Sets this thread's error text. @return @p result. */
ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...) RING_PRINTF(2, 3);
/** @return the result of NCCL for libring's status, with libring's text. */
ncclResult_t nccl_result(ring_status status);
/** @return this thread's latest error text. */
const char *nccl_text(void);

/* ---- entry.c ---- */
/** Enters a communicator that may still be starting. If it succeeds, call nccl_leave(). */
ncclResult_t nccl_enter_any(ncclComm_t comm, const char *call);
/** As nccl_enter_any(), but fails before the start has ended. */
ncclResult_t nccl_enter(ncclComm_t comm, const char *call);
void nccl_leave(ncclComm_t comm);
/** Frees a communicator that no thread has entered. */
void nccl_free(ncclComm_t comm);

/* ---- groups.c ---- */
/** @return true in an open group. */
bool nccl_group_is_open(void);
/** Opens libring's group if one of NCCL is open. Calls and starts of communicators do not mix. */
ncclResult_t nccl_group_enter(void);
/** Lets the end of the group wait for the start of a communicator. @param out  set to NULL if the
 *  start fails. */
ncclResult_t nccl_group_add_start(ncclComm_t comm, ncclComm_t *out);
/** Frees memory of the GPU, in the order of the stream, after the calls of the group. */
ring_status nccl_group_add_memory(ncclComm_t comm, CUdeviceptr memory, CUstream stream);
/** Records a failed call, for which the group's end fails. */
void nccl_group_note(ncclResult_t result);

#endif
