/* SPDX-License-Identifier: Apache-2.0
 *
 * trainer: owns everything that one rank trains with and builds it step by step from a
 * configuration: its place in the grid, the network, the data and its part of them, and the engine.
 * The program and the library each own one.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "checkpoint.h"
#include "config.h"
#include "division.h"
#include "grid.h"
#include "pixel_norm.h"
#include "train_engine.h"

typedef struct trainer {
    ring_comm *comm; /* borrowed */
    int ranks, rank;
    config_note_fn *note; /* or NULL */
    void *note_context;
    uint64_t seed;
    bool compat;     /* DeepSpeed 0.13's ways */
    pixel_norm norm; /* of a folder's images; channels 0: none */
    train_grid grid;
    train_config config;
    model_spec spec;
    loss_kind loss;            /* LOSS_KINDS: what suits the data */
    train_dataset train, test; /* count 0: there is none */
    data_shares shares;
    train_sampler sampler;
    train_engine engine;

    /* Where the run is in its data, and how far. */
    long step, micro_steps; /* updates done, and micro-batches of this rank in them */
    int epoch;              /* from 1 */
    size_t updates;         /* of it, since its start or that of a run that went on in it */

    checkpoint_run run;
    char settings[SETTINGS_TEXT_MAX]; /* those that checkpoints tell */
} trainer;

/** Tells the note function, if there is one. @param context  the trainer */
void trainer_note(void *context, const char *text);

/** Cuts the ranks into stages and tensor ranks, as asked for or (0) as configured.
 *  @param launcher  for messages: where the number of ranks comes from */
ring_status trainer_place_ranks(trainer *made, long stages, long tensors, const char *launcher);

/** The same, and settles the batch sizes for the ranks as they are placed. */
ring_status trainer_resolve(trainer *made, long stages, long tensors, const char *launcher,
                            batch_policy policy);

/** Fills spec. @param model  a built-in network's name, or a list of layers, FILE.json
 *  @param own  layers of the caller's, ended by NULL */
ring_status trainer_read_model(trainer *made, const char *model, const nn_op *const *own);

/** Fills in the "auto" values that are known by now. @param updates of the whole run; 0: not known
 */
void trainer_fill_automatic(trainer *made, long updates);

/** Collective: the ranks of a host read @p folder together. */
ring_status trainer_read_data(trainer *made, const char *folder);

/** Cuts texts into samples for the network, normalizes images, and settles the loss. */
ring_status trainer_fit_data(trainer *made, const char *folder);

/** Deals the training samples: fills shares and sampler. */
ring_status trainer_divide(trainer *made);

/** Collective. Makes the engine, and what checkpoints tell of the run.
 *  @param samples_max  most samples of an update on this rank
 *  @param readers  threads that read ahead, if there are data */
ring_status trainer_create_engine(trainer *made, size_t samples_max, int readers);

/** Lists the settings for checkpoints again, after one of them has been filled in. */
ring_status trainer_describe(trainer *made);

void trainer_free(trainer *made);

#endif
