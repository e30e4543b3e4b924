/* SPDX-License-Identifier: Apache-2.0
 *
 * update_run: executes the instructions of a schedule in order and measures them. An instruction
 * that computes runs to its end; one that communicates only starts its call, which is completed
 * when a later instruction depends on it. A walk over the list may pause after any instruction and
 * continue later.
 */
#ifndef TRAIN_UPDATE_RUN_H
#define TRAIN_UPDATE_RUN_H

#include "errors.h"
#include "train_engine.h"

/** Advice in messages about losses, gradients and parameters that are not finite. */
#define ADVICE "lower the learning rate or set gradient_clipping"

/** The data of one run. */
typedef struct update_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [samples] numbers of this rank's samples, of micro-batches first on */
    size_t samples;
    size_t micro;         /* samples of a micro-batch; the last micro-batch may be short */
    const uint32_t *next; /* [next_samples] samples of the next update, to be read ahead; NULL: not
                             known */
    size_t next_samples;
    int first;         /* the micro-batch that begins with order[0] */
    bool training;     /* false: an evaluation */
    bool loss_apart;   /* forward passes end with the output, and the caller computes the loss */
    double local_loss; /* sum over this rank's samples so far */
    double scale;      /* factor of the loss's gradient: loss scale / samples of the global batch */
    train_failure failure; /* this rank's failure to load samples. The rank then computes nothing
                              but still takes part in the calls, since other ranks wait for it */
    engine_result result;
} update_batch;

/** A walk over the instructions of one schedule. It uses the engine's array of works, so an engine
 *  can run only one walk at a time. */
typedef struct update_machine {
    train_engine *engine;
    const update_schedule *schedule;
    update_batch *batch;
    ring_work **works; /* [schedule->count] the engine's */
    bool *runs;        /* [schedule->count] whether the work is in flight; the engine's */
    int next;          /* number of the next instruction */
    int oldest;        /* no work of an instruction before this one is in flight */
    bool skip;         /* a gradient is not finite, so the optimiser does not run */
} update_machine;

/** @return a walk before its first instruction. The arguments are borrowed until it ends. */
update_machine update_machine_start(train_engine *engine, const update_schedule *schedule,
                                    update_batch *batch);

/** Runs the instructions before @p end. Collective. If @p end is the end of the list, it also waits
 *  for all calls in flight. A failure ends the walk. */
ring_status update_machine_run(update_machine *machine, int end);

/** Waits for calls in flight and ends the walk. The error text is kept. */
void update_machine_abandon(update_machine *machine);

/** @return a batch for a training update with the samples of @p share. */
update_batch update_batch_of(const train_engine *engine, const train_dataset *dataset,
                             const engine_share *share);

/** @return the samples of micro-batch @p micro; 0 rows if this rank has none. */
data_batch update_micro_batch(const update_batch *batch, int micro);

/** @return the samples of the micro-batch after @p micro, in this update or the next one; 0 rows if
 *  there is none. */
data_batch update_next_micro_batch(const update_batch *batch, int micro);

/** Computes the losses of the @p rows samples in @p slot, and their gradient with respect to the
 *  output, multiplied by @p weight and batch->scale.
 *  @return the sum of the samples' losses, without these factors. */
double update_fill_loss(const train_engine *engine, const update_batch *batch, int slot,
                        const uint32_t *labels, size_t rows, double weight);

/** Fails because @p loss, or else a gradient, is not finite in update @p number. */
ring_status update_fail_not_finite(double loss, long number);

/** Runs the whole list, and returns after all instructions have ended. Collective. */
ring_status update_run(train_engine *engine, const update_schedule *schedule, update_batch *batch);

#endif
