/* SPDX-License-Identifier: Apache-2.0
 * What active ports do when they are used. A build without verbs uses none. */
#include "facts.h"
#include "rdma_trial.h"

#ifdef RING_HAVE_VERBS
#include "adapter.h"

#include <string.h>

/* Adapters made of software are on no bus, and as fast as the processor. */
static void take_port(facts *f, const adapter_port *port)
{
    char folder[128];
    fact_trial *t = &f->trials[f->trial_count++];
    (void)text_format(t->port, sizeof t->port, "%s", port->name);
    (void)text_format(folder, sizeof folder, "/sys/class/infiniband/%s/device", port->device->name);
    t->rate = facts_exists(f, folder) ? port->rate : 0;
    rdma_trial(t);
}

void facts_try_ports(facts *f)
{
    const adapter_port *ports;
    if (f->root[0] != '\0')
        return;
    const int count = adapter_ports(&ports);
    for (int i = 0; i < count && i < FACTS_PORTS; i++)
        take_port(f, &ports[i]);
    if (count == 0)
        (void)text_format(f->no_trial, sizeof f->no_trial, "%s", fail_text());
}

#else

void facts_try_ports(facts *f)
{
    (void)
        text_format(f->no_trial, sizeof f->no_trial,
                    "libring was built without libibverbs; install libibverbs-dev and build again");
}

#endif
