/* SPDX-License-Identifier: Apache-2.0
 *
 * place: defines where a network's arrays are and what computes on them: the host, or a GPU
 * (train/cuda). A place is a table of functions. Passes, copies and fences are requests that the
 * place executes in the order in which they are made; the host executes each at once, a GPU later.
 *
 * Requests report nothing. The place keeps the first failure, and settle() returns it.
 *
 * A place other than the host also runs whole updates of a network without waiting for the host in
 * between (place_updates). The host states each update in a record, and reads its outcome later.
 * A place may keep the requests of an update, and execute them again for the next one.
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
    double *sum;     /* the losses of all rows are added to it; NULL: to those of the update */
} loss_run;

typedef struct nn_place nn_place;

/** What all updates of an engine have in common. */
typedef struct update_plan {
    size_t steps;    /* calls of sgd(), adam(), lion() and adagrad() in an update */
    size_t samples;  /* most samples of an update */
    size_t features; /* elements of a sample */
    bool overlaps;   /* gradients of parameters may be computed beside later requests: no other
                        request writes their operands before the next take() or judge() */
    /* Memory of the place where take() puts a micro-batch. */
    float *inputs;     /* [rows, features] */
    uint32_t *labels;  /* [rows] */
    uint32_t *numbers; /* [rows] of the samples */
} update_plan;

/** Samples that are kept at the place. */
typedef struct kept_samples {
    const uint8_t *bytes;  /* [count, channels, features / channels] */
    const uint8_t *labels; /* [count] */
    size_t count, channels;
    const float *values; /* [channels, 256] the number of each byte */
} kept_samples;

/** Where the host states an update, on the host. */
typedef struct update_record {
    uint32_t *samples; /* [plan.samples] numbers of the samples */
    /* If the place does not keep the samples: */
    float *inputs;    /* [plan.samples, features]; NULL: it keeps them */
    uint32_t *labels; /* [plan.samples] */
} update_record;

/** What decides the requests of an update. Updates with equal keys make the same requests. All
 *  members are plain numbers, so that keys are compared by their bytes; make it with = {0}. */
typedef struct update_key {
    uint64_t micro_batches, micro, samples, total;
} update_key;

typedef struct update_outcome {
    double loss;    /* sum of the losses */
    double squares; /* sum of the squares of the gradients */
    bool skipped;   /* a loss or gradient was not finite, so this update and all later ones have
                       changed nothing */
} update_outcome;

enum { PLACE_UPDATES_MAX = 16 /* most updates whose outcomes have not been read */ };

/** Updates at a place other than the host. */
typedef struct place_updates {
    /** Prepares for the updates of one engine, which ends those of another one.
     *  @param samples  if they fit, they are copied to the place, and all updates take their
     * samples from there; NULL: each update's record has its samples
     *  @return RING_OK, RING_ERR_MEMORY, or a failure of the place. */
    ring_status (*open)(const nn_place *place, const update_plan *plan,
                        const kept_samples *samples);
    /** Frees what open() has made, after all updates have been computed. */
    void (*close)(const nn_place *place);

    /** @return the record of the next update, which the caller fills in before begin(). */
    update_record (*record)(const nn_place *place);
    /** Begins an update. Until end() returns true, requests belong to it.
     *  @param step  number of the update, for dropout
     *  @return false if the place has kept the requests of such an update: only those of steps are
     *  then made, and state the steps' factors. */
    bool (*begin)(const nn_place *place, const update_key *key, uint32_t step);
    /** Copies samples @p first to first + @p rows - 1 of the update to where the plan says. Sets
     * the losses of the update to 0 if @p first is 0. */
    void (*take)(const nn_place *place, size_t first, size_t rows);
    /** Computes the factor by which the update's steps multiply gradients so that their norm is at
     *  most @p most (0: there is no limit), and whether the steps are skipped.
     *  @param grads [count] of all parameters */
    void (*judge)(const nn_place *place, const float *grads, size_t count, double most);
    /** @return true if the update is complete; false: all of its requests must be made again, while
     *  the place keeps them. */
    bool (*end)(const nn_place *place);

    /** Reads the outcome of the earliest update that has not been read.
     *  @param wait  waits until the place has computed it
     *  @param[out] found  whether there is one. @return RING_OK or a failure of the place. */
    ring_status (*next)(const nn_place *place, bool wait, update_outcome *outcome, bool *found);
    /** Lets updates change parameters again after one was skipped. All must have been read. */
    void (*resume)(const nn_place *place);
} place_updates;

struct nn_place {
    const char *name;           /* "cpu", "cuda:0" */
    bool is_host;               /* the host may read and write its memory */
    size_t alignment;           /* elements, of which offsets of parameters should be multiples */
    const char *(*maths)(void); /* @return the name of the library that multiplies matrices */

    /** Allocates @p bytes of zeroed memory, aligned for vectors of any type. @param what  names the
     *  data in messages. @return RING_OK, RING_ERR_MEMORY, or a failure of the place. */
    ring_status (*alloc)(const nn_place *place, void **out, size_t bytes, const char *what);
    /** Frees memory of alloc(), after all requests have been executed. NULL is allowed. */
    void (*release)(const nn_place *place, void *memory);

    /** @return the passes of an op, or NULL if the place cannot compute it. */
    const op_functions *(*functions)(const nn_op *op);
    /** @return bytes of scratch memory of a pass of at most @p batch samples; beside: for gradients
     * of parameters, if the place may compute them beside other passes. */
    size_t (*scratch_bytes)(const op_use *use, size_t batch);
    size_t (*scratch_beside)(const op_use *use, size_t batch);

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

    const place_updates *updates; /* NULL on the host */

    /** Waits until all requests and updates have been executed.
     *  @return RING_OK, or the first failure of a request, with its error text; every later call
     *  returns it, too. */
    ring_status (*settle)(const nn_place *place);
};

/** The host. */
extern const nn_place place_host;

#endif
