/* SPDX-License-Identifier: Apache-2.0
 * facts_net: network interfaces, their networks, and what this host is called. */
#ifndef DOCTOR_FACTS_NET_H
#define DOCTOR_FACTS_NET_H

#include "facts.h"

void facts_read_net(facts *f);
/** @param reading  0 or 1. */
void facts_read_net_counters(facts *f, int reading);

#endif
