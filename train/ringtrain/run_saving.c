/* SPDX-License-Identifier: Apache-2.0
 * Implements --save, --resume and --init, and checks that they fit each other and the folder. */
#include "run_saving.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "agree.h"
#include "clock.h"
#include "errors.h"
#include "run_progress.h"
#include "step_folders.h"

#define LATEST "latest"

static void note(void *context, const char *text)
{
    const run_saving *saving = context;
    report_line(saving->report, "NOTE --resume: %s", text);
}

/* ---- Where the run begins ------------------------------------------------------------------ */

/* @return true if the run saves to the folder from which it resumes. Then it resumes from the
 * newest checkpoint that is not damaged. */
static bool saves_where_it_resumes(const run_options *options)
{
    return options->resume != NULL && options->save_dir != NULL &&
           (strcmp(options->resume, LATEST) == 0 ||
            strcmp(options->resume, options->save_dir) == 0);
}

static ring_status resume(run_saving *saving)
{
    const run_options *options = saving->options;
    const run_place *place = &saving->made->run.place;
    char found[STORED_PATH_MAX];
    const bool latest = strcmp(options->resume, LATEST) == 0;
    const double start = train_now();
    const ring_status status = agree(saving->made->comm,
                                     checkpoint_load(&saving->made->engine,
                                                     latest ? options->save_dir : options->resume,
                                                     &saving->made->run, note, saving, found));
    if (latest && status == RING_ERR_SYSTEM && found[0] == '\0') {
        note(saving, "there is no checkpoint yet; training starts from the beginning");
        return RING_OK;
    }
    RING_TRY(status);
    saving->begun = place->step;
    saving->saved = saves_where_it_resumes(options) ? place->step : -1;
    report_line(saving->report, "resumed from %s: update %ld, epoch %d (%.2f s)", found,
                place->step, place->epoch, train_now() - start);
    return RING_OK;
}

/* ---- The folder ---------------------------------------------------------------------------- */

/* Refuses a folder with checkpoints of later updates, because --resume latest would take them for
 * checkpoints of this run. */
static ring_status check_newer(const run_saving *saving)
{
    const run_options *options = saving->options;
    long newest;
    RING_TRY(step_folders_before(options->save_dir, LONG_MAX, &newest));
    if (newest <= saving->begun || saves_where_it_resumes(options))
        return RING_OK;
    return train_fail(RING_ERR_CONFIG,
                      "--save %s: the folder already has a checkpoint of update %ld; continue from "
                      "it with --resume latest, or give another folder",
                      options->save_dir, newest);
}

ring_status run_saving_start(run_saving *saving, const run_options *options, trainer *made,
                             train_report *report)
{
    *saving = (run_saving){
        .options = options, .made = made, .report = report, .lock = -1, .begun = -1, .saved = -1};
    RING_TRY(agree(made->comm, options->save_dir != NULL && made->rank == 0
                                   ? step_folders_open(options->save_dir, &saving->lock)
                                   : RING_OK));
    if (options->resume != NULL)
        RING_TRY(resume(saving));
    if (options->init_path != NULL && saving->begun < 0)
        RING_TRY(checkpoint_init_params(&made->engine, options->init_path));
    if (options->save_dir == NULL)
        return RING_OK;
    return agree(made->comm, made->rank == 0 ? check_newer(saving) : RING_OK);
}

void run_saving_report_changes(run_saving *saving)
{
    if (saving->begun >= 0)
        checkpoint_tell_changes(&saving->made->run, note, saving);
}

void run_saving_close(run_saving *saving)
{
    if (saving->options != NULL)
        step_folders_close(saving->lock);
    *saving = (run_saving){0};
}

/* ---- Saving -------------------------------------------------------------------------------- */

bool run_saving_due(const run_saving *saving, long step, bool epoch_over)
{
    const run_options *options = saving->options;
    if (options->save_dir == NULL)
        return false;
    return options->save_every > 0 ? step % options->save_every == 0 : epoch_over;
}

ring_status run_saving_save(run_saving *saving, bool last)
{
    const run_options *options = saving->options;
    const long step = saving->made->step;
    if (options->save_dir == NULL || saving->saved == step)
        return RING_OK;
    RING_TRY(engine_check_params(&saving->made->engine));
    const double start = train_now();
    const ring_status status = progress_save(saving->made, options->save_dir, options->keep);
    if (status == RING_ERR_SYSTEM && !last) {
        char text[TRAIN_ERROR_MAX];
        snprintf(text, sizeof text, "checkpoint not saved, training continues: %s", train_error());
        if (saving->made->rank == 0)
            report_error(saving->report, text);
        return RING_OK;
    }
    RING_TRY(status);
    saving->saved = step;
    report_line(saving->report, "saved %s/step-%08ld in %.2f s", options->save_dir, step,
                train_now() - start);
    return RING_OK;
}
