/* SPDX-License-Identifier: Apache-2.0
 * How rank 0 is found: addresses, unique ids, the file and the process manager that hold one, and
 * secrets. */
#include "credential.h"
#include "give.h"
#include "id_exchange.h"
#include "secret.h"

#include <dirent.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- Addresses and ids ---------------------------------------------------------- */

static net_address some_v6(void)
{
    net_address a = {.length = sizeof a.at.v6};
    a.at.v6.sin6_family = AF_INET6;
    a.at.v6.sin6_addr = (struct in6_addr)IN6ADDR_LOOPBACK_INIT;
    address_set_port(&a, 29500);
    return a;
}

static void seed_address(fuzz_seeds *to)
{
    unsigned char packed[ADDRESS_PACKED];
    const net_address v4 = address_loopback(65535), v6 = some_v6();
    address_pack(&v4, packed);
    fuzz_add(to, packed, sizeof packed);
    address_pack(&v6, packed);
    fuzz_add(to, packed, sizeof packed);
}

/* An address that was read can be shown, and is read again as the same. */
static void check_address(const net_address *a)
{
    unsigned char packed[ADDRESS_PACKED];
    char text[ADDRESS_TEXT_MAX];
    net_address again;
    address_pack(a, packed);
    must(address_unpack(packed, &again) && address_equal(a, &again));
    must(strchr(address_text(a, text), ':') != NULL && fuzz_is_printable(text));
    must(address_port(a) >= 0 && address_port(a) <= 65535);
    must(!(address_is_loopback(a) && address_is_unspecified(a)));
}

static ring_status parse_address(const unsigned char *bytes, size_t size)
{
    net_address a;
    if (size < ADDRESS_PACKED || !address_unpack(bytes, &a))
        return RING_ERR_ARGUMENT;
    check_address(&a);
    return RING_OK;
}

const fuzz_target fuzz_address = {.name = "address",
                                  .reads = "addresses in cards and ids",
                                  .most = ADDRESS_PACKED,
                                  .seeds = seed_address,
                                  .parse = parse_address};

/* The same in every run: the key is not drawn. */
static ring_unique_id some_id(void)
{
    ring_unique_id id;
    const net_address at = some_v6();
    credential_make_id(&at, false, &id);
    memset(id.bytes + 8, 7, CREDENTIAL_KEY);
    return id;
}

static void seed_unique_id(fuzz_seeds *to)
{
    const ring_unique_id id = some_id();
    fuzz_add(to, id.bytes, sizeof id.bytes);
}

static ring_status parse_unique_id(const unsigned char *bytes, size_t size)
{
    ring_unique_id id;
    credential c;
    if (size < sizeof id.bytes)
        return RING_IN_PROGRESS; /* ids have one size */
    memcpy(id.bytes, bytes, sizeof id.bytes);
    RING_TRY(credential_from_id(&id, &c));
    must(c.places == 1);
    check_address(&c.at[0]);
    return RING_OK;
}

const fuzz_target fuzz_unique_id = {.name = "unique_id",
                                    .reads = "ids that users pass on",
                                    .most = RING_UNIQUE_ID_BYTES,
                                    .seeds = seed_unique_id,
                                    .parse = parse_unique_id,
                                    .reason = fail_text};

/* ---- Ids as text ---------------------------------------------------------------- */

static void id_as_text(char text[2 * RING_UNIQUE_ID_BYTES + 1])
{
    const ring_unique_id id = some_id();
    sodium_bin2hex(text, 2 * RING_UNIQUE_ID_BYTES + 1, id.bytes, sizeof id.bytes);
}

static void seed_id_file(fuzz_seeds *to)
{
    char text[2 * RING_UNIQUE_ID_BYTES + 1];
    id_as_text(text);
    fuzz_add_text(to, text);
}

/* The only file of the folder, which rank 0 has written. */
static int open_id_file(const char *folder)
{
    char path[600] = "";
    DIR *dir = opendir(folder);
    must(dir != NULL);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.')
            (void)text_format(path, sizeof path, "%s/%s", folder, entry->d_name);
    closedir(dir);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    must(fd >= 0);
    return fd;
}

static id_exchange *open_exchange(int *fd)
{
    static settings s;
    const launch_info launch = {.size = 2};
    const ring_unique_id id = some_id();
    id_exchange *x;
    (void)text_format(s.rendezvous_dir, sizeof s.rendezvous_dir, "%s", give_folder(NULL));
    must(id_exchange_open(&launch, &s, clock_now() + 1, &x) == RING_OK);
    must(id_exchange_publish(x, &id) == RING_OK);
    *fd = open_id_file(s.rendezvous_dir);
    return x;
}

static void check_id(const ring_unique_id *id, const unsigned char *bytes)
{
    char text[2 * RING_UNIQUE_ID_BYTES + 1];
    sodium_bin2hex(text, sizeof text, id->bytes, sizeof id->bytes);
    must(strncasecmp(text, (const char *)bytes, sizeof text - 1) == 0);
}

static ring_status parse_id_file(const unsigned char *bytes, size_t size)
{
    static id_exchange *x;
    static int fd;
    ring_unique_id id;
    if (x == NULL)
        x = open_exchange(&fd);
    must(ftruncate(fd, 0) == 0 && pwrite(fd, bytes, size, 0) == (ssize_t)size);
    const ring_status status = id_exchange_look(x, &id);
    must(status == RING_OK || status == RING_IN_PROGRESS);
    if (status == RING_OK)
        check_id(&id, bytes);
    return status;
}

const fuzz_target fuzz_id_file = {.name = "id_file",
                                  .reads = "the file in RING_RENDEZVOUS_DIR",
                                  .most = 4 * RING_UNIQUE_ID_BYTES,
                                  .seeds = seed_id_file,
                                  .parse = parse_id_file};

/* ---- PMI ------------------------------------------------------------------------ */

static void seed_pmi(fuzz_seeds *to)
{
    char id[2 * RING_UNIQUE_ID_BYTES + 1], text[1024];
    id_as_text(id);
    (void)text_format(text, sizeof text,
                      "cmd=barrier_out\ncmd=get_result rc=0 msg=success value=%s\n", id);
    fuzz_add_text(to, text);
    fuzz_add_text(to, "cmd=barrier_out rc=0\ncmd=get_result rc=0 value=00 more=1\n");
    fuzz_add_any_text(to, "cmd=barrier_out\ncmd=get_result rc=1 msg=key_not_found value=unknown\n");
}

/* The process manager at ends[1] has said what a process hears first. */
static id_exchange *begin_pmi(int ends[2])
{
    static id_exchange x;
    static const char hello[] = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
                                "cmd=my_kvsname kvsname=kvs_1\n";
    char number[16];
    give_pair(ends);
    (void)text_format(number, sizeof number, "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    must(give_sent(ends[1], hello, sizeof hello - 1));
    x = (id_exchange){.way = &exchange_by_pmi, .deadline = clock_now() + 1, .key = "ring.id.0"};
    must(x.way->open(&x) == RING_OK);
    x.deadline = 0; /* nothing comes later */
    return &x;
}

static void drain(int fd)
{
    char waste[4096];
    while (recv(fd, waste, sizeof waste, MSG_DONTWAIT) > 0)
        continue;
}

static ring_status parse_pmi(const unsigned char *bytes, size_t size)
{
    static int ends[2];
    static id_exchange *x;
    char hex[2 * RING_UNIQUE_ID_BYTES + 1];
    if (x == NULL)
        x = begin_pmi(ends);
    must(give_sent(ends[1], bytes, size));
    const ring_status status = x->way->look(x, hex, sizeof hex);
    if (status == RING_OK)
        must(memchr(hex, '\0', sizeof hex) != NULL && strpbrk(hex, " \n") == NULL);
    x->way->close(x);
    x->state = NULL;
    drain(ends[0]);
    drain(ends[1]);
    return status;
}

const fuzz_target fuzz_pmi = {.name = "pmi",
                              .reads = "answers of a process manager (PMI-1)",
                              .most = 3000,
                              .seeds = seed_pmi,
                              .parse = parse_pmi,
                              .reason = fail_text};

/* ---- Secrets -------------------------------------------------------------------- */

static void seed_secret(fuzz_seeds *to)
{
    fuzz_add_text(to, "sixteen letters.");
    fuzz_add_any_text(to, "fifteen letters");
}

static ring_status parse_secret(const unsigned char *bytes, size_t size)
{
    unsigned char hash[CREDENTIAL_KEY];
    bool found = false;
    const settings s = {.secret_fd = give_fd(0, bytes, size)};
    const ring_status status = secret_read(&s, hash, &found);
    must(found && (status == RING_OK) == (size >= 16));
    return status;
}

const fuzz_target fuzz_secret = {.name = "secret",
                                 .reads = "RING_SECRET_FILE and RING_SECRET_FD",
                                 .most = 64,
                                 .seeds = seed_secret,
                                 .parse = parse_secret,
                                 .reason = fail_text};
