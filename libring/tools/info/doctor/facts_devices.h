/* SPDX-License-Identifier: Apache-2.0
 * facts_devices: ports of InfiniBand and RoCE adapters, GPUs, and where on the PCI bus they are. */
#ifndef DOCTOR_FACTS_DEVICES_H
#define DOCTOR_FACTS_DEVICES_H

#include "facts.h"

/** After the interfaces. */
void facts_read_ports(facts *f);
/** @param reading  0 or 1. */
void facts_read_port_counters(facts *f, int reading);
/** After the ports. */
void facts_read_pci(facts *f);

#endif
