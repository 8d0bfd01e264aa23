/*
 * test_codec_conform.c - decoders that are right pass, all others are told why not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_conform.h"
#include "experiments/codec/filter_process.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static uint8_t wire[] = "a message", elements[] = "MESSAGE";

static struct zipccl_verdict judge_script(const char *script, bool valid)
{
    struct zipccl_vector vector = {.name = (char *)"v",
                                   .about = (char *)"about",
                                   .verdict = (char *)"?",
                                   .valid = valid,
                                   .wire = wire,
                                   .wire_nbytes = sizeof wire - 1,
                                   .elements = elements,
                                   .elements_nbytes = valid ? sizeof elements - 1 : 0};
    struct zipccl_vectors vectors = {1, &vector};
    char *command[] = {(char *)"sh", (char *)"-c", (char *)script, NULL};
    struct zipccl_conform_result result = {.command = command, .timeout_s = 20};
    struct zipccl_error error = {""};
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(zipccl_conform_run(&vectors, &result, NULL, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(result.count, 1);
    cr_assert_eq(result.nfailed, result.verdicts[0].passed ? 0 : 1);
    struct zipccl_verdict verdict = result.verdicts[0];
    free(result.verdicts);
    return verdict;
}

Test(codec_conform, verdicts_follow_the_decoder)
{
    static const struct {
        const char *script, *reason; /* NULL: passes */
        bool valid;
    } cases[] = {
        {"[ \"$(cat)\" = 'a message' ] && printf MESSAGE", NULL, true},
        {"printf MESSAGE", NULL, true}, /* reads nothing */
        {"cat >/dev/null; printf MESSAGe", "byte 6 of the elements is 65, expected 45", true},
        {"cat >/dev/null; printf MESS", "4 bytes of elements, expected 7", true},
        {"cat >/dev/null; printf MESSAGES", "wrote more than 7 bytes", true},
        {"cat >/dev/null; printf MESSAGE; echo odd >&2; exit 3", "exit code 3: odd", true},
        {"cat >/dev/null; printf MESSAGE; kill -SEGV $$", "ended by signal 11", true},
        {"yes", "wrote more than 7 bytes", true},
        {"cat >/dev/null; exit 1", NULL, false},
        {"printf MESS; exit 255", NULL, false},
        {"cat >/dev/null", "accepted", false},
        {"cat >/dev/null; kill -ABRT $$", "ended by signal 6", false},
        {"yes", "wrote more than 1048576 bytes for a message to be refused", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zipccl_verdict verdict = judge_script(cases[i].script, cases[i].valid);
        cr_expect_eq(verdict.passed, cases[i].reason == NULL, "%s", cases[i].script);
        cr_expect(verdict.passed || strstr(verdict.reason, cases[i].reason), "%s: %s",
                  cases[i].script, verdict.reason);
    }
}

Test(codec_conform, one_that_does_not_end_is_ended_with_its_children)
{
    char *command[] = {(char *)"sh", (char *)"-c", (char *)"cat >/dev/null; tail -f /dev/null",
                       NULL};
    struct zipccl_filter_result run;
    struct zipccl_error error = {""};
    uint8_t output[16];
    cr_assert_eq(
        zipccl_filter_run(command, wire, sizeof wire, 0.05, output, sizeof output, &run, &error),
        ZIPCCL_OK, "%s", error.text);
    cr_expect(run.timed_out && run.exit_code == -1 && run.signal == SIGKILL);
}

Test(codec_conform, large_inputs_and_outputs_do_not_lock_up)
{
    char *command[] = {(char *)"cat", NULL};
    size_t n = 3000000;
    uint8_t *input = calloc(n, 1), *output = malloc(n);
    struct zipccl_filter_result run;
    struct zipccl_error error = {""};
    input[n - 1] = 7;
    signal(SIGPIPE, SIG_IGN);
    cr_assert_eq(zipccl_filter_run(command, input, n, 60, output, n, &run, &error), ZIPCCL_OK);
    cr_expect(!run.timed_out && run.exit_code == 0 && run.nbytes == n);
    cr_expect(memcmp(input, output, n) == 0);
    free(input);
    free(output);
}

Test(codec_conform, the_trees_vectors_load)
{
    struct zipccl_vectors vectors;
    struct zipccl_error error = {""};
    size_t nvalid = 0;
    cr_assert_eq(zipccl_vectors_load("core/tests/vectors", &vectors, &error), ZIPCCL_OK, "%s",
                 error.text);
    for (size_t i = 0; i < vectors.count; i++)
        nvalid += vectors.vectors[i].valid;
    cr_expect_gt(nvalid, 50);
    cr_expect_gt(vectors.count - nvalid, 90);
    zipccl_vectors_destroy(&vectors);
}
