/*
 * test_cluster.c - cluster files: the bundled ones load, broken ones are refused with the reason
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIR_ "models/clusters"

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 16);
    size_t n;

    cr_assert(f != NULL && text != NULL);
    n = fread(text, 1, (1 << 16) - 1, f);
    cr_assert(n > 0);
    fclose(f);
    return text;
}

/* Open the A100 file with 'from' replaced by 'to'; the status, and the text of the error. */
static zipccl_status open_edited(const char *from, const char *to, struct zipccl_error *error)
{
    char path[] = "/tmp/zipccl-cluster-XXXXXX";
    char *text = slurp(DIR_ "/a100-8x8-200g.yaml"), *at = strstr(text, from);
    struct zipccl_cluster_file *file = NULL;
    zipccl_status status;
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");

    cr_assert(at != NULL, "\"%s\" is not in the file", from);
    fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    fclose(f);
    status = zipccl_cluster_open(path, NULL, &file, error);
    if (status != ZIPCCL_OK)
        cr_assert(strstr(error->text, path) != NULL, "no file name: %s", error->text);
    zipccl_cluster_close(file);
    unlink(path);
    free(text);
    return status;
}

Test(cluster, bundled_ones_load_with_sources)
{
    static const char *const names[] = {"h100-8x8-400g", "a100-8x8-200g", "laptop"};

    for (size_t i = 0; i < 3; i++) {
        struct zipccl_error error = {""};
        struct zipccl_cluster_file *file = NULL;
        struct zipccl_cluster c;
        const struct zipccl_cluster_setting *s;
        size_t n;

        cr_assert_eq(zipccl_cluster_open(names[i], DIR_, &file, &error), ZIPCCL_OK, "%s",
                     error.text);
        cr_assert_eq(zipccl_cluster_get(file, &c, &error), ZIPCCL_OK);
        cr_assert_str_eq(c.name, names[i]);
        s = zipccl_cluster_settings(file, &n);
        /* Max-ratio rates are known of CPUs alone. */
        cr_assert_eq(n, strcmp(names[i], "laptop") == 0 ? 22 : 20);
        cr_assert_eq(c.ratio_encode_Bps > 0, n == 22);
        for (size_t k = 0; k < n; k++)
            cr_assert(s[k].source[0] != 0 && s[k].text[0] != 0 && !s[k].overridden);
        zipccl_cluster_close(file);
    }
}

Test(cluster, values_arrive_in_base_units)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_cost_params params;
    struct zipccl_cluster c;

    cr_assert_eq(zipccl_cluster_open(DIR_ "/a100-8x8-200g.yaml", NULL, &file, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    cr_assert(c.nodes == 8 && c.gpus_per_node == 8 && c.nics_per_node == 1 && c.gpu_sms == 108);
    cr_assert(fabs(c.nic_Bps - 24.2e9) < 1 && fabs(c.nic_alpha_s - 5e-6) < 1e-15);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(params.nic_Bps == c.nic_Bps && params.fabric_Bps == 0);
    cr_assert(fabs(params.codec_sm_share - 32.0 / 108) < 1e-12);
    cr_assert_eq(zipccl_cluster_set(file, "fabric.oversubscription=2", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(fabs(params.fabric_Bps - 12.1e9) < 1);
    zipccl_cluster_close(file);
}

Test(cluster, set_overrides_and_says_so)
{
    struct zipccl_cluster_file *file = NULL;
    const struct zipccl_cluster_setting *s;
    struct zipccl_error error = {""};
    struct zipccl_cluster c;
    size_t n, overridden = 0;

    cr_assert_eq(zipccl_cluster_open("a100-8x8-200g", DIR_, &file, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_set(file, "nic.rate=800Gbps", &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_cluster_set(file, "nic.rate=400Gbps", &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    cr_assert(fabs(c.nic_Bps - 50e9) < 1);
    s = zipccl_cluster_settings(file, &n);
    for (size_t k = 0; k < n; k++)
        if (s[k].overridden) {
            cr_assert_str_eq(s[k].key, "nic.rate");
            cr_assert_str_eq(s[k].source, "--set");
            cr_assert_str_eq(s[k].text, "400Gbps");
            overridden++;
        }
    cr_assert_eq(overridden, 1);
    zipccl_cluster_close(file);
}

Test(cluster, optional_keys_come_together)
{
    struct zipccl_cluster_file *file = NULL;
    const struct zipccl_cluster_setting *s;
    struct zipccl_error error = {""};
    struct zipccl_cost_params params;
    struct zipccl_cluster c;
    size_t n;

    cr_assert_eq(zipccl_cluster_open("a100-8x8-200g", DIR_, &file, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(params.ratio_encode_Bps == 0 && params.ratio_decode_Bps == 0);
    cr_assert_eq(zipccl_cluster_set(file, "codec.ratio_decode_rate=3GBps", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert_str_eq(error.text, "--set codec.ratio_decode_rate=3GBps: codec.ratio_encode_rate is "
                                 "missing; expected both or neither");
    cr_assert_eq(zipccl_cluster_set(file, "codec.ratio_encode_rate=2GBps", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(params.ratio_encode_Bps == 2e9 && params.ratio_decode_Bps == 3e9);
    s = zipccl_cluster_settings(file, &n);
    cr_assert_eq(n, 22);
    cr_assert_str_eq(s[16].key, "codec.ratio_encode_rate");
    cr_assert(s[16].overridden && s[16].text[0] == '2');
    cr_assert_eq(zipccl_cluster_set(file, "codec.ratio_encode_rate=2TBps", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_ERR_INPUT);
    zipccl_cluster_close(file);
}

/* Sections that a file may leave out: written and read again they are there, and checked. */
Test(cluster, additions_bursts_and_shared_cores_are_optional)
{
    static const char *const sets[] = {"nic.burst=100kB", "reduce.rate=1.5GBps", "machine.cores=2"};
    struct zipccl_cluster_file *file = NULL, *again = NULL;
    char path[] = "/tmp/zipccl-cluster-XXXXXX";
    struct zipccl_error error = {""};
    struct zipccl_cost_params params;
    struct zipccl_cluster c;
    FILE *out = fdopen(mkstemp(path), "w");

    cr_assert_eq(zipccl_cluster_open("laptop", DIR_, &file, NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, NULL), ZIPCCL_OK);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(params.nic_burst_bytes == 0 && params.reduce_Bps == 0 && params.shared_cores == 0);
    for (size_t i = 0; i < sizeof(sets) / sizeof(*sets); i++)
        cr_assert_eq(zipccl_cluster_set(file, sets[i], &error), ZIPCCL_OK, "%s", error.text);
    cr_assert(out != NULL);
    cr_assert_eq(zipccl_cluster_write(file, out, &error), ZIPCCL_OK, "%s", error.text);
    fclose(out);
    cr_assert_eq(zipccl_cluster_open(path, NULL, &again, &error), ZIPCCL_OK, "%s", error.text);
    remove(path);
    cr_assert_eq(zipccl_cluster_get(again, &c, NULL), ZIPCCL_OK);
    zipccl_cluster_cost_params(&c, &params);
    cr_assert(params.nic_burst_bytes == 1e5 && params.reduce_Bps == 1.5e9 &&
              params.shared_cores == 2);
    zipccl_cluster_close(again);

    cr_assert_eq(zipccl_cluster_set(file, "fabric.oversubscription=2", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, "nic.burst is given and fabric.oversubscription is 2") != NULL);
    cr_assert_eq(zipccl_cluster_set(file, "fabric.oversubscription=1", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_set(file, "reduce.rate=6GBps", NULL), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_get(file, &c, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text,
                     "the rate reduce.rate, 6 GB/s, is more than half of gpu.hbm_rate") != NULL);
    zipccl_cluster_close(file);
}

Test(cluster, set_refuses_with_the_reason)
{
    static const struct {
        const char *assignment, *says;
    } cases[] = {
        {"nic.rat=1Gbps", "did you mean \"nic.rate\""},
        {"nic_rate=1Gbps", "nic.rate"},
        {"nic.rate", "key=value"},
        {"=1", "key=value"},
        {"nic.rate=", "expected a rate"},
        {"nic.rate=800", "unit is missing"},
        {"nic.rate=800GB", "GBps"},
        {"nodes=8x", "whole number"},
        {"nodes=0", "out of range"},
        {"nodes=99999999999", "out of range"},
        {"nic.alpha=-5us", "out of range"},
        {"gpu.name=", "--set gpu.name: found \"\", expected a text"},
        {"gpu.name=  ", "not blank"},
        {"name=", "--set name: found"},
        {"name=a\nb", "--set name: a text with line breaks"},
        {"description= ", "--set description: found"},
        {"nic.rate=1kBps", "--set nic.rate: \"1kBps\" is out of range: expected 1MBps to 100TBps"},
    };
    struct zipccl_cluster_file *file = NULL;

    cr_assert_eq(zipccl_cluster_open("laptop", DIR_, &file, NULL), ZIPCCL_OK);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zipccl_error error = {""};

        cr_assert_eq(zipccl_cluster_set(file, cases[i].assignment, &error), ZIPCCL_ERR_INPUT, "%s",
                     cases[i].assignment);
        cr_assert(strstr(error.text, cases[i].says) != NULL, "%s: %s", cases[i].assignment,
                  error.text);
    }
    zipccl_cluster_close(file);
}

Test(cluster, values_must_fit_together)
{
    static const struct {
        const char *assignment, *says;
    } cases[] = {
        {"nic.per_node=3", "--set nic.per_node=3: "},
        {"gpus_per_node=9", ""},
        {"codec.sms=200", "--set codec.sms=200: codec.sms is 200, more than gpu.sms 108"},
        {"gpu.sms=20", "--set gpu.sms=20: codec.sms is 32, more than gpu.sms 20"},
        {"codec.encode_rate=2000GBps",
         "--set codec.encode_rate=2000GBps: the rate codec.encode_rate"},
        {"codec.decode_rate=2000GBps",
         "--set codec.decode_rate=2000GBps: the rate codec.decode_rate"},
        {"nodes=65536", ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zipccl_cluster_file *file = NULL;
        struct zipccl_error error = {""};
        struct zipccl_cluster c;

        cr_assert_eq(zipccl_cluster_open("a100-8x8-200g", DIR_, &file, NULL), ZIPCCL_OK);
        cr_assert_eq(zipccl_cluster_set(file, cases[i].assignment, &error), ZIPCCL_OK);
        if (cases[i].says[0] != 0) {
            cr_assert_eq(zipccl_cluster_get(file, &c, &error), ZIPCCL_ERR_INPUT);
            cr_assert(strstr(error.text, cases[i].says) != NULL, "%s", error.text);
        }
        zipccl_cluster_close(file);
    }
}

Test(cluster, broken_files_are_refused_with_the_place)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"24.2GBps", "24.2", "nic.rate"},
        {"24.2GBps", "24.2GB", "unit"},
        {"24.2GBps", "nan", "expected a rate"},
        {"24.2GBps", "1e400GBps", "expected a rate"},
        {"{value: 108,", "{value: 8x,", "gpu.sms"},
        {"{value: 108,", "{value: 08,", "gpu.sms"},
        {"{value: 108,", "{value: 0,", "out of range"},
        {"  rate: {value: 24.2GBps", "  rats: {value: 24.2GBps", "did you mean \"nic.rate\""},
        {"nic:\n", "nik:\n", "unknown key"},
        {"nodes: {value: 8, source: \"chosen: 64 GPUs\"}\n", "", "nodes"},
        {"nodes: {value: 8, source: \"chosen: 64 GPUs\"}", "nodes: {value: 8}", "source"},
        {"nodes: {value: 8, source: \"chosen: 64 GPUs\"}", "nodes: 8", "nodes"},
        {"nodes: {", "nodes: {value: 8, source: x}\nnodes: {", "twice"},
        {"  sms: {value: 108", "  sms: {value: 1, source: x}\n  sms: {value: 108", "twice"},
        {"fabric:", "fabric: [", "line"},
        {"{value: 1, source: \"chosen: a NIC", "{value: 3, source: \"chosen: a NIC", "divisor"},
        /* Words of the file, none of libcyaml's. */
        {"nodes: {value: 8, source: \"chosen: 64 GPUs\"}", "nodes: 8",
         "line 5: key \"nodes\": found a single value, expected {value: ..., source: ...}"},
        {"nodes: {value: 8, source: \"chosen: 64 GPUs\"}", "nodes: [8]",
         "key \"nodes\": found a list, expected {value: ..., source: ...}"},
        {"nodes: {value: 8,", "nodes: {value: [8],", "found a list, expected a text"},
        {"nodes: {value: 8,", "nodes: {value: ,", "found nothing, expected a text"},
        {"fabric:\n  oversub", "fabric: 1\nx:\n  oversub",
         "key \"fabric\": found a single value, expected a section of keys"},
        {"# SPDX", "- a\n# SPDX", "expected the keys of a cluster"},
        {"nodes:", "\tnodes:", "near line 4: not YAML: found a tab"},
        /* Texts that people read are one line and not blank. */
        {"\"chosen: 64 GPUs\"", "\"  \"", "key \"nodes\", source: found \"  \""},
        {"\"chosen: 64 GPUs\"", "\"a\\nb\"", "key \"nodes\", source: a text with line breaks"},
        {"name: a100-8x8-200g", "name: \"a\\nb\"", "key \"name\": a text with line breaks"},
        {"name: a100-8x8-200g", "name: \"  \"", "key \"name\": found \"  \""},
        {"description: 8 nodes", "description: \"8 \\e[1m\" #", "key \"description\": a text with"},
        {"{value: A100 80GB SXM,", "{value: \"  \",", "key \"gpu.name\": found \"  \""},
        {"compute:\n", "---\ncompute:\n", "a second document"},
        {"compute:\n", "...\n# done\ncompute:\n", "a second document"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct zipccl_error error = {""};

        cr_assert_eq(open_edited(cases[i].from, cases[i].to, &error), ZIPCCL_ERR_INPUT,
                     "%s -> %s: %s", cases[i].from, cases[i].to, error.text);
        cr_assert(strstr(error.text, cases[i].says) != NULL, "%s -> %s: %s", cases[i].from,
                  cases[i].to, error.text);
    }
}

/* What 'zipccl cluster plain' prints is read as well; its lines are found, its mistakes told. */
Test(cluster, plain_text_is_a_cluster_too)
{
    static const char head[] = "# a cluster\nname\tcopy\ndescription\tby lines\n";
    char path[] = "/tmp/zipccl-cluster-XXXXXX";
    struct zipccl_cluster_file *yaml = NULL, *plain = NULL;
    const struct zipccl_cluster_setting *a, *b;
    struct zipccl_error error = {""};
    size_t na, nb;
    FILE *f = fdopen(mkstemp(path), "w");

    cr_assert_eq(zipccl_cluster_open(DIR_ "/laptop.yaml", NULL, &yaml, &error), ZIPCCL_OK, "%s",
                 error.text);
    a = zipccl_cluster_settings(yaml, &na);
    fputs(head, f);
    for (size_t i = 0; i < na; i++)
        fprintf(f, "%s\t%s\t%s\n", a[i].key, a[i].text, a[i].source);
    fclose(f);
    cr_assert_eq(zipccl_cluster_open(path, NULL, &plain, &error), ZIPCCL_OK, "%s", error.text);
    b = zipccl_cluster_settings(plain, &nb);
    cr_assert_eq(na, nb);
    for (size_t i = 0; i < na; i++)
        cr_expect(strcmp(a[i].key, b[i].key) == 0 && strcmp(a[i].text, b[i].text) == 0 &&
                      strcmp(a[i].source, b[i].source) == 0 && a[i].value == b[i].value,
                  "%s", a[i].key);
    zipccl_cluster_close(plain);
    zipccl_cluster_close(yaml);
    f = fopen(path, "w");
    fprintf(f, "%snodes\tx\tset\nnode\t1\tset\n", head);
    fclose(f);
    cr_expect_eq(zipccl_cluster_open(path, NULL, &plain, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "line 5: unknown key \"node\"") != NULL, "%s", error.text);
    unlink(path);
}

Test(cluster, a_second_document_is_no_cluster)
{
    /* After the end, so that the first alone would load; '---' before the first is none. */
    static const struct {
        const char *head, *tail;
        zipccl_status status;
    } cases[] = {
        {"", "---\nname: other\n", ZIPCCL_ERR_INPUT},
        {"", "--- name\n", ZIPCCL_ERR_INPUT},
        {"", "...\n# done\n", ZIPCCL_OK},
        {"", "...\nname: x\n", ZIPCCL_ERR_INPUT},
        {"%YAML 1.1\n---\n", "", ZIPCCL_OK},
        {"# a\n---\n", "# b\n", ZIPCCL_OK},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[] = "/tmp/zipccl-cluster-XXXXXX";
        char *text = slurp(DIR_ "/laptop.yaml");
        struct zipccl_cluster_file *file = NULL;
        struct zipccl_error error = {""};
        FILE *f = fdopen(mkstemp(path), "w");

        fprintf(f, "%s%s%s", cases[i].head, text, cases[i].tail);
        fclose(f);
        cr_expect_eq(zipccl_cluster_open(path, NULL, &file, &error), cases[i].status,
                     "case %zu: %s", i, error.text);
        cr_expect(cases[i].status == ZIPCCL_OK || strstr(error.text, "second document") != NULL,
                  "case %zu: %s", i, error.text);
        if (cases[i].status == ZIPCCL_OK)
            zipccl_cluster_close(file);
        unlink(path);
        free(text);
    }
}

Test(cluster, missing_and_empty_files_are_refused)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_cluster_open("h200-8x8", DIR_, &file, &error), ZIPCCL_ERR_INPUT);
    cr_assert_str_eq(error.text, "no cluster is named \"h200-8x8\"; there are: a100-8x8-200g, "
                                 "h100-8x8-400g, laptop ('zipccl cluster list'). A file is given "
                                 "as ./FILE or FILE.yaml");
    cr_assert_eq(zipccl_cluster_open("h200-8x8.yaml", DIR_, &file, &error), ZIPCCL_ERR_IO);
    cr_assert_eq(zipccl_cluster_open("h200-8x8", "no/folder", &file, &error), ZIPCCL_ERR_IO);
    cr_assert_eq(zipccl_cluster_open("/dev/null", NULL, &file, &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(zipccl_cluster_open(DIR_ "/", NULL, &file, &error), ZIPCCL_ERR_INPUT);
}

/* What is written reads back the same, with the new value and the text that it comes from. */
Test(cluster, what_is_written_reads_back)
{
    static const char *const names[] = {"h100-8x8-400g", "a100-8x8-200g", "laptop"};

    for (size_t i = 0; i < 3; i++) {
        struct zipccl_error error = {""};
        struct zipccl_cluster_file *file = NULL, *again = NULL;
        const struct zipccl_cluster_setting *a, *b;
        static const char quoted[] = "by \"hand\", a\\b: {x}";
        char path[] = "/tmp/zipccl-cluster-XXXXXX";
        FILE *f = fdopen(mkstemp(path), "w");
        size_t n, m;

        cr_assert_eq(zipccl_cluster_open(names[i], DIR_, &file, &error), ZIPCCL_OK);
        cr_assert_eq(zipccl_cluster_put(file, "nic.rate", "59.25MBps", quoted, &error), ZIPCCL_OK);
        cr_assert_eq(zipccl_cluster_set(file, "name=it's \"new\"", &error), ZIPCCL_OK);
        cr_assert_eq(zipccl_cluster_write(file, f, &error), ZIPCCL_OK);
        cr_assert_eq(fclose(f), 0);
        cr_assert_eq(zipccl_cluster_open(path, NULL, &again, &error), ZIPCCL_OK, "%s", error.text);
        a = zipccl_cluster_settings(file, &n);
        b = zipccl_cluster_settings(again, &m);
        cr_assert_eq(n, m);
        for (size_t k = 0; k < n; k++) {
            cr_assert_eq(a[k].text == NULL, b[k].text == NULL);
            if (a[k].text == NULL)
                continue;
            cr_assert_str_eq(a[k].text, b[k].text);
            cr_assert_str_eq(a[k].source, b[k].source);
            if (strcmp(a[k].key, "nic.rate") == 0)
                cr_assert(fabs(b[k].value - 59.25e6) < 1e-3 && strcmp(b[k].source, quoted) == 0);
        }
        zipccl_cluster_close(file);
        zipccl_cluster_close(again);
        unlink(path);
    }
}

Test(cluster, puts_only_what_is_a_value_with_a_source)
{
    struct zipccl_error error = {""};
    struct zipccl_cluster_file *file = NULL;

    cr_assert_eq(zipccl_cluster_open("laptop", DIR_, &file, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_cluster_put(file, "nic.rate", "59", "x", &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(zipccl_cluster_put(file, "nic.rate", "59MBps", " ", &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(zipccl_cluster_put(file, "nic.rate", "59MBps", "a\nb", &error), ZIPCCL_ERR_INPUT);
    cr_assert_eq(zipccl_cluster_put(file, "nic.rat", "59MBps", "x", &error), ZIPCCL_ERR_ARG);
    zipccl_cluster_close(file);
}

Test(cluster, a_file_of_many_bytes_is_not_read)
{
    char path[] = "/tmp/zipccl-cluster-XXXXXX";
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_error error = {""};
    int fd = mkstemp(path);

    cr_assert(fd >= 0 && ftruncate(fd, (off_t)20 << 30) == 0);
    close(fd);
    cr_expect_eq(zipccl_cluster_open(path, NULL, &file, &error), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "21474836480 bytes"), "%s", error.text);
    unlink(path);
}
