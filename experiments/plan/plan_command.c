/*
 * plan_command.c - zipccl plan: what would be chosen for a call, why, and where that flips
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/plan/plan_command.h"

#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/plan/plan_file.h"
#include "experiments/plan/plan_report.h"
#include "experiments/program/program.h"
#include "models/units.h"

#include <errno.h>
#include <string.h>

static const char program[] = "zipccl";

enum {
    MAX_SETS = 64,
    KEY_CSV = 256,
    KEY_COUNT,
    KEY_RANKS,
    KEY_PER_NODE,
    KEY_REDOP,
    KEY_ROOT,
    KEY_STAGING,
    KEY_PRINT,
    KEY_STATE,
    KEY_CLUSTER_DIR
};
enum { FILE_JSON, FILE_CSV, FILE_STEPS, NUM_FILES };

struct options {
    const char *op, *cluster, *cluster_dir, *state, *sets[MAX_SETS], *files[NUM_FILES];
    size_t nsets;
    bool count, ranks, per_node, dtype, redop, root, mode, staging, print; /* given */
    struct zipccl_plan_query query;
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "The call:", 1},
    {"count", KEY_COUNT, "N", 0,
     "elements, as the collective's argument: all_gather what a rank sends, reduce_scatter what it "
     "receives, alltoall, alltoallv and sendrecv of a pair, all_reduce and broadcast all",
     1},
    {"dtype", 'd', "TYPE", 0, "bf16 (default), fp16, fp32, fp8_e4m3, int32, ...", 1},
    {"redop", KEY_REDOP, "OP", 0, "of a reduction: sum (default), avg, prod, max, min", 1},
    {"root", KEY_ROOT, "RANK", 0, "of a broadcast (default 0)", 1},
    {"mode", 'm', "MODE", 0, "raw, compressed or adaptive (default)", 1},
    {"ratio", 'r', "X", 0, "what messages shrink by, 1 to 8; default: Gaussian data", 1},
    {"input", 'i', "FILE", 0, "the same from the tensors of that type in a .safetensors file", 1},
    {"state", KEY_STATE, "FILE", 0,
     "also tell what a real run has learnt of this call: one rank's file of --state-save", 1},
    {"max-staging", KEY_STAGING, "BYTES", 0, "bound of staging memory (default 256MiB)", 1},
    {NULL, 0, NULL, 0, "Where:", 2},
    {"cluster", 'c', "NAME|FILE", 0, "bundled cluster ('zipccl cluster list') or a YAML file", 2},
    {"ranks", KEY_RANKS, "R", 0, "ranks, filling node after node (default: all of the cluster)", 2},
    {"ranks-per-node", KEY_PER_NODE, "K", 0, "ranks of a node (default: its GPUs)", 2},
    {"set", 's', "KEY=VALUE", 0, "override a key of the cluster; may repeat", 2},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"print", KEY_PRINT, NULL, 0, "also the steps of the plan that is chosen", 3},
    {"json", 'J', "FILE", 0,
     "the answer as JSON, schema zipccl.plan; '-' is standard output, where the table then is left "
     "out",
     3},
    {"csv", KEY_CSV, "FILE", 0, "the candidates as CSV", 3},
    {"output", 'o', "FILE", 0,
     "the plan that is chosen with all of its steps, schema zipccl.plan_steps, for 'zipccl perf OP "
     "--plan FILE'",
     3},
    {0}};

static const char doc[] =
    "What would be chosen for a collective, and why: every candidate with its predicted time, the "
    "best uncompressed one, and the message sizes at which the choice flips. Times are those of "
    "the cost model T0 that the library chooses by; 'zipccl replay' simulates."
    "\vExamples:\n"
    "  zipccl plan all_gather --count 16777216 --cluster a100-8x8-200g\n"
    "  zipccl plan alltoall --count 262144 --cluster a100-8x8-200g --ranks 16 --print\n"
    "  zipccl plan all_gather --count 1048576 --cluster laptop --ranks 8 -o gather.json\n"
    "  zipccl plan all_reduce --count 8388608 --cluster laptop --input model.safetensors";

static int once(const char *option, bool *given)
{
    if (*given) {
        zipccl_usage_error(program, "plan: %s is given twice", option);
        return -1;
    }
    *given = true;
    return 0;
}

static int set_text(const char *option, const char **slot, const char *text)
{
    bool given = *slot != NULL;

    if (once(option, &given) != 0)
        return -1;
    *slot = text;
    return 0;
}

static int set_number(const char *option, bool *given, const char *text, enum zipccl_unit unit,
                      double least, double most, double *out)
{
    struct zipccl_error error = {""};

    if (once(option, given) != 0)
        return -1;
    if (zipccl_parse_quantity(text, unit, least, most, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(program, "plan: %s: %s", option, error.text);
    return -1;
}

static int set_mode(struct options *o, const char *text)
{
    if (once("--mode", &o->mode) != 0)
        return -1;
    for (int i = 0; i <= ZIPCCL_MODE_ADAPTIVE; i++)
        if (strcmp(text, zipccl_plan_mode_names[i]) == 0) {
            o->query.mode = (enum zipccl_mode)i;
            return 0;
        }
    zipccl_usage_error(program, "plan: --mode '%s': expected raw, compressed or adaptive", text);
    return -1;
}

static int set_dtype(struct options *o, const char *text)
{
    if (once("--dtype", &o->dtype) != 0)
        return -1;
    if (zipccl_dtype_parse(text, &o->query.call.dtype))
        return 0;
    zipccl_usage_error(program, "plan: --dtype '%s': no such type; bf16, fp32 and int32 are some",
                       text);
    return -1;
}

static int set_redop(struct options *o, const char *text)
{
    if (once("--redop", &o->redop) != 0)
        return -1;
    if (zipccl_redop_parse(text, &o->query.call.redop))
        return 0;
    zipccl_usage_error(program, "plan: --redop '%s': expected sum, avg, prod, max or min", text);
    return -1;
}

static int add_set(struct options *o, const char *text)
{
    if (o->nsets == MAX_SETS) {
        zipccl_usage_error(program, "plan: more than %d --set options", MAX_SETS);
        return -1;
    }
    o->sets[o->nsets++] = text;
    return 0;
}

static int set_quantity(struct options *o, int key, const char *arg)
{
    bool ratio = o->query.ratio > 0;
    double x = 0;
    int failed;

    switch (key) {
    case KEY_COUNT:
        failed = set_number("--count", &o->count, arg, ZIPCCL_UNIT_COUNT, 1, 0x1p50, &x);
        o->query.call.count = (size_t)x;
        return failed;
    case KEY_RANKS:
        failed = set_number("--ranks", &o->ranks, arg, ZIPCCL_UNIT_COUNT, 1, 65536, &x);
        o->query.nranks = (uint32_t)x;
        return failed;
    case KEY_PER_NODE:
        failed = set_number("--ranks-per-node", &o->per_node, arg, ZIPCCL_UNIT_COUNT, 1, 65536, &x);
        o->query.ranks_per_node = (uint32_t)x;
        return failed;
    case KEY_ROOT:
        failed = set_number("--root", &o->root, arg, ZIPCCL_UNIT_COUNT, 0, 65535, &x);
        o->query.call.root = (uint32_t)x;
        return failed;
    case KEY_STAGING:
        failed = set_number("--max-staging", &o->staging, arg, ZIPCCL_UNIT_BYTES, 1, 0x1p50, &x);
        o->query.max_staging_bytes = (size_t)x;
        return failed;
    default:
        failed = set_number("--ratio", &ratio, arg, ZIPCCL_UNIT_NONE, 1, 8, &x);
        o->query.ratio = o->query.worst = x;
        return failed;
    }
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    int failed;

    switch (key) {
    case 'd': failed = set_dtype(o, arg); break;
    case KEY_REDOP: failed = set_redop(o, arg); break;
    case 'm': failed = set_mode(o, arg); break;
    case 'i': failed = set_text("--input", &o->query.input, arg); break;
    case 'c': failed = set_text("--cluster", &o->cluster, arg); break;
    case 's': failed = add_set(o, arg); break;
    case KEY_CLUSTER_DIR: failed = set_text("--cluster-dir", &o->cluster_dir, arg); break;
    case KEY_STATE: failed = set_text("--state", &o->state, arg); break;
    case 'J': failed = set_text("-J", &o->files[FILE_JSON], arg); break;
    case KEY_CSV: failed = set_text("--csv", &o->files[FILE_CSV], arg); break;
    case 'o': failed = set_text("-o", &o->files[FILE_STEPS], arg); break;
    case KEY_PRINT:
        o->print = true;
        failed = 0;
        break;
    case KEY_COUNT:
    case KEY_RANKS:
    case KEY_PER_NODE:
    case KEY_ROOT:
    case KEY_STAGING:
    case 'r': failed = set_quantity(o, key, arg); break;
    case ARGP_KEY_ARG:
        if (o->op != NULL)
            zipccl_usage_error(program, "plan: unexpected argument '%s'", arg);
        failed = o->op != NULL ? -1 : 0;
        o->op = arg;
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return failed != 0 ? ECANCELED : 0;
}

static int check_op(struct options *o)
{
    const char *names[ZIPCCL_NUM_OPS + 1] = {NULL}, *nearest;

    if (o->op == NULL)
        return zipccl_usage_error(program, "plan: name a collective, such as all_gather");
    if (zipccl_op_parse(o->op, &o->query.call.op))
        return ZIPCCL_EXIT_OK;
    for (int i = 0; i < ZIPCCL_NUM_OPS; i++)
        names[i] = zipccl_op_name((enum zipccl_op)i);
    nearest = zipccl_nearest_name(o->op, names);
    return zipccl_usage_error(program, "plan: unknown collective '%s'; %s%s%s", o->op,
                              nearest != NULL ? "did you mean '"
                                              : "expected all_gather, reduce_scatter, all_reduce, "
                                                "alltoall, alltoallv, sendrecv or broadcast",
                              nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
}

static int check_options(struct options *o)
{
    const struct zipccl_call *call = &o->query.call;
    bool reduces;
    int code = check_op(o);

    if (code != ZIPCCL_EXIT_OK)
        return code;
    reduces = zipccl_is_reduction(call->op);
    if (!o->count)
        return zipccl_usage_error(program, "plan: no --count given");
    if (o->cluster == NULL)
        return zipccl_usage_error(program,
                                  "plan: no --cluster given; 'zipccl cluster list' names some");
    if (o->redop && !reduces)
        return zipccl_usage_error(program, "plan: --redop is for reductions, not %s", o->op);
    if (o->root && call->op != ZIPCCL_BROADCAST)
        return zipccl_usage_error(program, "plan: --root is for broadcast, not %s", o->op);
    if (o->query.input != NULL && o->query.ratio > 0)
        return zipccl_usage_error(program, "plan: --ratio and --input exclude each other");
    if ((o->query.input != NULL || o->query.ratio > 0) && !zipccl_dtype_compressible(call->dtype))
        return zipccl_usage_error(program, "plan: %s travels raw and has no ratio",
                                  zipccl_dtype_name(call->dtype));
    return ZIPCCL_EXIT_OK;
}

static zipccl_status check_outputs(const struct options *o, const struct zipccl_cluster_file *file,
                                   struct zipccl_output *outputs, struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], o->files[i], error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], zipccl_cluster_path(file), error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], o->query.input, error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], o->state, error));
    }
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_differ(&outputs[i], &outputs[(i + 1) % NUM_FILES], error));
    return ZIPCCL_OK;
}

static zipccl_status write_one(const struct zipccl_plan_report *report, int which, FILE *out,
                               struct zipccl_error *error)
{
    switch (which) {
    case FILE_JSON: return zipccl_plan_json(report, out, error);
    case FILE_CSV: return zipccl_plan_csv(report, out, error);
    default:
        return zipccl_plan_file_write(report->answer->plan, report->answer->nnodes, out, error);
    }
}

static zipccl_status write_files(const struct zipccl_plan_report *report,
                                 struct zipccl_output *outputs, struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
        if (outputs[i].file != NULL)
            ZIPCCL_TRY(zipccl_output_named(&outputs[i],
                                           write_one(report, i, outputs[i].file, error), error));
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    }
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}

static zipccl_status answer(struct options *o, const struct zipccl_cluster_file *file,
                            struct zipccl_output *outputs, struct zipccl_error *error)
{
    struct zipccl_cluster cluster;
    struct zipccl_plan_answer found = {0};
    struct zipccl_plan_learnt learnt = {.path = NULL};
    struct zipccl_plan_report report = {&o->query, &found, &cluster, file,
                                        o->state != NULL ? &learnt : NULL};
    bool table = true;
    zipccl_status status;

    ZIPCCL_TRY(check_outputs(o, file, outputs, error));
    ZIPCCL_TRY(zipccl_cluster_get(file, &cluster, error));
    if (o->query.input != NULL)
        ZIPCCL_TRY(zipccl_plan_measure_ratio(&o->query, error));
    status = zipccl_plan_ask(&o->query, &cluster, &found, error);
    if (status == ZIPCCL_OK && o->state != NULL)
        status = zipccl_plan_learnt_read(o->state, o->query.call.op, o->query.call.dtype,
                                         o->query.call.count, found.nranks, &learnt, error);
    if (status == ZIPCCL_OK)
        status = write_files(&report, outputs, error);
    for (int i = 0; i < NUM_FILES; i++)
        table = table && !outputs[i].standard;
    if (status == ZIPCCL_OK && table)
        zipccl_plan_print_answer(&report, o->print, stdout);
    zipccl_plan_learnt_release(&learnt);
    zipccl_plan_answer_release(&found);
    return status;
}

static zipccl_status run(struct options *o, struct zipccl_error *error)
{
    struct zipccl_output outputs[NUM_FILES] = {{.path = NULL}};
    struct zipccl_cluster_file *file;
    char folder[4096];
    zipccl_status status;

    ZIPCCL_TRY(zipccl_cluster_folder(o->cluster_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_cluster_open_with(o->cluster, folder, o->sets, o->nsets, &file, error));
    status = answer(o, file, outputs, error);
    for (int i = 0; i < NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    zipccl_cluster_close(file);
    return status;
}

int zipccl_plan_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "OP", doc, NULL, NULL, NULL};
    struct options options = {.query = {.call = {.dtype = ZIPCCL_BFLOAT16, .redop = ZIPCCL_SUM},
                                        .mode = ZIPCCL_MODE_ADAPTIVE,
                                        .max_staging_bytes = (size_t)256 << 20}};
    struct zipccl_error error = {""};
    zipccl_status status;
    bool helped;
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl plan", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    code = check_options(&options);
    if (code != ZIPCCL_EXIT_OK)
        return code;
    status = run(&options, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
