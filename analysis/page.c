/*
 * page.c - what pages are made of: begin, end, headings, cells
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/page.h"

#include "analysis/document.h"
#include "analysis/page_style.h"

void zipccl_page_begin(const char *title, const char *style, FILE *out)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>",
          out);
    zipccl_put_escaped(title, out);
    fprintf(out, "</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<h1>", zipccl_page_style,
            style);
    zipccl_put_escaped(title, out);
    fputs("</h1>\n", out);
}

void zipccl_page_end(const char *source, FILE *out)
{
    fprintf(out, "<footer>Made by zipccl. %s</footer>\n</body>\n</html>\n", source);
}

void zipccl_page_heading(int level, const char *html, FILE *out)
{
    fprintf(out, "<h%d>%s</h%d>\n", level, html, level);
}

void zipccl_page_text(const char *text, FILE *out)
{
    fputs("<td class=\"l\">", out);
    zipccl_put_escaped(text, out);
    fputs("</td>", out);
}

void zipccl_page_number(double value, int decimals, FILE *out)
{
    fputs("<td>", out);
    zipccl_put_fixed(value, decimals, out);
    fputs("</td>", out);
}

void zipccl_page_value(yajl_val object, const char *key, double scale, int decimals, FILE *out)
{
    zipccl_page_number(zipccl_document_number(object, key) * scale, decimals, out);
}

void zipccl_page_term(const char *term, const char *text, FILE *out)
{
    if (text[0] == '\0')
        return;
    fprintf(out, "<dt>%s</dt><dd>", term);
    zipccl_put_escaped(text, out);
    fputs("</dd>\n", out);
}

void zipccl_page_notes(yajl_val result, const char *key, int level, const char *title, FILE *out)
{
    size_t n = zipccl_document_length(result, key);

    if (n == 0)
        return;
    zipccl_page_heading(level, title, out);
    fputs("<div class=\"scroll\"><table class=\"notes\"><thead><tr><th class=\"l\">name</th>"
          "<th class=\"l\">value</th><th class=\"l\">unit</th><th class=\"l\">source</th></tr>"
          "</thead><tbody>\n",
          out);
    for (size_t i = 0; i < n; i++) {
        yajl_val note = zipccl_document_item(result, key, i);
        yajl_val value = zipccl_document_get(note, "value");

        fputs("<tr>", out);
        zipccl_page_text(zipccl_document_text(note, "name"), out);
        zipccl_page_text(YAJL_IS_NUMBER(value) ? YAJL_GET_NUMBER(value)
                                               : zipccl_document_text(note, "value"),
                         out);
        zipccl_page_text(zipccl_document_text(note, "unit"), out);
        zipccl_page_text(zipccl_document_text(note, "source"), out);
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table></div>\n", out);
}
