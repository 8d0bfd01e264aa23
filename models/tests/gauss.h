/*
 * gauss.h - fast, deterministic bf16 samples for the exponent model's tests
 *
 * Gaussians by a table of equally likely cells, whose outer ones are inverted exactly: independent
 * samples with right tails at a few nanoseconds each.  Not for cryptography, nor for a library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_TESTS_GAUSS_H
#define ZIPCCL_MODELS_TESTS_GAUSS_H

#include <stddef.h>
#include <stdint.h>

/* Sanitized programs are many times slower: they draw fewer messages. */
#if defined(__SANITIZE_ADDRESS__)
#define GAUSS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define GAUSS_SANITIZED 1
#endif
#endif
#ifndef GAUSS_SANITIZED
#define GAUSS_SANITIZED 0
#endif

struct gauss;

/* A generator of its own state; NULL without memory. */
struct gauss *gauss_create(uint64_t seed);
void gauss_destroy(struct gauss *gauss);

/* 64 random bits. */
uint64_t gauss_bits(struct gauss *gauss);

/* One sample of a unit Gaussian. */
double gauss_next(struct gauss *gauss);

/* Nearest bf16, ties to even. */
uint16_t gauss_bf16(float x);

/* 'n' samples of N(0, sigma^2), rounded to bf16. */
void gauss_fill(struct gauss *gauss, double sigma, uint16_t *out, size_t n);

/* 'n' samples of sigma times Student's t with 'nu' degrees of freedom. */
void gauss_fill_student(struct gauss *gauss, double sigma, int nu, uint16_t *out, size_t n);

#endif
