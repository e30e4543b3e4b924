/* SPDX-License-Identifier: Apache-2.0
 *
 * The adversary executes plans on real memory, as unkindly as the contract allows: ranks
 * and links of random speeds, chunks moved element by element, messages by value (read from
 * the sender's memory as late as possible, on links that are soon full), by reference or by
 * store at random, for one or several slices in a row, and buffers filled with rubbish as soon as a
 * rank has ended. It shares no code with the checker, so it says whether the
 * checker's word can be trusted.
 */
#ifndef TESTS_PLAN_ADVERSARY_H
#define TESTS_PLAN_ADVERSARY_H

#include "plans.h"

/** Runs @p times with other seeds, in place and not, for 1 to 3 slices. @return NULL if all ranks
 *  ended each time with what the collective says (sums in the order of plan_order()), else what
 *  went wrong. */
const char *adversary_attack(const plan_set *set, int times);

#endif
