/* SPDX-License-Identifier: Apache-2.0
 * The GPU process: its start, its end, and how it and the host process wait for each other. */
#include "gpu.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Defaults: the queues of NVIDIA's driver, and a delay in which a kernel overtakes a copy. */
enum { QUEUES_OF_DRIVER = 8, LATE_US = 200 };

gpu_state *gpu;
gpu_settings gpu_is;

_Noreturn void misuse(const char *what)
{
    fprintf(stderr, "fake_cuda: %s\n", what);
    abort();
}

double gpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Lock and bells. The lock is robust, since the other process may end while it holds it ----
 */

void gpu_lock(void)
{
    if (pthread_mutex_lock(&gpu->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&gpu->lock);
}

void gpu_unlock(void)
{
    pthread_mutex_unlock(&gpu->lock);
}

void gpu_ring(bell b)
{
    __atomic_fetch_add(&gpu->bells[b], 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &gpu->bells[b], FUTEX_WAKE, 1 << 30, NULL, NULL, 0);
}

static void await(bell b, const struct timespec *most)
{
    const uint32_t seen = __atomic_load_n(&gpu->bells[b], __ATOMIC_SEQ_CST);
    gpu_unlock();
    syscall(SYS_futex, &gpu->bells[b], FUTEX_WAIT, seen, most, NULL, 0);
    gpu_lock();
}

void gpu_await(bell b)
{
    await(b, NULL);
}

void gpu_await_briefly(bell b)
{
    await(b, &(struct timespec){.tv_nsec = 20 * 1000 * 1000});
}

/* ---- In the GPU process ---- */

/* Unlike _exit(), in which sanitizers sleep for a second while there are other threads. */
_Noreturn static void leave(int status)
{
    for (;;)
        syscall(SYS_exit_group, status);
}

/* Signal handlers call it, so it must not allocate memory, which dprintf() does. */
_Noreturn void gpu_die(int error, const char *why)
{
    char text[160];
    const int length = snprintf(text, sizeof text, "fake_cuda: the GPU fails: %s (CUDA error %d)\n",
                                why, error);
    const ssize_t put = write(STDERR_FILENO, text, (size_t)length);
    (void)put;
    __atomic_store_n(&gpu->error, error, __ATOMIC_SEQ_CST);
    gpu_ring(BELL_HOST);
    gpu_ring(BELL_FUNCTIONS);
    leave(0);
}

void fake_cuda_check(const void *memory, size_t bytes)
{
    gpu_lock();
    const allocation *a = allocation_find((uintptr_t)memory);
    const bool fits = a != NULL && (uintptr_t)memory - a->start + bytes <= a->bytes;
    gpu_unlock();
    if (!fits)
        gpu_die(CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel accesses bytes outside of any allocation");
}

static void fault(int number)
{
    gpu_die(number == SIGSEGV || number == SIGBUS ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                  : CUDA_ERROR_LAUNCH_FAILED,
            "a fault");
}

static void take_faults(void)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    const struct sigaction action = {.sa_handler = fault};
    sigset_t others;
    sigfillset(&others);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        sigaction(faults[i], &action, NULL);
        sigdelset(&others, faults[i]);
    }
    signal(SIGABRT, SIG_DFL);
    sigdelset(&others, SIGABRT);
    pthread_sigmask(SIG_SETMASK, &others, NULL);
}

static bool is_kept(int file, int host)
{
    bool kept = file == STDERR_FILENO || file == host || file == gpu_is.pinned.file;
    for (int i = 0; i < gpu_is.devices; i++)
        kept |= file == gpu_is.memory[i].file;
    return kept;
}

/* Closes the descriptors that the GPU process does not need, so that peers of the host process
 * notice when that one closes its own. */
static void close_others(int host)
{
    DIR *open_files = opendir("/proc/self/fd");
    if (open_files == NULL)
        misuse("no /proc");
    for (const struct dirent *e; (e = readdir(open_files)) != NULL;) {
        const int file = atoi(e->d_name);
        if (e->d_name[0] != '.' && file != dirfd(open_files) && !is_kept(file, host))
            close(file);
    }
    closedir(open_files);
}

/* Memory that the host registers later is mapped here at the same address. So this process reserves
 * all addresses that the host does not use yet. Its own memory lies in a range that the host has
 * set aside for it. */
static void leave_addresses_to_host(void)
{
    enum { MOST = 8192 };
    static uintptr_t starts[MOST], ends[MOST];
    const uintptr_t last = (uintptr_t)1 << 47;
    uintptr_t at = 1 << 16;
    int count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && count < MOST &&
           fscanf(maps, "%lx-%lx%*[^\n]", &starts[count], &ends[count]) == 2)
        count++;
    if (maps != NULL)
        fclose(maps);
    for (int i = 0; i < count && starts[i] < last; i++) {
        if (starts[i] > at)
            mmap((void *)at, starts[i] - at, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
        at = ends[i];
    }
    munmap(gpu_is.own, OWN_BYTES);
}

static void thread(void *(*body)(void *), intptr_t argument)
{
    pthread_t made;
    if (pthread_create(&made, NULL, body, (void *)argument) != 0)
        misuse("no thread");
    pthread_detach(made);
}

static void begin_streams(void)
{
    for (int i = 0; i < MOST_STREAMS; i++) {
        gpu_stream *s = &gpu->streams[i];
        if (s->used && !s->threaded) {
            s->threaded = true;
            thread(stream_main, i);
        }
    }
}

/* Keys of memory protection, with which the blocks of a device are kept from the memory of others.
 * The threads that run copies may access all memory. */
static int keys[MOST_DEVICES];

static void own_by_device(void *at, size_t bytes, int protection, int device)
{
    if (gpu_is.peers == PEERS_LIE && device >= 0 &&
        pkey_mprotect(at, bytes, protection, keys[device]) != 0)
        misuse("memory cannot be given to a device");
}

static void make_keys(void)
{
    for (int i = 0; gpu_is.peers == PEERS_LIE && i < gpu_is.devices; i++)
        if ((keys[i] = pkey_alloc(0, 0)) < 0)
            misuse("FAKE_CUDA_PEERS=lies needs a memory protection key for each device");
}

void gpu_forget_peers(int device)
{
    for (int i = 0; gpu_is.peers == PEERS_LIE && i < gpu_is.devices; i++)
        if (i != device)
            pkey_set(keys[i], PKEY_DISABLE_ACCESS);
}

void gpu_serve_map(void)
{
    map_request *m = &gpu->map;
    char path[64];
    if (m->state != 1)
        return;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", m->pid, m->file);
    const int file = m->file >= 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    const int kind = m->file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    const void *got = mmap(m->at, m->bytes, m->protection, kind | MAP_FIXED, file,
                           (off_t)(file >= 0 ? m->offset : 0));
    m->error = got == MAP_FAILED ? errno : 0;
    if (m->error == 0 && file >= 0)
        own_by_device(m->at, m->bytes, m->protection, m->device);
    if (file >= 0)
        close(file);
    m->state = 2;
    gpu_ring(BELL_HOST);
}

/* Runs in a second thread, since only the first thread allocates from the host's heap. */
static void *gpu_loop(void *unused)
{
    for (int i = 0; i < gpu_is.devices * gpu_is.blocks; i++)
        thread(block_main, i / gpu_is.blocks);
    gpu_lock();
    gpu->ready = true;
    gpu_ring(BELL_HOST);
    for (;;) {
        begin_streams();
        gpu_serve_map();
        gpu_await(BELL_MAIN);
    }
    return NULL;
}

_Noreturn static void gpu_main(int host)
{
    struct pollfd end = {.fd = host, .events = POLLIN};
    prctl(PR_SET_NAME, "fake-gpu");
    take_faults();
    close_others(host);
    make_keys();
    for (int i = 0; i < gpu_is.devices; i++) {
        const area *a = &gpu_is.memory[i];
        if (mmap(a->start, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->file,
                 0) == MAP_FAILED)
            misuse("no memory");
        own_by_device(a->start, AREA_BYTES, PROT_READ | PROT_WRITE, i);
    }
    leave_addresses_to_host();
    mallopt(M_ARENA_MAX, 4096);
    thread(gpu_loop, 0);
    while (poll(&end, 1, -1) < 1)
        ;
    leave(0);
}

/* ---- In the host process ---- */

bool gpu_map(const map_request *m)
{
    const host_wait w = host_wait_begin(-1, "until the GPU process has mapped memory");
    gpu_lock();
    while (gpu->map.state != 0 && gpu->error == 0)
        host_wait_on(&w);
    gpu->map = *m;
    gpu->map.state = 1;
    gpu_ring(BELL_MAIN);
    while (gpu->map.state != 2 && gpu->error == 0)
        host_wait_on(&w);
    const bool mapped = gpu->map.state == 2 && gpu->map.error == 0;
    gpu->map.state = 0;
    gpu_unlock();
    gpu_ring(BELL_HOST);
    return mapped;
}

static void *reserve(size_t bytes, int protection, int file)
{
    const int kind = file >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = mmap(NULL, bytes, protection, kind | MAP_NORESERVE, file, 0);
    if (at == MAP_FAILED)
        misuse("no addresses");
    return at;
}

static area area_of(bool has_file, bool of_host)
{
    area a = {.file = has_file ? memfd_create("gpu", MFD_CLOEXEC) : -1};
    if (has_file && (a.file < 0 || ftruncate(a.file, (off_t)AREA_BYTES) != 0))
        misuse("no memory");
    if (has_file)
        a.window = reserve(AREA_BYTES, PROT_READ | PROT_WRITE, a.file);
    a.start = of_host ? a.window : reserve(AREA_BYTES, PROT_NONE, -1);
    return a;
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static bool is_set(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text != NULL && strcmp(text, value) == 0;
}

/* "N" or "N,strict". The variable of NVIDIA's driver has a smaller range. */
static void read_queues(void)
{
    const char *text = getenv("FAKE_CUDA_QUEUES");
    const uint64_t connections = setting("CUDA_DEVICE_MAX_CONNECTIONS", QUEUES_OF_DRIVER);
    const uint64_t usual = connections >= 1 && connections <= MOST_QUEUES ? connections
                                                                          : QUEUES_OF_DRIVER;
    gpu_is.queues = (int)setting("FAKE_CUDA_QUEUES", usual);
    gpu_is.strict = text != NULL && strstr(text, ",strict") != NULL;
    if (gpu_is.queues < 0 || gpu_is.queues > MOST_QUEUES)
        misuse("FAKE_CUDA_QUEUES is not a number from 0 to 32, or one followed by \",strict\"");
}

static void read_unkindness(void)
{
    const char *late = getenv("FAKE_CUDA_LATE"), *mode = getenv("FAKE_CUDA_R1");
    gpu_is.late = late == NULL || strcmp(late, "off") != 0;
    gpu_is.late_us = setting("FAKE_CUDA_LATE", LATE_US);
    gpu_is.limits = setting("FAKE_CUDA_LIMITS", 1) != 0;
    gpu_is.most_bytes = setting("FAKE_CUDA_MEMORY", UINT64_MAX);
    gpu_is.alloc_drains = setting("FAKE_CUDA_ALLOC_DRAINS", 0) != 0;
    gpu_is.drain_locks = setting("FAKE_CUDA_FREE_LOCKS", 0) != 0;
    gpu_is.launches_wait = setting("FAKE_CUDA_SYNC", 0) != 0;
    gpu_is.peers = is_set("FAKE_CUDA_PEERS", "0")      ? PEERS_NONE
                   : is_set("FAKE_CUDA_PEERS", "lies") ? PEERS_LIE
                                                       : PEERS_REACH;
    gpu_is.ipc = is_set("FAKE_CUDA_IPC", "0")      ? IPC_REFUSED
                 : is_set("FAKE_CUDA_IPC", "open") ? IPC_FAILS_TO_OPEN
                                                   : IPC_WORKS;
    (void)fake_cuda_set(CU_DEVICE_ATTRIBUTE_MPS_ENABLED, (int)setting("FAKE_CUDA_MPS", 0));
    if (mode != NULL && strcmp(mode, "0") != 0)
        gpu_is.rule = strcmp(mode, "print") == 0 ? RULE_PRINTS : RULE_ENDS;
    read_queues();
}

static void read_settings(void)
{
    gpu_is = (gpu_settings){.devices = (int)setting("FAKE_CUDA_DEVICES", 1),
                            .blocks = (int)setting("FAKE_CUDA_BLOCKS", 8),
                            .owner = getpid(),
                            .delay_us = setting("FAKE_CUDA_DELAY", 0),
                            .seed = setting("FAKE_CUDA_SEED", 1),
                            .deadline = (double)setting("FAKE_CUDA_DEADLINE", 60)};
    read_unkindness();
    emulated_set_order((int)setting("FAKE_CUDA_ORDER", EMULATED_FORWARD), (unsigned)gpu_is.seed);
    if (gpu_is.devices < 1 || gpu_is.devices > MOST_DEVICES || gpu_is.blocks < 1)
        misuse("FAKE_CUDA_DEVICES or FAKE_CUDA_BLOCKS is not a number that is supported");
    for (int i = 0; i < gpu_is.devices; i++)
        gpu_is.memory[i] = area_of(true, false);
    gpu_is.pinned = area_of(true, true);
    gpu_is.mapped = area_of(false, false);
    gpu_is.imported = area_of(false, false);
    gpu_is.own = reserve(OWN_BYTES, PROT_NONE, -1);
}

static void make_state(void)
{
    pthread_mutexattr_t kind;
    gpu = mmap(NULL, sizeof *gpu, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (gpu == MAP_FAILED)
        misuse("no memory");
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&gpu->lock, &kind);
    gpu->free_ops = -1;
    gpu->ops_left = MOST_OPS;
    gpu->functions_first = gpu->functions_last = -1;
    for (int i = 0; i < MOST_DEVICES; i++)
        gpu->devices[i] = (device_state){.first = -1, .last = -1};
    for (int i = 0; i < MOST_STREAMS; i++)
        gpu->streams[i] = (gpu_stream){.first = -1, .last = -1};
    queues_begin();
    for (int i = 0; i <= gpu_is.devices; i++) {
        gpu->streams[i].used = true;
        gpu->streams[i].device = i - 1;
        gpu->streams[i].queue = i > 0 ? queue_deal(i - 1, false) : 0;
    }
    gpu->streams[0].non_blocking = true;
}

/* The GPU process is a grandchild, since the host process may wait for all of its children. */
static void start_process(void)
{
    const int host = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (host < 0)
        misuse("no pidfd_open(), which needs Linux 5.3");
    const pid_t between = fork();
    if (between == 0) {
        const pid_t child = fork();
        if (child == 0)
            gpu_main(host);
        gpu->pid = child;
        leave(child < 0);
    }
    int status = 1;
    while (between > 0 && waitpid(between, &status, 0) < 0 && errno == EINTR)
        ;
    if (between < 0)
        misuse("no process");
    close(host);
}

static void start(void)
{
    const host_wait w = host_wait_begin(-1, "until the GPU process has begun");
    sigset_t all, before;
    read_settings();
    make_state();
    start_process();
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread(function_main, 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    gpu_lock();
    while (!gpu->ready)
        host_wait_on(&w);
    gpu_unlock();
}

void gpu_start(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start);
}
