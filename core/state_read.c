/*
 * state_read.c - learnt state from text: every word and number is checked
 *
 * One way to write each thing: single spaces, decimal numbers without leading zeros, lines that end
 * with a newline.  So whatever is read can be written again with the same bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/state.h"

#include "core/state_words.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_state_reasons[] = {"started", "narrowed", "overflowed", "retried", NULL};
const char *const zipccl_state_efforts[] = {"fast", "ratio", NULL};

/* Numbers of calls, periods and nanoseconds: far above any, far below an overflow of their sums. */
#define MOST ZIPCCL_STATE_MOST

#define MOST_PPM 2000000u

uint64_t zipccl_state_digest(const char *bytes, size_t nbytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < nbytes; i++)
        hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Where in the text the reader is. */
struct cursor {
    const char *at, *end;
    unsigned long line;
    struct zipccl_error *error;
};

/* The word at the cursor, up to a space or the end of the line; 0 if there is none. */
static size_t word_length(const struct cursor *c)
{
    size_t n = 0;

    while (c->at + n < c->end && c->at[n] != ' ' && c->at[n] != '\n')
        n++;
    return n;
}

static zipccl_status unexpected(const struct cursor *c, const char *expected)
{
    char found[32];
    size_t n = word_length(c), i;

    for (i = 0; i < n && i + 1 < sizeof found; i++)
        found[i] = c->at[i] > ' ' && c->at[i] < 0x7f ? c->at[i] : '?';
    found[i] = '\0';
    return zipccl_fail(c->error, ZIPCCL_ERR_INPUT, "line %lu: found %s%s%s, expected %s", c->line,
                       n > 0 ? "'" : "", n > 0 ? found : "nothing more", n > 0 ? "'" : "",
                       expected);
}

/* Step over the word and the space after it, or the newline if it is the line's last. */
static zipccl_status step(struct cursor *c, size_t n, bool last)
{
    c->at += n;
    if (c->at == c->end || *c->at != (last ? '\n' : ' '))
        return unexpected(c, last ? "the end of the line" : "a space and another word");
    c->at++;
    c->line += last;
    return ZIPCCL_OK;
}

static zipccl_status expect(struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    if (word_length(c) != n || memcmp(c->at, word, n) != 0)
        return unexpected(c, word);
    return step(c, n, false);
}

/* One of 'words', which NULL ends. */
static zipccl_status choose(struct cursor *c, const char *const *words, const char *what, int *out)
{
    size_t n = word_length(c);

    for (int i = 0; words[i] != NULL && n > 0; i++)
        if (strlen(words[i]) == n && memcmp(c->at, words[i], n) == 0) {
            *out = i;
            return step(c, n, false);
        }
    return unexpected(c, what);
}

static zipccl_status number(struct cursor *c, uint64_t least, uint64_t most, const char *what,
                            bool last, uint64_t *out)
{
    size_t n = word_length(c);
    uint64_t x = 0;

    if (n == 0 || n > 19 || (n > 1 && c->at[0] == '0'))
        return unexpected(c, what);
    for (size_t i = 0; i < n; i++) {
        if (c->at[i] < '0' || c->at[i] > '9')
            return unexpected(c, what);
        x = 10 * x + (uint64_t)(c->at[i] - '0');
    }
    if (x < least || x > most)
        return unexpected(c, what);
    *out = x;
    return step(c, n, last);
}

static zipccl_status number32(struct cursor *c, uint32_t least, uint32_t most, const char *what,
                              bool last, uint32_t *out)
{
    uint64_t x;

    ZIPCCL_TRY(number(c, least, most, what, last, &x));
    *out = (uint32_t)x;
    return ZIPCCL_OK;
}

static zipccl_status digest(struct cursor *c, bool last, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t x = 0;

    if (word_length(c) != 16)
        return unexpected(c, "16 digits of a digest");
    for (size_t i = 0; i < 16; i++) {
        const char *digit = memchr(digits, c->at[i], 16);

        if (digit == NULL)
            return unexpected(c, "16 digits of a digest");
        x = x << 4 | (uint64_t)(digit - digits);
    }
    *out = x;
    return step(c, 16, last);
}

static zipccl_status read_op(struct cursor *c, bool pairs, enum zipccl_op *out)
{
    const char *names[ZIPCCL_NUM_OPS + 1] = {NULL};
    int op;

    for (int i = 0; i < ZIPCCL_NUM_OPS; i++)
        names[i] = zipccl_op_name((enum zipccl_op)i);
    ZIPCCL_TRY(choose(c, names, "a collective", &op));
    *out = (enum zipccl_op)op;
    if (zipccl_is_uneven(*out) != pairs)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT, "line %lu: found '%s', expected one %s",
                           c->line, zipccl_op_name(*out), pairs ? "of pairs" : "with equal counts");
    return ZIPCCL_OK;
}

static zipccl_status read_dtype(struct cursor *c, enum zipccl_dtype *out)
{
    const char *names[ZIPCCL_NUM_DTYPES + 1] = {NULL};
    int dtype;

    for (int i = 0; i < ZIPCCL_NUM_DTYPES; i++)
        names[i] = zipccl_dtype_compressible((enum zipccl_dtype)i)
                       ? zipccl_dtype_name((enum zipccl_dtype)i)
                       : "";
    ZIPCCL_TRY(choose(c, names, "a type that is compressed", &dtype));
    *out = (enum zipccl_dtype)dtype;
    return ZIPCCL_OK;
}

static void class_names(const char *names[ZIPCCL_NUM_CLASSES + 2])
{
    for (int i = 0; i <= ZIPCCL_NUM_CLASSES; i++)
        names[i] = zipccl_class_name(i - 1);
    names[ZIPCCL_NUM_CLASSES + 1] = NULL;
}

/* The classes that are not as they start, wide to narrow, and how they are barred. */
static zipccl_status read_bars(struct cursor *c, bool last, struct zipccl_class_state *out)
{
    const char *names[ZIPCCL_NUM_CLASSES + 2];
    uint64_t n;
    int cls, before = ZIPCCL_NO_CLASS;

    class_names(names);
    ZIPCCL_TRY(expect(c, "barred"));
    if (word_length(c) == 1 && c->at[0] == '0')
        return number(c, 0, 0, "a number of classes", last, &n);
    ZIPCCL_TRY(number(c, 1, ZIPCCL_NUM_CLASSES, "a number of classes", false, &n));
    for (uint64_t i = 0; i < n; i++) {
        struct cursor at = *c;

        ZIPCCL_TRY(choose(c, names, "a capacity class", &cls));
        cls--;
        if (cls <= before)
            return unexpected(&at, "a narrower class than the one before");
        ZIPCCL_TRY(number(c, 0, MOST, "a number of calls", false, &out->barred_until[cls]));
        ZIPCCL_TRY(number32(c, 1, 2 * ZIPCCL_CLASS_BAR_LIMIT, "a number of calls",
                            last && i + 1 == n, &out->bar[cls]));
        if (out->barred_until[cls] == 0 && out->bar[cls] == zipccl_class_first_bar(cls))
            return unexpected(&at, "a class that has been barred");
        before = cls;
    }
    return ZIPCCL_OK;
}

static zipccl_status read_class(struct cursor *c, bool last, struct zipccl_class_state *out)
{
    const char *names[ZIPCCL_NUM_CLASSES + 2];
    int now, reason;

    class_names(names);
    zipccl_class_init(out, ZIPCCL_CLASS_SETTLED);
    ZIPCCL_TRY(expect(c, "calls"));
    ZIPCCL_TRY(number(c, 0, MOST, "a number of calls", false, &out->calls));
    out->decided = out->calls;
    ZIPCCL_TRY(expect(c, "class"));
    ZIPCCL_TRY(choose(c, names, "a capacity class", &now));
    out->now = now - 1;
    ZIPCCL_TRY(choose(c, zipccl_state_reasons, "why that is the class", &reason));
    out->reason = (enum zipccl_class_reason)reason;
    ZIPCCL_TRY(read_bars(c, last, out));
    if (out->calls % ZIPCCL_CLASS_PERIOD != 0)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "line %lu: found %" PRIu64 " calls, expected a multiple of %u",
                           c->line - last, out->calls, ZIPCCL_CLASS_PERIOD);
    return ZIPCCL_OK;
}

static zipccl_status read_kind(struct cursor *c, int *out)
{
    static const char *const names[] = {"none", "native", "raw", "compressed", NULL};
    int kind;

    ZIPCCL_TRY(choose(c, names, "a kind of plan", &kind));
    *out = kind - 1;
    return ZIPCCL_OK;
}

/* True if a kind can be in use or on trial. */
static bool kind_possible(const struct zipccl_trials *t, int kind)
{
    return kind != ZIPCCL_NO_KIND && t->kinds[kind].predicted_ns > 0;
}

static zipccl_status read_trials(struct cursor *c, struct zipccl_trials *t)
{
    static const char *const switches[] = {"off", "on", NULL};
    int on;

    memset(t, 0, sizeof *t);
    ZIPCCL_TRY(expect(c, "trials"));
    ZIPCCL_TRY(choose(c, switches, "on or off", &on));
    t->on = on == 1;
    ZIPCCL_TRY(read_kind(c, &t->now));
    ZIPCCL_TRY(read_kind(c, &t->challenger));
    ZIPCCL_TRY(number32(c, 0, UINT32_MAX / 2, "a number of changes", false, &t->changes));
    ZIPCCL_TRY(number(c, 0, MOST, "a number of periods", false, &t->period));
    ZIPCCL_TRY(number(c, 0, MOST, "a number of trials", false, &t->ntrials));
    ZIPCCL_TRY(number(c, 0, MOST, "what trials cost", false, &t->spent));
    for (int k = 0; k < ZIPCCL_NUM_KINDS; k++) {
        struct zipccl_trial_kind *kind = &t->kinds[k];

        ZIPCCL_TRY(expect(c, zipccl_kind_name(k)));
        ZIPCCL_TRY(number(c, 0, MOST, "nanoseconds", false, &kind->predicted_ns));
        ZIPCCL_TRY(number(c, 0, MOST, "nanoseconds", false, &kind->ns));
        ZIPCCL_TRY(number(c, 0, MOST, "a period", false, &kind->next));
        ZIPCCL_TRY(number(c, 1, MOST, "a number of periods", false, &kind->pause));
        ZIPCCL_TRY(number32(c, 0, UINT32_MAX / 2, "a number of wins", k == ZIPCCL_NUM_KINDS - 1,
                            &kind->wins));
    }
    if ((t->on || t->now != ZIPCCL_NO_KIND) && !kind_possible(t, t->now))
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "line %lu: the kind in use, '%s', has no plan", c->line - 1,
                           zipccl_kind_name(t->now));
    if (t->challenger != ZIPCCL_NO_KIND && (!t->on || !kind_possible(t, t->challenger)))
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                           "line %lu: '%s' is on trial, but has no plan", c->line - 1,
                           zipccl_kind_name(t->challenger));
    return ZIPCCL_OK;
}

static zipccl_status read_even(struct cursor *c, struct zipccl_state_even *out)
{
    uint64_t count;
    int effort;

    ZIPCCL_TRY(expect(c, "even"));
    ZIPCCL_TRY(read_op(c, false, &out->op));
    ZIPCCL_TRY(read_dtype(c, &out->dtype));
    ZIPCCL_TRY(number(c, 1, MOST, "a count", false, &count));
    out->count = (size_t)count;
    ZIPCCL_TRY(read_class(c, false, &out->state));
    ZIPCCL_TRY(expect(c, "ratio"));
    ZIPCCL_TRY(number32(c, 0, MOST_PPM, "parts of a million", false, &out->coded_ppm));
    ZIPCCL_TRY(choose(c, zipccl_state_efforts, "an effort", &effort));
    out->effort = (enum zipccl_effort)effort;
    return read_trials(c, &out->trials);
}

static zipccl_status read_pair(struct cursor *c, uint32_t nranks, struct zipccl_state_pair *out)
{
    static const char *const directions[] = {"out", "in", NULL};
    int incoming;

    ZIPCCL_TRY(expect(c, "pair"));
    ZIPCCL_TRY(read_op(c, true, &out->op));
    ZIPCCL_TRY(read_dtype(c, &out->dtype));
    ZIPCCL_TRY(number32(c, 0, nranks - 1, "another rank", false, &out->peer));
    ZIPCCL_TRY(choose(c, directions, "out or in", &incoming));
    out->incoming = incoming == 1;
    return read_class(c, true, &out->state);
}

/* Order of the pairs' lines: by op, type, peer, direction. */
static uint64_t pair_order(const struct zipccl_state_pair *pair)
{
    return (uint64_t)pair->op << 48 | (uint64_t)pair->dtype << 40 | (uint64_t)pair->peer << 1 |
           pair->incoming;
}

static bool known(const struct zipccl_state *state, const struct zipccl_state_even *even)
{
    for (size_t i = 0; i < state->neven; i++)
        if (state->even[i].op == even->op && state->even[i].dtype == even->dtype &&
            state->even[i].count == even->count)
            return true;
    return false;
}

static bool at_word(const struct cursor *c, const char *word)
{
    size_t n = strlen(word);

    return word_length(c) == n && memcmp(c->at, word, n) == 0;
}

/* Make room for one more than 'n' entries of 'size' bytes; room is for a power of two of them. */
static void *make_room(void *entries, size_t n, size_t size)
{
    return (n & (n - 1)) != 0 ? entries : realloc(entries, (n == 0 ? 1 : 2 * n) * size);
}

static zipccl_status read_entries(struct cursor *c, struct zipccl_state *state)
{
    void *more;

    while (at_word(c, "even")) {
        struct zipccl_state_even even;

        if (state->neven == ZIPCCL_STATE_MOST_EVEN)
            return unexpected(c, "no more than 2048 kinds of even calls");
        ZIPCCL_TRY(read_even(c, &even));
        if (known(state, &even))
            return zipccl_fail(c->error, ZIPCCL_ERR_INPUT, "line %lu: %s of %zu %s is there twice",
                               c->line - 1, zipccl_op_name(even.op), even.count,
                               zipccl_dtype_name(even.dtype));
        more = make_room(state->even, state->neven, sizeof even);
        if (more == NULL)
            return ZIPCCL_ERR_NOMEM;
        state->even = more;
        state->even[state->neven++] = even;
    }
    while (at_word(c, "pair")) {
        struct zipccl_state_pair pair;
        size_t n = state->npairs;

        if (n == ZIPCCL_STATE_MOST_PAIRS)
            return unexpected(c, "no more than 65536 pairs");
        ZIPCCL_TRY(read_pair(c, state->nranks, &pair));
        if (pair.peer == state->rank ||
            (n > 0 && pair_order(&state->pairs[n - 1]) >= pair_order(&pair)))
            return zipccl_fail(c->error, ZIPCCL_ERR_INPUT,
                               "line %lu: pair with rank %" PRIu32 " is the rank itself, there "
                               "twice or out of order",
                               c->line - 1, pair.peer);
        more = make_room(state->pairs, n, sizeof pair);
        if (more == NULL)
            return ZIPCCL_ERR_NOMEM;
        state->pairs = more;
        state->pairs[state->npairs++] = pair;
    }
    return ZIPCCL_OK;
}

static zipccl_status read_head(struct cursor *c, struct zipccl_state *state)
{
    uint64_t version;

    ZIPCCL_TRY(expect(c, "zipccl-state"));
    ZIPCCL_TRY(number(c, ZIPCCL_STATE_VERSION, ZIPCCL_STATE_VERSION, "version 3", true, &version));
    ZIPCCL_TRY(expect(c, "rank"));
    ZIPCCL_TRY(number32(c, 0, UINT32_MAX - 1, "a rank", false, &state->rank));
    ZIPCCL_TRY(expect(c, "of"));
    ZIPCCL_TRY(number32(c, 1, UINT32_MAX, "a number of ranks", true, &state->nranks));
    if (state->rank >= state->nranks)
        return zipccl_fail(c->error, ZIPCCL_ERR_INPUT, "line 2: found rank %" PRIu32 " of %" PRIu32,
                           state->rank, state->nranks);
    ZIPCCL_TRY(expect(c, "settings"));
    ZIPCCL_TRY(number32(c, 0, UINT32_MAX, "a version", false, &state->agreement));
    ZIPCCL_TRY(expect(c, "options"));
    ZIPCCL_TRY(digest(c, false, &state->options));
    ZIPCCL_TRY(expect(c, "rates"));
    ZIPCCL_TRY(digest(c, false, &state->params));
    ZIPCCL_TRY(expect(c, "topology"));
    return digest(c, true, &state->topology);
}

zipccl_status zipccl_state_read(const char *text, size_t nbytes, struct zipccl_state *out,
                                struct zipccl_error *error)
{
    struct cursor c = {text, text + nbytes, 1, error};
    const char *end;
    uint64_t nlines, seen;

    memset(out, 0, sizeof *out);
    ZIPCCL_TRY(read_head(&c, out));
    ZIPCCL_TRY(read_entries(&c, out));
    end = c.at;
    ZIPCCL_TRY(expect(&c, "end"));
    ZIPCCL_TRY(number(&c, out->neven + out->npairs, out->neven + out->npairs,
                      "the number of lines before, without the first three", false, &nlines));
    ZIPCCL_TRY(digest(&c, true, &seen));
    if (seen != zipccl_state_digest(text, (size_t)(end - text)))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "line %lu: the digest is not that of the lines before", c.line - 1);
    if (c.at != c.end)
        return unexpected(&c, "nothing after the line 'end'");
    return ZIPCCL_OK;
}
