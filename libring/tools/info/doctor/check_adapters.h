/* SPDX-License-Identifier: Apache-2.0
 * check_adapters: ports: whether they are up, how fast, who may talk, and how they do. */
#ifndef DOCTOR_CHECK_ADAPTERS_H
#define DOCTOR_CHECK_ADAPTERS_H

#include "checks.h"

extern const check adapters_checks[];

#endif
