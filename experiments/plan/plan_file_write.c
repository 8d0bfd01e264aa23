/*
 * plan_file_write.c - a plan as JSON, schema "zipccl.plan_steps"
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/json_put.h"
#include "experiments/plan/plan_file.h"
#include "experiments/plan/plan_file_fields.h"

#include <inttypes.h>
#include <string.h>

static void put_fields(yajl_gen gen, const void *from, const struct plan_field *fields)
{
    for (const struct plan_field *f = fields; f->name != NULL; f++) {
        uint64_t value = plan_field_get(from, f);

        if (f->words != NULL) {
            zipccl_put_string(gen, f->name, f->words[value]);
        } else if (f->none && value > f->most) {
            zipccl_put_key(gen, f->name);
            yajl_gen_null(gen);
        } else {
            zipccl_put_integer(gen, f->name, value);
        }
    }
}

static void put_step(yajl_gen gen, const struct zipccl_step *step)
{
    yajl_gen_map_open(gen);
    put_fields(gen, step, plan_step_fields);
    zipccl_put_key(gen, "after");
    yajl_gen_array_open(gen);
    for (uint32_t d = 0; d < step->ndeps; d++)
        yajl_gen_integer(gen, step->deps[d]);
    yajl_gen_array_close(gen);
    for (int i = 0; i < PLAN_NUM_PLACES; i++) {
        zipccl_put_key(gen, plan_place_names[i].name);
        yajl_gen_map_open(gen);
        put_fields(gen, (const char *)step + plan_place_names[i].offset, plan_place_fields);
        yajl_gen_map_close(gen);
    }
    yajl_gen_map_close(gen);
}

zipccl_status zipccl_plan_file_write(const struct zipccl_plan *plan, uint32_t nodes, FILE *out,
                                     struct zipccl_error *error)
{
    yajl_gen gen;
    char digest[20];

    ZIPCCL_TRY(zipccl_json_start("plan", out, &gen, error));
    snprintf(digest, sizeof digest, "%016" PRIx64, zipccl_plan_digest(plan));
    yajl_gen_config(gen, yajl_gen_indent_string, " "); /* there may be many steps */
    yajl_gen_map_open(gen);
    zipccl_put_schema(gen, ZIPCCL_PLAN_FILE_SCHEMA, ZIPCCL_PLAN_FILE_VERSION);
    zipccl_put_string(gen, "digest", digest);
    zipccl_put_string(gen, "strategy", plan->strategy);
    zipccl_put_integer(gen, "nodes", nodes);
    put_fields(gen, plan, plan_fields);
    zipccl_put_key(gen, "steps");
    yajl_gen_array_open(gen);
    for (uint32_t i = 0; i < plan->nsteps; i++)
        put_step(gen, &plan->steps[i]);
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
    return zipccl_json_end(gen, "plan", out, error);
}
