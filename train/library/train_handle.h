/* SPDX-License-Identifier: Apache-2.0
 *
 * train_handle: defines struct ring_train, the state of the library's engine on one rank, which the
 * files of this folder share.
 */
#ifndef TRAIN_HANDLE_H
#define TRAIN_HANDLE_H

#include <ring/train.h>

#include "open_update.h"
#include "trainer.h"
#include "user_data.h"
#include "user_op.h"

/** The micro-batch that ring_train_next() gave out. */
typedef struct next_batch {
    float *inputs;    /* [rows of the largest batch, features] */
    uint32_t *labels; /* [rows, labels of a sample] */
    int taken;        /* micro-batches of the update so far */
    size_t rows;
    bool is_out; /* it is to go through forward, backward and step */
} next_batch;

struct ring_train {
    trainer trainer;
    user_ops ops;
    bool loss_is_scaled; /* the caller divides his losses by the accumulation steps */
    user_data train_given, test_given;
    size_t micro; /* most samples of a micro-batch on this rank */

    ring_train_schedule schedule; /* or NULL */
    void *schedule_context;
    double lr;            /* below 0: as the schedule says */
    bool scheduler_noted; /* that a call stepped it once more */

    next_batch next;
    open_update update;
    engine_share share;    /* of the update that is open, if it is of the engine's data */
    bool owns_update;      /* its samples are the caller's */
    bool awaits_step;      /* a backward was made */
    bool no_sync;          /* no update may end */
    bool applied;          /* the latest update changed the parameters */
    user_batch given;      /* the micro-batch under way, */
    train_dataset batches; /* as a data set, */
    uint32_t *numbers;     /* and the numbers of its samples, where it brought none [micro] */
    engine_result result;  /* of the latest update */

    int keep; /* checkpoints of a folder; 0: all */
};

/** @return @p status; a failure that other ranks do not know of ends the communicator. */
ring_status handle_settle(ring_train *engine, ring_status status);

/** @return RING_ERR_USAGE between a forward and the end of its update, or with a batch that
 *  ring_train_next() gave out: @p what is not possible then. */
ring_status handle_check_closed(const ring_train *engine, const char *what);

/** @return RING_ERR_USAGE, with what to use instead, in a pipeline. */
ring_status handle_check_no_stages(const ring_train *engine);

/** @return the learning rate of update @p update. */
double handle_lr(const ring_train *engine, long update);

/** Takes from the options what is about data, and checks it. */
ring_status handle_choose_data(ring_train *engine, const ring_train_options *options);

/** Collective, with the same kind of data on all ranks. Fills train, test, loss, micro, shares and
 *  sampler. */
ring_status handle_open_data(ring_train *engine, const ring_train_options *options);

/** Allocates memory for micro-batches and starts the threads that read ahead; after
 *  engine_create(). */
ring_status handle_make_batches(ring_train *engine);

/** The next micro-batch of engine->share. */
ring_status handle_take_next(ring_train *engine, ring_train_batch *batch);

#endif
