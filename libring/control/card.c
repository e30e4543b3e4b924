/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills the cards and identifies hosts and processes by hashes. Two ranks are on the same host if
 * the boot id of the kernel and the network namespace are equal, so that abstract sockets and
 * 127.0.0.1 connect them. They are in the same process if pid, pid namespace and start time are
 * equal, too. The values are read again for each card, because they change when a process forks.
 */
#include "card.h"

#include "cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static ring_status read_text(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (got <= 0) {
        fail(RING_ERR_SYSTEM, "reading %s: %m; libring needs /proc", path);
        fd_close(&fd);
        return RING_ERR_SYSTEM;
    }
    out[got] = '\0';
    fd_close(&fd);
    return RING_OK;
}

static ring_status namespace_number(const char *path, uint64_t *number)
{
    struct stat file;
    if (stat(path, &file) != 0)
        return fail(RING_ERR_SYSTEM, "reading %s: %m; libring needs /proc", path);
    *number = file.st_ino;
    return RING_OK;
}

static ring_status host_hash(const char *id, unsigned char out[16])
{
    char boot[64];
    uint64_t net;
    crypto_generichash_state state;
    RING_TRY(read_text("/proc/sys/kernel/random/boot_id", boot, sizeof boot));
    RING_TRY(namespace_number("/proc/thread-self/ns/net", &net));
    crypto_generichash_init(&state, NULL, 0, 16);
    crypto_generichash_update(&state, (const unsigned char *)boot, strlen(boot));
    crypto_generichash_update(&state, (const unsigned char *)&net, sizeof net);
    crypto_generichash_update(&state, (const unsigned char *)id, strlen(id));
    crypto_generichash_final(&state, out, 16);
    return RING_OK;
}

static ring_status process_hash(const unsigned char host[16], unsigned char out[16])
{
    char stat[1024];
    struct {
        uint64_t namespace, pid;
    } number = {.pid = (uint64_t)getpid()};
    crypto_generichash_state state;
    RING_TRY(read_text("/proc/self/stat", stat, sizeof stat));
    RING_TRY(namespace_number("/proc/self/ns/pid", &number.namespace));
    /* Field 22 is the start time. The search begins at the last ')', because the program's name,
     * field 2, may contain any character. */
    const char *start = strrchr(stat, ')');
    for (int field = 2; field < 22 && start != NULL; field++)
        start = strchr(start + 1, ' ');
    if (start == NULL)
        return fail(RING_ERR_SYSTEM, "/proc/self/stat has fewer than 22 fields");
    crypto_generichash_init(&state, host, 16, 16);
    crypto_generichash_update(&state, (const unsigned char *)&number, sizeof number);
    crypto_generichash_update(&state, (const unsigned char *)start, strcspn(start + 1, " ") + 1);
    crypto_generichash_final(&state, out, 16);
    return RING_OK;
}

ring_status card_fill(control_card *card, const char *host_id)
{
    card->pid = (int32_t)getpid();
    card->uid = (uint32_t)geteuid();
    const cpus_allowed cpus = cpus_read();
    card->cpus = cpus.count;
    card->cpu_set = cpus.set;
    if (gethostname(card->hostname, sizeof card->hostname) != 0 && errno != ENAMETOOLONG)
        return fail(RING_ERR_SYSTEM, "reading the host's name (gethostname): %m");
    card->hostname[sizeof card->hostname - 1] = '\0';
    RING_TRY(host_hash(host_id, card->host));
    return process_hash(card->host, card->process);
}

void card_clean(control_card *card)
{
    text_make_printable(card->hostname, sizeof card->hostname);
    text_make_printable(card->unix_name, sizeof card->unix_name);
}

bool card_is_local(const control_card *a, const control_card *b)
{
    return memcmp(a->host, b->host, sizeof a->host) == 0 && a->uid == b->uid;
}

void card_name(const control_card *card, int rank, char *out, size_t size)
{
    if (card->rank == rank)
        text_format(out, size, "rank %d (%s, pid %d)", rank, card->hostname, card->pid);
    else
        text_format(out, size, "rank %d", rank);
}
