/*
 * make_ans_table.c - prints core/codec/ans_table.inc, or checks the one compiled in
 *
 * Usage: make_ans_table > FILE
 *        make_ans_table --check     exit code 1 if the model knows shorter codes
 *
 * A symbol is an octave of |x| and the half of it: an exponent and the leading mantissa bit.  The
 * laws are a Gaussian, Gaussians whose log2 sigma is normal too (heavier tails) and the uniform
 * law (none).  Each is moved so that its mean exponent lies in the middle of one of eight phases.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/ans.h"
#include "core/codec/decide.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/codec/ans_table.inc"

/* Octaves [LEAST_E, LEAST_E + NUM_E) of a law near 1. */
enum { LEAST_E = -70, NUM_E = 90, MOST_TOP = 16 };

/* Spread of log2 sigma; below 0 the uniform law. */
static const double spreads[ZIPCCL_ANS_SHAPES] = {0, 0.5, 0.8, 1.2, 1.7, 2.4};

/* Probabilities of octave e and half b at [e - LEAST_E][b]. */
typedef double cells[NUM_E][2];

static double below(bool uniform, double x)
{
    return uniform ? fmin(x, 1) : erf(x * sqrt(0.5));
}

/* The cells of a law whose scale is 2^scale, by Simpson's rule over log2 sigma. */
static void law(double spread, double scale, cells p)
{
    enum { STEPS = 64 };
    double total = 0;
    memset(p, 0, sizeof(cells));
    for (int i = 0; i <= (spread > 0 ? STEPS : 0); i++) {
        double z = spread > 0 ? 8.0 * i / STEPS - 4 : 0, weight = exp(-0.5 * z * z);
        weight *= i == 0 || i == STEPS ? 1 : 2 + 2 * (i & 1);
        total += weight;
        for (int e = 0; e < NUM_E; e++)
            for (int b = 0; b < 2; b++) {
                double at = exp2(LEAST_E + e - scale - (spread > 0 ? spread * z : 0));
                p[e][b] += weight * (below(spread < 0, at * (1 + 0.5 * (b + 1))) -
                                     below(spread < 0, at * (1 + 0.5 * b)));
            }
    }
    for (int e = 0; e < NUM_E; e++)
        for (int b = 0; b < 2; b++)
            p[e][b] /= total;
}

static double mean_exponent(const cells p)
{
    double sum = 0, all = 0;
    for (int e = 0; e < NUM_E; e++) {
        sum += (p[e][0] + p[e][1]) * (LEAST_E + e);
        all += p[e][0] + p[e][1];
    }
    return sum / all;
}

/* The law whose mean exponent is 'mean'. */
static void law_at(double spread, double mean, cells p)
{
    double low = mean - 4, high = mean + 8;
    for (int i = 0; i < 50; i++) {
        double middle = 0.5 * (low + high);
        law(spread, middle, p);
        *(mean_exponent(p) < mean ? &low : &high) = middle;
    }
}

/* Mean bits of what 'frequency' does not code, beyond the escape itself. */
static double tail_bits(const cells p, int top, int octaves)
{
    double bits = 0;
    for (int e = 0; e < NUM_E; e++) {
        int d = top - (LEAST_E + e), t = d < 0 ? d : d - octaves;
        double all = p[e][0] + p[e][1];
        if (d >= 0 && d < octaves)
            continue;
        bool first = t >= 0 && t < 3, second = (t >= 3 && t < 8) || t == -1 || t == -2;
        bits += all * (first ? 2 : second ? 5 : 13);
    }
    return bits;
}

/* Probability of each symbol for 'octaves' from 'top' down; the last two are the escapes. */
static void symbols(const cells p, int top, int octaves, double s[ZIPCCL_ANS_SYMBOLS])
{
    memset(s, 0, ZIPCCL_ANS_SYMBOLS * sizeof *s);
    for (int e = 0; e < NUM_E; e++)
        for (int b = 0; b < 2; b++) {
            int d = top - (LEAST_E + e);
            s[(d >= 0 && d < octaves ? 2 * d : ZIPCCL_ANS_ESCAPE) + b] += p[e][b];
        }
}

static double mean_bits(const double s[ZIPCCL_ANS_SYMBOLS], const int f[ZIPCCL_ANS_SYMBOLS])
{
    double bits = 0;
    for (int u = 0; u < ZIPCCL_ANS_SYMBOLS; u++)
        if (s[u] > 0)
            bits -= f[u] ? s[u] * log2(f[u] / 256.0) : -100 * s[u];
    return bits;
}

/* Frequencies that sum to 256 with the least mean length: rounded, then exchanged one by one. */
static double quantize(const double s[ZIPCCL_ANS_SYMBOLS], int octaves, int f[ZIPCCL_ANS_SYMBOLS])
{
    int sum = 0;
    for (int u = 0; u < ZIPCCL_ANS_SYMBOLS; u++) {
        bool coded = u < 2 * octaves || u >= ZIPCCL_ANS_ESCAPE;
        f[u] = !coded ? 0 : s[u] * 256 < 1 ? 1 : (int)(s[u] * 256 + 0.5);
        sum += f[u];
    }
    for (bool better = true; better;) {
        double least = 1e9, now = mean_bits(s, f);
        int from = -1, to = -1;
        better = false;
        for (int i = -1; i < ZIPCCL_ANS_SYMBOLS; i++)
            for (int k = -1; k < ZIPCCL_ANS_SYMBOLS; k++) {
                /* While the sum is wrong, one side of the exchange is nobody. */
                if ((i < 0) != (sum < 256) || (k < 0) != (sum > 256) || (i >= 0 && f[i] < 2) ||
                    (k >= 0 && f[k] == 0))
                    continue;
                f[i < 0 ? 0 : i] -= i >= 0;
                f[k < 0 ? 0 : k] += k >= 0;
                double bits = mean_bits(s, f);
                f[i < 0 ? 0 : i] += i >= 0;
                f[k < 0 ? 0 : k] -= k >= 0;
                if (bits < least) {
                    least = bits;
                    from = i;
                    to = k;
                }
            }
        if (sum != 256 || least < now - 1e-9) {
            f[from < 0 ? 0 : from] -= from >= 0;
            f[to < 0 ? 0 : to] += to >= 0;
            sum += (to >= 0) - (from >= 0);
            better = true;
        }
    }
    return mean_bits(s, f);
}

/* The best table of 'p' with 'top'; returns its mean bits. */
static double best_at(const cells p, int top, int best[ZIPCCL_ANS_SYMBOLS], int *octaves)
{
    double least = 1e9;
    for (int n = 3; n <= ZIPCCL_ANS_ESCAPE / 2; n++) {
        double s[ZIPCCL_ANS_SYMBOLS];
        int f[ZIPCCL_ANS_SYMBOLS];
        symbols(p, top, n, s);
        double bits = quantize(s, n, f) + tail_bits(p, top, n);
        if (bits >= least - 1e-9)
            continue;
        least = bits;
        *octaves = n;
        memcpy(best, f, sizeof f);
    }
    return least;
}

/* All that a shape needs. */
struct shape {
    int top, octaves[ZIPCCL_ANS_PHASES], f[ZIPCCL_ANS_PHASES][ZIPCCL_ANS_SYMBOLS];
    double bits[ZIPCCL_ANS_PHASES];
};

/* Mean exponent, without a bias, in the middle of phase 'p' if x >> 8 is 0. */
static double mean_of_phase(int p)
{
    return (256.0 / ZIPCCL_ANS_PHASES * (p + 0.5) - ZIPCCL_ANS_SHIFT) / 256;
}

/* The top that is best on average, and its tables. */
static void compute(double spread, struct shape *best)
{
    double least = 1e9;
    for (int top = -2; top <= MOST_TOP; top++) {
        struct shape now = {.top = top};
        double sum = 0;
        for (int phase = 0; phase < ZIPCCL_ANS_PHASES; phase++) {
            cells p;
            law_at(spread, mean_of_phase(phase), p);
            now.bits[phase] = best_at(p, top, now.f[phase], &now.octaves[phase]);
            sum += now.bits[phase];
        }
        if (sum < least - 1e-9) {
            least = sum;
            *best = now;
        } else if (sum > least) {
            break;
        }
    }
}

/* Length of an octave, or of an escape, in 1/8 bit. */
static int cost_of(const int f[ZIPCCL_ANS_SYMBOLS], int d)
{
    int u = 2 * d < ZIPCCL_ANS_ESCAPE ? 2 * d : ZIPCCL_ANS_ESCAPE;
    double a = f[u], b = f[u + 1];
    return (int)lround(-8 * (a * log2(a / 256) + b * log2(b / 256)) / (a + b));
}

static void print_rows(const struct shape *shape, int s)
{
    for (int phase = 0; phase < ZIPCCL_ANS_PHASES; phase++) {
        const int *f = shape->f[phase], escape = ZIPCCL_ANS_ESCAPE / 2;
        printf("    /* shape %d, phase %d: %.4f bits */\n", s, phase, shape->bits[phase]);
        printf("    {%d, %d, {%d, %d}, %d,\n     {", shape->top, shape->octaves[phase], f[30],
               f[31], cost_of(f, escape));
        for (int u = 0; u < 2 * shape->octaves[phase]; u++)
            printf("%s%d", u ? ", " : "", f[u]);
        printf("},\n     {");
        for (int d = 0; d < shape->octaves[phase]; d++)
            printf("%s%d", d ? ", " : "", cost_of(f, d));
        printf("}},\n");
    }
}

/* True if no other table is shorter than the one compiled in by more than a libm can explain. */
static bool is_best(const struct shape *shape, double spread, int s)
{
    bool good = true;
    for (int phase = 0; phase < ZIPCCL_ANS_PHASES; phase++) {
        const struct zipccl_ans_law *row = &ans_laws[s * ZIPCCL_ANS_PHASES + phase];
        double probability[ZIPCCL_ANS_SYMBOLS];
        int f[ZIPCCL_ANS_SYMBOLS], sum = 0;
        cells p;
        law_at(spread, mean_of_phase(phase), p);
        symbols(p, row->top, row->octaves, probability);
        for (int u = 0; u < ZIPCCL_ANS_SYMBOLS; u++)
            sum += f[u] =
                u < ZIPCCL_ANS_ESCAPE ? row->frequency[u] : row->escape[u - ZIPCCL_ANS_ESCAPE];
        double bits = mean_bits(probability, f) + tail_bits(p, row->top, row->octaves);
        bool right = sum == 256 && fabs(bits - shape->bits[phase]) < 1e-6;
        for (int d = 0; d < row->octaves; d++)
            right = right && row->cost[d] == cost_of(f, d);
        right = right && row->escape_cost == cost_of(f, ZIPCCL_ANS_ESCAPE / 2);
        if (!right)
            fprintf(stderr, "shape %d, phase %d: %.6f bits, sum %d; could be %.6f\n", s, phase,
                    bits, sum, shape->bits[phase]);
        good = good && right;
    }
    return good;
}

int main(int argc, char **argv)
{
    bool check = argc == 2 && strcmp(argv[1], "--check") == 0, good = true;
    if (argc > 2 || (argc == 2 && !check)) {
        fprintf(stderr, "usage: make_ans_table [--check]\n");
        return 2;
    }
    if (!check)
        printf(
            "/*\n * ans_table.inc - frequencies of octaves' halves, in 1/256\n *\n"
            " * Made by models/make_ans_table; do not edit.\n"
            " * {top, octaves, {frequencies of the escapes}, length of an escape, {frequencies}, "
            "{lengths of octaves}};\n * lengths in 1/8 bit.\n *\n"
            " * SPDX-License-Identifier: Apache-2.0\n */\n"
            "#ifndef ZIPCCL_ANS_LAWS\n"
            "#define ZIPCCL_ANS_LAWS static const struct zipccl_ans_law ans_laws\n"
            "#endif\n"
            "ZIPCCL_ANS_LAWS[ZIPCCL_ANS_SHAPES * ZIPCCL_ANS_PHASES] = {\n");
    for (int s = 0; s < ZIPCCL_ANS_SHAPES; s++) {
        struct shape shape;
        compute(spreads[s], &shape);
        if (check)
            good = is_best(&shape, spreads[s], s) && good;
        else
            print_rows(&shape, s);
    }
    if (!check)
        printf("};\n");
    if (!good)
        fprintf(stderr, "core/codec/ans_table.inc is stale: run make_ans_table\n");
    return !good;
}
