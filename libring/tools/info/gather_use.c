/* SPDX-License-Identifier: Apache-2.0
 * Reports the launcher, the settings, and the transports and kernels that libring would use now. */
#include "info_report.h"

#include "kernels.h"
#include "launch.h"
#include "secret.h"
#include "settings.h"
#include "transport.h"
#include "transport_list.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { TRANSPORTS_MAX = 32 };

static void gather_launch(report *r)
{
    launch_info launch;
    if (launch_detect(&launch) != RING_OK) {
        report_text(r, "launch", "launcher", "its variables contradict each other");
        report_judge(r, VERDICT_FAIL, "%s", fail_text());
        return;
    }
    report_text(r, "launch", "launcher", "%s", launch.launcher);
    if (launch.size == 1)
        report_text(r, "launch", "rank", "%d of %d: start several ranks with ringrun -n N",
                    launch.rank, launch.size);
    else
        report_text(r, "launch", "rank", "%d of %d", launch.rank, launch.size);
    if (launch.local_rank >= 0)
        report_number(r, "launch", "local_rank", launch.local_rank, "");
    if (launch.address[0] != '\0')
        report_text(r, "launch", "rank_0_listens", "%s port %d%s", launch.address, launch.port,
                    launch.agent_holds_port ? " (held by torchrun; the ranks agree on another port)"
                                            : "");
}

/* Reads all settings and reports whether they are valid; `ringinfo env` shows each of them. */
static void gather_settings(report *r, settings *s)
{
    if (settings_read(s) == RING_OK) {
        report_text(r, "settings", "RING_* variables", "understood; 'ringinfo env' lists them");
        return;
    }
    report_text(r, "settings", "RING_* variables", "wrong");
    report_judge(r, VERDICT_FAIL, "%s", fail_text());
    memset(s, 0, sizeof *s);
}

/* Reports the state of the secret file, since a rank rejects a file that is wrong on its host. */
static void gather_secret(report *r, const settings *s)
{
    settings only_file = *s;
    unsigned char hash[CREDENTIAL_KEY];
    struct stat file;
    bool found;
    only_file.secret_fd = -1;
    if (s->secret_file[0] == '\0')
        return;
    const bool there = stat(s->secret_file, &file) == 0;
    if (there)
        report_text(r, "settings", "RING_SECRET_FILE", "mode %04o, %lld bytes: %.400s",
                    file.st_mode & 07777u, (long long)file.st_size, s->secret_file);
    else
        report_text(r, "settings", "RING_SECRET_FILE", "does not exist: %.400s", s->secret_file);
    if (secret_read(&only_file, hash, &found) == RING_OK)
        report_judge(r, VERDICT_OK, "%s", "");
    else if (there && S_ISREG(file.st_mode) && (file.st_mode & 077) != 0)
        report_judge(r, VERDICT_FAIL, "%s", fail_text());
    else
        report_judge(r, VERDICT_FAIL,
                     "%.300s; create one and copy it to every host: (umask 077; head -c 32 "
                     "/dev/urandom >FILE)",
                     fail_text());
    explicit_bzero(hash, sizeof hash);
}

/* Reports a variable that is unknown, because a misspelled one has no effect. */
static void judge_entry(report *r, const char *entry)
{
    char name[SETTINGS_NAME_MAX];
    const char *nearest;
    if (!settings_unknown(entry, name, &nearest))
        return;
    report_text(r, "settings", name, "no such variable");
    if (nearest != NULL)
        report_judge(r, VERDICT_WARN, "did you mean %s?", nearest);
    else
        report_judge(r, VERDICT_WARN, "remove it");
}

/* ---- Transports ------------------------------------------------------------------ */

/* Adds a row for a transport. @param allowed  by RING_TRANSPORT. @param named  RING_TRANSPORT names
 * some.
 * @return true if ranks can use it. */
static bool describe_transport(report *r, const transport *t, const transport_ib *ib, bool allowed,
                               bool named)
{
    char why[256] = "";
    const bool works = t->probe(ib, why, sizeof why);
    const bool unasked = (t->powers & TRANSPORT_ASKED) != 0 && !allowed;
    if (unasked && works)
        report_text(r, "transports", t->name, "works; used only if RING_TRANSPORT names it; %s",
                    t->about);
    else if (!allowed && !unasked)
        report_text(r, "transports", t->name, "excluded by RING_TRANSPORT; %s", t->about);
    else if (works)
        report_text(r, "transports", t->name, "works; %s", t->about);
    else
        report_text(r, "transports", t->name, "does not work here: %s", why);
    if (allowed)
        report_judge(r, works || !named ? VERDICT_OK : VERDICT_WARN, "%s",
                     works || !named ? "" : "the next transport that works is used instead");
    return allowed && works;
}

/* Reports the first usable transport. @param between  "on_one_host" or "between_hosts". */
static void describe_use(report *r, const char *between, const char *name)
{
    report_text(r, "transports", between, "%s", name != NULL ? name : "none");
    if (name == NULL)
        report_judge(r, VERDICT_WARN, "no transport connects such ranks; see RING_TRANSPORT");
}

static void gather_transports(report *r, const settings *s)
{
    size_t count;
    uint32_t mask = 0, asked = 0;
    const char *names[TRANSPORTS_MAX], *near = NULL, *far = NULL;
    const transport *const *all = transport_all(&count);
    const bool names_some = s->transport[0] != '\0' && s->transport[0] != '^';
    count = min_size(count, TRANSPORTS_MAX);
    for (size_t i = 0; i < count; i++) {
        names[i] = all[i]->name;
        asked |= all[i]->powers & TRANSPORT_ASKED ? 1u << i : 0;
    }
    if (settings_transports(s, names, count, asked, &mask) != RING_OK) {
        report_text(r, "transports", "RING_TRANSPORT", "%s", s->transport);
        report_judge(r, VERDICT_FAIL, "%s", fail_text());
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (!describe_transport(r, all[i], &s->ib, (mask >> i & 1) != 0, names_some))
            continue;
        if (strcmp(names[i], "loop") != 0 && near == NULL)
            near = names[i];
        if ((all[i]->powers & TRANSPORT_CAN_MAP) == 0 && far == NULL)
            far = names[i]; /* transports that map memory work within one host */
    }
    describe_use(r, "on_one_host", near);
    describe_use(r, "between_hosts", far);
}

static void gather_kernels(report *r)
{
    const char *wanted = getenv("RING_SIMD");
    const bool present = wanted == NULL || *wanted == '\0' || kernels_select(wanted);
    if (!present)
        kernels_select("auto");
    report_text(r, "kernels", "simd", "%s", kernels_level());
    if (!present)
        report_judge(r, VERDICT_FAIL,
                     "RING_SIMD=%.60s is unknown or this CPU lacks it; use auto, avx512, avx2 or c",
                     wanted);
}

void gather_use(report *r)
{
    extern char **environ;
    settings s;
    gather_launch(r);
    gather_settings(r, &s);
    gather_secret(r, &s);
    for (char **entry = environ; *entry != NULL; entry++)
        judge_entry(r, *entry);
    gather_transports(r, &s);
    gather_kernels(r);
}
