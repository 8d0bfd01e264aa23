# SPDX-License-Identifier: Apache-2.0
# sources.cmake - the codec's files and the flags of its instruction-set rows
