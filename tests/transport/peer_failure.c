/* SPDX-License-Identifier: Apache-2.0
 * Tests links whose peer closes or is killed: this end soon gets an error that names the peer,
 * whatever it was doing, and only after all frames that had arrived before. */
#include "conformance.h"

#include "nic.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE_CLOSE = 3 };
/** Seconds within which a loss must be noticed. */
#define SOON 2.0

/* Frames flushed before an orderly close arrive. */
void behaviour_peer_closes(void)
{
    static unsigned char payload[BEFORE_CLOSE][1000];
    ends e = ends_open();
    for (uint64_t n = 0; n < BEFORE_CLOSE; n++) {
        const transport_frame frame = frame_make(n, sizeof payload[n]);
        payload_fill(payload[n], n, sizeof payload[n]);
        must_ok(e.b->transport->send(e.b, &frame, payload[n], false));
    }
    end_flush(e.b);
    end_close(e.b);
    for (uint64_t n = 0; n < BEFORE_CLOSE; n++) {
        const void *got;
        frame_check(end_receive(e.a, &got), n, sizeof payload[n]);
        payload_check(got, n, sizeof payload[n]);
        e.a->transport->consume(e.a);
    }
    end_expect_broken(e.a, RANK_B, SOON);
    end_close(e.a);
}

void behaviour_peer_closes_under_a_sender(void)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    ends e = ends_open();
    const transport_frame frame = frame_make(0, sizeof payload);
    while (e.a->transport->send(e.a, &frame, payload, false) == RING_OK)
        continue;
    end_close(e.b);
    const double give_up = clock_now() + SOON;
    ring_status status;
    while ((status = e.a->transport->send(e.a, &frame, payload, false)) == RING_IN_PROGRESS ||
           status == RING_OK) {
        must(clock_now() < give_up);
        if (e.a->transport->progress(e.a) != RING_OK)
            break;
    }
    end_expect_broken(e.a, RANK_B, SOON);
    end_close(e.a);
}

/* No frame appears if none arrived, even while the link waits for frames of this end. */
void behaviour_peer_closes_before_a_frame_arrives(void)
{
    ends e = ends_open();
    const transport_frame frame = frame_make(0, 0), *seen;
    const double give_up = clock_now() + SOON;
    const void *payload;
    ring_status status = RING_IN_PROGRESS;
    nic_delay(0.02);
    must_ok(e.a->transport->send(e.a, &frame, NULL, false));
    end_close(e.b);
    while (status == RING_IN_PROGRESS && clock_now() < give_up) {
        (void)e.a->transport->progress(e.a);
        status = e.a->transport->peek(e.a, &seen, &payload);
    }
    nic_delay(0);
    must(status == RING_ERR_PEER);
    end_close(e.a);
}

static void leave_after_a_while(transport_link *l)
{
    clock_sleep(0.1);
}

static void sleep_until_broken(transport_link *l)
{
    end_expect_broken(l, RANK_A, SOON);
}

void behaviour_peer_closes_under_a_sleeper(void)
{
    ends_run(leave_after_a_while, sleep_until_broken);
}

/* ---- SIGKILL ---- */

static void send_for_ever(int fd)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    transport_link *l = end_open(RANK_B, fd);
    for (uint64_t n = 0;; n++) {
        const transport_frame frame = frame_make(n, sizeof payload - n % 5);
        end_send(l, &frame, payload);
    }
}

static void receive_nothing(int fd)
{
    transport_link *l = end_open(RANK_B, fd);
    const transport_frame frame = frame_make(0, 0);
    end_send(l, &frame, NULL);
    end_flush(l);
    for (;;)
        clock_sleep(PATIENCE);
}

static void kill_peer(pid_t child)
{
    int status;
    must(kill(child, SIGKILL) == 0);
    must(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static void peer_killed_once(uint64_t round)
{
    int fd;
    const void *payload;
    const pid_t child = ends_fork(send_for_ever, &fd);
    transport_link *l = end_open(RANK_A, fd);
    for (uint64_t n = 0; n < round * 7; n++) {
        frame_check(end_receive(l, &payload), n, TRANSPORT_SEGMENT - n % 5);
        l->transport->consume(l);
    }
    clock_sleep(1e-4 * (double)(scramble(round) % 20));
    kill_peer(child);
    end_expect_broken(l, RANK_B, SOON);
    end_close(l);
}

/* Each runs in a process of its own: UCX's state after the death of a peer may not survive the next
 * fork. */
static void run_apart(void (*once)(uint64_t round), uint64_t rounds)
{
    for (uint64_t round = 0; round < rounds; round++) {
        int status;
        fflush(NULL);
        const pid_t process = fork();
        must(process >= 0);
        if (process == 0) {
            once(round);
            _exit(0);
        }
        must(waitpid(process, &status, 0) == process);
        must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

void behaviour_peer_killed(void)
{
    run_apart(peer_killed_once, 10);
}

/* The peer is killed while this end sleeps, to receive or to send. */
static void sleeper_sees_kill(uint64_t round)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    int fd;
    const void *got;
    const pid_t child = ends_fork(receive_nothing, &fd);
    transport_link *l = end_open(RANK_A, fd);
    end_receive(l, &got);
    l->transport->consume(l);
    const transport_frame frame = frame_make(0, sizeof payload);
    while (round % 2 == 1 && l->transport->send(l, &frame, payload, false) == RING_OK)
        continue;
    const pid_t killer = fork();
    must(killer >= 0);
    if (killer == 0) {
        clock_sleep(0.05);
        _Exit(kill(child, SIGKILL));
    }
    end_expect_broken(l, RANK_B, SOON);
    must(waitpid(child, NULL, 0) == child && waitpid(killer, NULL, 0) == killer);
    end_close(l);
}

void behaviour_peer_killed_under_a_sleeper(void)
{
    run_apart(sleeper_sees_kill, 4);
}
