/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the secret of a job and hashes it to a key. The secret is the content of a file, of 16
 * bytes or more, that only its owner can read.
 */
#include "secret.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SECRET_LEAST = 16, SECRET_MOST = 1 << 20 };

/* Hashes the whole file. It reads by offset, because several communicators and processes may share
 * the descriptor. */
static ring_status hash_content(int fd, const char *name, unsigned char hash[CREDENTIAL_KEY])
{
    unsigned char part[4096];
    crypto_hash_sha256_state state;
    off_t total = 0;
    ssize_t got;
    crypto_hash_sha256_init(&state);
    while ((got = pread(fd, part, sizeof part, total)) > 0 && total < SECRET_MOST) {
        crypto_hash_sha256_update(&state, part, (unsigned long long)got);
        total += got;
    }
    crypto_hash_sha256_final(&state, hash);
    sodium_memzero(part, sizeof part);
    if (got < 0)
        return fail(RING_ERR_CONFIG, "reading the secret (%s): %m; it must be a regular file",
                    name);
    if (total < SECRET_LEAST || total >= SECRET_MOST)
        return fail(RING_ERR_CONFIG, "the secret (%s) has %lld byte%s: want %d to %d", name,
                    (long long)total, plural((double)total), SECRET_LEAST, SECRET_MOST);
    return RING_OK;
}

static ring_status check_file(int fd, const char *path)
{
    struct stat file;
    if (fstat(fd, &file) != 0)
        return fail(RING_ERR_SYSTEM, "RING_SECRET_FILE=%s: %m", path);
    if (!S_ISREG(file.st_mode))
        return fail(RING_ERR_CONFIG, "RING_SECRET_FILE=%s is not a file", path);
    if ((file.st_mode & 077) != 0)
        return fail(
            RING_ERR_CONFIG,
            "RING_SECRET_FILE=%s has mode %04o, so others may read or write it: chmod 600 %s", path,
            file.st_mode & 07777u, path);
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return fail(RING_ERR_CONFIG,
                    "RING_SECRET_FILE=%s belongs to user %u, but this process runs as user %u",
                    path, (unsigned)file.st_uid, (unsigned)geteuid());
    return RING_OK;
}

static ring_status read_file(const char *path, unsigned char hash[CREDENTIAL_KEY])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return fail(RING_ERR_CONFIG, "RING_SECRET_FILE=%s: %m", path);
    ring_status status = check_file(fd, path);
    if (status == RING_OK)
        status = hash_content(fd, "RING_SECRET_FILE", hash);
    fd_close(&fd);
    return status;
}

ring_status secret_read(const settings *s, unsigned char hash[CREDENTIAL_KEY], bool *found)
{
    *found = s->secret_fd >= 0 || s->secret_file[0] != '\0';
    if (s->secret_fd >= 0) {
        /* Programs that this one starts must not inherit the secret. */
        (void)fcntl(s->secret_fd, F_SETFD, FD_CLOEXEC);
        return hash_content(s->secret_fd, "RING_SECRET_FD", hash);
    }
    return *found ? read_file(s->secret_file, hash) : RING_OK;
}
