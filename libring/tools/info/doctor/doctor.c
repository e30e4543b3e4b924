/* SPDX-License-Identifier: Apache-2.0
 * Runs all checks on this host, or calls doctor_hosts() if the user has named hosts. */
#include "doctor.h"

#include "check_adapters.h"
#include "check_gpudirect.h"
#include "check_machine.h"
#include "check_network.h"
#include "check_software.h"
#include "doctor_hosts.h"
#include "doctor_json.h"
#include "show.h"

static int examine_here(const doctor_wishes *w)
{
    enum { DEFAULT_PKEY = 0xffff };
    static facts f;
    report r = {0};
    f = (facts){.root = w->root != NULL ? w->root : "",
                .seconds = w->seconds,
                .pkey = w->pkey != 0 ? (unsigned)w->pkey : DEFAULT_PKEY};
    facts_read(&f);
    checks_run(machine_checks, &f, &r);
    checks_run(network_checks, &f, &r);
    checks_run(adapters_checks, &f, &r);
    checks_run(gpudirect_checks, &f, &r);
    checks_run(software_checks, &f, &r);
    if (w->json)
        show_json_tree(doctor_json(&f, &r));
    else
        show_findings(&r, w->color);
    const int status = report_status(&r);
    report_free(&r);
    return status;
}

int doctor_run(const doctor_wishes *w)
{
    return w->hosts != NULL || w->hostfile != NULL ? doctor_hosts(w) : examine_here(w);
}
