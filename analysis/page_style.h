/*
 * page_style.h - the style sheet of all pages, light and dark
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_PAGE_STYLE_H
#define ZIPCCL_ANALYSIS_PAGE_STYLE_H

extern const char zipccl_page_style[];

#endif
