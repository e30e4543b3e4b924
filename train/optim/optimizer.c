/* SPDX-License-Identifier: Apache-2.0
 * Allocates the states of the optimisers, cuts ranges at the borders of parameter groups, and calls
 * the kernel of each optimiser. */
#include "optimizer.h"

#include <kernels.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

/* @return the states of the range, or NULL if the optimiser does not have them. */
static float *at(float *states, const optimizer_range *range)
{
    return states != NULL ? states + range->at : NULL;
}

/* ---- The optimisers ------------------------------------------------------------------------ */

/* Factors of one update of one parameter group. */
typedef struct update_rates {
    double lr, scale, weight_decay; /* scale is the factor of the gradients */
} update_rates;

static void step_sgd(const train_optimizer *optimizer, const optimizer_range *range,
                     const update_rates *rates)
{
    const optimizer_config *config = &optimizer->config;
    const kernel_sgd args = {
        .lr = rates->lr,
        .momentum = config->momentum,
        .dampening = config->dampening,
        .weight_decay = rates->weight_decay,
        .scale = rates->scale,
        .nesterov = config->nesterov,
        .first = optimizer->step == 1,
    };
    optimizer->place->sgd(optimizer->place, range->params, range->grads,
                          at(optimizer->first, range), range->count, &args);
}

static void step_adam(const train_optimizer *optimizer, const optimizer_range *range,
                      const update_rates *rates)
{
    const optimizer_config *config = &optimizer->config;
    const kernel_adam args = {
        .lr = rates->lr,
        .beta1 = config->betas[0],
        .beta2 = config->betas[1],
        .eps = config->eps,
        .weight_decay = rates->weight_decay,
        .scale = rates->scale,
        .decoupled = config->kind == OPTIMIZER_ADAMW || config->adam_w_mode,
        .bias_correction = config->bias_correction,
        .step = optimizer->step,
    };
    optimizer->place->adam(optimizer->place, range->params, range->grads,
                           at(optimizer->first, range), at(optimizer->second, range), range->count,
                           &args);
}

static void step_lion(const train_optimizer *optimizer, const optimizer_range *range,
                      const update_rates *rates)
{
    const kernel_lion args = {
        .lr = rates->lr,
        .beta1 = optimizer->config.betas[0],
        .beta2 = optimizer->config.betas[1],
        .weight_decay = rates->weight_decay,
        .scale = rates->scale,
    };
    optimizer->place->lion(optimizer->place, range->params, range->grads,
                           at(optimizer->first, range), range->count, &args);
}

static void step_adagrad(const train_optimizer *optimizer, const optimizer_range *range,
                         const update_rates *rates)
{
    const kernel_adagrad args = {
        .lr = rates->lr,
        .lr_decay = optimizer->config.lr_decay,
        .eps = optimizer->config.eps,
        .weight_decay = rates->weight_decay,
        .scale = rates->scale,
        .step = optimizer->step,
    };
    optimizer->place->adagrad(optimizer->place, range->params, range->grads,
                              at(optimizer->first, range), range->count, &args);
}

static const struct {
    /* PyTorch's names of the states, which are arrays as large as the parameters. SGD has its state
     * only with momentum. */
    const char *states[OPTIMIZER_STATES];
    void (*step)(const train_optimizer *optimizer, const optimizer_range *range,
                 const update_rates *rates);
} rows[] = {
    [OPTIMIZER_SGD] = {{"momentum_buffer"}, step_sgd},
    [OPTIMIZER_ADAM] = {{"exp_avg", "exp_avg_sq"}, step_adam},
    [OPTIMIZER_ADAMW] = {{"exp_avg", "exp_avg_sq"}, step_adam},
    [OPTIMIZER_LION] = {{"exp_avg"}, step_lion},
    [OPTIMIZER_ADAGRAD] = {{"sum"}, step_adagrad},
};

const char *optimizer_state_name(const optimizer_config *config, int state)
{
    const bool none = config->kind == OPTIMIZER_SGD && config->momentum == 0.0;
    return none ? NULL : rows[config->kind].states[state];
}

size_t optimizer_needs(const optimizer_config *config, size_t count)
{
    const size_t states = (size_t)(optimizer_state_name(config, 0) != NULL) +
                          (size_t)(optimizer_state_name(config, 1) != NULL);
    return states * count * sizeof(float);
}

/* ---- Groups -------------------------------------------------------------------------------- */

static bool decays(const optimizer_config *config, tensor_group group)
{
    const bool embeddings = config->groups != GROUPS_NO_DECAY_EMBEDDINGS;
    return group == GROUP_DECAY || (group == GROUP_EMBEDDING && embeddings);
}

/* Adds a tensor to the last run, or begins a new one if its group differs. The padding of a bucket
 * belongs to the tensor before it; its gradients are 0, so it stays 0. */
static void add_run(train_optimizer *optimizer, const train_tensor *tensor)
{
    const bool decaying = decays(&optimizer->config, tensor->group);
    optimizer_run *last = optimizer->run_count > 0 ? &optimizer->runs[optimizer->run_count - 1]
                                                   : NULL;
    if (last != NULL && last->decays == decaying)
        return;
    if (last != NULL)
        last->end = tensor->offset;
    optimizer->runs[optimizer->run_count++] = (optimizer_run){SIZE_MAX, decaying};
}

/* @return the first tensor at or after @p offset; NULL if there is none. */
static const train_tensor *next_tensor(const tensor_table *tensors, size_t offset)
{
    const train_tensor *next = NULL;
    for (int t = 0; t < tensors->count; t++) {
        const train_tensor *tensor = &tensors->list[t];
        if (tensor->tie < 0 && tensor->offset >= offset &&
            (next == NULL || tensor->offset < next->offset))
            next = tensor;
    }
    return next;
}

ring_status optimizer_group(train_optimizer *optimizer, const tensor_table *tensors)
{
    if (optimizer_groups(&optimizer->config) == 1)
        return RING_OK;
    RING_TRY(train_alloc((void **)&optimizer->runs,
                         (size_t)tensors->count * sizeof *optimizer->runs, "parameter groups"));
    const train_tensor *tensor = next_tensor(tensors, 0);
    while (tensor != NULL) {
        add_run(optimizer, tensor);
        tensor = next_tensor(tensors, tensor->offset + tensor->count);
    }
    return RING_OK;
}

/* ---- States -------------------------------------------------------------------------------- */

/* Sets states that do not start from 0. @param first  [optimizer->count] on the host. */
static void start_states(const train_optimizer *optimizer, float *first)
{
    for (size_t i = 0; i < optimizer->count && optimizer->config.kind == OPTIMIZER_ADAGRAD; i++)
        first[i] = (float)optimizer->config.first_sum;
}

/* The same at another place than the host. */
static ring_status write_states(const train_optimizer *optimizer)
{
    const nn_place *place = optimizer->place;
    const size_t bytes = optimizer->count * sizeof(float);
    float *first;
    if (optimizer->config.kind != OPTIMIZER_ADAGRAD)
        return RING_OK;
    RING_TRY(train_alloc((void **)&first, bytes, "the optimizer's state"));
    start_states(optimizer, first);
    place->write(place, optimizer->first, first, bytes);
    const ring_status status = place->settle(place);
    free(first);
    return status;
}

ring_status optimizer_create(train_optimizer *optimizer, const nn_place *place,
                             const optimizer_config *config, size_t count)
{
    const size_t bytes = count * sizeof(float);
    *optimizer =
        (train_optimizer){.place = place, .config = *config, .count = count, .no_decay_lr = -1.0};
    if (optimizer_state_name(config, 0) != NULL)
        RING_TRY(place->alloc(place, (void **)&optimizer->first, bytes, "the optimizer's state"));
    if (optimizer_state_name(config, 1) != NULL)
        RING_TRY(place->alloc(place, (void **)&optimizer->second, bytes, "the optimizer's state"));
    if (!place->is_host)
        return write_states(optimizer);
    start_states(optimizer, optimizer->first);
    return RING_OK;
}

void optimizer_create_at(train_optimizer *optimizer, const optimizer_config *config, size_t count,
                         float *states[OPTIMIZER_STATES])
{
    *optimizer = (train_optimizer){.place = &place_host,
                                   .config = *config,
                                   .count = count,
                                   .first = states[0],
                                   .second = states[1],
                                   .no_decay_lr = -1.0,
                                   .outside = true};
    start_states(optimizer, optimizer->first);
}

void optimizer_destroy(train_optimizer *optimizer)
{
    const nn_place *place = optimizer->place;
    if (place != NULL && !optimizer->outside) {
        place->release(place, optimizer->first);
        place->release(place, optimizer->second);
    }
    free(optimizer->runs);
    memset(optimizer, 0, sizeof *optimizer);
}

void optimizer_set_rates(train_optimizer *optimizer, const schedule_rates *rates)
{
    optimizer->no_decay_lr = rates->no_decay_lr;
    memcpy(optimizer->config.betas, rates->betas, sizeof rates->betas);
}

void optimizer_begin(train_optimizer *optimizer)
{
    optimizer->step++;
}

/* Cuts the range where a run of another group begins, and updates each part with its group's rates.
 */
void optimizer_step(train_optimizer *optimizer, const optimizer_range *range, const double *lr,
                    const double *scale)
{
    const optimizer_run all = {SIZE_MAX, true};
    const optimizer_run *run = optimizer->runs != NULL ? optimizer->runs : &all;
    for (size_t done = 0; done < range->count; run++) {
        const size_t begin = range->offset + done, left = range->count - done;
        if (run->end <= begin)
            continue;
        const size_t count = left < run->end - begin ? left : run->end - begin;
        const optimizer_range part = {.offset = begin,
                                      .at = range->at + done,
                                      .count = count,
                                      .params = range->params + done,
                                      .grads = range->grads + done};
        update_rates rates = {*lr, *scale, optimizer->config.weight_decay};
        if (!run->decays) {
            rates.lr = optimizer->no_decay_lr >= 0.0 ? optimizer->no_decay_lr : *lr;
            rates.weight_decay = 0.0;
        }
        rows[optimizer->config.kind].step(optimizer, &part, &rates);
        done += count;
    }
}

size_t optimizer_bytes(const train_optimizer *optimizer)
{
    return optimizer->outside ? 0 : optimizer_needs(&optimizer->config, optimizer->count);
}

double optimizer_clip(double norm, double most)
{
    const double factor = most / (norm + 1e-6);
    return most > 0.0 && factor < 1.0 ? factor : 1.0;
}
