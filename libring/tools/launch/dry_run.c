/* SPDX-License-Identifier: Apache-2.0
 * Prints the commands that would be started, in the syntax of a shell. */
#include "dry_run.h"

#include "binding.h"
#include "command_lookup.h"
#include "remote_ranks.h"
#include "topo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_SHOWN_FD = 0x7fff };

/* Prints a word, in quotes if it has characters that a shell may interpret. */
static void print_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_@%+=:,./-";
    const bool is_plain = *word != '\0' && strspn(word, plain) == strlen(word);
    char *quoted = is_plain ? NULL : remote_quoted(word);
    fputs(quoted != NULL ? quoted : word, stdout);
    free(quoted);
}

/* @return true if this environment has the entry "NAME=VALUE". */
static bool has_entry(const char *entry)
{
    char *const *at = environ;
    while (*at != NULL && strcmp(*at, entry) != 0)
        at++;
    return *at != NULL;
}

static void print_command(const char *program, const texts *argv)
{
    print_word(program);
    for (size_t i = 1; i < argv->count; i++) {
        putchar(' ');
        print_word(argv->items[i]);
    }
    putchar('\n');
}

/* Prints the changes to the environment as a call of env: first the variables that are removed,
 * then the entries that differ from this environment. On another host, whose environment is
 * unknown, all entries are printed. */
static void print_environment(const setup *s, const share *of, int local)
{
    texts changes = {0};
    job_environment(&s->j, of, local, s->j.has_secret ? SECRET_SHOWN_FD : -1, &changes);
    fputs("env ", stdout);
    for (size_t i = 0; of->local && i < changes.count; i++) {
        if (strchr(changes.items[i], '=') == NULL && getenv(changes.items[i]) != NULL)
            printf("-u %s ", changes.items[i]);
    }
    for (size_t i = 0; i < changes.count; i++) {
        const char *entry = changes.items[i];
        if (strchr(entry, '=') == NULL || (of->local && has_entry(entry)))
            continue;
        const bool secret = strncmp(entry, "RING_SECRET_FD=", strlen("RING_SECRET_FD=")) == 0;
        print_word(secret ? "RING_SECRET_FD=<descriptor of the secret>" : entry);
        putchar(' ');
    }
    texts_free(&changes);
}

/* For another host, whose number of cores is unknown here, only the rule is printed. */
static void print_binding(const setup *s, const share *of, int local, size_t cores)
{
    const core_range range = binding_of(&s->j, of, local, cores);
    if (of->local && range.count == 1)
        printf(", bound to core %zu", range.first);
    else if (of->local && range.count > 1)
        printf(", bound to cores %zu-%zu", range.first, range.first + range.count - 1);
    else if (!of->local && s->j.binding == BIND_CORE)
        printf(", bound to the core of slot %d", of->slots[local]);
    else if (!of->local && s->j.binding == BIND_AUTO && of->ranks > 1)
        fputs(", bound to its share of the cores if they suffice", stdout);
}

static void print_rank(const setup *s, const share *of, int local, size_t cores,
                       const char *program)
{
    printf("# rank %d of %d on %s", of->first_rank + local, s->j.ranks, of->host);
    print_binding(s, of, local, cores);
    putchar('\n');
    if (!of->local) {
        fputs("cd ", stdout);
        print_word(s->j.directory);
        fputs(" && ", stdout);
    }
    print_environment(s, of, local);
    print_command(program, &s->j.argv);
}

/* @return the path of the program for ranks on this host; its name for other hosts, which look it
 * up themselves. */
static const char *find_program(const setup *s, const share *of, char *path, size_t size)
{
    const char *name = s->j.argv.items[0];
    char why[512];
    if (!of->local)
        return name;
    if (command_find(name, path, size))
        return path;
    command_describe_error(name, errno, why, sizeof why);
    fprintf(stderr, "ringrun: rank %d %s\n", of->first_rank, why);
    return name;
}

static void print_share(const setup *s, const options *o, const share *of, size_t cores)
{
    char path[4096];
    const char *program = find_program(s, of, path, sizeof path);
    texts command = {0};
    if (!of->local) {
        printf("# ranks %d to %d of %d on %s, through\n", of->first_rank,
               of->first_rank + of->ranks - 1, s->j.ranks, of->host);
        remote_command(of->host, o->ssh_port, s->ringrun, &command);
        print_command(command.items[0], &command);
        texts_free(&command);
    }
    for (int local = 0; local < of->ranks; local++)
        print_rank(s, of, local, cores, program);
}

void dry_run_print(const setup *s, const options *o)
{
    topo_cpu cpu = {0};
    if (s->j.binding != BIND_NONE && topo_cpu_read(&cpu) != RING_OK)
        fprintf(stderr, "ringrun: %s\n", fail_text());
    for (size_t i = 0; i < s->places.count; i++) {
        if (!s->alone || &s->places.shares[i] == s->here)
            print_share(s, o, &s->places.shares[i], cpu.core_count);
    }
    if (s->ask_address)
        puts("# MASTER_ADDR will be the address that the first host reports");
    topo_cpu_free(&cpu);
}
