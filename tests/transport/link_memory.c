/* SPDX-License-Identifier: Apache-2.0
 * Tests memory: access to peers' memory in place, the memory that a link holds, and that nothing
 * remains when it is closed. */
#include "conformance.h"
#include "heap.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- map and ref ---- */

enum { SHARED_BYTES = 1 << 20 };

static void lend_memory(transport_link *l)
{
    void *shared;
    unsigned turns = 0;
    must_ok(heap_alloc(&shared, SHARED_BYTES));
    const uint64_t ref = l->transport->ref(l, shared, SHARED_BYTES);
    must(can_map(l) ? ref != 0 : ref == 0 || can_refer(l)); /* not all that reach reach the heap */
    payload_fill(shared, 1, SHARED_BYTES);
    transport_frame frame = frame_make(0, can_map(l) ? SHARED_BYTES : 0);
    frame.flags |= can_map(l) ? FRAME_REF : 0;
    frame.ext.src_ref = ref;
    end_send(l, &frame, NULL);
    while (l->transport->released(l) < 1)
        end_idle(l, true, &turns);
    payload_check(shared, can_map(l) ? 2 : 1, SHARED_BYTES);
    end_flush(l);
    must_ok(heap_free(shared));
}

/* References that a hostile or damaged peer might send. */
static void expect_bounds(transport_link *l, uint64_t ref)
{
    const transport *t = l->transport;
    must(t->map(l, 0, 1) == NULL);
    if (t->powers & TRANSPORT_SAME_PROCESS)
        return; /* a reference may be any address there */
    must(t->map(l, heap_span() + 1, 1) == NULL);
    must(t->map(l, heap_span(), 2) == NULL);
    must(t->map(l, ref, heap_span() + 1) == NULL);
    must(t->map(l, ref, SIZE_MAX) == NULL);
    must(t->map(l, UINT64_MAX, 64) == NULL);
    must(t->map(l, UINT64_MAX, SIZE_MAX) == NULL);
}

static void use_memory(transport_link *l)
{
    const void *none;
    const transport_frame frame = *end_receive(l, &none);
    must(frame.flags == (FRAME_LONG | (can_map(l) ? FRAME_REF : 0)));
    must(none == NULL && frame.ext.bytes == (can_map(l) ? SHARED_BYTES : 0));
    l->transport->consume(l);
    void *theirs = l->transport->map(l, frame.ext.src_ref, SHARED_BYTES);
    must((theirs != NULL) == can_map(l));
    if (theirs != NULL) {
        payload_check(theirs, 1, SHARED_BYTES);
        payload_fill(theirs, 2, SHARED_BYTES);
    }
    expect_bounds(l, frame.ext.src_ref);
    l->transport->release(l, 1);
    ends_settle();
}

void behaviour_map_and_ref(void)
{
    ends_run(lend_memory, use_memory);
}

/* ---- Leaks ---- */

static int count_entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (folder == NULL)
        return 0;
    while (readdir(folder) != NULL)
        count++;
    closedir(folder);
    return count;
}

/* Counts the mappings of memory files, which a link shares with its peer. */
static int count_mappings(void)
{
    char line[512];
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    must(maps != NULL);
    while (fgets(line, sizeof line, maps) != NULL)
        count += strstr(line, "/memfd:ring-") != NULL;
    fclose(maps);
    return count;
}

static void use_link_once(void)
{
    static unsigned char payload[1000];
    ends e = ends_open();
    const transport_frame frame = frame_make(0, sizeof payload);
    const void *got;
    must_ok(e.a->transport->send(e.a, &frame, payload, false));
    ends_receive(e.a, e.b, &got); /* and is closed with the frame unread */
    ends_close(&e);
}

void behaviour_close_frees(void)
{
    use_link_once(); /* a process keeps some memory and descriptors of its first link */
    const int fds = count_entries("/proc/self/fd"), mappings = count_mappings();
    for (int round = 0; round < 20; round++)
        use_link_once();
    must(count_entries("/proc/self/fd") == fds);
    must(count_mappings() == mappings);
}

void behaviour_memory_reported(void)
{
    ends e = ends_open();
    must(e.a->transport->memory(e.a) >= sizeof(transport_link));
    must(e.a->transport->memory(e.a) + e.b->transport->memory(e.b) < (size_t)8 << 20);
    ends_close(&e);
}

/* ---- No system call ---- */

/* After this call the only system call that the process may make is to exit. */
static void forbid_system_calls(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {.len = sizeof steps / sizeof *steps, .filter = steps};
    must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void send_and_receive(transport_link *from, transport_link *to, uint64_t n, size_t bytes)
{
    static unsigned char payload[TRANSPORT_SEGMENT];
    const transport *t = from->transport;
    const transport_frame frame = frame_make(n, bytes);
    const void *got;
    void *room = n % 2 == 0 ? t->reserve(from) : payload;
    must(room != NULL);
    must_ok(t->send(from, &frame, room, false));
    frame_check(ends_receive(from, to, &got), n, bytes);
    t->consume(to);
    must(t->flushed(from) <= from->frames_sent);
}

/* The link commits memory at its first use, so the first pass around the ring must be done before
 * the system calls are forbidden. */
static void warm_up(const ends *e)
{
    for (uint64_t n = 1; n < 600; n += 2) {
        send_and_receive(e->a, e->b, n, 5000);
        send_and_receive(e->b, e->a, n, 5000);
    }
}

static void exchange_in_silence(void)
{
    ends e = ends_open();
    warm_up(&e);
    forbid_system_calls();
    for (uint64_t n = 0; n < 5000; n++) {
        const size_t bytes = scramble(n) % TRANSPORT_SEGMENT;
        send_and_receive(e.a, e.b, n, bytes);
        send_and_receive(e.b, e.a, n, bytes);
    }
    _exit(0);
}

void behaviour_no_system_call_when_awake(void)
{
    int status;
    const pid_t child = fork();
    must(child >= 0);
    if (child == 0)
        exchange_in_silence();
    must(waitpid(child, &status, 0) == child);
    must(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
