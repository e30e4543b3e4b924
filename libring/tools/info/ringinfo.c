/* SPDX-License-Identifier: Apache-2.0
 * ringinfo: reports the machine, the parts of it that libring would use, and problems with their
 * remedies. `ringinfo env` lists the settings, and `ringinfo doctor` runs the checks of
 * doctor.h. */
#include "doctor.h"
#include "info_report.h"

#include "args.h"
#include "output.h"
#include "settings.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CODE_OUTPUT = 1, CODE_WRONG = 3 };

typedef struct wishes {
    bool env_only, doctor_only, json, no_color;
    doctor_wishes doctor;
} wishes;

enum { PORT_MAX = 65535, PKEY_MAX = 0xffff };

static void take_pkey(const args_given *given)
{
    char *end;
    wishes *w = given->out;
    const long key = strtol(given->text, &end, 16);
    if (end == given->text || *end != '\0' || key <= 0 || key > PKEY_MAX)
        args_refuse(given, "expected a partition in hexadecimal, 0x1 to 0xffff");
    w->doctor.pkey = (int)key;
}

static const args_row rows[] = {
    {"json", 0, NULL, "Print JSON, for programs", args_flag, ARGS_AT(wishes, json)},
    {"no-color", 0, NULL, "Print no colours (also: NO_COLOR in the environment)", args_flag,
     ARGS_AT(wishes, no_color)},
    {.help = "Options of ringinfo doctor:"},
    {"hosts", 'H', "A,B", "Examine these hosts, compare them, and test each pair", args_text,
     ARGS_AT(wishes, doctor.hosts)},
    {"hostfile", 0, "FILE", "Like --hosts, for the hosts in a file of ringrun's format", args_text,
     ARGS_AT(wishes, doctor.hostfile)},
    {"master-port", 0, "PORT", "Port of rank 0 in the tests of pairs (default: 29500)", args_whole,
     ARGS_AT(wishes, doctor.master_port), .least = 1, .most = PORT_MAX},
    {"ssh-port", 0, "PORT", "Port of ssh on the other hosts", args_whole,
     ARGS_AT(wishes, doctor.ssh_port), .least = 1, .most = PORT_MAX},
    {"remote-ringrun", 0, "PATH",
     "Path of ringrun on the other hosts (default: its path on this host)", args_text,
     ARGS_AT(wishes, doctor.remote_ringrun)},
    {"seconds", 0, "S", "Read the counters twice, S seconds apart, and report those that rise",
     args_seconds, ARGS_AT(wishes, doctor.seconds)},
    {"pkey", 0, "KEY", "Partition that jobs should use (default: 0xffff)", .take = take_pkey},
    {"root", 0, "DIR", "Read /sys, /proc and /etc below DIR, for example a copy from another host",
     args_text, ARGS_AT(wishes, doctor.root)},
    {0},
};

static const char doc[] =
    "Shows the machine, the parts of it that libring will use, and problems."
    "\vThe word env lists every variable that libring reads, with its value, the source of the "
    "value, its default, its unit and its meaning.\n"
    "\n"
    "The word doctor checks limits, memory, CPUs, interfaces, adapters, GPUs and software. Each "
    "line is OK, WARN or FAIL with the reason and the command that fixes it. With --hosts it also "
    "compares the hosts and tests the connections between them.\n"
    "\n"
    "Examples:\n"
    "  ringinfo\n"
    "  ringinfo env\n"
    "  ringinfo doctor\n"
    "  ringinfo doctor --hosts node1,node2\n"
    "  RING_TRANSPORT=tcp ringinfo          shows the effect of a setting\n"
    "  ringrun -n 2 ringinfo                reports what each of 2 ranks would use\n"
    "  ringinfo --json | jq .transports\n"
    "\n"
    "Exit status: 0 nothing is wrong, 1 not all output could be written, 2 usage, 3\n"
    "something is wrong (FAIL). With doctor: 0 nothing is wrong, 1 there are warnings\n"
    "(WARN), 2 usage, 3 something is wrong or not all output could be written.";

static int take_word(char **words, int count, void *out)
{
    static const char *const known[] = {"env", "doctor"};
    wishes *w = out;
    (void)count;
    if (w->env_only || w->doctor_only)
        args_fail("only one of the words 'env' and 'doctor' may be given");
    w->env_only = strcmp(words[0], known[0]) == 0;
    w->doctor_only = strcmp(words[0], known[1]) == 0;
    if (!w->env_only && !w->doctor_only) {
        const bool nearer = words_distance(words[0], known[0]) <=
                            words_distance(words[0], known[1]);
        args_fail("unknown word '%s'; did you mean '%s'?", words[0], known[nearer ? 0 : 1]);
    }
    return 1;
}

static void check_together(const wishes *w)
{
    const doctor_wishes *d = &w->doctor;
    const bool several = d->hosts != NULL || d->hostfile != NULL;
    const bool of_hosts = d->ssh_port != 0 || d->master_port != 0 || d->remote_ringrun != NULL;
    const bool of_doctor = several || of_hosts || d->root != NULL || d->seconds > 0 || d->pkey != 0;
    if (!w->doctor_only && of_doctor)
        args_fail("this option is only for ringinfo doctor");
    if (d->hosts != NULL && d->hostfile != NULL)
        args_fail("--hosts and --hostfile both name the hosts; give one");
    if (!several && of_hosts)
        args_fail("--ssh-port, --master-port and --remote-ringrun need --hosts");
    if (several && d->seconds > 0)
        args_fail("--seconds is for one host; with --hosts, the counters are read before and after "
                  "the tests");
}

static bool may_color(const wishes *w)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !w->no_color && (no_color == NULL || *no_color == '\0') && isatty(STDOUT_FILENO) &&
           term != NULL && strcmp(term, "dumb") != 0;
}

/* The call of settings_read() checks the settings and warns about unknown variables. */
static int show_settings(const wishes *w)
{
    settings s;
    if (w->json)
        show_json_settings();
    else
        show_text_settings(may_color(w));
    fflush(stdout);
    if (settings_read(&s) == RING_OK)
        return 0;
    fprintf(stderr, "ringinfo: %s\n", fail_text());
    return CODE_WRONG;
}

static int show_report(const wishes *w)
{
    report r = {0};
    gather_all(&r);
    if (w->json)
        show_json(&r);
    else
        show_text(&r, may_color(w));
    const bool wrong = report_count(&r, VERDICT_FAIL) > 0;
    report_free(&r);
    return wrong ? CODE_WRONG : 0;
}

int main(int argc, char **argv)
{
    static const args_program ringinfo = {"ringinfo", rows, "[env|doctor]", doc, .take = take_word};
    wishes w = {0};
    output_check_at_exit(CODE_OUTPUT);
    args_parse(&ringinfo, argc, argv, &w);
    check_together(&w);
    if (w.doctor_only) {
        w.doctor.json = w.json;
        w.doctor.color = may_color(&w);
        output_check_at_exit(CODE_WRONG); /* not 1, which means warnings here */
        return doctor_run(&w.doctor);
    }
    return w.env_only ? show_settings(&w) : show_report(&w);
}
