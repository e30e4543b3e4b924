/* SPDX-License-Identifier: Apache-2.0
 * Counts updates and epochs and sets the order of the samples. A trainer without data counts only
 * updates. */
#include "run_progress.h"

/* DeepSpeed 0.13 never advances the sampler's epoch, so all epochs have the order of the first one.
 */
void progress_begin_epoch(trainer *made, int epoch)
{
    made->epoch = epoch;
    made->updates = 0;
    if (made->train.count == 0)
        return;
    shares_rewind(&made->shares);
    reader_drop(made->engine.reader);
    sampler_set_epoch(&made->sampler, made->compat ? 0 : (uint64_t)epoch - 1);
}

size_t progress_left(const trainer *made)
{
    const size_t left = shares_left(&made->shares);
    return left > made->updates ? left - made->updates : 0;
}

bool progress_epoch_over(const trainer *made)
{
    return progress_left(made) == 0;
}

engine_share progress_share(const trainer *made)
{
    return engine_share_of(&made->shares, &made->sampler, made->grid.share, made->updates);
}

schedule_rates progress_rates(const trainer *made)
{
    const train_optimizer *optimizer = &made->engine.optimizer;
    return schedule_rates_of(&made->config.schedule, &optimizer->config, optimizer->step + 1,
                             made->compat);
}

double progress_set_rates(trainer *made, const double *own_lr)
{
    schedule_rates rates = progress_rates(made);
    if (own_lr != NULL)
        rates.lr = rates.no_decay_lr = *own_lr;
    optimizer_set_rates(&made->engine.optimizer, &rates);
    return rates.lr;
}

ring_status progress_save(trainer *made, const char *dir, int keep)
{
    const bool has_data = made->train.count > 0;
    made->run.place = (run_place){.step = made->step,
                                  .epoch = made->epoch,
                                  .taken = has_data ? shares_until(&made->shares, made->updates)
                                                    : 0,
                                  .epoch_over = has_data && progress_epoch_over(made),
                                  .micro_batches = made->micro_steps};
    return checkpoint_save(&made->engine, dir, &made->run, keep);
}

size_t progress_go_to(trainer *made, const run_place *place)
{
    progress_begin_epoch(made, place->epoch);
    made->step = place->step;
    made->micro_steps = place->micro_batches;
    if (made->train.count == 0)
        return 0;
    if (place->epoch_over) {
        made->updates = shares_left(&made->shares);
        return 0;
    }
    if (made->sampler.contiguous && made->run.ranks != made->ranks)
        return place->taken; /* shares of other ranks have other samples: begin the epoch again */
    return shares_resume(&made->shares, place->taken, made->sampler.shares == NULL);
}
