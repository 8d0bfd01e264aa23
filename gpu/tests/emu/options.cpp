/*
 * options.cpp - the options of emulator and doubles: defaults, ZIPCCL_EMU, what a test sets
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <mutex>

static const struct {
    const char *key;
    size_t offset;
    int low;
} int_keys[] = {
    {"policy", offsetof(struct emu_options, policy), 0},
    {"order", offsetof(struct emu_options, order), 0},
    {"resident", offsetof(struct emu_options, resident), 1},
    {"workers", offsetof(struct emu_options, workers), 1},
    {"strict", offsetof(struct emu_options, strict), 0},
    {"spins", offsetof(struct emu_options, spins), 1},
    {"stack_kib", offsetof(struct emu_options, stack_kib), 4},
    {"devices", offsetof(struct emu_options, devices), 0},
    {"sms", offsetof(struct emu_options, sms), 1},
    {"delay_us", offsetof(struct emu_options, delay_us), 0},
    {"word_ms", offsetof(struct emu_options, word_ms), 1},
    {"peer_ms", offsetof(struct emu_options, peer_ms), 1},
    {"lazy", offsetof(struct emu_options, lazy), 0},
};

/* A typing error in ZIPCCL_EMU would quietly test something else, so it ends the process. */
static void bad_text(const char *key, size_t nbytes)
{
    fprintf(stderr, "ZIPCCL_EMU: \"%.*s\" is not key=number; keys: seed", (int)nbytes, key);
    for (const auto &k : int_keys) {
        fprintf(stderr, " %s", k.key);
    }
    fprintf(stderr, "\n");
    exit(2);
}

static void parse(struct emu_options *o, const char *text)
{
    while (*text) {
        const size_t item = strcspn(text, ","), name = strcspn(text, "=");
        char *end = nullptr;
        bool known = false;
        if (name + 1 >= item) {
            bad_text(text, item);
        }
        const unsigned long long v = strtoull(text + name + 1, &end, 0);
        if (end != text + item) {
            bad_text(text, item);
        }
        if (name == 4 && !strncmp(text, "seed", 4)) {
            o->seed = v;
            known = true;
        }
        for (const auto &k : int_keys) {
            if (strlen(k.key) == name && !strncmp(text, k.key, name) &&
                v >= (unsigned long long)k.low && v <= 0x7fffffff) {
                *reinterpret_cast<int *>(reinterpret_cast<char *>(o) + k.offset) = (int)v;
                known = true;
            }
        }
        if (!known) {
            bad_text(text, item);
        }
        text += item + (text[item] == ',');
    }
}

void emu_default_options(struct emu_options *out)
{
    struct emu_options o = {};
    o.seed = 1;
    o.resident = o.workers = o.strict = 1;
    o.spins = 1 << 20;
    o.stack_kib = SIMT_TSAN ? 16 : 64;
    o.devices = 8;
    o.sms = 4;
    o.word_ms = 20000;
    o.peer_ms = 20000;
    const char *text = getenv("ZIPCCL_EMU");
    if (text) {
        parse(&o, text);
    }
    *out = o;
}

static std::mutex &option_mutex = *new std::mutex; /* streams outlive main */

static struct emu_options *options()
{
    static struct emu_options o = [] {
        struct emu_options start;
        emu_default_options(&start);
        return start;
    }();
    return &o;
}

void emu_get_options(struct emu_options *out)
{
    std::lock_guard<std::mutex> lock(option_mutex);
    *out = *options();
}

void emu_set_options(const struct emu_options *o)
{
    std::lock_guard<std::mutex> lock(option_mutex);
    *options() = *o;
}
