/* SPDX-License-Identifier: Apache-2.0
 * The order in which an algorithm combines: formulas for the plain ones, for the others what is
 * proven of their plans. */
#ifndef TESTS_COLL_SWEEP_ORDER_H
#define TESTS_COLL_SWEEP_ORDER_H

#include "coll_sweep.h"
#include "collective_oracle.h"

#include "algo.h"

typedef struct sweep_order {
    oracle_order at;
    plan *plans[ORACLE_MOST_RANKS]; /* NULL where a formula tells */
    plan_layout layout;
} sweep_order;

/** @param hosts  that the ranks are on, in turn. @return false, with a line on stderr, if the plans
 *  cannot be built. */
bool sweep_order_find(sweep_order *order, const sweep_case *c, const char *algorithm, int hosts);
void sweep_order_free(sweep_order *order);

plan_collective sweep_collective(sweep_kind kind);
/** @return true if the algorithm can do it. */
bool sweep_order_serves(const char *algorithm, sweep_kind kind);

#endif
