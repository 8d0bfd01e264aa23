/*
 * test_import_chakra.c - Chakra execution traces: protobuf and JSON, groups, graphs, public files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <traces/chakra.pb-c.h>
#include "traces/import_chakra.h"
#include "traces/tests/expected.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

TestSuite(import_chakra, .fini = scratch_remove);

static struct zipccl_import_report report;
static struct zipccl_error error;

/* A .et file while it is made. */
static unsigned char bytes[65536];
static size_t nbytes;

static void put_length(size_t n)
{
    for (; n >= 0x80; n >>= 7)
        bytes[nbytes++] = (unsigned char)(n | 0x80);
    bytes[nbytes++] = (unsigned char)n;
}

static void begin(void)
{
    Zipccl__ChakraMetadata m = ZIPCCL__CHAKRA_METADATA__INIT;

    m.version = (char *)"0.0.4";
    nbytes = 0;
    put_length(zipccl__chakra_metadata__get_packed_size(&m));
    nbytes += zipccl__chakra_metadata__pack(&m, bytes + nbytes);
}

struct attribute {
    const char *name;
    int64_t number; /* or */
    const char *text;
};

/* A node that depends on up to two others (0: none); attributes end with one without a name. */
static void put(uint64_t id, uint32_t type, uint64_t us, uint64_t dep, uint64_t dep2,
                const char *types, const struct attribute *attributes)
{
    Zipccl__ChakraNode node = ZIPCCL__CHAKRA_NODE__INIT;
    Zipccl__ChakraTensors inputs = ZIPCCL__CHAKRA_TENSORS__INIT;
    Zipccl__ChakraAttribute attr[8], *list[8];

    node.id = id;
    node.type = type;
    node.name = (char *)(type == CHAKRA_COLL ? "ncclKernel_Sum_x" : "x");
    node.duration_micros = us;
    node.ctrl_deps = &dep;
    node.n_ctrl_deps = dep > 0;
    node.data_deps = &dep2;
    node.n_data_deps = dep2 > 0;
    inputs.types = (char *)types;
    node.inputs = types != NULL ? &inputs : NULL;
    node.attr = list;
    for (; attributes != NULL && attributes->name != NULL; attributes++) {
        Zipccl__ChakraAttribute *a = list[node.n_attr] = &attr[node.n_attr];

        zipccl__chakra_attribute__init(a);
        a->name = (char *)attributes->name;
        /* Files differ in which integer a number is. */
        a->value_case = attributes->text != NULL ? ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_STRING_VAL
                        : node.n_attr % 3 == 0   ? ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT64_VAL
                        : node.n_attr % 3 == 1   ? ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_UINT64_VAL
                                                 : ZIPCCL__CHAKRA_ATTRIBUTE__VALUE_INT32_VAL;
        if (attributes->text != NULL)
            a->string_val = (char *)attributes->text;
        else if (node.n_attr % 3 == 0)
            a->int64_val = attributes->number;
        else if (node.n_attr % 3 == 1)
            a->uint64_val = (uint64_t)attributes->number;
        else
            a->int32_val = (int32_t)attributes->number;
        node.n_attr++;
    }
    put_length(zipccl__chakra_node__get_packed_size(&node));
    nbytes += zipccl__chakra_node__pack(&node, bytes + nbytes);
}

#define COLL(type, size, ...)                                                                      \
    (const struct attribute[])                                                                     \
    {                                                                                              \
        {"comm_type", type, NULL}, {"comm_size", size, NULL}, __VA_ARGS__                          \
        {                                                                                          \
            NULL, 0, NULL                                                                          \
        }                                                                                          \
    }

static const char *save(char path[SCRATCH_PATH], const char *name)
{
    return scratch_write(path, name, bytes, nbytes);
}

static zipccl_status try_import(const char *const *paths, size_t n, uint32_t nranks,
                                struct zipccl_trace **trace)
{
    struct zipccl_import_options options;

    zipccl_import_options_init(&options);
    options.nranks = nranks;
    *trace = NULL;
    zipccl_import_report_free(&report);
    error.text[0] = '\0';
    return zipccl_import_to_memory(NULL, paths, n, &options, &report, trace, &error);
}

static struct zipccl_trace *import(const char *const *paths, size_t n, uint32_t nranks)
{
    struct zipccl_trace *trace;

    cr_assert_eq(try_import(paths, n, nranks, &trace), ZIPCCL_OK, "%s", error.text);
    cr_expect_str_eq(report.format, "chakra");
    return trace;
}

Test(import_chakra, sizes_are_of_what_a_rank_puts_in)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_trace *t;
    static const uint64_t counts[] = {400, 400, 100, 100, 400, 1};

    begin();
    put(1, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_ALL_GATHER, 800, ));
    put(2, CHAKRA_COLL, 0, 0, 0, "['GenericList[Tensor(c10::BFloat16)]']",
        COLL(CHAKRA_ALL_GATHER, 800, ));
    put(3, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_REDUCE_SCATTER, 800, ));
    put(4, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_ALL_TO_ALL, 800, ));
    put(5, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_ALL_REDUCE, 800, ));
    put(6, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_BARRIER, 0, ));
    put(7, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_GATHER, 800, ));
    put(8, CHAKRA_COLL, 5, 0, 0, NULL, NULL);
    save(path, "x.0.et");
    t = import(paths, 1, 4);
    cr_assert_eq(t->nevents, 7);
    for (size_t i = 0; i < 6; i++)
        cr_expect_eq(t->events[i].count, counts[i], "%zu", i);
    cr_expect_eq(t->events[6].kind, ZIPCCL_EVENT_COMMUNICATION, "known by its time alone");
    cr_expect_eq(expected_counted(&report, "dtype"), 4, "the second is told, a barrier has none");
    cr_expect_eq(expected_counted(&report, "gather size"), 1);
    cr_expect_eq(expected_counted(&report, "other op"), 1);
    cr_expect_eq(expected_counted(&report, "no size"), 1);
    zipccl_trace_destroy(t);
}

/* compute 1 -> call 2 -> compute 3, and compute 4 that depends on 1 alone; 5 waits for a call. */
Test(import_chakra, dependencies_become_those_of_calls_and_compute)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_trace *t;

    begin();
    put(1, CHAKRA_COMP, 10, 0, 0, NULL, NULL);
    put(2, CHAKRA_COLL, 7, 1, 0, NULL, COLL(CHAKRA_ALL_REDUCE, 800, {"dtype", 0, "fp32"}, ));
    put(9, CHAKRA_COMP, 3, 2, 0, NULL, (const struct attribute[]){{"is_cpu_op", 1, NULL}, {0}});
    put(4, CHAKRA_COMP, 20, 1, 0, NULL, NULL);
    put(3, CHAKRA_COMP, 30, 9, 0, NULL, NULL);
    put(5, CHAKRA_SEND, 0, 2, 0, NULL,
        (const struct attribute[]){{"comm_size", 64, NULL}, {"comm_dst", 1, NULL}, {0}});
    save(path, "x.0.et");
    t = import(paths, 1, 4);
    cr_assert_eq(t->nevents, 5);
    cr_expect_float_eq(t->events[0].duration_s, 10e-6, 1e-12);
    cr_expect(t->events[1].duration_s > 19e-6 && t->events[1].ndeps == 0, "runs beside the call");
    cr_expect(t->events[2].op == ZIPCCL_ALL_REDUCE && t->events[2].dtype == ZIPCCL_FLOAT32);
    cr_expect(t->events[2].ndeps == 1 && t->events[2].deps[0] == t->events[0].id);
    cr_expect_float_eq(t->events[2].recorded_s, 7e-6, 1e-12);
    cr_expect(t->events[3].op == ZIPCCL_SENDRECV && t->events[3].deps[0] == t->events[2].id);
    cr_expect(t->events[4].ndeps == 1 && t->events[4].deps[0] == t->events[2].id,
              "through what the host does");
    zipccl_trace_destroy(t);
}

Test(import_chakra, sends_and_receives_are_pairs_and_wait_for_calls)
{
    char p[2][SCRATCH_PATH];
    const char *paths[] = {p[0], p[1]};
    struct zipccl_trace *t;

    for (int r = 0; r < 2; r++) {
        const struct attribute to[] = {{"comm_size", 64, NULL}, {"comm_dst", 1, NULL}, {0}};
        const struct attribute from[] = {{"comm_size", 64, NULL}, {"comm_src", 0, NULL}, {0}};

        begin();
        put(1, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_ALL_REDUCE, 800, {"pg_name", 0, "7"}, ));
        put(2, r == 0 ? CHAKRA_SEND : CHAKRA_RECV, 0, 1, 0, NULL, r == 0 ? to : from);
        save(p[r], r == 0 ? "x.0.et" : "x.1.et");
    }
    t = import(paths, 2, 0);
    cr_assert_eq(t->nevents, 2);
    cr_expect(t->events[1].op == ZIPCCL_SENDRECV && t->events[1].count == 32);
    cr_expect(t->events[1].pairs[0].src == 0 && t->events[1].pairs[0].dst == 1);
    cr_expect(t->events[1].ndeps == 1 && t->events[1].deps[0] == t->events[0].id);
    cr_expect_neq(t->events[0].stream, t->events[1].stream, "two groups by name");
    zipccl_trace_destroy(t);
}

Test(import_chakra, groups_come_from_the_file_beside)
{
    static const char groups[] = "{ \"3\": [0, 2],\n \"4\": [1, 3] }";
    char p[3][SCRATCH_PATH];
    const char *paths[] = {p[0], p[1], p[2]};
    struct zipccl_trace *t;

    scratch_write(p[0], "comm_group.json", groups, strlen(groups));
    for (int r = 0; r < 2; r++) {
        begin();
        put(1, CHAKRA_COLL, 0, 0, 0, NULL,
            COLL(CHAKRA_ALL_GATHER, 800, {"pg_name", 0, r == 0 ? "3" : "4"}, ));
        save(p[1 + r], r == 0 ? "x.0.et" : "x.1.et");
    }
    t = import(paths, 3, 0);
    cr_expect_eq(t->header.nranks, 4);
    cr_assert_eq(t->nevents, 1);
    cr_expect_eq(t->events[0].count, 400);
    cr_expect_eq(t->header.groups[0].ranks[1], 2);
    cr_expect_eq(t->header.groups[0].nparts, 2);
    zipccl_trace_destroy(t);
    cr_expect_eq(try_import(paths, 1, 4, &t), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "groups alone"), "%s", error.text);
}

Test(import_chakra, json_and_gzip_are_the_same)
{
    static const char text[] =
        "{\"workload_graph\":[{\"Id\":1,\"Name\":\"k_Sum_\",\"NodeType\":7,\"ctrlDeps\":[2],"
        "\"runtime\":7,\"is_cpu_op\":false,\"comm_type\":0,\"comm_size\":800},{\"Id\":2,"
        "\"NodeType\":4,\"runtime\":10}],\"ngpus\":4}";
    char a[SCRATCH_PATH], b[SCRATCH_PATH];
    const char *paths[] = {a}, *packed[] = {b};
    struct zipccl_trace *x, *y;
    gzFile file;

    scratch_write(a, "x.0.json", text, strlen(text));
    x = import(paths, 1, 0);
    begin();
    put(1, CHAKRA_COLL, 7, 2, 0, NULL, COLL(CHAKRA_ALL_REDUCE, 800, ));
    put(2, CHAKRA_COMP, 10, 0, 0, NULL, NULL);
    file = gzopen(scratch_path(b, "x.0.et.gz"), "wb");
    cr_assert_eq(gzwrite(file, bytes, (unsigned)nbytes), (int)nbytes);
    gzclose(file);
    y = import(packed, 1, 4);
    cr_assert(x->nevents == 2 && y->nevents == 2);
    for (size_t i = 0; i < 2; i++)
        cr_expect(x->events[i].kind == y->events[i].kind &&
                  x->events[i].duration_s == y->events[i].duration_s &&
                  (i == 0 || x->events[i].count == y->events[i].count));
    cr_expect_eq(x->header.nranks, 4);
    zipccl_trace_destroy(x);
    zipccl_trace_destroy(y);
}

static void refused(const char *name, uint32_t nranks, const char *found)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {save(path, name)};
    struct zipccl_trace *trace;

    zipccl_import_report_free(&report);
    cr_expect_eq(try_import(paths, 1, nranks, &trace), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, found), "%s", error.text);
}

Test(import_chakra, wrong_files_are_refused)
{
    begin();
    put(1, CHAKRA_COLL, 0, 0, 0, NULL, COLL(CHAKRA_ALL_REDUCE, 800, ));
    refused("x.0.et", 0, "the file of one rank, and no groups");
    put(1, CHAKRA_COMP, 5, 0, 0, NULL, NULL);
    refused("x.0.et", 4, "node 2 has the id 1 of node 1");
    nbytes -= 2;
    refused("x.0.et", 4, "message 2: the end of the file inside a message");
    memset(bytes + 40, 0xff, 20);
    refused("x.0.et", 4, "message 1: no node of Chakra");
    begin();
    refused("x.0.et", 4, "0 nodes, none of them communication");
    put(1, CHAKRA_COMP, 5, 0, 0, NULL, NULL);
    refused("x.0.et", 4, "convert with chakra_converter");
    nbytes = 0;
    refused("x.0.et", 4, "an empty file");
    nbytes = (size_t)sprintf((char *)bytes, "{\"workload_graph\":[{\"Id\":-1}]}");
    refused("x.0.json", 4, ":1: a node without");
    nbytes = (size_t)sprintf((char *)bytes, "{\"1\":[0,-1]}");
    refused("comm_group.json", 4, "a rank");
}

Test(import_chakra, cycles_and_missing_nodes_are_counted)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_trace *t;

    begin();
    put(1, CHAKRA_COMP, 5, 2, 0, NULL, NULL);
    put(2, CHAKRA_COLL, 0, 1, 77, NULL, COLL(CHAKRA_ALL_REDUCE, 800, ));
    put(3, CHAKRA_COMP, 5, 3, 0, NULL, NULL);
    save(path, "x.0.et");
    t = import(paths, 1, 2);
    cr_expect_eq(t->nevents, 2);
    cr_expect_eq(expected_counted(&report, "cycles"), 1);
    cr_expect_eq(expected_counted(&report, "missing nodes"), 1);
    zipccl_trace_destroy(t);
}

/* Nodes and bytes by type of a public file. */
static void compare(const char *name)
{
    static const char *const types[CHAKRA_TYPES] = {"INVALID",   "METADATA", "MEM_LOAD",
                                                    "MEM_STORE", "COMP",     "COMM_SEND",
                                                    "COMM_RECV", "COMM_COLL"};
    yajl_val expected = expected_of(name), counts = expected_get(expected, "types", yajl_t_object);
    yajl_val sums = expected_get(expected, "bytes", yajl_t_object);
    struct zipccl_import_options options;
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_importer importer = {paths, 1, "", &options, &report, &error};
    struct chakra_file f = {.importer = &importer, .path = path, .world = -1};
    double us = 0;

    snprintf(path, sizeof path, "%s/%s", expected_folder(), name);
    cr_assert_eq(chakra_read_protobuf(&f), ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(f.nnodes, expected_uint(expected, "nodes"));
    for (size_t i = 0; i < f.nnodes; i++)
        us += f.nodes[i].duration_us;
    cr_expect_eq(us, (double)expected_uint(expected, "dur_us"));
    for (size_t k = 0; k < counts->u.object.len; k++) {
        uint64_t n = 0;

        for (size_t i = 0; i < f.nnodes; i++)
            n += strcmp(types[f.nodes[i].type], counts->u.object.keys[k]) == 0;
        cr_expect_eq(n, YAJL_GET_DOUBLE(counts->u.object.values[k]));
    }
    for (size_t k = 0; k < sums->u.object.len; k++) {
        int64_t sum = 0;

        for (size_t i = 0; i < f.nnodes; i++) {
            const struct chakra_node *n = &f.nodes[i];
            char key[40];

            snprintf(key, sizeof key, "%s:%d", types[n->type],
                     n->type == CHAKRA_COLL ? (int)n->comm : n->type);
            sum += strcmp(key, sums->u.object.keys[k]) == 0 ? n->nbytes : 0;
        }
        cr_expect_eq(sum, YAJL_GET_DOUBLE(sums->u.object.values[k]));
    }
    chakra_file_free(&f);
}

Test(import_chakra, public_files_are_as_expected)
{
    char p[8][SCRATCH_PATH];
    const char *paths[8];
    struct zipccl_trace *t;

    for (int r = 0; r < 8; r++) {
        char name[80];

        snprintf(name, sizeof name, "chakra_astra/all_reduce_8npus_1MB/all_reduce.%d.et", r);
        compare(name);
        snprintf(p[r], SCRATCH_PATH, "%s/%s", expected_folder(), name);
        paths[r] = p[r];
    }
    t = import(paths, 8, 0);
    cr_assert(t->nevents == 1 && t->header.nranks == 8);
    cr_expect_eq(t->events[0].count * 2, 1048576);
    zipccl_trace_destroy(t);
    for (int r = 0; r < 2; r++) {
        char name[80];

        snprintf(name, sizeof name, "chakra_astra/custom_ring/custom_allreduce.%d.et", r);
        compare(name);
        snprintf(p[r], SCRATCH_PATH, "%s/%s", expected_folder(), name);
    }
    t = import(paths, 2, 8);
    cr_expect_gt(t->nevents, 14);
    zipccl_trace_destroy(t);
}
