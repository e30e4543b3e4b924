/* SPDX-License-Identifier: Apache-2.0
 *
 * nccl_comm: declares NCCL's communicator over one of libring, and what the files of libnccl.so.2
 * share: results with their texts, and the open group of a thread.
 *
 * Every function of NCCL that takes a communicator enters it first and leaves it last, so that
 * ncclCommAbort() in another thread can end it when no thread is inside. An open group is not
 * inside; it keeps the struct by a reference.
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
    _Atomic bool ready;     /* the start has ended */
    _Atomic bool ended;     /* no thread may enter any more; the one that sets it ends it */
    _Atomic bool flushes;   /* ncclCommFinalize() has returned ncclInProgress */
    _Atomic int users;      /* threads inside */
    _Atomic int references; /* the caller's, and those of open groups */
    pthread_mutex_t lock;   /* of the operations */
    premultiplied *operations;
    int operation_count;
};

/* ---- results.c ---- */
/** Sets this thread's error text. @return @p result. */
ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...) RING_PRINTF(2, 3);
/** @return the result of NCCL for libring's status, with libring's text of this thread. */
ncclResult_t nccl_result(ring_status status);
/** As nccl_result(), with the text of the communicator's error. */
ncclResult_t nccl_result_of(const ring_comm *comm, ring_status status);
/** @return the result of a call of CUDA's driver. */
ncclResult_t nccl_cuda(CUresult result, const char *call);

/* ---- entry.c ---- */
/** Enters a communicator that may still be starting. If it succeeds, call nccl_leave(). */
ncclResult_t nccl_enter_any(ncclComm_t comm, const char *call);
/** As nccl_enter_any(), but fails before the start has ended. */
ncclResult_t nccl_enter(ncclComm_t comm, const char *call);
void nccl_leave(ncclComm_t comm);
/** Ends a communicator, unless another thread does. Call it from outside of the communicator; it
 *  waits until no thread is inside, and gives up the caller's reference.
 *  @param aborts  ends the calls under way, also those of other ranks. */
void nccl_end(ncclComm_t comm, bool aborts);
/** Gives up a reference. */
void nccl_release(ncclComm_t comm);

/* ---- groups.c ---- */
/** @return true in an open group. */
bool nccl_group_is_open(void);
/** If a group is open, opens libring's, too, and keeps the communicator until its end. Calls and
 *  starts of communicators do not mix. */
ncclResult_t nccl_group_enter(ncclComm_t comm);
/** Lets the end of the group wait for the start of a communicator. @param out  set to NULL if the
 *  start fails. */
ncclResult_t nccl_group_add_start(ncclComm_t comm, ncclComm_t *out);
/** Records a failed call, for which the group's end fails. @return @p result. */
ncclResult_t nccl_group_note(ncclResult_t result);

#endif
