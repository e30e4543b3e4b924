/* SPDX-License-Identifier: Apache-2.0
 * Runs one training: sets it up, loops over epochs and updates, and writes the results. After each
 * phase of the set-up, the ranks agree on whether it succeeded on all of them, so that they fail
 * together. */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agree.h"
#include "clock.h"
#include "errors.h"
#include "estimate.h"
#include "gemm.h"
#include "pipeline_lines.h"
#include "run_inputs.h"
#include "run_progress.h"
#include "start_lines.h"
#include "stop_signals.h"
#include "thread_count.h"

enum { SCORE_TEXT_MAX = 96, SIGNAL_EXIT = 128 /* plus the signal, as in shells */ };

/* Opens all output files before the training, so that a path that cannot be written fails now and
 * not after hours of training. */
static ring_status open_outputs(train_state *state)
{
    const run_options *options = state->options;
    report_options wishes = options->report;
    wishes.resumed = options->resume != NULL;
    wishes.append_metrics |= wishes.resumed;
    const report_run run = {.config = &state->trainer.config,
                            .options = wishes,
                            .ranks = state->trainer.ranks,
                            .steps_per_epoch = (long)state->trainer.shares.updates};
    RING_TRY(events_open(&state->events, state->trainer.comm, &run, &options->events));
    if (options->dump_path == NULL)
        return RING_OK;
    return params_dump_open(&state->dump, options->dump_path, state->trainer.rank);
}

static bool has_all_steps(const train_state *state)
{
    return state->options->max_steps > 0 && state->trainer.step >= state->options->max_steps;
}

static bool has_all_epochs(const train_state *state)
{
    const trainer *made = &state->trainer;
    return made->epoch - !progress_epoch_over(made) >= state->epochs;
}

static bool is_complete(const train_state *state)
{
    return has_all_steps(state) || has_all_epochs(state);
}

/* Moves the trainer to @p place: the beginning of the run, or the place of a checkpoint, which
 * another number of ranks may have saved. */
static ring_status go_to(train_state *state, const run_place *place)
{
    trainer *made = &state->trainer;
    train_report *report = &state->events.report;
    const data_shares *shares = &made->shares;
    const size_t again = progress_go_to(made, place);
    inputs_count(state);
    report->run.epochs = state->epochs;
    report->run.steps = state->steps;
    state->first_step = place->step;
    state->events.all_samples = (place->epoch - 1) * (long)shares_until(shares, shares->updates) +
                                (long)shares_until(shares, made->updates);
    if (again > 0)
        report_line(report, "NOTE --resume: epoch %d uses %zu sample%s twice", place->epoch, again,
                    plural(again));
    if (progress_epoch_over(made) && !is_complete(state))
        progress_begin_epoch(made, place->epoch + 1);
    return trainer_describe(made);
}

/* Collective: reports the facts of the run that are known before the first update. */
static ring_status start_events(train_state *state)
{
    trainer *made = &state->trainer;
    return events_start(&state->events, &made->engine,
                        &(report_start){.model = made->spec.name,
                                        .loss = loss_names[made->loss],
                                        .maths = made->engine.model.place->maths(),
                                        .parameters = model_parameters(
                                            engine_network(&made->engine)),
                                        .train_samples = made->train.count,
                                        .test_samples = made->test.count,
                                        .seed = state->options->seed});
}

/* Collective: skips the norm of the gradient unless some rank, possibly only rank 0, has --metrics,
 * which reports it. */
static ring_status choose_norm(train_state *state)
{
    int32_t asked = state->options->report.metrics_path != NULL;
    RING_TRY(train_ring(state->trainer.comm, ring_all_reduce(&asked, &asked, 1, RING_INT32,
                                                             RING_MAX, state->trainer.comm, NULL)));
    state->trainer.engine.skips_norm = asked == 0;
    return RING_OK;
}

/* Collective: reads the inputs, creates the engine, loads a checkpoint and prints the settings. */
static ring_status set_up(train_state *state)
{
    trainer *made = &state->trainer;
    ring_comm *comm = made->comm;
    RING_TRY(agree(comm, inputs_read_config(state)));
    RING_TRY(agree(comm, inputs_read_model(state)));
    RING_TRY(inputs_read_data(state));
    RING_TRY(agree(comm, trainer_fit_data(made, state->options->data)));
    RING_TRY(agree(comm, inputs_divide(state)));
    RING_TRY(inputs_compare(state));
    RING_TRY(agree(comm, open_outputs(state)));
    made->waits = state->options->events.trace_path != NULL || made->config.wall_clock_breakdown;
    RING_TRY(trainer_create_engine(made, made->shares.samples[made->grid.share],
                                   state->options->workers));
    RING_TRY(choose_norm(state));
    RING_TRY(run_saving_start(&state->saving, state->options, made, &state->events.report));
    RING_TRY(agree(comm, go_to(state, &made->run.place)));
    run_saving_report_changes(&state->saving);
    RING_TRY(start_lines_print(state));
    RING_TRY(start_events(state));
    return pipeline_lines_start(&state->events.report, &made->engine);
}

static double loss_scale(const train_state *state)
{
    const bool is_scaled = state->trainer.config.precision.params == RING_FLOAT16;
    return is_scaled ? state->trainer.engine.overflow.scaler.scale : 0.0;
}

/* Reports an update that has been computed. */
static ring_status report_result(train_state *state, const engine_result *result)
{
    const trainer *made = &state->trainer;
    report_step done = state->awaited[state->awaited_first];
    const double now = train_now();
    state->awaited_first = (state->awaited_first + 1) % ENGINE_AWAITED_MAX;
    state->awaited_count--;
    state->stopped = stop_signals_of(result->stop_asked);
    if (done.step == state->first_step + 1)
        report_line(&state->events.report, "first update done %.3f s after the start",
                    now - state->options->started);
    for (int i = 0; i < OVERFLOW_LINES && result->skipped; i++)
        report_line(&state->events.report, "%s", made->engine.overflow.lines[i]);
    done.loss = result->loss;
    done.grad_norm = result->grad_norm;
    done.samples = (long)result->samples;
    done.seconds = now - fmax(done.seconds, state->reported);
    state->reported = now;
    return events_end_update(&state->events, &done);
}

/* Reports the updates that have been computed, in their order. @param most  updates that may still
 * be awaited. */
static ring_status collect(train_state *state, int most)
{
    while (state->awaited_count > 0) {
        engine_result result;
        bool found;
        RING_TRY(
            engine_collect(&state->trainer.engine, state->awaited_count > most, &result, &found));
        if (!found)
            return RING_OK;
        RING_TRY(report_result(state, &result));
    }
    return RING_OK;
}

/* @return the failure of an earlier update, or else @p status, that of the latest one. */
static ring_status collect_before(train_state *state, ring_status status)
{
    train_failure failure = {RING_OK};
    if (state->awaited_count == 0)
        return status; /* train_error() may be marked as shared */
    train_failure_keep(&failure, status);
    RING_TRY(collect(state, 0));
    return train_failure_tell(&failure);
}

static ring_status update(train_state *state)
{
    trainer *made = &state->trainer;
    const long most = state->options->max_steps;
    engine_share share = progress_share(made);
    if (most > 0 && made->step + 1 >= most) /* this is the last update: prefetch no samples */
        share.next = NULL;
    const double lr = progress_set_rates(made, NULL), start = train_now();
    made->engine.stop_asked = stop_signals_asked();
    events_begin_update(&state->events, made->step + 1, share.micro_batches);
    const ring_status status = engine_submit(&made->engine, &made->train, &share, lr);
    if (status != RING_OK)
        return collect_before(state, status);
    made->updates++;
    made->step++;
    made->micro_steps += share.micro_batches;
    const schedule_rates next = progress_rates(made);
    const int place = (state->awaited_first + state->awaited_count++) % ENGINE_AWAITED_MAX;
    state->awaited[place] =
        (report_step){.step = made->step,
                      .epoch = made->epoch,
                      .epoch_step = (long)(made->shares.updates - progress_left(made)),
                      .lr = lr,
                      .next_lr = next.lr,
                      .next_other_lr = next.no_decay_lr,
                      .next_betas = {next.betas[0], next.betas[1]},
                      .skipped = made->engine.overflow.skipped,
                      .loss_scale = loss_scale(state),
                      .all_micro_batches = made->micro_steps,
                      .micro_batches = share.micro_batches,
                      .seconds = start}; /* report_result() computes the difference */
    return collect(state, ENGINE_AWAITED_MAX - 1);
}

static bool is_last_epoch(const train_state *state)
{
    return state->trainer.epoch >= state->epochs || has_all_steps(state);
}

/* Formats the latest results as "test accuracy 0.9812", or for a text as "validation loss 1.6214,
 * accuracy of tokens 0.5120". */
static const char *score_text(const train_state *state, char text[SCORE_TEXT_MAX])
{
    const engine_score *score = &state->score;
    if (state->trainer.train.token_bytes > 0)
        snprintf(text, SCORE_TEXT_MAX, "validation loss %.4f, accuracy of tokens %.4f", score->loss,
                 score->accuracy);
    else
        snprintf(text, SCORE_TEXT_MAX, "test accuracy %.4f", score->accuracy);
    return text;
}

/* Evaluates the test set if it is due in this epoch.
 * @param[out] score    NaN if the test set is not used; state->score is then unchanged
 * @param[out] seconds  time of the evaluation */
static ring_status test(train_state *state, engine_score *score, double *seconds)
{
    const int every = state->options->eval_every;
    const double start = train_now();
    *score = (engine_score){(double)NAN, (double)NAN};
    *seconds = 0.0;
    if (every == 0 || (state->trainer.epoch % every > 0 && !is_last_epoch(state)))
        return RING_OK;
    RING_TRY(engine_evaluate(&state->trainer.engine, &state->trainer.test, &state->score));
    *score = state->score;
    *seconds = train_now() - start;
    return RING_OK;
}

/* Collective: evaluates the test set if it is due, and reports the epoch.
 * @param samples, trained  samples of the epoch, and seconds of its updates */
static ring_status report_epoch_end(train_state *state, size_t samples, double trained)
{
    char text[SCORE_TEXT_MAX];
    engine_score score;
    double tested;
    const double rate = (double)samples / trained;
    RING_TRY(test(state, &score, &tested));
    if (isnan(score.accuracy))
        report_line(&state->events.report, "epoch %d: %.0f samples/s, %.2f s", state->trainer.epoch,
                    rate, trained);
    else
        report_line(&state->events.report,
                    "epoch %d: %s, %.0f samples/s, %.2f s, then %.2f s of testing",
                    state->trainer.epoch, score_text(state, text), rate, trained, tested);
    return events_end_epoch(&state->events, &(report_epoch){.step = state->trainer.step,
                                                            .epoch = state->trainer.epoch,
                                                            .accuracy = score.accuracy,
                                                            .test_loss = score.loss,
                                                            .seconds = trained,
                                                            .test_seconds = tested});
}

static ring_status train_epoch(train_state *state)
{
    trainer *made = &state->trainer;
    const size_t first = shares_until(&made->shares, 0);
    const double start = train_now();
    while (!progress_epoch_over(made) && !has_all_steps(state) && state->stopped == 0) {
        RING_TRY(update(state));
        if (!run_saving_due(&state->saving, made->step, false))
            continue;
        RING_TRY(collect(state, 0));
        RING_TRY(run_saving_save(&state->saving, false));
    }
    RING_TRY(collect(state, 0));
    if (state->stopped != 0)
        return RING_OK;
    const double trained = train_now() - start;
    RING_TRY(engine_check_params(&made->engine));
    const size_t samples = shares_until(&made->shares, made->updates) - first;
    RING_TRY(report_epoch_end(state, samples, trained));
    if (run_saving_due(&state->saving, made->step, progress_epoch_over(made)))
        RING_TRY(run_saving_save(&state->saving, false));
    return RING_OK;
}

static ring_status close_outputs(train_state *state, const float *params)
{
    if (state->dump.stream != NULL)
        RING_TRY(params_dump_write(&state->dump, &engine_network(&state->trainer.engine)->tensors,
                                   params));
    return events_close(&state->events);
}

/* Ends the run after a signal: saves, reports, and closes. */
static ring_status stop(train_state *state)
{
    const bool saves = state->options->save_dir != NULL;
    const char *name = sigabbrev_np(state->stopped);
    RING_TRY(run_saving_save(&state->saving, true));
    RING_TRY(events_finish(&state->events));
    output_discard(&state->dump);
    report_line(&state->events.report, "SIG%s: stopped after update %ld, in epoch %d%s", name,
                state->trainer.step, state->trainer.epoch,
                saves ? "; continue with --resume latest"
                      : "; nothing is saved without --save DIR");
    return agree(state->trainer.comm, events_close(&state->events));
}

static ring_status finish(train_state *state)
{
    const float *params = NULL;
    char text[SCORE_TEXT_MAX];
    if (state->trainer.step < state->options->max_steps)
        report_line(&state->events.report,
                    "--epochs %d ended the run after %ld update%s, before --max-steps %ld",
                    state->epochs, state->trainer.step, plural((double)state->trainer.step),
                    state->options->max_steps);
    RING_TRY(pipeline_lines_end(&state->events.report, &state->trainer.engine));
    RING_TRY(events_finish(&state->events));
    RING_TRY(run_saving_save(&state->saving, true));
    if (state->options->eval_every > 0)
        report_line(&state->events.report, "%s", score_text(state, text));
    if (state->options->dump_path != NULL)
        RING_TRY(engine_params(&state->trainer.engine, &params));
    return agree(state->trainer.comm, close_outputs(state, params));
}

/* Collective. Reports why there is nothing to train, and evaluates the test set. */
static ring_status report_complete(train_state *state)
{
    const trainer *made = &state->trainer;
    engine_score score;
    double seconds;
    char epochs[48] = "", steps[48] = "";
    if (has_all_epochs(state) && (state->options->epochs > 0 || !has_all_steps(state)))
        snprintf(epochs, sizeof epochs, "--epochs above %d",
                 made->epoch - !progress_epoch_over(made));
    if (has_all_steps(state))
        snprintf(steps, sizeof steps, "--max-steps above %ld", made->step);
    report_line(&state->events.report,
                "the run is complete: update %ld, in epoch %d, was the last one; to continue, give "
                "%s%s%s",
                made->step, made->epoch, epochs,
                epochs[0] != '\0' && steps[0] != '\0' ? " and " : "", steps);
    return test(state, &score, &seconds);
}

static ring_status train(train_state *state)
{
    stop_signals_begin();
    if (is_complete(state))
        RING_TRY(report_complete(state));
    else
        RING_TRY(train_epoch(state));
    while (state->stopped == 0 && !is_last_epoch(state)) {
        progress_begin_epoch(&state->trainer, state->trainer.epoch + 1);
        RING_TRY(train_epoch(state));
    }
    return state->stopped != 0 ? stop(state) : finish(state);
}

/* Implements --check: makes all checks that precede the training, and prints an estimate of the
 * memory that the training needs. */
static ring_status check_all(train_state *state)
{
    trainer *made = &state->trainer;
    size_t samples = SIZE_MAX;
    RING_TRY(inputs_read_config(state));
    RING_TRY(inputs_read_model(state));
    if (state->options->data != NULL) {
        RING_TRY(inputs_read_data(state));
        RING_TRY(trainer_fit_data(made, state->options->data));
        RING_TRY(inputs_divide(state));
        inputs_count(state);
        samples = made->shares.samples[0];
    }
    RING_TRY(trainer_open_device(made));
    if (made->rank == 0) {
        config_print(&made->config, true, stdout);
        RING_TRY(estimate_print(&made->config, &made->spec, samples, &made->grid, stdout));
        if (made->gpu.context != NULL)
            printf("in addition: %d bytes on %s for workspaces, the training images if they fit, "
                   "and samples and labels on the host\n",
                   CUDA_LANES_BYTES, made->gpu.name);
        printf("checked%s: no errors\n", samples == SIZE_MAX ? ", except for the data" : "");
    }
    return RING_OK;
}

static ring_status run_all(train_state *state)
{
    trainer *made = &state->trainer;
    RING_TRY(train_ring(NULL, ring_comm_init_env(&made->comm)));
    made->ranks = ring_comm_size(made->comm);
    made->rank = ring_comm_rank(made->comm);
    if (state->options->check > 0)
        made->ranks = state->options->check;
    if (state->options->check != CHECK_NOTHING)
        return agree(made->comm, check_all(state));
    RING_TRY(set_up(state));
    return train(state);
}

int run(const run_options *options)
{
    train_state state = {.options = options,
                         .trainer = {.loss = options->loss,
                                     .seed = options->seed,
                                     .epoch = 1,
                                     .compat = options->compat_ds_0_13,
                                     .device = options->device,
                                     .tf32 = options->tf32,
                                     .norm = options->norm}};
    stop_signals_watch();
    gemm_set_threads(threads_wanted());
    const ring_status status = run_all(&state);
    const bool begun = state.trainer.comm != NULL; /* if false, libring has printed the reason */
    if (status != RING_OK && begun && (state.trainer.rank == 0 || !train_error_is_shared()))
        report_error(&state.events.report, train_error());
    const int stopped = state.stopped;
    events_close(&state.events);
    output_discard(&state.dump);
    run_saving_close(&state.saving);
    trainer_free(&state.trainer);
    ring_comm_destroy(state.trainer.comm);
    if (status == RING_OK && stopped != 0)
        return SIGNAL_EXIT + stopped;
    return status == RING_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
