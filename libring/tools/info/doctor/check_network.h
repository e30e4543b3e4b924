/* SPDX-License-Identifier: Apache-2.0
 * check_network: checks the network interfaces, and whether this host's name is a usable
 * address. */
#ifndef DOCTOR_CHECK_NETWORK_H
#define DOCTOR_CHECK_NETWORK_H

#include "checks.h"

extern const check network_checks[];

#endif
