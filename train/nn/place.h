/* SPDX-License-Identifier: Apache-2.0
 *
 * place: defines where a network's arrays are and what computes on them: the host, or a GPU
 * (train/cuda). A place is a table of functions. Passes, copies and fences are requests that the
 * place executes in the order in which they are made; the host executes each at once, a GPU later.
 *
 * Requests report nothing. The place keeps the first failure, and settle() returns it.
 */
#ifndef TRAIN_PLACE_H
#define TRAIN_PLACE_H

#include "op.h"

typedef struct nn_place nn_place;

struct nn_place {
    const char *name; /* "cpu", "cuda:0" */
    bool is_host;     /* the host may read and write its memory */

    /** Allocates @p bytes of zeroed memory, aligned for vectors of any type. @param what  names the
     *  data in messages. @return RING_OK or RING_ERR_MEMORY. */
    ring_status (*alloc)(const nn_place *place, void **out, size_t bytes, const char *what);
    /** Frees memory of alloc(), after all requests have been executed. NULL is allowed. */
    void (*release)(const nn_place *place, void *memory);

    /** @return the passes of an op, or NULL if the place cannot compute it. */
    const op_functions *(*functions)(const nn_op *op);
    /** @return bytes of scratch memory of a pass of at most @p batch samples. */
    size_t (*scratch_bytes)(const op_use *use, size_t batch);

    /** Copy from and to memory of the host, which must not change until settle(). */
    void (*write)(const nn_place *place, void *to, const void *from, size_t bytes);
    void (*read)(const nn_place *place, void *to, const void *from, size_t bytes);
    /** Copies between two arrays of the place, which do not overlap. */
    void (*copy)(const nn_place *place, void *to, const void *from, size_t bytes);
    /** Sets bytes to 0. */
    void (*clear)(const nn_place *place, void *at, size_t bytes);
    /** to[i] += from[i] */
    void (*add)(const nn_place *place, float *to, const float *from, size_t count);

    /** Waits until all requests have been executed.
     *  @return RING_OK, or the first failure of a request, with its error text; every later call
     *  returns it, too. */
    ring_status (*settle)(const nn_place *place);
};

/** The host. */
extern const nn_place place_host;

#endif
