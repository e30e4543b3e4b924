/* SPDX-License-Identifier: Apache-2.0
 * Gathers all sections of ringinfo's report, of which the version is the first. */
#include "info_report.h"

#include "about.h"

void gather_all(report *r)
{
    const int version = ring_version();
    report_text(r, "version", "libring", "%d.%d.%d", version / 10000, version / 100 % 100,
                version % 100);
    report_text(r, "version", "compiler", "%s", about_compiler());
    report_text(r, "version", "features", "%s", about_features());
    gather_machine(r);
    gather_use(r);
}
