/*
 * program.c - what every program of the suite shares: exit codes, error line, its own place, names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/program.h"

#include "core/dtype.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

int zipccl_exit_code(zipccl_status status)
{
    switch (status) {
    case ZIPCCL_OK: return ZIPCCL_EXIT_OK;
    case ZIPCCL_ERR_INPUT:
    case ZIPCCL_ERR_IO:
    case ZIPCCL_ERR_CORRUPT:
    case ZIPCCL_ERR_UNSUPPORTED: return ZIPCCL_EXIT_USAGE;
    default: return ZIPCCL_EXIT_FAILED;
    }
}

/* One line whatever the text holds: paths may contain anything. */
static void print_line(const char *program, const char *text)
{
    char line[640];
    size_t n = 0;

    for (; *text != '\0' && n + 1 < sizeof line; text++)
        line[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
    line[n] = '\0';
    fprintf(stderr, "%s: %s\n", program, line);
}

int zipccl_print_error(const char *program, zipccl_status status, const struct zipccl_error *error)
{
    print_line(program, error->text[0] != '\0' ? error->text : zipccl_status_string(status));
    return zipccl_exit_code(status);
}

int zipccl_usage_error(const char *program, const char *format, ...)
{
    char text[600];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_line(program, text);
    return ZIPCCL_EXIT_USAGE;
}

int zipccl_finish_output(const char *program, int code)
{
    errno = 0;
    bool lost = fflush(stdout) != 0 || ferror(stdout);
    int reason = errno;

    if (!lost || code != ZIPCCL_EXIT_OK)
        return code;
    if (reason != EPIPE)
        fprintf(stderr, "%s: standard output: cannot write%s%s\n", program, reason != 0 ? ": " : "",
                reason != 0 ? strerror(reason) : "");
    return ZIPCCL_EXIT_FAILED;
}

zipccl_status zipccl_beside_program(const char *name, char *out, size_t size,
                                    struct zipccl_error *error)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

    if (n <= 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot find the program's own folder: %s",
                           strerror(errno));
    self[n] = '\0';
    char *slash = strrchr(self, '/');
    if (slash == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "cannot find the program's own folder");
    slash[1] = '\0';
    if (snprintf(out, size, "%s%s", self, name) >= (int)size)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "the program's path is too long");
    return ZIPCCL_OK;
}

/* Levenshtein distance of two short words; large if one is too long to compare. */
static size_t edit_distance(const char *a, const char *b)
{
    enum { MAX_WORD = 48 };
    size_t na = strlen(a), nb = strlen(b), row[MAX_WORD + 1];

    if (na > MAX_WORD || nb > MAX_WORD)
        return MAX_WORD;
    for (size_t j = 0; j <= nb; j++)
        row[j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[nb];
}

const char *zipccl_nearest_name(const char *word, const char *const *names)
{
    const char *nearest = NULL;
    /* One change more than this is another word. */
    size_t least = 2 + (strlen(word) >= 4) + (strlen(word) >= 8);

    for (; *names != NULL; names++) {
        size_t distance = edit_distance(word, *names);

        if (strlen(word) >= 2 && strncmp(word, *names, strlen(word)) == 0)
            distance = 0;
        if (distance < least) {
            least = distance;
            nearest = *names;
        }
    }
    return nearest;
}

/* What argp cannot tell without printing: which argument it did not like, and why. */
static int option_error(const struct argp_option *options, const char *word, const char *program)
{
    const char *names[64];
    char name[64];
    size_t n = 0;

    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (; options->name != NULL || options->doc != NULL; options++) {
        bool is_long = options->name != NULL && strncmp(word, "--", 2) == 0 &&
                       strcmp(name + 2, options->name) == 0;
        bool is_short = word[0] == '-' && word[1] != '-' && word[1] == options->key;

        if (is_short && options->arg == NULL)
            return zipccl_usage_error(program, "unknown option in '%s'", name);
        if (is_long || is_short)
            return options->arg != NULL
                       ? zipccl_usage_error(program, "option '%s' needs a value (%s)", name,
                                            options->arg)
                       : zipccl_usage_error(program, "option '%s' takes no value", name);
        if (options->name != NULL && n + 1 < sizeof names / sizeof *names)
            names[n++] = options->name;
    }
    names[n] = NULL;
    const char *nearest = strncmp(word, "--", 2) == 0 ? zipccl_nearest_name(name + 2, names) : NULL;
    if (nearest != NULL)
        return zipccl_usage_error(program, "unknown option '%s'; did you mean '--%s'?", name,
                                  nearest);
    return zipccl_usage_error(program, "unknown option '%s'; --help lists them", name);
}

struct parse_state {
    const struct argp *argp;
    const char *program, *usage_name;
    void *input;
    bool *helped;
    int next; /* index after the argument that ended the parse */
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct parse_state *parse_state = state->input;

    switch (key) {
    case ARGP_KEY_INIT: state->child_inputs[0] = parse_state->input; return 0;
    case 'h':
        argp_help(parse_state->argp, stdout, ARGP_HELP_STD_HELP & ~ARGP_HELP_EXIT_OK,
                  (char *)parse_state->usage_name);
        *parse_state->helped = true;
        state->next = state->argc;
        return ECANCELED;
    case ARGP_KEY_ERROR: parse_state->next = state->next; return 0;
    default: (void)arg; return ARGP_ERR_UNKNOWN;
    }
}

int zipccl_parse_options(const struct argp *argp, int argc, char **argv, const char *program,
                         const char *usage_name, void *input, bool *helped)
{
    static const struct argp_option own[] = {{"help", 'h', NULL, 0, "print this help", -1}, {0}};
    struct argp_child children[] = {{argp, 0, NULL, 0}, {0}};
    struct parse_state state = {argp, program, usage_name, input, helped, 0};
    struct argp wrapper = {own, parse, NULL, NULL, children, NULL, NULL};

    *helped = false;
    error_t result =
        argp_parse(&wrapper, argc, argv, ARGP_NO_ERRS | ARGP_NO_HELP | ARGP_NO_EXIT, NULL, &state);
    if (*helped || result == 0)
        return ZIPCCL_EXIT_OK;
    if (result == EINVAL && state.next > 0 && state.next <= argc)
        return option_error(argp->options, argv[state.next - 1], program);
    /* The parser of the command has told the reason. */
    return ZIPCCL_EXIT_USAGE;
}

int zipccl_parse_op(const char *program, const char *option, const char *text)
{
    const char *names[ZIPCCL_NUM_OPS + 1] = {NULL}, *nearest;
    char list[256] = "";
    enum zipccl_op op;
    size_t n = 0;

    if (zipccl_op_parse(text, &op))
        return (int)op;
    for (int i = 0; i < ZIPCCL_NUM_OPS; i++) {
        names[i] = zipccl_op_name((enum zipccl_op)i);
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s",
                              i == 0                    ? ""
                              : i + 1 == ZIPCCL_NUM_OPS ? " or "
                                                        : ", ",
                              names[i]);
    }
    nearest = zipccl_nearest_name(text, names);
    zipccl_usage_error(program, "%s '%s': expected %s%s%s%s", option, text, list,
                       nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                       nearest != NULL ? "'?" : "");
    return -1;
}

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void zipccl_print_version(const char *program, bool build, FILE *out)
{
    fprintf(out, "%s %s\n", program, ZIPCCL_VERSION);
    if (!build)
        return;
    fprintf(out, "compiler    %s\n", COMPILER);
    fprintf(out, "build type  %s\n", ZIPCCL_BUILD_TYPE);
    fprintf(out, "sanitizers  %s\n",
            ZIPCCL_BUILD_SANITIZE[0] != '\0' ? ZIPCCL_BUILD_SANITIZE : "none");
    fprintf(out, "MPI         %s\n", ZIPCCL_BUILD_MPI ? "yes, for zipccl-perf" : "no");
    fputs("CUDA        used by zipccl-perf-nccl, see docs/gpu-build.md\n", out);
#ifdef ZIPCCL_NO_YAML
    fputs("lacks       YAML (clusters are plain text), .gz, imports, simulation\n", out);
#endif
}
