/* SPDX-License-Identifier: Apache-2.0
 *
 * Thousands of schedules of one start: N ranks join, agree, meet in barriers, in one of all and in
 * one of some of them, shrink, leave; some leave before the others, die, stop, are cut off or
 * report a failure, at a drawn call of the kernel. Each schedule follows from its seed.
 *
 *     test_control.simulation [--schedules N] [--seed N] [--trace] [--strict] [--plant FAULT]
 *
 * Judged is, of the ranks that live:
 *   - each call returns in bounded time;
 *   - all have the same verdict of a communicator, status and text, and are woken once;
 *   - a rank that it blames was dead, or silent for long, and in that communicator;
 *   - they know it soon after its cause;
 *   - without a fault there is none, and all calls succeed;
 *   - a rank that has left keeps no descriptor and no memory.
 */
#include "start_schedule.h"

#include <getopt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEDULE_SECONDS 120.0
enum { ROUNDS = 3, FAILURES_SHOWN = 10 };

schedule now;

const char *const fault_names[FAULT_KINDS] = {"killed",          "killed, two",
                                              "its host silent", "stopped",
                                              "cut off",         "paused, all",
                                              "reports",         "reports, all",
                                              "refuses",         "fails in the start"};

/* ---- Drawing ------------------------------------------------------------------------------- */

static void draw_fault(fault *f)
{
    static const fault_kind often[] = {KILL,   KILL,   KILL,       KILL,   BOTH, HOST,
                                       HOST,   STOP,   STOP,       CUT,    CUT,  PAUSE,
                                       REPORT, REPORT, ALL_REPORT, REFUSE, FAIL};
    *f = (fault){.kind = often[sim_draw(sizeof often / sizeof often[0])],
                 .rank = (int)sim_draw((uint32_t)now.size),
                 .seconds = SIM_NEVER};
    f->other = (f->rank + 1 + (int)sim_draw((uint32_t)now.size - 1)) % now.size;
    f->since = sim_chance(400) ? LINKED : BIRTH;
    f->call = 1 + sim_draw(1u << (4 + sim_draw(f->since == BIRTH ? 6 : 4)));
    f->ends = f->kind == REPORT && f->rank > 0 && now.host_of[now.size - 1] == 0 && sim_chance(400);
    if (f->kind == REPORT || f->kind == ALL_REPORT)
        f->call = sim_draw((uint32_t)now.rounds);
    if (f->kind == PAUSE)
        f->seconds = sim_draw_seconds(1, 2 * PEER_TIMEOUT);
    if ((f->kind == STOP || f->kind == CUT) && sim_chance(500))
        f->seconds = sim_draw_seconds(0.01, 4 * PEER_TIMEOUT);
}

static void draw_hosts(void)
{
    const uint32_t way = sim_draw(3);
    for (int r = 0; r < now.size; r++)
        now.host_of[r] = way == 0 ? r : way == 1 ? r / 2 : 0;
}

/* Any ranks, mostly; or all but rank 0. */
static void draw_part(void)
{
    const bool any = sim_chance(600);
    int members = 0;
    for (int r = 0; r < now.size; r++)
        members += now.in_part[r] = any ? sim_chance(600) : r > 0;
    now.parts = sim_chance(500);
    if (now.parts && now.rounds == 1)
        now.rounds = 2;
    for (int r = 0; r < now.size && members < 2; r++)
        now.in_part[r] = false;
}

/* The second fault comes while ranks shrink. */
static void draw_fault_in_shrink(fault *f)
{
    do
        draw_fault(f);
    while (f->kind != KILL && f->kind != BOTH);
    f->since = SHRINKING;
    f->call = 1 + sim_draw(64);
}

static void draw_schedule(uint64_t seed, const settings *s)
{
    static const double far[] = {0.0003, 0.002, 0.02};
    memset(&now, 0, sizeof now);
    now.seed = seed;
    now.settings = *s;
    sim_seed(seed);
    now.size = 2 + (int)sim_draw(sim_chance(20) ? SIM_RANKS - 1 : sim_chance(200) ? 7 : 4);
    now.rounds = 1 + (int)sim_draw(ROUNDS);
    now.shrinks = sim_chance(300);
    if (!now.shrinks && now.size > 2 && sim_chance(400))
        draw_part();
    draw_hosts();
    const bool small = sim_chance(500); /* the buffers */
    now.links = (sim_links){.least = 20e-6,
                            .most = far[sim_draw(3)],
                            .rare = 10,
                            .parts = sim_chance(500) ? 100 : 0,
                            .room = small ? 2048 : 64 << 10};
    const double late = sim_chance(100) ? 2 : 0.05;
    for (int r = 0; r < now.size; r++)
        now.delay[r] = sim_draw_seconds(0, late);
    now.fault_count = sim_chance(300) ? 0 : sim_chance(150) ? 2 : 1;
    for (int i = 0; i < now.fault_count; i++)
        draw_fault(&now.faults[i]);
    if (now.shrinks && now.fault_count == FAULTS)
        draw_fault_in_shrink(&now.faults[1]);
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].kind == STOP || now.faults[i].kind == CUT || now.faults[i].ends)
            now.links.room = 64 << 10; /* a kernel keeps more than a few messages for it */
}

/* ---- Running ------------------------------------------------------------------------------- */

static bool run_schedule(uint64_t seed, const settings *s, char *why, size_t bytes)
{
    for (int r = 0; r < SIM_RANKS; r++)
        sim_free_all(r);
    draw_schedule(seed, s);
    sim_reset_fibers();
    sim_reset_network(&now.links, now.host_of);
    sim_reset_processes(&now.settings, now.host_of);
    sim_set_hook(life_on_call);
    for (int r = 0; r < now.size; r++) {
        now.records[r].left_at = SIM_NEVER;
        sim_start(r, life_run, &now.records[r]);
    }
    (void)sim_run(sim_now() + SCHEDULE_SECONDS);
    return judge(why, bytes);
}

static void tell(uint64_t seed, const char *why)
{
    printf("simulation: seed %llu fails: %s\n  %d ranks", (unsigned long long)seed, why, now.size);
    for (int i = 0; i < now.fault_count; i++)
        printf("; rank %d %s at call %u%s, rank %d, %g s", now.faults[i].rank,
               fault_names[now.faults[i].kind], now.faults[i].call,
               now.faults[i].happened ? "" : " (not reached)", now.faults[i].other,
               now.faults[i].seconds);
    printf("\n  replay: --seed %llu --schedules 1 --trace\n", (unsigned long long)seed);
    fflush(stdout);
}

typedef struct options {
    uint64_t schedules, seed;
} options;

static bool read_options(int count, char **words, options *o)
{
    static const struct option known[] = {{"schedules", required_argument, NULL, 'n'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"trace", no_argument, NULL, 't'},
                                          {"plant", required_argument, NULL, 'p'},
                                          {"strict", no_argument, NULL, 'x'},
                                          {NULL, 0, NULL, 0}};
    int which;
    while ((which = getopt_long(count, words, "", known, NULL)) != -1) {
        if (which == 'n')
            o->schedules = strtoull(optarg, NULL, 10);
        else if (which == 's')
            o->seed = strtoull(optarg, NULL, 10);
        else if (which == 't')
            sim_traces = true;
        else if (which == 'x')
            judge_is_strict = true;
        else if (which != 'p' || !sim_plant(optarg))
            return false;
    }
    return optind == count;
}

/* How often each fault came in each call: are all states met? */
enum { CALLS = 9 };
static const char *const calls[CALLS] = {
    "start", "join", "agree", "meet", "report", "shrink", "leave of the shrunk one",
    "leave", "end"};
static unsigned long met[CALLS][FAULT_KINDS];

static void count_faults(void)
{
    for (int i = 0; i < now.fault_count; i++)
        for (int c = 0; c < CALLS && now.faults[i].happened; c++)
            met[c][now.faults[i].kind] += strcmp(now.faults[i].during != NULL ? now.faults[i].during
                                                                              : "start",
                                                 calls[c]) == 0;
}

static void print_faults(void)
{
    printf("faults, by call of the rank\n%-24s", "");
    for (int k = 0; k < FAULT_KINDS; k++)
        printf("%20s", fault_names[k]);
    for (int c = 0; c < CALLS; c++) {
        printf("\n%-24s", calls[c]);
        for (int k = 0; k < FAULT_KINDS; k++)
            printf("%20lu", met[c][k]);
    }
    printf("\n");
}

ring_status __real_settings_read(settings *out);

int main(int count, char **words)
{
    options o = {.schedules = 1000, .seed = 1};
    settings s;
    int failures = 0;
    uint64_t done = 0, events = 0;
    if (!read_options(count, words, &o) || sodium_init() < 0 ||
        __real_settings_read(&s) != RING_OK) {
        fprintf(stderr,
                "usage: %s [--schedules N] [--seed N] [--trace] [--strict] [--plant FAULT]\n",
                words[0]);
        return 2;
    }
    s.peer_timeout = PEER_TIMEOUT;
    s.init_timeout = INIT_TIMEOUT;
    s.debug = sim_traces ? LOG_DEBUG : LOG_ERROR;
    for (; done < o.schedules && failures < FAILURES_SHOWN; done++) {
        char why[1400];
        if (!run_schedule(o.seed + done, &s, why, sizeof why)) {
            tell(o.seed + done, why);
            failures++;
        }
        events += sim_events();
        count_faults();
    }
    print_faults();
    judge_print_known();
    printf("simulation: %llu schedules, %llu events, %d failed\n", (unsigned long long)done,
           (unsigned long long)events, failures);
    return failures > 0;
}
