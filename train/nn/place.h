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

#include "loss.h"
#include "op.h"

struct kernel_sgd; /* the optimisers' arguments are defined in kernels.h */
struct kernel_adam;
struct kernel_lion;
struct kernel_adagrad;

/** Operands of a loss, in memory of the place. */
typedef struct loss_run {
    loss_kind kind;
    const float *outputs;   /* [rows, classes] */
    const uint32_t *labels; /* [rows] */
    size_t rows, classes;
    double scale;    /* factor of the gradient */
    float *gradient; /* [rows, classes] of the loss with respect to the outputs */
    double *sum;     /* the losses of all rows are added to it */
} loss_run;

typedef struct nn_place nn_place;

struct nn_place {
    const char *name;           /* "cpu", "cuda:0" */
    bool is_host;               /* the host may read and write its memory */
    const char *(*maths)(void); /* @return the name of the library that multiplies matrices */

    /** Allocates @p bytes of zeroed memory, aligned for vectors of any type. @param what  names the
     *  data in messages. @return RING_OK, RING_ERR_MEMORY, or a failure of the place. */
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

    /** Computes a loss and its gradient (loss.h). */
    void (*loss)(const nn_place *place, const loss_run *run);

    /** Steps of optimisers, as kernel_sgd_step() and the others (kernels.h) define them. Arrays
     * have
     *  @p count elements. */
    void (*sgd)(const nn_place *place, float *p, const float *grad, float *buf, size_t count,
                const struct kernel_sgd *args);
    void (*adam)(const nn_place *place, float *p, const float *grad, float *m, float *v,
                 size_t count, const struct kernel_adam *args);
    void (*lion)(const nn_place *place, float *p, const float *grad, float *m, size_t count,
                 const struct kernel_lion *args);
    void (*adagrad)(const nn_place *place, float *p, const float *grad, float *sum, size_t count,
                    const struct kernel_adagrad *args);
    /** @return the sum of squares in float64, added up in a fixed order, which is not the same at
     *  all places. Waits for all requests. */
    double (*sum_squares)(const nn_place *place, const float *values, size_t count);

    /** Waits until all requests have been executed.
     *  @return RING_OK, or the first failure of a request, with its error text; every later call
     *  returns it, too. */
    ring_status (*settle)(const nn_place *place);
};

/** The host. */
extern const nn_place place_host;

#endif
