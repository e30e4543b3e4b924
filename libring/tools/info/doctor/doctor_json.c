/* SPDX-License-Identifier: Apache-2.0
 * What the doctor of one host found, for programs and for the doctor of several hosts. */
#include "doctor.h"

#include "checks.h"
#include "settings.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

cJSON *doctor_findings(const report *r)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < r->count; i++) {
        const info_row *row = &r->rows[i];
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "level", verdict_name(row->verdict));
        cJSON_AddStringToObject(one, "section", row->section);
        cJSON_AddStringToObject(one, "name", row->name);
        cJSON_AddStringToObject(one, "value", row->value);
        cJSON_AddStringToObject(one, "why", row->advice);
        cJSON_AddStringToObject(one, "command", row->command);
        cJSON_AddItemToArray(list, one);
    }
    return list;
}

/* ---- What should be the same on all hosts ---------------------------------------------------- */

typedef struct words {
    char text[1024];
    size_t used;
} words;

static bool has_word(const words *w, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = w->text; (at = strstr(at, word)) != NULL; at += length)
        if ((at == w->text || at[-1] == ' ') && (at[length] == '\0' || at[length] == ' '))
            return true;
    return false;
}

/* Each word once; blanks within it become '_'. */
static void add_word(words *w, const char *word)
{
    char joined[256];
    snprintf(joined, sizeof joined, "%s", word);
    for (char *at = joined; *at != '\0'; at++)
        *at = isspace((unsigned char)*at) ? '_' : *at;
    if (joined[0] == '\0' || has_word(w, joined))
        return;
    if (text_format(w->text + w->used, sizeof w->text - w->used, "%s%s", w->used > 0 ? " " : "",
                    joined))
        w->used = strlen(w->text);
    else
        w->text[w->used] = '\0';
}

static void put_words(cJSON *o, const char *name, const words *w)
{
    if (w->used > 0)
        cJSON_AddStringToObject(o, name, w->text);
}

/* Those that differ by their nature: the launch, and where this host is. */
static bool is_of_one_host(const settings_row *row)
{
    return strncmp(row->help, "launch:", 7) == 0 || strcmp(row->name, "RING_ADDR") == 0 ||
           strncmp(row->name, "RING_SECRET_", 12) == 0;
}

static void put_settings(cJSON *o)
{
    size_t count;
    words w = {.used = 0};
    settings_row *rows = settings_rows(&count);
    for (size_t i = 0; rows != NULL && i < count; i++) {
        char entry[600];
        if (strcmp(rows[i].source, "default") == 0 || is_of_one_host(&rows[i]))
            continue;
        snprintf(entry, sizeof entry, "%s=%s", rows[i].name, rows[i].value);
        add_word(&w, entry);
    }
    free(rows);
    cJSON_AddStringToObject(o, "settings", w.used > 0 ? w.text : "none_set");
}

static void put_software(cJSON *o, const facts *f)
{
    char libring[32];
    const int version = ring_version();
    snprintf(libring, sizeof libring, "%d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    cJSON_AddStringToObject(o, "libring", libring);
    cJSON_AddStringToObject(o, "kernel", f->versions.kernel);
    cJSON_AddStringToObject(o, "glibc", f->versions.glibc);
    put_settings(o);
    if (f->pci.driver[0] != '\0')
        cJSON_AddStringToObject(o, "nvidia_driver", f->pci.driver);
}

static void put_network(cJSON *o, const facts *f)
{
    char number[32];
    for (size_t i = 0; i < f->net.count; i++) {
        const fact_interface *one = &f->net.interfaces[i];
        words networks = {.used = 0};
        if (strcmp(one->name, f->net.chosen) != 0)
            continue;
        snprintf(number, sizeof number, "%ld", one->mtu);
        cJSON_AddStringToObject(o, "mtu", number);
        snprintf(number, sizeof number, "%ld", one->speed);
        if (one->speed > 0)
            cJSON_AddStringToObject(o, "speed", number);
        for (size_t k = 0; k < one->subnet_count; k++)
            add_word(&networks, one->subnets[k]);
        put_words(o, "networks", &networks);
    }
}

/* ---- Adapters ---- */

typedef struct adapter_words {
    words layers, rates, firmware, types, prefixes, mtus, classes;
} adapter_words;

static void add_roce(const facts *f, const fact_port *p, adapter_words *all)
{
    char text[32];
    const fact_interface *net = check_port_interface(f, p);
    for (size_t i = 0; i < p->gid_count; i++)
        add_word(&all->types, p->gids[i].type);
    snprintf(text, sizeof text, "%d", net != NULL ? check_active_mtu(net->mtu) : 0);
    if (net != NULL)
        add_word(&all->mtus, text);
    snprintf(text, sizeof text, "%d", check_traffic_class_of(p));
    add_word(&all->classes, text);
}

static void add_port(const facts *f, const fact_port *p, adapter_words *all)
{
    char text[96];
    add_word(&all->layers, p->link_layer);
    add_word(&all->rates, p->rate);
    snprintf(text, sizeof text, "%s:%s", p->model, p->firmware);
    if (p->firmware[0] != '\0')
        add_word(&all->firmware, text);
    if (check_is_roce(p)) {
        add_roce(f, p, all);
    } else if (p->gid_count > 0) {
        snprintf(text, sizeof text, "%.19s", p->gids[0].gid);
        add_word(&all->prefixes, text);
    }
}

/* Gbit/s of the slowest port that works; 0: one that is made of software. Not there: none does. */
static void put_rdma_speed(cJSON *o, const facts *f)
{
    double least = -1;
    for (size_t i = 0; i < f->trial_count; i++) {
        const fact_trial *t = &f->trials[i];
        if (t->error[0] == '\0')
            least = least < 0 || t->rate < least ? t->rate : least;
    }
    if (least >= 0)
        cJSON_AddNumberToObject(o, "rdma_speed", least * 8e-9);
}

static void put_adapters(cJSON *o, const facts *f)
{
    adapter_words all = {.layers.used = 0};
    for (size_t i = 0; i < f->port_count; i++)
        if (check_is_active(&f->ports[i]))
            add_port(f, &f->ports[i], &all);
    put_rdma_speed(o, f);
    put_words(o, "link_layers", &all.layers);
    put_words(o, "rates", &all.rates);
    put_words(o, "firmware", &all.firmware);
    put_words(o, "gid_types", &all.types);
    put_words(o, "subnet_prefixes", &all.prefixes);
    put_words(o, "roce_mtus", &all.mtus);
    put_words(o, "traffic_classes", &all.classes);
}

cJSON *doctor_alike(const facts *f)
{
    cJSON *o = cJSON_CreateObject();
    put_software(o, f);
    put_network(o, f);
    put_adapters(o, f);
    return o;
}

/* Which interfaces the values are of. */
static cJSON *interfaces(const facts *f)
{
    cJSON *o = cJSON_CreateObject();
    if (f->net.chosen[0] != '\0') {
        cJSON_AddStringToObject(o, "mtu", f->net.chosen);
        cJSON_AddStringToObject(o, "speed", f->net.chosen);
    }
    for (size_t i = 0; i < f->port_count; i++) {
        const fact_interface *net = check_port_interface(f, &f->ports[i]);
        if (net == NULL)
            continue;
        cJSON_AddStringToObject(o, "roce_mtus", net->name);
        break;
    }
    return o;
}

/* ---- Counters -------------------------------------------------------------------------------- */

cJSON *doctor_counters(const facts *f)
{
    char name[96], port[48];
    cJSON *o = cJSON_CreateObject();
    for (size_t i = 0; i < f->net.count; i++) {
        if (!f->net.interfaces[i].physical)
            continue;
        snprintf(name, sizeof name, "%s errors", f->net.interfaces[i].name);
        cJSON_AddNumberToObject(o, name, f->net.interfaces[i].errors[1]);
    }
    for (size_t i = 0; i < f->port_count; i++) {
        for (size_t k = 0; k < FACTS_COUNTERS; k++) {
            if (f->ports[i].counters[1][k] < 0)
                continue;
            snprintf(name, sizeof name, "%s %s", check_port_name(&f->ports[i], port),
                     strchr(fact_counters[k], '/') + 1);
            cJSON_AddNumberToObject(o, name, f->ports[i].counters[1][k]);
        }
    }
    return o;
}

cJSON *doctor_json(const facts *f, const report *r)
{
    struct timespec now;
    cJSON *o = cJSON_CreateObject();
    clock_gettime(CLOCK_REALTIME, &now);
    cJSON_AddStringToObject(o, "host", f->net.hostname);
    cJSON_AddNumberToObject(o, "time", (double)now.tv_sec + (double)now.tv_nsec * 1e-9);
    cJSON_AddItemToObject(o, "findings", doctor_findings(r));
    cJSON_AddItemToObject(o, "alike", doctor_alike(f));
    cJSON_AddItemToObject(o, "interfaces", interfaces(f));
    cJSON_AddItemToObject(o, "counters", doctor_counters(f));
    return o;
}
