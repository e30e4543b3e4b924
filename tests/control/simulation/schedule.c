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

#define MEET_SECONDS 8
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

/* ---- Faults -------------------------------------------------------------------------------- */

static void kill_rank(int rank, bool silently)
{
    if (!silently)
        sim_close_all(rank);
    sim_free_all(rank);
    sim_end_rank(rank); /* returns for another rank only */
}

static void on_wake_up(void *object, uint64_t rank)
{
    (void)object;
    sim_trace("rank %d goes on", (int)rank);
    sim_continue_rank((int)rank);
}

static void silence(int host, int rank)
{
    sim_silence_host(host);
    for (int r = 0; r < now.size; r++)
        if (now.host_of[r] == host && r != rank)
            kill_rank(r, true);
    kill_rank(rank, true);
}

static void on_pause(void *object, uint64_t rank)
{
    (void)object;
    sim_stop_rank((int)rank, false);
}

/* One after the other, and so they go on. */
static void pause_all(double seconds)
{
    for (int r = 0; r < now.size; r++) {
        sim_at(sim_now() + sim_draw_seconds(0, 0.3), on_pause, NULL, (uint64_t)r);
        sim_at(sim_now() + 0.3 + seconds + sim_draw_seconds(0, 0.05), on_wake_up, NULL,
               (uint64_t)r);
    }
}

static void strike(fault *f)
{
    f->happened = true;
    f->at = sim_now();
    f->during = now.records[f->rank].call;
    sim_trace("fault: rank %d is %s (rank %d) for %g s", f->rank, fault_names[f->kind], f->other,
              f->seconds);
    if (f->kind == KILL) {
        kill_rank(f->rank, false);
    } else if (f->kind == BOTH) {
        kill_rank(f->other, false);
        kill_rank(f->rank, false);
    } else if (f->kind == HOST) {
        silence(now.host_of[f->rank], f->rank);
    } else if (f->kind == CUT) {
        sim_cut(now.host_of[f->rank], now.host_of[f->other],
                f->seconds < SIM_NEVER ? sim_now() + f->seconds : SIM_NEVER);
    } else if (f->kind == PAUSE) {
        pause_all(f->seconds);
    } else if (f->kind == STOP) {
        if (f->seconds < SIM_NEVER)
            sim_at(sim_now() + f->seconds, on_wake_up, NULL, (uint64_t)f->rank);
        sim_stop_rank(f->rank, f->seconds >= SIM_NEVER);
    }
}

/* A pause would exceed the deadline of a start. */
static bool may_pause(void)
{
    for (int r = 0; r < now.size; r++)
        if (!now.records[r].linked)
            return false;
    return true;
}

static bool is_time_for(const fault *f, const record *r)
{
    if (f->kind == PAUSE && !may_pause())
        return false;
    return (f->since == BIRTH || r->had[f->since] > 0) && r->calls >= r->had[f->since] + f->call;
}

void life_on_call(int rank, unsigned calls)
{
    now.records[rank].calls = calls;
    for (int i = 0; i < now.fault_count; i++) {
        fault *f = &now.faults[i];
        if (f->kind < REPORT && !f->happened && f->rank == rank &&
            is_time_for(f, &now.records[rank]))
            strike(f);
    }
}

/* ---- A rank's program ------------------------------------------------------------------------ */

static double pause_of(int rank)
{
    double seconds = 0;
    for (int i = 0; i < now.fault_count; i++)
        if (now.faults[i].happened && (now.faults[i].kind == PAUSE ||
                                       (now.faults[i].kind == STOP && now.faults[i].rank == rank)))
            seconds += now.faults[i].seconds + 0.4;
    return seconds;
}

static void begin(record *r, const char *call, double limit)
{
    r->call = call;
    r->begun = sim_now();
    r->limit = sim_now() + limit;
    sim_trace("%s ...", call);
}

void life_break(record *r, const char *format, ...)
{
    va_list args;
    if (r->broken)
        return;
    r->broken = true;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
}

static void finish(record *r, ring_status status)
{
    const int rank = (int)(r - now.records);
    sim_trace("%s: %d %s", r->call, (int)status, status != RING_OK ? fail_text() : "");
    if (sim_now() > r->limit + pause_of(rank))
        life_break(r, "unbounded: %s took %.3f s", r->call, sim_now() - r->begun);
}

static void keep_verdict(end *e, const control_world *world)
{
    e->status = control_verdict(world);
    text_format(e->text, sizeof e->text, "%s", control_text(world));
}

static void on_verdict(void *context)
{
    end *e = context;
    e->wakes++;
    e->woken_at = sim_now();
}

/* @return true if the schedule has the rank do so: once. */
static bool does(int rank, fault_kind kind)
{
    for (int i = 0; i < now.fault_count; i++) {
        fault *f = &now.faults[i];
        if (f->kind != kind || f->rank != rank || f->happened)
            continue;
        f->happened = true;
        f->at = sim_now();
        f->during = now.records[rank].call;
        sim_trace("fault: rank %d %s", rank, fault_names[kind]);
        return true;
    }
    return false;
}

static ring_status join_or_refuse(int rank, control_world **world)
{
    if (!does(rank, REFUSE))
        return control_join(&now.settings, &now.id, now.size, rank, 1, world);
    return control_refuse(&now.settings, &now.id, now.size, rank, fail(RING_ERR_MEMORY, "refused"));
}

static bool join_up(record *r, int rank, control_world **world)
{
    clock_sleep(now.delay[rank]);
    if (rank == 0)
        now.has_id = control_make_id(&now.id) == RING_OK;
    for (int tries = 0; !now.has_id && tries < 1000; tries++)
        clock_sleep(0.01);
    if (!now.has_id)
        return false;
    r->started = true;
    begin(r, "join", INIT_TIMEOUT + 9);
    r->joined = join_or_refuse(rank, world);
    finish(r, r->joined);
    if (r->joined == RING_OK)
        return true;
    r->ends[ALL].status = r->joined;
    text_format(r->ends[ALL].text, sizeof r->ends[ALL].text, "%s", fail_text());
    return false;
}

static void report(record *r, int rank, control_world *world)
{
    char text[64];
    text_format(text, sizeof text, "rank %d reports", rank);
    begin(r, "report", 1);
    control_report(world, RING_ERR_ARGUMENT, text);
    control_report(world, RING_ERR_INTERNAL, "a later thought");
    finish(r, RING_OK);
}

static void report_if_drawn(record *r, int rank, int round, control_world *world)
{
    for (int i = 0; i < now.fault_count; i++) {
        fault *f = &now.faults[i];
        if ((f->kind != REPORT && f->kind != ALL_REPORT) || (int)f->call != round ||
            (f->kind == REPORT && f->rank != rank))
            continue;
        f->at = f->happened ? f->at : sim_now();
        f->happened = true;
        f->in = now.parts && round > 0 ? PART : ALL;
        f->during = r->call;
        report(r, rank, world);
        if (f->ends)
            kill_rank(rank, false);
    }
}

/* @return true if a rank left in order a second ago: without this rank, maybe. */
static bool others_have_left(void)
{
    for (int i = 0; i < now.size; i++)
        if (now.records[i].left_at < sim_now() - 1)
            return true;
    return false;
}

static ring_status meet(record *r, control_world *world)
{
    bool came[SIM_RANKS];
    begin(r, "meet", 12);
    const ring_status status = control_meet(world, clock_now() + MEET_SECONDS, came);
    finish(r, status);
    if (status != RING_OK && control_verdict(world) == RING_OK)
        life_break(r, "lost: meet returned %d without a verdict: %s", (int)status,
                   status != RING_IN_PROGRESS ? fail_text() : "");
    return status;
}

static void shrink(record *r, control_world *world)
{
    control_world *left;
    begin(r, "shrink", 6);
    r->had[SHRINKING] = r->calls;
    r->shrunk = control_shrink(world, clock_now() + 3, &left);
    finish(r, r->shrunk);
    if (r->shrunk != RING_OK) {
        r->needs_way = others_have_left();
        text_format(r->shrink_text, sizeof r->shrink_text, "%s", fail_text());
        return;
    }
    r->new_id = left->id;
    r->new_size = left->size;
    (void)meet(r, left);
    begin(r, "leave of the shrunk one", 2);
    control_free(left);
    finish(r, RING_OK);
}

static control_world *derive_part(record *r, int rank, control_world *world)
{
    int members[SIM_RANKS], count = 0;
    control_world *part = NULL;
    for (int i = 0; i < now.size; i++)
        if (now.in_part[i])
            members[count++] = i;
    if (!now.in_part[rank])
        return NULL;
    if (control_derive(world, 77, members, count, &part) != RING_OK)
        life_break(r, "no communicator: %s", fail_text());
    else
        control_start(part, on_verdict, &r->ends[PART]);
    return part;
}

/* It lives on if only ranks that are not in it were lost. */
static void meet_part(record *r, control_world *part)
{
    const bool was_broken = r->broken;
    if (control_verdict(part) == RING_OK && meet(r, part) != RING_OK)
        r->needs_way = r->needs_way || (r->broken && !was_broken && others_have_left());
}

/* A communicator with a rank that is known to be lost ends as it is made. */
static void derive_late(record *r, control_world *of)
{
    int members[SIM_RANKS];
    control_world *late;
    for (int i = 0; i < of->size; i++)
        members[i] = i;
    if (control_derive(of, 78, members, of->size, &late) != RING_OK) {
        life_break(r, "no late communicator: %s", fail_text());
        return;
    }
    if (control_verdict(late) != RING_ERR_PEER)
        life_break(r, "late: the verdict is %d", (int)control_verdict(late));
    control_free(late);
}

/* Ranks that left a second ago are known as such. */
static void check_goodbyes(record *r, const control_world *world)
{
    for (int i = 0; i < now.size && now.fault_count == 0; i++)
        if (now.records[i].left_at < sim_now() - 1 && !control_left(world, i))
            life_break(r, "a goodbye of rank %d was not heard", i);
}

static void free_part(record *r, control_world *world, control_world *part)
{
    if (part == NULL)
        return;
    check_goodbyes(r, world);
    keep_verdict(&r->ends[PART], part);
    if (r->ends[PART].status == RING_ERR_PEER)
        derive_late(r, part);
    control_free(part);
}

/* @return false: the rank is done. */
static bool do_round(record *r, int rank, int round, control_world *world, control_world *part)
{
    const bool parted = now.parts && round > 0;
    clock_sleep(sim_draw_seconds(0.0001, 1.5));
    report_if_drawn(r, rank, round, parted ? part : world);
    const bool met = parted || meet(r, world) == RING_OK;
    if (part != NULL)
        meet_part(r, part);
    return part != NULL || (met && !now.parts);
}

static ring_status agree(record *r, int rank, control_world *world)
{
    begin(r, "agree", INIT_TIMEOUT + 4);
    const ring_status mine = does(rank, FAIL) ? fail(RING_ERR_CONFIG, "failed") : RING_OK;
    const ring_status status = control_agree(world, mine);
    finish(r, status);
    return status;
}

static void work(record *r, int rank, control_world *world)
{
    if (agree(r, rank, world) != RING_OK)
        return;
    r->linked = true;
    r->had[LINKED] = r->calls;
    control_start(world, on_verdict, &r->ends[ALL]);
    control_world *const part = derive_part(r, rank, world);
    for (int round = 0; round < now.rounds && do_round(r, rank, round, world, part); round++)
        continue;
    free_part(r, world, part);
}

void life_run(void *context)
{
    record *r = context;
    const int rank = (int)(r - now.records);
    control_world *world = NULL;
    if (join_up(r, rank, &world)) {
        work(r, rank, world);
        keep_verdict(&r->ends[ALL], world);
        if (r->linked && r->ends[ALL].status != RING_OK && now.shrinks)
            shrink(r, world);
        begin(r, "leave", now.fault_count == 0 ? 0.5 : 2);
        r->left_at = sim_now();
        control_leave(world);
        finish(r, RING_OK);
        control_free(world);
    }
    r->over = true;
    r->call = "end";
    if (sim_open_count(rank) > 0 && r->started)
        life_break(r, "kept: %d descriptors", sim_open_count(rank));
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
    printf("faults, by what the rank did\n%-24s", "");
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
