/* SPDX-License-Identifier: Apache-2.0
 *
 * update_run: executes the instructions of a schedule and measures them; no other code does.
 * Computation runs at once; communication is started, and completed when an instruction depends on
 * it. A walk over the list may pause after any instruction and continue later.
 */
#ifndef TRAIN_UPDATE_RUN_H
#define TRAIN_UPDATE_RUN_H

#include "errors.h"
#include "train_engine.h"

/** Advice for losses, gradients and parameters that are not finite. */
#define ADVICE "lower the learning rate or set gradient_clipping"

/** The data of one run. */
typedef struct update_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [samples] of this rank, from micro-batch first on */
    size_t samples;
    size_t micro;         /* samples of a micro-batch; the last one may be short */
    const uint32_t *next; /* [next_samples] of the run after this one; NULL: not known */
    size_t next_samples;
    int first;
    bool training;
    bool loss_apart;   /* forward passes end with the output, and the caller computes the loss */
    double local_loss; /* sum over this rank's samples so far */
    double scale;      /* of the loss's gradient: 1 / samples of the global batch */
    train_failure failure; /* a failure of this rank to load samples: it stops computing, but still
                              takes part in the calls that other ranks wait for */
    engine_result result;
} update_batch;

/** A walk over one list. It uses the engine's array of works, so an engine runs one walk at a time.
 */
typedef struct update_machine {
    train_engine *engine;
    const update_schedule *schedule;
    update_batch *batch;
    ring_work **works; /* [schedule->count] the engine's */
    bool *runs;        /* [schedule->count] started and not ended; the engine's */
    int next;          /* instruction to run */
    int oldest;        /* no instruction before it runs */
    bool skip;         /* skips the update: its gradients are not finite */
} update_machine;

/** @return a walk before its first instruction. The arguments are borrowed until it ends. */
update_machine update_machine_start(train_engine *engine, const update_schedule *schedule,
                                    update_batch *batch);

/** Collective. Runs the instructions before @p end. Once the whole list has run, all calls in
 *  flight have ended. A failure ends the walk. */
ring_status update_machine_run(update_machine *machine, int end);

/** Waits for calls in flight and ends the walk. The error text is kept. */
void update_machine_abandon(update_machine *machine);

/** @return a batch for an update of @p share. */
update_batch update_batch_of(const train_engine *engine, const train_dataset *dataset,
                             const engine_share *share);

/** @return the samples of micro-batch @p micro; 0 rows if this rank has none. */
data_batch update_micro_batch(const update_batch *batch, int micro);

/** @return the samples of the micro-batch after @p micro, in this update or the next one; 0 rows if
 *  there is none. */
data_batch update_next_micro_batch(const update_batch *batch, int micro);

/** Computes the gradient of the loss with respect to the output in @p slot, for @p rows samples
 *  that count @p weight times. @return the sum of their losses, without the weight. */
double update_fill_loss(const train_engine *engine, const update_batch *batch, int slot,
                        const uint32_t *labels, size_t rows, double weight);

/** Collective. Runs the whole list; all instructions have ended when it returns. */
ring_status update_run(train_engine *engine, const update_schedule *schedule, update_batch *batch);

#endif
