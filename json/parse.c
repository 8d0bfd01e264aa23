/*
 * parse.c - read JSON byte by byte, so that a text may come in any pieces
 *
 * Two small machines: one follows the grammar (what is due), one the token that is being read.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/yajl/yajl_parse.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the grammar wants next. */
enum due { VALUE, ITEM_OR_END, KEY_OR_END, KEY, COLON, COMMA_OR_END, NOTHING };

/* What is being read. */
enum token {
    NONE,
    LITERAL,
    MINUS, /* numbers: after what */
    ZERO,
    INTEGER,
    POINT,
    FRACTION,
    E,
    E_SIGN,
    EXPONENT,
    STRING,
    MULTIBYTE, /* inside a UTF-8 sequence */
    ESCAPE,
    HEX,
    LOW_ESCAPE, /* the backslash and the u that must follow a high surrogate */
    LOW_U,
    SLASH,
    LINE_COMMENT,
    COMMENT,
    COMMENT_STAR
};

struct yajl_handle_t {
    const yajl_callbacks *callbacks;
    void *context;
    bool comments;
    yajl_status status;
    const char *reason; /* NULL unless status is yajl_status_error */
    size_t before;      /* bytes of the pieces before the last */
    size_t consumed;    /* of the last piece */
    enum due due;
    enum token token;
    unsigned depth;
    bool object[ZIPCCL_YAJL_DEPTH];

    char *text; /* of the number or string that is being read */
    size_t nbytes, room;
    const char *literal;       /* what is left of it */
    unsigned char first;       /* its first letter */
    unsigned code, high, nhex; /* of \u; the high surrogate that came before, 0 if none */
    unsigned more;             /* bytes to come in a UTF-8 sequence */
    unsigned char low, top;    /* bounds of its next byte */
};

static const yajl_callbacks no_callbacks;

yajl_handle yajl_alloc(const yajl_callbacks *callbacks, yajl_alloc_funcs *functions, void *context)
{
    yajl_handle h = functions == NULL ? calloc(1, sizeof *h) : NULL;

    if (h == NULL)
        return NULL;
    h->callbacks = callbacks != NULL ? callbacks : &no_callbacks;
    h->context = context;
    return h;
}

void yajl_free(yajl_handle h)
{
    if (h == NULL)
        return;
    free(h->text);
    free(h);
}

int yajl_config(yajl_handle h, yajl_option option, ...)
{
    va_list list;

    if (option != yajl_allow_comments)
        return 0;
    va_start(list, option);
    h->comments = va_arg(list, int) != 0;
    va_end(list);
    return 1;
}

/* Steps return true to go on; a false one has set the status. */
static bool fail(yajl_handle h, const char *reason)
{
    h->status = yajl_status_error;
    h->reason = reason;
    return false;
}

static bool told(yajl_handle h, int answer)
{
    if (answer == 0)
        h->status = yajl_status_client_canceled;
    return answer != 0;
}

static bool keep(yajl_handle h, const void *bytes, size_t n)
{
    if (n > h->room - h->nbytes) {
        size_t room = h->room < 64 ? 64 : h->room;
        char *text;

        while (room - h->nbytes < n)
            if (room > SIZE_MAX / 2)
                return fail(h, "out of memory");
            else
                room *= 2;
        text = realloc(h->text, room);
        if (text == NULL)
            return fail(h, "out of memory");
        h->text = text;
        h->room = room;
    }
    memcpy(h->text + h->nbytes, bytes, n);
    h->nbytes += n;
    return true;
}

/* Keep one byte, and be in 'next'. */
static bool keep_byte(yajl_handle h, unsigned char c, enum token next)
{
    h->token = next;
    return keep(h, &c, 1);
}

/* A value has ended. */
static void after_value(yajl_handle h)
{
    h->due = h->depth > 0 ? COMMA_OR_END : NOTHING;
    h->token = NONE;
}

static bool end_literal(yajl_handle h)
{
    after_value(h);
    if (h->first == 'n')
        return h->callbacks->yajl_null == NULL || told(h, h->callbacks->yajl_null(h->context));
    return h->callbacks->yajl_boolean == NULL ||
           told(h, h->callbacks->yajl_boolean(h->context, h->first == 't'));
}

static bool end_number(yajl_handle h)
{
    after_value(h);
    return h->callbacks->yajl_number == NULL ||
           told(h, h->callbacks->yajl_number(h->context, h->text, h->nbytes));
}

static bool end_string(yajl_handle h)
{
    int (*tell)(void *, const unsigned char *, size_t) = h->callbacks->yajl_string;

    if (h->due == KEY || h->due == KEY_OR_END) {
        tell = h->callbacks->yajl_map_key;
        h->due = COLON;
        h->token = NONE;
    } else {
        after_value(h);
    }
    /* An empty string has an address too. */
    return tell == NULL ||
           told(h,
                tell(h->context, (const unsigned char *)(h->nbytes > 0 ? h->text : ""), h->nbytes));
}

static bool begin(yajl_handle h, bool object)
{
    int (*tell)(void *) = object ? h->callbacks->yajl_start_map : h->callbacks->yajl_start_array;

    if (h->depth == ZIPCCL_YAJL_DEPTH)
        return fail(h, "parse error: values nested more than 512 deep");
    h->object[h->depth++] = object;
    h->due = object ? KEY_OR_END : ITEM_OR_END;
    return tell == NULL || told(h, tell(h->context));
}

static bool end(yajl_handle h)
{
    int (*tell)(void *) =
        h->object[h->depth - 1] ? h->callbacks->yajl_end_map : h->callbacks->yajl_end_array;

    h->depth--;
    after_value(h);
    return tell == NULL || told(h, tell(h->context));
}

static bool begin_value(yajl_handle h, unsigned char c)
{
    h->nbytes = 0;
    switch (c) {
    case '{': return begin(h, true);
    case '[': return begin(h, false);
    case '"': h->token = STRING; return true;
    case '-': return keep_byte(h, c, MINUS);
    case '0': return keep_byte(h, c, ZERO);
    case 't': h->literal = "rue"; break;
    case 'f': h->literal = "alse"; break;
    case 'n': h->literal = "ull"; break;
    default:
        if (c >= '1' && c <= '9')
            return keep_byte(h, c, INTEGER);
        if (c == ']' && h->due == VALUE && h->depth > 0 && !h->object[h->depth - 1])
            return fail(h, "parse error: ']' after a comma, expected a value");
        return fail(h, h->due == ITEM_OR_END ? "parse error: expected a value or ']'"
                                             : "parse error: expected a value");
    }
    h->first = c;
    h->token = LITERAL;
    return true;
}

static bool key(yajl_handle h, unsigned char c)
{
    if (c == '}' && h->due == KEY_OR_END)
        return end(h);
    if (c != '"')
        return fail(h, h->due == KEY ? "parse error: expected a key, which is a string"
                                     : "parse error: expected a key, which is a string, or '}'");
    h->nbytes = 0;
    h->token = STRING;
    return true;
}

static bool comma_or_end(yajl_handle h, unsigned char c)
{
    bool object = h->object[h->depth - 1];

    if (c == (object ? '}' : ']'))
        return end(h);
    if (c != ',')
        return fail(h, object ? "parse error: expected ',' or '}' after a value"
                              : "parse error: expected ',' or ']' after a value");
    h->due = object ? KEY : VALUE;
    return true;
}

/* A byte between tokens. */
static bool between(yajl_handle h, unsigned char c)
{
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t')
        return true;
    if (c == '/' && h->comments) {
        h->token = SLASH;
        return true;
    }
    switch (h->due) {
    case KEY_OR_END:
    case KEY: return key(h, c);
    case COLON: h->due = VALUE; return c == ':' || fail(h, "parse error: expected ':' after a key");
    case COMMA_OR_END: return comma_or_end(h, c);
    case NOTHING: return fail(h, "parse error: trailing garbage, expected nothing after the value");
    case ITEM_OR_END:
        if (c == ']')
            return end(h);
        break;
    case VALUE: break;
    }
    return begin_value(h, c);
}

static bool literal(yajl_handle h, unsigned char c)
{
    if (c != (unsigned char)*h->literal)
        return fail(h, "lexical error: expected true, false or null");
    if (*++h->literal != '\0')
        return true;
    return end_literal(h);
}

/* What follows 'token' of a number when 'c' comes; NONE if the number does not go on. */
static enum token number_next(enum token token, unsigned char c)
{
    bool digit = c >= '0' && c <= '9';

    switch (token) {
    case MINUS: return c == '0' ? ZERO : digit ? INTEGER : NONE;
    case ZERO: return c == '.' ? POINT : (c | 0x20) == 'e' ? E : NONE;
    case INTEGER: return digit ? INTEGER : c == '.' ? POINT : (c | 0x20) == 'e' ? E : NONE;
    case POINT: return digit ? FRACTION : NONE;
    case FRACTION: return digit ? FRACTION : (c | 0x20) == 'e' ? E : NONE;
    case E: return c == '+' || c == '-' ? E_SIGN : digit ? EXPONENT : NONE;
    default: return digit ? EXPONENT : NONE;
    }
}

/* The number ends here, if it may. */
static bool finish_number(yajl_handle h)
{
    switch (h->token) {
    case MINUS: return fail(h, "lexical error: expected a digit after '-'");
    case POINT: return fail(h, "lexical error: expected a digit after '.'");
    case E:
    case E_SIGN: return fail(h, "lexical error: expected a digit in the exponent");
    default: return end_number(h);
    }
}

static bool number(yajl_handle h, unsigned char c)
{
    enum token next = number_next(h->token, c);

    if (next != NONE)
        return keep_byte(h, c, next);
    if (h->token == ZERO && c >= '0' && c <= '9')
        return fail(h, "lexical error: a digit after a leading 0");
    return finish_number(h) && between(h, c);
}

/* The first byte of a UTF-8 sequence: RFC 3629, section 4. */
static bool multibyte(yajl_handle h, unsigned char c)
{
    h->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    h->top = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    h->more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    if (c < 0xc2 || c > 0xf4)
        return fail(h, "lexical error: a byte that is not UTF-8");
    return keep_byte(h, c, MULTIBYTE);
}

static bool multibyte_next(yajl_handle h, unsigned char c)
{
    if (c < h->low || c > h->top)
        return fail(h, "lexical error: a byte that is not UTF-8");
    h->low = 0x80;
    h->top = 0xbf;
    return keep_byte(h, c, --h->more > 0 ? MULTIBYTE : STRING);
}

static bool string(yajl_handle h, unsigned char c)
{
    if (c == '"')
        return end_string(h);
    if (c == '\\') {
        h->token = ESCAPE;
        return true;
    }
    if (c < 0x20)
        return fail(h, "lexical error: a control character in a string, expected its escape");
    return c < 0x80 ? keep_byte(h, c, STRING) : multibyte(h, c);
}

static bool escape(yajl_handle h, unsigned char c)
{
    switch (c) {
    case '"':
    case '\\':
    case '/': return keep_byte(h, c, STRING);
    case 'b': return keep_byte(h, '\b', STRING);
    case 'f': return keep_byte(h, '\f', STRING);
    case 'n': return keep_byte(h, '\n', STRING);
    case 'r': return keep_byte(h, '\r', STRING);
    case 't': return keep_byte(h, '\t', STRING);
    case 'u':
        h->token = HEX;
        h->code = h->high = h->nhex = 0;
        return true;
    default: return fail(h, "lexical error: an escape that JSON does not have");
    }
}

/* The UTF-8 of 'code', which is no surrogate. */
static bool keep_code(yajl_handle h, unsigned code)
{
    unsigned char out[4];
    size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    out[0] = (unsigned char)(lead[n] | code);
    h->token = STRING;
    return keep(h, out, n);
}

static bool hex(yajl_handle h, unsigned char c)
{
    unsigned char letter = c | 0x20;

    if (!(c >= '0' && c <= '9') && !(letter >= 'a' && letter <= 'f'))
        return fail(h, "lexical error: expected four hexadecimal digits after \\u");
    h->code = h->code << 4 | (unsigned)(c <= '9' ? c - '0' : letter - 'a' + 10);
    if (++h->nhex < 4)
        return true;
    if (h->high != 0) {
        if (h->code < 0xdc00 || h->code > 0xdfff)
            return fail(h, "lexical error: expected a low surrogate after a high one");
        return keep_code(h, 0x10000 + ((h->high - 0xd800) << 10) + (h->code - 0xdc00));
    }
    if (h->code >= 0xdc00 && h->code <= 0xdfff)
        return fail(h, "lexical error: a low surrogate without a high one before it");
    if (h->code < 0xd800 || h->code > 0xdbff)
        return keep_code(h, h->code);
    h->high = h->code;
    h->code = h->nhex = 0;
    h->token = LOW_ESCAPE;
    return true;
}

static bool low_surrogate(yajl_handle h, unsigned char c)
{
    if (c != (h->token == LOW_ESCAPE ? '\\' : 'u'))
        return fail(h, "lexical error: expected a low surrogate after a high one");
    h->token = h->token == LOW_ESCAPE ? LOW_U : HEX;
    return true;
}

static bool comment(yajl_handle h, unsigned char c)
{
    switch (h->token) {
    case SLASH:
        h->token = c == '/' ? LINE_COMMENT : COMMENT;
        return c == '/' || c == '*' || fail(h, "lexical error: expected a comment after '/'");
    case LINE_COMMENT: h->token = c == '\n' ? NONE : LINE_COMMENT; return true;
    case COMMENT: h->token = c == '*' ? COMMENT_STAR : COMMENT; return true;
    default: h->token = c == '/' ? NONE : c == '*' ? COMMENT_STAR : COMMENT; return true;
    }
}

static bool step(yajl_handle h, unsigned char c)
{
    switch (h->token) {
    case NONE: return between(h, c);
    case LITERAL: return literal(h, c);
    case STRING: return string(h, c);
    case MULTIBYTE: return multibyte_next(h, c);
    case ESCAPE: return escape(h, c);
    case HEX: return hex(h, c);
    case LOW_ESCAPE:
    case LOW_U: return low_surrogate(h, c);
    case SLASH:
    case LINE_COMMENT:
    case COMMENT:
    case COMMENT_STAR: return comment(h, c);
    default: return number(h, c);
    }
}

/* The bytes of 'text' that stand for themselves in a string. */
static size_t plain(const unsigned char *text, size_t nbytes)
{
    size_t n = 0;

    while (n < nbytes && text[n] >= 0x20 && text[n] < 0x80 && text[n] != '"' && text[n] != '\\')
        n++;
    return n;
}

yajl_status yajl_parse(yajl_handle h, const unsigned char *text, size_t nbytes)
{
    size_t i = 0;

    if (h->status != yajl_status_ok)
        return h->status;
    h->before += h->consumed;
    while (i < nbytes) {
        size_t n = h->token == STRING ? plain(text + i, nbytes - i) : 0;

        h->consumed = i;
        if (n > 0 ? !keep(h, text + i, n) : !step(h, text[i]))
            return h->status;
        i += n > 0 ? n : 1;
    }
    h->consumed = nbytes;
    return yajl_status_ok;
}

yajl_status yajl_complete_parse(yajl_handle h)
{
    if (h->status != yajl_status_ok)
        return h->status;
    if (h->token >= MINUS && h->token <= EXPONENT && !finish_number(h))
        return h->status;
    if (h->token == LINE_COMMENT)
        h->token = NONE;
    if (h->due != NOTHING || h->token != NONE)
        fail(h, "parse error: premature EOF");
    return h->status;
}

size_t yajl_get_bytes_consumed(yajl_handle h)
{
    return h->consumed;
}

unsigned char *yajl_get_error(yajl_handle h, int verbose, const unsigned char *text, size_t nbytes)
{
    const char *reason = h->status == yajl_status_ok                ? "no error"
                         : h->status == yajl_status_client_canceled ? "stopped by the caller"
                                                                    : h->reason;
    size_t size = strlen(reason) + 96, used, from = h->consumed < nbytes ? h->consumed : nbytes;
    char *message = malloc(size);

    if (message == NULL)
        return NULL;
    used = (size_t)snprintf(message, size, "%s\n", reason);
    if (verbose) {
        used +=
            (size_t)snprintf(message + used, size - used, "at byte %zu", h->before + h->consumed);
        for (size_t i = from; i < nbytes && i < from + 24; i++)
            used += (size_t)snprintf(message + used, size - used, "%s%c", i == from ? ": " : "",
                                     text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?');
        snprintf(message + used, size - used, "\n");
    }
    return (unsigned char *)message;
}

void yajl_free_error(yajl_handle h, unsigned char *message)
{
    (void)h;
    free(message);
}
