/* SPDX-License-Identifier: Apache-2.0
 * Chooses the cores of ranks: either all ranks of a host get the same number of cores, or no rank
 * is bound. */
#include "binding.h"

#include <stdlib.h>

const char *const binding_variables[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                         "MKL_NUM_THREADS"};

const char *binding_threads(const job *j, const share *s, size_t variable)
{
    const char *name = binding_variables[variable], *value = texts_get(&j->exports, name);
    return value != NULL || !s->local ? value : getenv(name);
}

/* @return the largest thread count of the variables; 1 if they are not set, as ranks then get 1. */
static size_t threads_wanted(const job *j, const share *s)
{
    size_t most = 1;
    for (size_t i = 0; i < BINDING_VARIABLES; i++) {
        const char *value = binding_threads(j, s, i);
        if (value != NULL)
            most = max_size(most, strtoul(value, NULL, 10));
    }
    return most;
}

/* Cores that a rank may have alone. A single rank is not bound, nor one whose threads need more
 * than its share. */
static size_t cores_each(const job *j, const share *s, size_t cores)
{
    const size_t ranks = (size_t)s->ranks;
    if (ranks == 1 || ranks > cores || threads_wanted(j, s) > cores / ranks)
        return 0;
    return cores / ranks;
}

core_range binding_of(const job *j, const share *s, int local, size_t cores)
{
    const size_t slot = (size_t)s->slots[local];
    if (j->binding == BIND_NONE || cores == 0)
        return (core_range){0, 0};
    if (j->binding == BIND_CORE)
        return (core_range){slot % cores, 1};
    const size_t each = cores_each(j, s, cores);
    return (core_range){each == 1 ? slot % cores : (size_t)local * each, each};
}
