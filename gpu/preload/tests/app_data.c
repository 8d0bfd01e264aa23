/*
 * app_data.c - buffers and checks of the test program
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <dlfcn.h>
#include <string.h>

/* Small integers and halves, so that sums over 16 ranks are exact in bf16 whatever the order. */
uint16_t value_of(int from, int tag, size_t i)
{
    uint32_t x = (uint32_t)i * 2654435761u ^ (uint32_t)(from * 40503 + tag * 9176);
    float value = (float)((int)(x >> 16 & 7) - 3) * ((x >> 20 & 1) != 0 ? 1.0f : 0.5f);
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)(bits >> 16);
}

double number_of(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t *empty(size_t n)
{
    uint16_t *host = malloc(n * 2 + 2), *d;

    if (host == NULL)
        exit(2);
    memset(host, 0xff, n * 2 + 2);
    CHECK_CUDA(cudaMalloc((void **)&d, n * 2 + 2));
    if (n > 0)
        CHECK_CUDA(cudaMemcpy(d, host, n * 2, cudaMemcpyHostToDevice));
    free(host);
    return d;
}

uint16_t *filled(int from, int tag, size_t n)
{
    uint16_t *host = malloc(n * 2 + 2), *d;

    if (host == NULL)
        exit(2);
    for (size_t i = 0; i < n; i++)
        host[i] = value_of(from, tag, i);
    CHECK_CUDA(cudaMalloc((void **)&d, n * 2 + 2));
    if (n > 0)
        CHECK_CUDA(cudaMemcpy(d, host, n * 2, cudaMemcpyHostToDevice));
    free(host);
    return d;
}

static void complain(const struct app *app, const char *what, size_t i, uint16_t found,
                     uint16_t expected)
{
    if (__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED) < 5)
        fprintf(stderr, "rank %d, %s: element %zu is %04x, expected %04x\n", app->rank, what, i,
                found, expected);
}

static uint16_t *fetch(struct app *app, const uint16_t *d, size_t n)
{
    uint16_t *host = malloc(n * 2 + 2);

    if (host == NULL)
        exit(2);
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    if (n > 0)
        CHECK_CUDA(cudaMemcpy(host, d, n * 2, cudaMemcpyDeviceToHost));
    return host;
}

void expect(struct app *app, const uint16_t *d, int from, int tag, size_t n, const char *what)
{
    uint16_t *host = fetch(app, d, n);

    for (size_t i = 0; i < n; i++)
        if (host[i] != value_of(from, tag, i))
            complain(app, what, i, host[i], value_of(from, tag, i));
    free(host);
}

void expect_sum(struct app *app, const uint16_t *d, int tag, size_t first, size_t n, int divisor,
                const char *what)
{
    uint16_t *host = fetch(app, d, n);

    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (int r = 0; r < app->nranks; r++)
            sum += number_of(value_of(r, tag, first + i));
        /* -0.0 and 0.0 are both zero. */
        if (number_of(host[i]) != sum / divisor)
            complain(app, what, i, host[i], 0);
    }
    free(host);
}

struct emu_stats app_stats(void)
{
    void *symbol = dlsym(RTLD_DEFAULT, "emu_get_stats");
    void (*get)(struct emu_stats *);
    struct emu_stats stats;

    if (symbol == NULL)
        exit(2);
    memcpy(&get, &symbol, sizeof get);
    get(&stats);
    return stats;
}
