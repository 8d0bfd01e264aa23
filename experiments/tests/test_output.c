/*
 * test_output.c - result files appear whole or not at all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/output.h"
#include "experiments/program/program.h"

#include <criterion/criterion.h>

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/zipccl-output-XXXXXX";

static void make_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static int count_files(void)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int n = 0;

    cr_assert_not_null(dir);
    while ((entry = readdir(dir)) != NULL)
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void remove_folder(void)
{
    cr_assert_eq(chdir("/"), 0);
    cr_assert_eq(rmdir(folder), 0);
}

Test(output, appears_only_when_committed, .init = make_folder, .fini = remove_folder)
{
    struct zipccl_output output;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_output_check(&output, "out", &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(count_files(), 0);
    cr_assert_eq(zipccl_output_open(&output, &error), ZIPCCL_OK, "%s", error.text);
    fputs("text", output.file);
    cr_assert_neq(access("out", F_OK), 0);
    cr_assert_eq(zipccl_output_close(&output, &error), ZIPCCL_OK);
    cr_assert_neq(access("out", F_OK), 0);
    cr_assert_eq(zipccl_output_commit(&output, &error), ZIPCCL_OK);
    cr_assert_eq(access("out", F_OK), 0);
    zipccl_output_discard(&output);
    cr_assert_eq(count_files(), 1);
    unlink("out");
}

Test(output, leaves_nothing_when_discarded, .init = make_folder, .fini = remove_folder)
{
    struct zipccl_output output;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_output_check(&output, "out", &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_output_open(&output, &error), ZIPCCL_OK);
    fputs("text", output.file);
    zipccl_output_discard(&output);
    cr_assert_eq(count_files(), 0);
}

Test(output, tells_what_cannot_be_written, .init = make_folder, .fini = remove_folder)
{
    static const char *const paths[] = {"none/out", ".", ""};
    struct zipccl_output output;

    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct zipccl_error error = {""};

        cr_assert_neq(zipccl_output_check(&output, paths[i], &error), ZIPCCL_OK, "%s", paths[i]);
        cr_assert_neq(error.text[0], '\0');
    }
    cr_assert_eq(count_files(), 0);
}

Test(output, knows_a_file_by_any_of_its_names, .init = make_folder, .fini = remove_folder)
{
    struct zipccl_output output;
    struct zipccl_error error = {""};

    cr_assert_eq(symlink("a", "b"), 0);
    cr_assert_eq(zipccl_output_check(&output, "b", &error), ZIPCCL_OK, "%s", error.text);
    cr_assert(zipccl_output_is(&output, "./a"));
    cr_assert_not(zipccl_output_is(&output, "c"));
    unlink("b");
}

Test(output, writes_through_a_link, .init = make_folder, .fini = remove_folder)
{
    struct zipccl_output output;
    struct zipccl_error error = {""};
    struct stat info;

    cr_assert_eq(symlink("a", "b"), 0);
    cr_assert_eq(zipccl_output_check(&output, "b", &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_output_open(&output, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_output_close(&output, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_output_commit(&output, &error), ZIPCCL_OK);
    cr_assert(lstat("b", &info) == 0 && S_ISLNK(info.st_mode));
    cr_assert(lstat("a", &info) == 0 && S_ISREG(info.st_mode));
    unlink("a");
    unlink("b");
}

Test(program, suggests_the_nearest_name)
{
    static const char *const names[] = {"replay", "trace", "cluster", NULL};

    cr_assert_str_eq(zipccl_nearest_name("reply", names), "replay");
    cr_assert_str_eq(zipccl_nearest_name("clusters", names), "cluster");
    cr_assert_str_eq(zipccl_nearest_name("clu", names), "cluster");
    cr_assert_null(zipccl_nearest_name("frobnicate", names));
}
