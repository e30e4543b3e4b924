/* SPDX-License-Identifier: Apache-2.0
 * Runs ringperf on both hosts, which connects by libring and checks the values that it receives: by
 * TCP, and by RDMA if both hosts have ports that work. Rank 1 connects to rank 0, so a second job
 * with the hosts exchanged tests connections in the other direction. */
#include "pair_test.h"

#include "doctor_json.h"
#include "runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MEETING_TIME = 5, /* seconds for ranks to join, in addition to the time for ssh */
    CALL_TIME = 4,    /* seconds after which a call fails */
    CALLS_TIME = 8,   /* seconds for all calls of a job */
    SHORT = 8,        /* message sizes in bytes */
    MEDIUM = 64 << 10,
    LONGEST = 8 << 20,
    MOST_CALLS = 500,
};

#define SECTION "pairs"

typedef struct timing {
    double short_us, long_us; /* time of a call of SHORT bytes, and of `most`; 0: not measured */
    double most;              /* bytes of the larger messages */
    double wrong;             /* number of wrong values that were received */
} timing;

static double number(const cJSON *o, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, name));
}

/* Reads the results from the output of ringperf, in which lines that begin with '{' are JSON. */
static timing read_timing(const run *job)
{
    timing t = {0};
    for (const char *line = job->out; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        cJSON *o = *line == '{' ? cJSON_ParseWithLength(line, length) : NULL;
        const double size = number(o, "bytes"), us = number(o, "time_us");
        t.short_us = size == SHORT ? us : t.short_us;
        if (size > SHORT) {
            t.most = size;
            t.long_us = us;
        }
        t.wrong += o != NULL ? number(o, "wrong") : 0;
        cJSON_Delete(o);
        line += length + (line[length] == '\n');
    }
    return t;
}

/* A job of two ranks that exchange messages. */
typedef struct job {
    const char *first, *second; /* hosts of rank 0 and 1 */
    size_t most;                /* bytes of the largest message */
    int calls;    /* of `most` bytes; 0: ringperf chooses, and sends SHORT bytes, too */
    int patience; /* seconds for ranks to join */
    const char *transport;
} job;

/* Writes the command line of a job. */
static void put_command(run *r, const doctor_wishes *w, const job *j)
{
    char hosts[600], first[280], second[280];
    snprintf(hosts, sizeof hosts, "%s,%s", runs_host(j->first, first),
             runs_host(j->second, second));
    runs_begin(r, w, hosts);
    texts_add(&r->command, "--export=RING_INIT_TIMEOUT=%d", j->patience);
    if (w->master_port > 0)
        texts_add(&r->command, "--master-port=%d", w->master_port);
    texts_add(&r->command, "--export=RING_TRANSPORT=%s", j->transport);
    texts_add(&r->command, "--export=RING_TIMEOUT=%d", CALL_TIME);
    runs_add_program(r, w, "ringperf");
    texts_add(&r->command, "sendrecv");
    texts_add(&r->command, "--minbytes=%zu", j->calls > 0 ? j->most : (size_t)SHORT);
    texts_add(&r->command, "--maxbytes=%zu", j->most);
    if (j->calls > 0) {
        texts_add(&r->command, "--iters=%d", j->calls);
        texts_add(&r->command, "--hot"); /* so that the time contains only calls */
    } else {
        texts_add(&r->command, "--stepbytes=%zu", j->most - SHORT);
    }
    texts_add(&r->command, "--json=/proc/self/fd/1"); /* some systems lack /dev/stdout */
}

/* Adds the command that fits the reason of the failure. A test by RDMA is run only if the test by
 * TCP has succeeded, so that a failure is RDMA's. */
static void add_command(checking *c, const job *j, const char *why, bool tcp)
{
    static const remedy lost[] = {{"did not", ""},  {"RING_TIMEOUT", ""}, {"onnection", ""},
                                  {"imed out", ""}, {"No route", ""},     {NULL, NULL}};
    const char *a = j->first, *b = j->second;
    const char *start = runs_remedy(why, NULL);
    if (start != NULL)
        check_command(c, "%s", start);
    else if (strstr(why, "cannot register") != NULL)
        check_command(c, REMEDY_MEMLOCK);
    else if (strstr(why, "ssh to the host") != NULL || strstr(why, "no answer within") != NULL)
        check_command(c, "time ssh %s true; time ssh %s true   # why does ssh take so long?", a, b);
    else if (strstr(why, "listens on port") != NULL)
        check_command(c,
                      "ssh %s ss -ltnp   # which program has the port? or test with --master-port",
                      a);
    else if (!tcp)
        check_command(
            c,
            "ssh %s ib_write_bw & sleep 1; ssh %s ib_write_bw %s   # of perftest: does that "
            "fail, too? meanwhile: export RING_TRANSPORT=shm,tcp",
            a, b, a);
    else if (remedy_for(lost, why) != NULL)
        check_command(
            c,
            "ssh %s \"sudo iptables -I INPUT -p tcp -s $(getent hosts %s | cut -d' ' -f1) "
            "-j ACCEPT\"   # if there is a firewall",
            a, b);
    else
        check_command(c, "ringrun -H %s,%s ringperf sendrecv -c 1   # which error does it print?",
                      a, b);
}

/* Adds a row about a job that failed. */
static void complain(const job *j, const char *why, report *out)
{
    char name[600];
    checking c = {.r = out, .section = SECTION, .name = name};
    const bool tcp = strcmp(j->transport, "tcp") == 0;
    snprintf(name, sizeof name, "%s to %s%s", j->second, j->first, tcp ? "" : " rdma");
    check_found(&c, "no working connection by %s", tcp ? "TCP" : "RDMA");
    check_judge(&c, VERDICT_FAIL, "a rank on %s could not connect to one on %s: %.280s", j->second,
                j->first, why);
    add_command(&c, j, why, tcp);
}

/* Runs a job and reads its timing. @return false, after adding a row, if the job fails. */
static bool run_job(const doctor_wishes *w, const job *j, timing *t, report *out)
{
    char why[300];
    run r;
    put_command(&r, w, j);
    runs_all(&r, 1, j->patience + CALLS_TIME);
    *t = read_timing(&r);
    const bool good = r.code == 0 && t->wrong == 0 && t->long_us > 0;
    runs_why(&r, why, sizeof why);
    runs_free(&r, 1);
    if (!good)
        complain(j, why, out);
    return good;
}

/* ---- Judging --------------------------------------------------------------------------------- */

/* @return Gbit/s of a host's interface; 0: unknown. */
static double link_speed(const doctor_host *h)
{
    const char *speed = told_text(h->told, "alike", "speed");
    return speed != NULL ? strtod(speed, NULL) / 1000 : 0;
}

/* @return Gbit/s of the slowest port that works, 0 if it is made of software; negative if no port
 * works. */
static double rdma_speed(const doctor_host *h)
{
    const cJSON *speed = told_item(h->told, "alike", "rdma_speed");
    return cJSON_IsNumber(speed) ? speed->valuedouble : -1;
}

static void judge_speed(checking *c, double gbits, double link)
{
    char text[64] = "";
    if (link > 0)
        snprintf(text, sizeof text, " of a link of %.4g Gbit/s", link);
    check_found(c, "%.3g Gbit/s each way%s", gbits, text);
    if (gbits < link / 2)
        check_warn(c, "less than half of the link's speed: other traffic, or a small MTU",
                   "export RING_CHANNELS=4   # check for other traffic: sar -n DEV 1 5");
}

/* RDMA must reach a larger part of the nominal speed than TCP, since adapters transfer data without
 * the processor. */
static void judge_rdma_speed(checking *c, double gbits, double rate)
{
    check_found(c, "%.3g Gbit/s each way%s", gbits, rate > 0 ? "" : " in software");
    if (gbits >= 0.8 * rate)
        return;
    check_judge(
        c, VERDICT_WARN,
        "less than 80 %% of the %.4g Gbit/s of the slower port: check switch, slot and IOMMU",
        rate);
    check_command(c, "iblinkinfo   # of infiniband-diags; for RoCE: ethtool -S INTERFACE | grep -E "
                     "'pause|discard|ecn'");
}

/* @return a job in the other direction, whose calls take about 20 ms and which takes about 1 s, at
 * the speed just measured: @p us for MEDIUM bytes. */
static job long_job(job j, double us)
{
    enum { CALL_US = 20000, JOB_US = 1000000 };
    const char *first = j.first;
    const double wanted = exp2(floor(log2(MEDIUM / us * CALL_US)));
    const double most = fmin(fmax(wanted, MEDIUM), LONGEST);
    j.first = j.second;
    j.second = first;
    j.most = (size_t)most;
    j.calls = (int)fmin(fmax(JOB_US / (us * most / MEDIUM), 3), MOST_CALLS);
    return j;
}

/* Two hosts, and the results of both directions by one transport. */
typedef struct pair {
    const doctor_wishes *w;
    const doctor_host *a, *b;
    report *r;
    double round_trip_us, gbits;
} pair;

/* Runs a job in each direction. @return false, after adding rows, if one fails. */
static bool run_both_ways(pair *p, const char *transport)
{
    timing there, back;
    const double slower = fmax(p->a->done - p->a->began, p->b->done - p->b->began);
    const int patience = MEETING_TIME +
                         (int)ceil(2 * slower); /* each rank starts through ssh, too */
    const job first = {p->a->name, p->b->name, MEDIUM, 0, patience, transport};
    const bool to_a = run_job(p->w, &first, &there, p->r);
    const job second = long_job(first, to_a ? there.long_us : 1e4);
    const bool to_b = run_job(p->w, &second, &back, p->r);
    p->round_trip_us = 2 * there.short_us;
    p->gbits = back.most * 8e-3 / back.long_us;
    return to_a && to_b;
}

void pair_test(const doctor_wishes *w, const doctor_host *a, const doctor_host *b, report *r)
{
    char names[560];
    pair p = {.w = w, .a = a, .b = b, .r = r};
    checking c = {.r = r, .section = SECTION, .name = "reach", .subject = names};
    const double rate = fmin(rdma_speed(a), rdma_speed(b));
    snprintf(names, sizeof names, "%s - %s", a->name, b->name);
    if (!run_both_ways(&p, "tcp"))
        return;
    check_found(&c, "ranks can connect in both directions");
    c.name = "time";
    const bool is_long = p.round_trip_us >= 1000;
    check_found(&c, "round trip %.3g %s", p.round_trip_us / (is_long ? 1000 : 1),
                is_long ? "ms" : "us");
    if (p.round_trip_us > 1000)
        check_warn(&c, "more than 1 ms: a tunnel or slow router between the hosts, or busy hosts",
                   "export RING_SOCKET_IFNAME=eth1   # an interface of the fast network");
    c.name = "speed";
    judge_speed(&c, p.gbits, fmin(link_speed(a), link_speed(b)));
    if (rate < 0 || !run_both_ways(&p, "verbs"))
        return;
    c.name = "rdma time";
    check_found(&c, "round trip %.3g us", p.round_trip_us);
    c.name = "rdma speed";
    judge_rdma_speed(&c, p.gbits, rate);
}
