/* SPDX-License-Identifier: Apache-2.0
 * Chooses the cores of ranks: all ranks of a host get the same number of cores, or none of them is
 * bound. */
#include "binding.h"

#include <stdlib.h>

const char *const binding_variables[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
                                         "MKL_NUM_THREADS"};

const char *binding_threads(const job *j, const share *s, size_t variable)
{
    const char *name = binding_variables[variable], *value = texts_get(&j->exports, name);
    return value != NULL || !s->local ? value : getenv(name);
}

/* @return the largest number of threads that a variable sets; 1 if none does, since ringrun then
 * sets them to 1. */
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

core_range binding_of(const job *j, const share *s, int local, size_t cores)
{
    const size_t slot = (size_t)s->slots[local], ranks = (size_t)s->ranks;
    if (j->binding == BIND_NONE || cores == 0)
        return (core_range){0, 0};
    if (j->binding == BIND_CORE)
        return (core_range){slot % cores, 1};
    /* An equal share of the cores, unless the rank is alone or its threads need more than a share.
     */
    const size_t each = ranks > 1 && threads_wanted(j, s) <= cores / ranks ? cores / ranks : 0;
    return (core_range){each == 1 ? slot % cores : (size_t)local * each, each};
}
