/*
 * test_bugs.cpp - every planted bug is reported, with its place
 *
 * test_bugs           the bugs that the emulator finds by itself
 * test_bugs NAME...   these, for a sanitizer to find: test_bugs.sh looks at what it says
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>

#include "gpu/tests/emu/bugs.h"
#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* "bugs.cu:N" of the line that carries the comment 'mark'. */
static std::string place_of(const char *mark)
{
    char line[256];
    const std::string comment = std::string("/* ") + mark + " */";
    FILE *f = fopen("gpu/tests/emu/bugs.cu", "r");
    std::string place = "no such mark";
    for (int n = 1; f && fgets(line, sizeof line, f); n++) {
        if (strstr(line, comment.c_str())) {
            place = "bugs.cu:" + std::to_string(n);
        }
    }
    if (f) {
        fclose(f);
    }
    return place;
}

static cudaError_t run(const struct emu_bug *bug)
{
    unsigned *words;
    cudaStream_t s;
    emu_reset();
    CHECK_OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK_OK(cudaMalloc((void **)&words, EMU_BUG_WORDS * sizeof *words));
    CHECK_OK(cudaMemsetAsync(words, 0, EMU_BUG_WORDS * sizeof *words, s));
    bug->launch(words, s);
    const cudaError_t error = cudaStreamSynchronize(s);
    const std::string text = emu_error();
    if (SANITIZED) {
        /* The sanitizer says it. */
    } else if (bug->says && bug->says[0]) {
        const std::string place = bug->place ? place_of(bug->place) : "";
        CHECK_EQ(error, cudaErrorLaunchFailure);
        CHECK_EQ(cudaMemset(words, 0, 4), cudaErrorLaunchFailure); /* it sticks */
        if (text.find(bug->says) == std::string::npos || text.find(place) == std::string::npos ||
            text.find(std::string("kernel ") + bug->name) == std::string::npos) {
            printf("%s: says \"%s\", not \"%s\" and %s\n", bug->name, text.c_str(), bug->says,
                   place.c_str());
            check_failures++;
        }
    } else {
        CHECK_OK(error);
        CHECK(text.empty());
    }
    emu_reset();
    CHECK_OK(cudaFree(words));
    CHECK_OK(cudaStreamDestroy(s));
    return error;
}

static void run_all(void)
{
    struct emu_options o;
    for (int i = 0; i < emu_nbugs; i++) {
        for (int policy = EMU_WARP_FIRST; policy <= EMU_RANDOM && emu_bugs[i].plain; policy++) {
            emu_default_options(&o);
            o.policy = policy;
            o.order = emu_bugs[i].order;
            o.spins = 20000;
            emu_set_options(&o);
            (void)run(&emu_bugs[i]);
        }
    }
}

static const struct emu_bug *find_bug(const char *name)
{
    for (int i = 0; i < emu_nbugs; i++) {
        if (!strcmp(emu_bugs[i].name, name)) {
            return &emu_bugs[i];
        }
    }
    return nullptr;
}

int main(int argc, char **argv)
{
    if (argc == 1) {
        run_all();
        return check_result("planted bugs");
    }
    for (int k = 1; k < argc; k++) {
        const struct emu_bug *bug = find_bug(argv[k]);
        if (!bug) {
            fprintf(stderr, "test_bugs: no bug is named \"%s\"\n", argv[k]);
            return 2;
        }
        (void)run(bug);
    }
    return 0;
}
