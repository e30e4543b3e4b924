/* SPDX-License-Identifier: Apache-2.0
 *
 * trainer: owns everything that one rank needs for training, and builds it step by step from a
 * configuration: the rank's place in the grid, the network, the data and the rank's share of them,
 * and the engine. The program ringtrain and the library libringtrain are both built on it.
 */
#ifndef TRAIN_TRAINER_H
#define TRAIN_TRAINER_H

#include "checkpoint.h"
#include "config.h"
#include "cuda_place.h"
#include "division.h"
#include "grid.h"
#include "pixel_norm.h"
#include "train_engine.h"

/** The device that computes the network. All members 0: the host. */
typedef struct trainer_device {
    bool automatic; /* GPU 0 if it can train the network, else the host; with several ranks the host
                     */
    bool is_gpu;
    int gpu;
} trainer_device;

/** Parses "auto", "cpu", "cuda" or "cuda:N". @return false if the text is another one. */
bool trainer_parse_device(const char *text, trainer_device *out);

typedef struct trainer {
    ring_comm *comm; /* borrowed */
    int ranks, rank;
    config_note_fn *note; /* receives notes about the configuration; or NULL */
    void *note_context;
    uint64_t seed; /* of initial parameters, order of samples and dropout */
    bool compat;   /* behaves as DeepSpeed 0.13 */
    trainer_device device;
    bool waits;      /* updates on a GPU are not deferred (train_engine.h) */
    bool tf32;       /* products on a GPU may use TF32 (cuda_products_open()) */
    cuda_place gpu;  /* that computes the network; api NULL: the host does */
    pixel_norm norm; /* normalization of images in a folder; channels 0: there is none */
    train_grid grid;
    train_config config;
    model_spec spec;
    loss_kind loss;            /* LOSS_KINDS until trainer_fit_data() chooses one by the data */
    train_dataset train, test; /* count 0: there are no such data */
    data_shares shares;        /* how many samples each rank has in each update */
    train_sampler sampler;     /* the order of the samples */
    train_engine engine;

    /* Progress of the run. */
    long step;        /* updates done */
    long micro_steps; /* micro-batches of this rank in these updates */
    int epoch;        /* current epoch, from 1 */
    size_t updates;   /* updates done in this epoch, since its start or since the run was resumed */

    checkpoint_run run;
    char settings[SETTINGS_TEXT_MAX]; /* settings that checkpoints store, as lines */
} trainer;

/** Passes @p text to the note function, if there is one. @param context  the trainer */
void trainer_note(void *context, const char *text);

/** Arranges the ranks as a grid of pipeline stages, data-parallel ranks and tensor ranks.
 *  @param stages, tensors  number of stages and of tensor ranks; 0: as configured
 *  @param launcher  source of the number of ranks, for messages
 *  @return RING_OK or RING_ERR_CONFIG. */
ring_status trainer_place_ranks(trainer *made, long stages, long tensors, const char *launcher);

/** As trainer_place_ranks(), and then resolves the batch sizes for the data-parallel ranks.
 *  @param policy  what happens if the configured sizes do not fit this number of ranks */
ring_status trainer_resolve(trainer *made, long stages, long tensors, const char *launcher,
                            batch_policy policy);

/** Reads the network into made->spec.
 *  @param model  name of a built-in network, or FILE.json with a list of layers
 *  @param own  layers of the library's caller, followed by NULL */
ring_status trainer_read_model(trainer *made, const char *model, const nn_op *const *own);

/** Fills in the configuration's "auto" values that follow from the network and from @p updates, the
 *  number of updates of the whole run (0: not known). */
void trainer_fill_automatic(trainer *made, long updates);

/** Reads the training and test data in @p folder, once per host. Collective. */
ring_status trainer_read_data(trainer *made, const char *folder);

/** Prepares the data for the network: cuts texts into samples, normalizes images, and chooses the
 *  loss if the configuration does not. @return RING_OK or RING_ERR_CONFIG. */
ring_status trainer_fit_data(trainer *made, const char *folder);

/** Divides the training samples among the ranks: sets made->shares and sampler. */
ring_status trainer_divide(trainer *made);

/** Opens the GPU that made->device asks for, as the place of the network, which must have been
 * read. With "auto" the host stays if there is a GPU that cannot be used, and a note says why. */
ring_status trainer_open_device(trainer *made);

/** Opens the device, and creates the engine and the description of the run for checkpoints.
 * Collective.
 *  @param samples_max  most samples of an update on this rank
 *  @param readers  number of threads that read the training data ahead
 *  @return RING_OK; RING_ERR_MEMORY, with advice on settings that need less; or another error, on
 *  all ranks. */
ring_status trainer_create_engine(trainer *made, size_t samples_max, int readers);

/** Writes made->settings again, after a setting has been filled in. */
ring_status trainer_describe(trainer *made);

void trainer_free(trainer *made);

#endif
