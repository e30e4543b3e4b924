/* SPDX-License-Identifier: Apache-2.0
 *
 * simulation: ranks of one start in one thread. Each thread of a rank is a fiber; time, network,
 * descriptors, memory and random numbers are of the simulation, drawn from a seed. The rooms base,
 * settings, rendezvous and control are those of the library: the linker leads their system calls
 * here (--wrap).
 *
 *     start_schedule.h  schedules: drawing, running and judging them
 *     virtual_time.c    virtual time, fibers, what threads wait for
 *     network.c         sockets, epoll, eventfd, and how links fail
 *     process.c         what a process has for itself: memory, card, id, random numbers
 *     rooms_*.c         the state that control keeps once a process, once a rank here
 *     plants.c          faults for the simulation to find
 */
#ifndef TEST_CONTROL_SIMULATION_H
#define TEST_CONTROL_SIMULATION_H

#include "control.h"

#include <stddef.h>
#include <stdint.h>

enum { SIM_RANKS = 24 };
#define SIM_NEVER 1e299

/* ---- Draws ---------------------------------------------------------------------------- */

void sim_seed(uint64_t seed);
uint32_t sim_draw(uint32_t below);
/** @return between the two; small ones as often as large ones by order of magnitude. */
double sim_draw_seconds(double least, double most);
/** @return true so many times of a thousand. */
bool sim_chance(unsigned per_mille);

extern bool sim_traces;
void sim_trace(const char *format, ...) RING_PRINTF(1, 2);

/* ---- Time and fibers --------------------------------------------------------------------- */

double sim_now(void);
/** Runs @p action at that time, by the scheduler. */
void sim_at(double when, void (*action)(void *object, uint64_t number), void *object,
            uint64_t number);
/** Starts a thread of @p rank. @return its number. */
int sim_start(int rank, void (*body)(void *), void *context);
/** @return the rank whose code runs; -1: the scheduler. */
int sim_rank(void);
/** The fiber that runs waits for sim_wake() of @p channel, or the time. @return false: the time. */
bool sim_block(const void *channel, double until);
void sim_wake(const void *channel);
/** Each call of the kernel by a rank; what the schedule does to the rank happens here. */
void sim_called(void);
void sim_set_hook(void (*on_call)(int rank, unsigned calls));
/** The rank's fibers never run again; if one runs now, this does not return. */
void sim_end_rank(int rank);
/** Its fibers do not run until sim_continue_rank(). @param for_good  that will not be called. */
void sim_stop_rank(int rank, bool for_good);
void sim_continue_rank(int rank);
/** Runs until no fiber is left, or the time. @return false: the time, or too many events. */
bool sim_run(double until);
/** Before a schedule. */
void sim_reset_fibers(void);
uint64_t sim_events(void);

/* ---- Network ----------------------------------------------------------------------------- */

typedef struct sim_links {
    double least, most; /* s on the way */
    unsigned rare;      /* of a thousand segments: that many take ten times as long */
    unsigned parts;     /* of a thousand reads and writes: that many are of a part */
    size_t room;        /* bytes on the way and not read yet */
} sim_links;

void sim_reset_network(const sim_links *links, const int *host_of);
/** Ends its descriptors as a killed process' are. */
void sim_close_all(int rank);
/** The host sends and receives no more bytes. */
void sim_silence_host(int host);
/** No bytes pass between the two hosts until @p until. */
void sim_cut(int host, int other, double until);
/** Descriptors that it still has. */
int sim_open_count(int rank);

/* ---- Processes --------------------------------------------------------------------------- */

void sim_reset_processes(const settings *s, const int *host_of);
/** Frees what a rank had. @return the number of its allocations. */
int sim_free_all(int rank);
/** Saves the state of control's rooms of one rank, or takes it up. */
void sim_rooms_save(int rank);
void sim_rooms_load(int rank);

/* rooms_*.c */
typedef struct sim_room {
    void *state;
    size_t bytes;
} sim_room;
sim_room sim_room_thread(void);
sim_room sim_room_acceptors(void);
sim_room sim_room_ids(void);

/* ---- Planted faults ------------------------------------------------------------------------ */

/** @return false for an unknown name. */
bool sim_plant(const char *name);

#endif
