/*
 * test_cluster_plain.c - clusters as plain text: values, --set, and what is wrong with a file
 *
 * Linked with the reader that builds without libcyaml have.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char good[] = "# a comment\n"
                           "name\tone\ndescription\tmade for a test\n"
                           "nodes\t4\tset\ngpus_per_node\t8\tset\n"
                           "gpu.name\tH100 SXM\tset\ngpu.sms\t132\tset\n"
                           "gpu.hbm_rate\t3TBps\tset\ngpu.memory\t80GB\tset\n"
                           "gpu.flops\t400TFLOPS\tset\n"
                           "nvlink.rate\t370GBps\tset\nnvlink.alpha\t3us\tset\n"
                           "nic.per_node\t8\tset\nnic.rate\t49GBps\tset\nnic.alpha\t5us\tset\n"
                           "fabric.oversubscription\t1\tset\nnccl.channels\t16\tset\n"
                           "codec.encode_rate\t400GBps\tset\ncodec.decode_rate\t400GBps\tset\n"
                           "codec.sms\t32\tset\ncodec.launch\t4us\tset\ncodec.fence\t8us\tset\n"
                           "\n"
                           "compute.hbm_share\t0.3\tset\n";

static int failures;

static void fails(const char *what, const char *found)
{
    printf("%s: found \"%s\"\n", what, found);
    failures++;
}

/* Open 'text' as a file. */
static zipccl_status open_text(const char *text, struct zipccl_cluster_file **file,
                               struct zipccl_error *error)
{
    char path[] = "/tmp/zipccl-cluster-XXXXXX";
    int fd = mkstemp(path);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    zipccl_status status;

    if (out == NULL)
        abort();
    fputs(text, out);
    fclose(out);
    status = zipccl_cluster_open(path, NULL, file, error);
    unlink(path);
    return status;
}

static void test_good(void)
{
    struct zipccl_cluster_file *file;
    struct zipccl_error error = {""};
    struct zipccl_cluster c;

    if (open_text(good, &file, &error) != ZIPCCL_OK) {
        fails("a good file", error.text);
        return;
    }
    if (zipccl_cluster_set(file, "nic.rate=25GBps", &error) != ZIPCCL_OK ||
        zipccl_cluster_get(file, &c, &error) != ZIPCCL_OK)
        fails("--set", error.text);
    else if (c.nodes != 4 || c.nic_Bps != 25e9 || c.nvlink_alpha_s != 3e-6 ||
             strcmp(c.gpu_name, "H100 SXM") != 0 || c.ratio_encode_Bps != 0)
        fails("values", c.gpu_name);
    zipccl_cluster_close(file);
}

/* 'good' with 'from' replaced by 'to' is refused, with 'says' in the error. */
static void refuses(const char *from, const char *to, const char *says)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_error error = {""};
    const char *at = strstr(good, from);
    char text[4096];

    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    if (open_text(text, &file, &error) == ZIPCCL_OK) {
        fails(says, "no error");
        zipccl_cluster_close(file);
    } else if (strstr(error.text, says) == NULL) {
        fails(says, error.text);
    }
}

int main(void)
{
    test_good();
    refuses("nodes\t4\tset", "nodes: 4", "line 4: \"nodes: 4\", expected a key, a tab");
    refuses("nodes\t4\tset", "nodes\t\tset", "line 4: \"nodes\", expected a key, a tab");
    refuses("nodes\t4\tset", "nodes\t4", "line 4: key \"nodes\" has no source");
    refuses("nodes\t4\tset", "node\t4\tset", "unknown key \"node\"; did you mean \"nodes\"?");
    refuses("nodes\t4\tset", "nodes\t4\tset\nnodes\t5\tset",
            "line 5: key \"nodes\" is there twice");
    refuses("nodes\t4\tset", "nodes\tx\tset", "line 4: key \"nodes\"");
    refuses("nodes\t4\tset\n", "", "key \"nodes\" is missing");
    refuses("name\tone\n", "", "key \"name\" is missing");
    refuses("nic.per_node\t8", "nic.per_node\t3", "expected a divisor");
    return failures > 0;
}
