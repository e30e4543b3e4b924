/* SPDX-License-Identifier: Apache-2.0
 * check_network: interfaces, and this host's name. */
#ifndef DOCTOR_CHECK_NETWORK_H
#define DOCTOR_CHECK_NETWORK_H

#include "checks.h"

extern const check network_checks[];

#endif
