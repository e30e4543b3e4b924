/* SPDX-License-Identifier: Apache-2.0
 *
 * train_handle: defines struct ring_train, the state of the library's engine on one rank, and the
 * functions that the files of this folder share.
 */
#ifndef TRAIN_HANDLE_H
#define TRAIN_HANDLE_H

#include <ring/train.h>

#include "open_update.h"
#include "trainer.h"
#include "user_data.h"
#include "user_op.h"

/** The micro-batch that ring_train_next() has returned. */
typedef struct next_batch {
    float *inputs;    /* [rows of the largest batch, features] */
    uint32_t *labels; /* [rows of the largest batch, labels of a sample] */
    int taken;        /* micro-batches of this update that ring_train_next() has returned so far */
    size_t rows;      /* samples of the latest micro-batch */
    bool is_out;      /* the latest micro-batch has not been passed to ring_train_forward() yet */
} next_batch;

struct ring_train {
    trainer trainer;
    user_ops ops;                      /* layers that the caller implements */
    bool loss_is_scaled;               /* ring_train_options.loss_is_scaled */
    user_data train_given, test_given; /* samples that the caller provides */
    size_t micro;                      /* most samples of a micro-batch on this rank */

    ring_train_schedule schedule; /* the caller's schedule, or NULL */
    void *schedule_context;
    double lr;            /* rate of ring_train_set_lr(); below 0: the schedule sets the rate */
    bool scheduler_noted; /* ring_train_scheduler_step() has reported that it has no effect */

    next_batch next;
    open_update update;
    engine_share share;    /* of the open update, if its samples are the engine's data */
    bool owns_update;      /* the samples of the latest update are the caller's own batches */
    bool awaits_step;      /* ring_train_backward() has run; the next call is ring_train_step() */
    bool no_sync;          /* ring_train_no_sync() is on */
    bool applied;          /* the latest update changed the parameters */
    user_batch given;      /* the micro-batch that was passed to ring_train_forward() */
    train_dataset batches; /* presents @c given as a data set */
    uint32_t *numbers;     /* [micro] sample numbers of a batch without numbers of its own */
    engine_result result;  /* of the latest update */

    int keep; /* number of newest checkpoints that stay in a folder; 0: all */
};

/** @return @p status. If it is a failure that other ranks have not returned as well, ends the
 *  communicator, so that they do not wait. */
ring_status handle_settle(ring_train *engine, ring_status status);

/** Checks that no update is in progress and that no batch of ring_train_next() is unused.
 *  @param call  the call that is impossible otherwise, for the message
 *  @return RING_OK, RING_ERR_USAGE, or RING_ERR_ARGUMENT if @p engine is NULL. */
ring_status handle_check_closed(const ring_train *engine, const char *call);

/** Checks that the engine is not a pipeline. @return RING_OK, RING_ERR_USAGE, or RING_ERR_ARGUMENT
 * if
 *  @p engine is NULL. */
ring_status handle_check_no_stages(const ring_train *engine);

/** @return the learning rate of update @p update (from 1). */
double handle_lr(const ring_train *engine, long update);

/** Checks the options loss, normalize and workers, and stores the first two in the engine. */
ring_status handle_choose_data(ring_train *engine, const ring_train_options *options);

/** Opens the data and sets train, test, loss, micro, shares and sampler. Collective; all ranks must
 *  have the same kind of data. */
ring_status handle_open_data(ring_train *engine, const ring_train_options *options);

/** Allocates memory for micro-batches. Call it after engine_create(). */
ring_status handle_make_batches(ring_train *engine);

/** Reads the next micro-batch of engine->share. @param[out] batch  its arrays are in engine->next
 */
ring_status handle_take_next(ring_train *engine, ring_train_batch *batch);

#endif
