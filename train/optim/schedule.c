/* SPDX-License-Identifier: Apache-2.0
 * Implements each type of schedule as two functions: the rate at an iteration, and the rate of the
 * first update. A table lists the functions of all types. */
#include "schedule.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* ---- Warm-ups: followed by a constant rate, a linear decay or a cosine decay ---- */

static long warmup_steps(const schedule_config *s)
{
    return s->warmup_steps > 2 ? s->warmup_steps : 2;
}

/* @return the factor of the rate during the warm-up, from 0 to 1. */
static double warmup_factor(const schedule_config *s, long iteration)
{
    const double warmup = (double)warmup_steps(s);
    if (s->linear)
        return (double)iteration / warmup;
    return 1.0 / log(warmup) * log((double)(iteration + 1));
}

static double steps_after_warmup(const schedule_config *s)
{
    return fmax(1.0, (double)(s->total_steps - warmup_steps(s)));
}

/* @return the rate at @p factor, from 0 for min_lr to 1 for max_lr. */
static double between(const schedule_config *s, double factor)
{
    return s->min_lr + (s->max_lr - s->min_lr) * factor;
}

static double warmup_at(const schedule_config *s, double base_lr, long iteration)
{
    (void)base_lr;
    return between(s, iteration < warmup_steps(s) ? warmup_factor(s, iteration) : 1.0);
}

static double decay_at(const schedule_config *s, double base_lr, long iteration)
{
    if (iteration < warmup_steps(s))
        return warmup_at(s, base_lr, iteration);
    return between(s, fmax(0.0, (double)(s->total_steps - iteration) / steps_after_warmup(s)));
}

static double cosine_at(const schedule_config *s, double base_lr, long iteration)
{
    const double start = s->warmup_min_ratio, end = s->cos_min_ratio;
    if (iteration < warmup_steps(s))
        return base_lr * (start + (1.0 - start) * warmup_factor(s, iteration));
    double progress = (double)(iteration - warmup_steps(s) + 1) / steps_after_warmup(s);
    if (!s->unclamped)
        progress = fmin(1.0, progress);
    return base_lr * fmax(0.0, end + (1.0 - end) * (1.0 + cos(pi * progress)) / 2.0);
}

/* ---- OneCycle ---- */

/* Steps of the rising and the falling half of a cycle, and the number of stairs in each; 0 stairs:
 * the rate changes continuously. */
typedef struct cycle_shape {
    double first, second, first_stairs, second_stairs;
} cycle_shape;

static cycle_shape shape_of(const cycle_config *c)
{
    cycle_shape shape = {.first = (double)c->first_steps, .first_stairs = (double)c->first_stairs};
    shape.second = c->second_steps > 0 ? (double)c->second_steps : shape.first;
    shape.second_stairs = c->second_stairs >= 0 ? (double)c->second_stairs : shape.first_stairs;
    return shape;
}

/* @return 0 at both ends of the cycle and 1 at its top. DeepSpeed's formula counts from iteration +
 * 1, so the last step of a cycle is the first one of a second cycle. */
static double cycle_height(const cycle_config *c, long iteration)
{
    const cycle_shape s = shape_of(c);
    const double at = fmod((double)(iteration + 1), s.first + s.second);
    const bool up = at <= s.first;
    const double part = up ? at : s.first + s.second - at, length = up ? s.first : s.second;
    const double stairs = up ? s.first_stairs : s.second_stairs;
    return stairs > 0 ? floor(part * stairs / length) / stairs : part / length;
}

/* @return number of decay intervals since the end of the cycle; 0 within the cycle or without
 * decay. */
static double cycle_decay(const cycle_config *c, long iteration)
{
    const cycle_shape s = shape_of(c);
    const double after = (double)iteration - (s.first + s.second) + 1.0;
    return after > 0.0 && c->decay_steps > 0 ? after / (double)c->decay_steps : 0.0;
}

static bool is_after_cycle(const cycle_config *c, long iteration)
{
    const cycle_shape s = shape_of(c);
    return (double)iteration >= s.first + s.second;
}

static double cycle_at(const schedule_config *s, double base_lr, long iteration)
{
    const cycle_config *c = &s->cycle;
    (void)base_lr;
    if (is_after_cycle(c, iteration))
        return c->min_lr / (1.0 + c->decay_lr_rate * cycle_decay(c, iteration));
    return c->min_lr + (c->max_lr - c->min_lr) * cycle_height(c, iteration);
}

static double cycle_momentum_at(const cycle_config *c, long iteration)
{
    if (is_after_cycle(c, iteration))
        return c->max_momentum * (1.0 + c->decay_momentum_rate * cycle_decay(c, iteration));
    return c->max_momentum - (c->max_momentum - c->min_momentum) * cycle_height(c, iteration);
}

/* ---- Other schedules ---- */

static double range_at(const schedule_config *s, double base_lr, long iteration)
{
    const double steps = (double)(iteration + 1) / (double)s->range_steps;
    (void)base_lr;
    return s->range_min_lr * (1.0 + s->range_rate * (s->range_staircase ? floor(steps) : steps));
}

static double annealing_at(const schedule_config *s, double base_lr, long iteration)
{
    const double progress = (double)iteration / (double)s->annealing_steps;
    return s->annealing_min_lr + (base_lr - s->annealing_min_lr) * (1.0 + cos(pi * progress)) / 2.0;
}

static double stairs_at(const schedule_config *s, double base_lr, long iteration)
{
    const long falls = iteration / s->stair_steps;
    return base_lr * pow(s->stair_gamma, (double)falls);
}

/* ---- Rates of the first update, which the constructors of DeepSpeed's schedulers set ---- */

static double start_at_minimum(const schedule_config *s)
{
    return s->min_lr;
}

static double start_at_zero(const schedule_config *s)
{
    (void)s;
    return 0.0;
}

static double start_of_cycle(const schedule_config *s)
{
    return s->cycle.min_lr;
}

static double start_of_range(const schedule_config *s)
{
    return s->range_min_lr;
}

/* ---- The table ---- */

typedef struct schedule_row {
    double (*at)(const schedule_config *s, double base_lr, long iteration);
    double (*start)(const schedule_config *s); /* NULL for PyTorch's schedulers, whose first update
                                                  has the rate of iteration 0 */
    bool new_start; /* before DeepSpeed 0.15.3, the first update had the optimiser's rate instead */
} schedule_row;

static const schedule_row table[] = {
    [SCHEDULE_WARMUP] = {warmup_at, start_at_minimum, true},
    [SCHEDULE_WARMUP_DECAY] = {decay_at, start_at_minimum, true},
    [SCHEDULE_WARMUP_COSINE] = {cosine_at, start_at_zero, true},
    [SCHEDULE_ONE_CYCLE] = {cycle_at, start_of_cycle, false},
    [SCHEDULE_RANGE_TEST] = {range_at, start_of_range, false},
    [SCHEDULE_COSINE_ANNEALING] = {annealing_at, NULL, false},
    [SCHEDULE_STEPS] = {stairs_at, NULL, false},
};

double schedule_at(const schedule_config *s, double base_lr, long iteration)
{
    return table[s->kind].at(s, base_lr, iteration);
}

double schedule_lr(const schedule_config *s, double base_lr, long update, bool compat)
{
    const schedule_row *row = &table[s->kind];
    if (s->kind == SCHEDULE_CONSTANT)
        return base_lr;
    if (row->start == NULL)
        return row->at(s, base_lr, s->last_iteration + update);
    if (update > 1)
        return row->at(s, base_lr, s->last_iteration + update - 1);
    if (s->last_iteration >= 0 || (compat && row->new_start))
        return base_lr;
    return row->start(s);
}

/* Sets Adam's betas of an update if the schedule changes them. */
static void schedule_betas(const schedule_config *s, long update, double betas[2])
{
    const cycle_config *c = &s->cycle;
    if (s->kind != SCHEDULE_ONE_CYCLE || !c->momentum)
        return;
    if (update > 1)
        betas[0] = cycle_momentum_at(c, s->last_iteration + update - 1);
    else if (s->last_iteration < 0)
        betas[0] = c->min_momentum; /* set by the constructor of DeepSpeed's OneCycle */
    else
        return;
    betas[1] = 0.99;
}

schedule_rates schedule_rates_of(const schedule_config *s, const optimizer_config *optimizer,
                                 long update, bool compat)
{
    schedule_rates rates = {.lr = schedule_lr(s, optimizer->lr, update, compat),
                            .no_decay_lr = schedule_lr(s, optimizer_no_decay_lr(optimizer), update,
                                                       compat),
                            .betas = {optimizer->betas[0], optimizer->betas[1]}};
    schedule_betas(s, update, rates.betas);
    return rates;
}
