/* SPDX-License-Identifier: Apache-2.0
 * Faults, and the program of each rank: it joins, agrees, meets the others, shrinks and leaves. */
#include "start_schedule.h"

#include <stdio.h>
#include <string.h>

#define MEET_SECONDS 8

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
        return control_join(&now.settings, &now.id, now.size, rank, 1, NULL, world);
    return control_refuse(&now.settings, &now.id, now.size, rank, fail(RING_ERR_MEMORY, "refused"));
}

static bool join_up(record *r, int rank, control_world **world)
{
    clock_sleep(now.delay[rank]);
    if (rank == 0)
        now.has_id = control_make_id(&now.settings, &now.id) == RING_OK;
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
