/* SPDX-License-Identifier: Apache-2.0
 * ringrun's lists of hosts: of files, options and batch systems. */
#include "give.h"
#include "host_list.h"
#include "layout.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- What every list holds ------------------------------------------------------ */

/* No name that ssh would take for an option, or a shell for more than a word. */
static void check_name(const char *name)
{
    must(name[0] != '\0' && name[0] != '-' && strstr(name, "@-") == NULL);
    for (; *name != '\0'; name++)
        must(isalnum((unsigned char)*name) || strchr("._-:@%", *name) != NULL);
}

static void check_slots(const host_entry *h)
{
    must(h->slots >= 0 && h->slots <= SLOTS_MAX);
    for (int i = 0; h->ids != NULL && i < h->slots; i++)
        must(h->ids[i] >= 0 && h->ids[i] < SLOTS_MAX);
}

static void check_layout(const host_list *list)
{
    layout l;
    int next = 0;
    if (layout_make(list, &(layout_wish){.ranks = 7}, &l) != RING_OK) {
        fuzz_check_refusal(RING_ERR_CONFIG, fail_text());
        return;
    }
    for (size_t i = 0; i < l.count; i++) {
        must(l.shares[i].first_rank == next && l.shares[i].ranks > 0);
        next += l.shares[i].ranks;
    }
    must(next == 7 && l.ranks == 7);
    layout_free(&l);
}

static void check_list(const host_list *list)
{
    must(list->count >= 1 && list->count <= HOSTS_MAX);
    for (size_t i = 0; i < list->count; i++) {
        const host_entry *h = list->items[i];
        check_name(h->name);
        check_slots(h);
        must(hosts_find(list, h->name, strlen(h->name)) == h);
    }
    check_layout(list);
}

/* @return the status; frees the list. */
static ring_status judge(ring_status status, host_list *list)
{
    char reason[1024];
    (void)text_format(reason, sizeof reason, "%s", fail_text());
    if (status == RING_OK)
        check_list(list);
    hosts_free(list);
    return status == RING_OK ? RING_OK : fail(status, "%s", reason);
}

/* ---- Files ---------------------------------------------------------------------- */

static void seed_hostfile(fuzz_seeds *to)
{
    fuzz_add_text(to, "node1 slots=4\nnode2 slots=0 # none\n\nnode3:2\r\n10.0.0.1\n");
    fuzz_add_text(to, "[fe80::1%eth0]:4\nuser@node\nfe80::2 slots=65536");
    fuzz_add_text(to, "node1 slots=4\nnode.. slots=4\nNODE.cluster.");
    fuzz_add_any_text(to, "node1 slots=4\nnode1 slots=4\n");
    fuzz_add_any_text(to, "# \x1b[2J\nnode\x1b]0;x\x07 slots=4\n");
}

static ring_status parse_hostfile(const unsigned char *data, size_t size)
{
    host_list list = {0};
    return judge(hosts_read_file(give_file(0, data, size), &list), &list);
}

const fuzz_target fuzz_hostfile = {.name = "hostfile",
                                   .reads = "--hostfile",
                                   .most = 4096,
                                   .seeds = seed_hostfile,
                                   .parse = parse_hostfile,
                                   .reason = fail_text};

static void seed_pbs_file(fuzz_seeds *to)
{
    fuzz_add_text(to, "n1\nn1\nn2\nn1\n");
    fuzz_add_text(to, "n1.cluster.example\n");
}

static ring_status parse_pbs_file(const unsigned char *data, size_t size)
{
    host_list list = {0};
    return judge(hosts_read_pbs(give_file(0, data, size), &list), &list);
}

const fuzz_target fuzz_pbs_file = {.name = "pbs_file",
                                   .reads = "PBS_NODEFILE",
                                   .most = 4096,
                                   .seeds = seed_pbs_file,
                                   .parse = parse_pbs_file,
                                   .reason = fail_text};

/* ---- Texts ---------------------------------------------------------------------- */

static void seed_host_list(fuzz_seeds *to)
{
    fuzz_add_text(to, "a,b:2,[fe80::1]:4,a:3");
    fuzz_add_text(to, "localhost:65536");
    fuzz_add_text(to, "user@fe80::1%eth0,10.0.0.1:1");
}

static ring_status parse_host_list(const unsigned char *data, size_t size)
{
    host_list list = {0};
    return judge(hosts_parse_list((const char *)data, &list), &list);
}

const fuzz_target fuzz_host_list = {.name = "host_list",
                                    .reads = "-H",
                                    .most = 2048,
                                    .text = true,
                                    .seeds = seed_host_list,
                                    .parse = parse_host_list,
                                    .reason = fail_text};

static void seed_host_words(fuzz_seeds *to)
{
    fuzz_add_text(to, "a a b");
    fuzz_add_text(to, " n1\tn2\nn1 ");
}

static ring_status parse_host_words(const unsigned char *data, size_t size)
{
    host_list list = {0};
    return judge(hosts_parse_words((const char *)data, &list), &list);
}

const fuzz_target fuzz_host_words = {.name = "host_words",
                                     .reads = "LSB_HOSTS",
                                     .most = 2048,
                                     .text = true,
                                     .seeds = seed_host_words,
                                     .parse = parse_host_words,
                                     .reason = fail_text};

/* Its first letter says whether it includes or excludes. */
static void seed_host_filter(fuzz_seeds *to)
{
    fuzz_add_text(to, "ia:0,2@b");
    fuzz_add_text(to, "ea:3@c@b:0");
    fuzz_add_text(to, "ic");
    fuzz_add_any_text(to, "ea@b@c");
}

static ring_status parse_host_filter(const unsigned char *data, size_t size)
{
    const char *text = (const char *)data;
    host_list list = {0};
    if (size == 0)
        return RING_IN_PROGRESS;
    must(hosts_parse_list("a:4,b:2,c", &list) == RING_OK);
    const ring_status status = *text == 'i' ? hosts_include(&list, text + 1, false)
                                            : hosts_exclude(&list, text + 1);
    return judge(status, &list);
}

const fuzz_target fuzz_host_filter = {.name = "host_filter",
                                      .reads = "--include and --exclude",
                                      .most = 512,
                                      .text = true,
                                      .seeds = seed_host_filter,
                                      .parse = parse_host_filter,
                                      .reason = fail_text};

/* Nodes, a line end, tasks of each. */
static void seed_slurm_list(fuzz_seeds *to)
{
    fuzz_add_text(to, "n[01-04,7],x3\n2(x5),1");
    fuzz_add_text(to, "r[1-2]n[8-11]");
    fuzz_add_text(to, "gpu-a[001-080]\n8(x80)");
    fuzz_add_any_text(to, "n[1-70000]");
    fuzz_add_text(to, "cluster-node[00001-00200]");
}

static ring_status parse_slurm_list(const unsigned char *data, size_t size)
{
    host_list list = {0};
    char *nodes = memory_text((const char *)data, size), *tasks = nodes;
    (void)strsep(&tasks, "\n");
    const ring_status status = judge(hosts_parse_slurm(nodes, tasks, &list), &list);
    free(nodes);
    return status;
}

const fuzz_target fuzz_slurm_list = {.name = "slurm_list",
                                     .reads = "SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE",
                                     .most = 512,
                                     .seeds = seed_slurm_list,
                                     .parse = parse_slurm_list,
                                     .reason = fail_text};
