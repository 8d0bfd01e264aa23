/*
 * import_command.h - zipccl trace import
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_IMPORT_COMMAND_H
#define ZIPCCL_EXPERIMENTS_IMPORT_COMMAND_H

/* Run the command; 'argv'[0] is "import".  Returns an exit code. */
int zipccl_import_command(int argc, char **argv);

#endif
