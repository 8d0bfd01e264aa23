/*
 * import_simai_header.c - words and numbers, and line 1 of a SimAI workload
 *
 * Keys come with or without a colon ("pp_comm 50331648", "pp_comm: 25165824.0"), in any order;
 * old files have few of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    int mode; /* enum simai_mode; -1: groups depend on SimAI's topology, not read */
} modes[] = {
    {"HYBRID_TRANSFORMER_FWD_IN_BCKWD", SIMAI_MODE_TRANSFORMER},
    {"HYBRID_TRANSFORMER", SIMAI_MODE_TRANSFORMER},
    {"MICRO", SIMAI_MODE_MICRO},
    {"DATA", SIMAI_MODE_DATA},
    {"MODEL", SIMAI_MODE_MODEL},
    {"DISTRIBUTED_INFERENCE", SIMAI_MODE_INFERENCE},
    {"HYBRID_DATA_MODEL", -1},
    {"HYBRID_MODEL_DATA", -1},
    {"HYBRID_DLRM", -1},
    {"HYBRID_DLRM_ENHANCED", -1},
    {"HYBRID_CUSTOMIZED", -1},
};

#define NMODES (sizeof modes / sizeof modes[0])

enum {
    KEY_TP,
    KEY_EP,
    KEY_PP,
    KEY_VPP,
    KEY_GA,
    KEY_WORLD,
    KEY_PP_COMM,
    KEY_CHECK,
    KEY_INIT,
    NKEYS
};

static const struct {
    const char *name;
    int key;
} keys[] = {
    {"model_parallel_NPU_group", KEY_TP},
    {"tp", KEY_TP},
    {"expert_parallel_npu_group", KEY_EP},
    {"ep", KEY_EP},
    {"pp", KEY_PP},
    {"vpp", KEY_VPP},
    {"ga", KEY_GA},
    {"all_gpus", KEY_WORLD},
    {"pp_comm", KEY_PP_COMM},
    {"checkpoints", KEY_CHECK},
    {"checkpoint_initiates", KEY_INIT},
};

struct zipccl_place simai_place(const struct simai_workload *w)
{
    return (struct zipccl_place){w->importer->paths[0], w->line, w->importer->error};
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool simai_next_token(struct simai_token *line, struct simai_token *out)
{
    while (line->n > 0 && is_space(*line->p)) {
        line->p++;
        line->n--;
    }
    out->p = line->p;
    out->n = 0;
    while (out->n < line->n && !is_space(out->p[out->n]))
        out->n++;
    line->p += out->n;
    line->n -= out->n;
    return out->n > 0;
}

const char *simai_quote(char out[ZIPCCL_QUOTE_SIZE], struct simai_token token)
{
    char text[ZIPCCL_QUOTE_SIZE * 2];
    size_t n = token.n < sizeof text - 1 ? token.n : sizeof text - 1;

    for (size_t i = 0; i < n; i++)
        text[i] = token.p[i] == '\0' ? '?' : token.p[i];
    text[n] = '\0';
    return zipccl_quote(out, text);
}

zipccl_status simai_number(const struct simai_workload *w, struct simai_token token,
                           const char *name, double *exact, uint64_t *out, bool *rounded)
{
    struct zipccl_place at = simai_place(w);
    char quoted[ZIPCCL_QUOTE_SIZE], text[40] = "", *end = text;
    double value = -1;

    if (token.n < sizeof text) {
        memcpy(text, token.p, token.n);
        /* strtod() also knows hexadecimal, inf and nan, and would stop at a NUL. */
        if (strspn(text, "0123456789.eE+-") == token.n && (text[0] == '.' || text[0] >= '0'))
            value = strtod(text, &end);
    }
    if (end == text || *end != '\0' || !(value >= 0) || value > (double)ZIPCCL_JSON_MAX_INTEGER)
        return zipccl_place_fail(&at, "%s is %s, expected a number from 0 to 2^53", name,
                                 simai_quote(quoted, token));
    if (exact != NULL)
        *exact = value;
    if (out != NULL)
        *out = (uint64_t)ceil(value);
    if (rounded != NULL)
        *rounded = ceil(value) != value;
    return ZIPCCL_OK;
}

static bool token_is(struct simai_token token, const char *word)
{
    return strlen(word) == token.n && strncasecmp(word, token.p, token.n) == 0;
}

bool simai_mode_known(struct simai_token token)
{
    for (size_t i = 0; i < NMODES; i++)
        if (token_is(token, modes[i].name))
            return true;
    return false;
}

static zipccl_status read_mode(struct simai_workload *w, struct simai_token token)
{
    struct zipccl_place at = simai_place(w);
    char quoted[ZIPCCL_QUOTE_SIZE];

    for (size_t i = 0; i < NMODES; i++) {
        if (!token_is(token, modes[i].name))
            continue;
        w->mode_name = modes[i].name;
        if (modes[i].mode >= 0) {
            w->mode = (enum simai_mode)modes[i].mode;
            return ZIPCCL_OK;
        }
        zipccl_place_fail(&at,
                          "mode %s, whose groups depend on SimAI's topology file, expected "
                          "HYBRID_TRANSFORMER[_FWD_IN_BCKWD], DATA, MODEL, MICRO or "
                          "DISTRIBUTED_INFERENCE",
                          modes[i].name);
        return ZIPCCL_ERR_UNSUPPORTED;
    }
    return zipccl_place_fail(&at,
                             "%s, expected a mode such as HYBRID_TRANSFORMER_FWD_IN_BCKWD "
                             "or MICRO",
                             simai_quote(quoted, token));
}

/* Split "key", "key:" or "key:value"; a lone ':' that follows is taken too. */
static struct simai_token split_key(struct simai_token *line, struct simai_token token)
{
    const char *colon = memchr(token.p, ':', token.n);
    struct simai_token rest = *line, next;

    if (colon != NULL) {
        /* What stands behind the colon goes back to the line. */
        size_t n = (size_t)(colon - token.p);

        line->n += (size_t)(line->p - (colon + 1));
        line->p = colon + 1;
        token.n = n;
    } else if (simai_next_token(&rest, &next) && next.p[0] == ':') {
        line->n -= (size_t)(next.p + 1 - line->p);
        line->p = next.p + 1;
    }
    return token;
}

static int find_key(struct simai_token token)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (token_is(token, keys[i].name))
            return (int)i;
    return -1;
}

static zipccl_status next_number(struct simai_workload *w, struct simai_token *line,
                                 const char *name, uint64_t *out, bool *rounded)
{
    struct zipccl_place at = simai_place(w);
    struct simai_token token;

    if (!simai_next_token(line, &token))
        return zipccl_place_fail(&at, "the line ends after %s, expected a number", name);
    return simai_number(w, token, name, NULL, out, rounded);
}

/* "n l1 ... ln": a count, then layer numbers. */
static zipccl_status read_layers(struct simai_workload *w, struct simai_token *line,
                                 const char *name, size_t *n, uint64_t **out)
{
    struct zipccl_place at = simai_place(w);
    uint64_t count;

    ZIPCCL_TRY(next_number(w, line, name, &count, NULL));
    if (count > line->n)
        return zipccl_place_fail(&at, "%s says %" PRIu64 " layers, expected as many on the line",
                                 name, count);
    *out = zipccl_arena_alloc(&w->arena, (size_t)count, sizeof **out);
    if (*out == NULL)
        return zipccl_place_nomem(&at);
    for (*n = 0; *n < count; ++*n)
        ZIPCCL_TRY(next_number(w, line, name, &(*out)[*n], NULL));
    return ZIPCCL_OK;
}

static zipccl_status read_value(struct simai_workload *w, struct simai_token *line, size_t i)
{
    uint64_t *const sizes[NKEYS] = {[KEY_TP] = &w->tp,
                                    [KEY_EP] = &w->ep,
                                    [KEY_PP] = &w->pp,
                                    [KEY_VPP] = &w->vpp,
                                    [KEY_GA] = &w->ga,
                                    [KEY_WORLD] = &w->all_gpus,
                                    [KEY_PP_COMM] = &w->pp_nbytes};
    struct zipccl_place at = simai_place(w);
    bool rounded;

    if (keys[i].key == KEY_CHECK)
        return read_layers(w, line, keys[i].name, &w->ncheckpoints, &w->checkpoints);
    if (keys[i].key == KEY_INIT)
        return read_layers(w, line, keys[i].name, &w->ninitiates, &w->initiates);
    ZIPCCL_TRY(next_number(w, line, keys[i].name, sizes[keys[i].key], &rounded));
    if (keys[i].key == KEY_PP_COMM)
        return zipccl_import_count(w->importer, true, "fraction", w->line, rounded,
                                   "sizes that are no whole bytes are rounded up");
    if (rounded || *sizes[keys[i].key] == 0)
        return zipccl_place_fail(&at, "%s is no whole number from 1 up, expected one",
                                 keys[i].name);
    return ZIPCCL_OK;
}

zipccl_status simai_read_header(struct simai_workload *w, struct simai_token line)
{
    struct zipccl_place at = simai_place(w);
    char quoted[ZIPCCL_QUOTE_SIZE];
    bool seen[NKEYS] = {false};
    struct simai_token token;

    if (!simai_next_token(&line, &token))
        return zipccl_place_fail(&at, "an empty line, expected a mode such as "
                                      "HYBRID_TRANSFORMER_FWD_IN_BCKWD");
    ZIPCCL_TRY(read_mode(w, token));
    while (simai_next_token(&line, &token)) {
        int i;

        token = split_key(&line, token);
        i = find_key(token);
        if (i < 0) {
            ZIPCCL_TRY(zipccl_import_count(w->importer, true, "header word", w->line, 1,
                                           "unknown words in the first line are skipped, "
                                           "the first is %s",
                                           simai_quote(quoted, token)));
            continue;
        }
        if (seen[keys[i].key])
            return zipccl_place_fail(&at, "%s twice, expected it once", keys[i].name);
        seen[keys[i].key] = true;
        ZIPCCL_TRY(read_value(w, &line, (size_t)i));
    }
    return ZIPCCL_OK;
}
