// Finds the references in documents: each string `((name))` refers to the credential `name`.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

// The operator's settings in the configuration of the plugin: none. A server refuses a configuration with other settings.
static const char SETTINGS_SCHEMA[] = "{\"type\": \"object\", \"additionalProperties\": false}";

typedef exports_keywright_interpolation_resolver_reference_t reference_t;
typedef exports_keywright_interpolation_resolver_failure_t failure_t;

// A part of the document, without a terminating zero.
typedef struct {
    char *start;
    size_t length;
} text_t;

// Selects the name of the credential that a string refers to, and returns whether there is one. EDIT THIS FUNCTION.
static bool referenced_name(text_t text, text_t *name) {
    if (text.length < 4 || memcmp(text.start, "((", 2) != 0 || memcmp(text.start + text.length - 2, "))", 2) != 0) return false;
    *name = (text_t){text.start + 2, text.length - 4};
    return true;
}

// The state of a search.
typedef struct {
    // The rest of the document. The host passes valid JSON.
    char *rest;
    // The JSON Pointer of the current value.
    text_t pointer;
    exports_keywright_interpolation_resolver_list_reference_t *found;
} search_t;

static void skip_space(search_t *search) { search->rest += strspn(search->rest, " \t\r\n"); }

// Appends bytes to a text that has enough memory.
static void append(text_t *text, const char *bytes, size_t length) {
    memmove(text->start + text->length, bytes, length);
    text->length += length;
}

// Decodes the four digits of an escape such as \u00e9, and skips them.
static unsigned code_unit(search_t *search) {
    char digits[5] = {0};
    memcpy(digits, search->rest, 4);
    search->rest += 4;
    return strtoul(digits, NULL, 16);
}

// Appends the character of an escape such as \u00e9, in UTF-8.
static void append_character(search_t *search, text_t *text) {
    unsigned code = code_unit(search);
    if (code >= 0xd800 && code < 0xe000) {
        // Two escapes encode a character above U+FFFF.
        search->rest += 2;
        code = 0x10000 + ((code - 0xd800) << 10) + (code_unit(search) - 0xdc00);
    }
    unsigned bytes = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (unsigned at = 0; at < bytes; at++) {
        unsigned part = code >> 6 * (bytes - 1 - at);
        append(text, (char[]){at == 0 ? FIRST[bytes] | part : 0x80 | (part & 0x3f)}, 1);
    }
}

// Decodes the next string, in place, because it has no more bytes than its JSON text.
static text_t string(search_t *search) {
    text_t text = {++search->rest, 0};
    for (;;) {
        size_t plain = strcspn(search->rest, "\"\\");
        append(&text, search->rest, plain);
        search->rest += plain + 1;
        if (search->rest[-1] == '"') return text;
        char escape = *search->rest++;
        const char *meaning = strchr("b\bf\fn\nr\rt\t", escape);
        if (escape == 'u') append_character(search, &text);
        else append(&text, meaning == NULL ? &escape : meaning + 1, 1);
    }
}

// Adds a reference if the string at the pointer is one. Reports a failure to the caller, with status 400, if it has no name. For a
// failure of the author or the operator, which a server only logs, use OTHER or MISCONFIGURED, without a part of the document.
static bool add_reference(search_t *search, text_t text, failure_t *failure) {
    text_t name;
    if (!referenced_name(text, &name)) return true;
    if (name.length == 0) {
        failure->tag = EXPORTS_KEYWRIGHT_INTERPOLATION_RESOLVER_FAILURE_INVALID_DOCUMENT;
        plugin_string_dup(&failure->val.invalid_document, "the reference (()) has no name");
        return false;
    }
    search->found->ptr = realloc(search->found->ptr, (search->found->len + 1) * sizeof(reference_t));
    reference_t *reference = &search->found->ptr[search->found->len++];
    plugin_string_dup_n(&reference->pointer, search->pointer.start, search->pointer.length);
    plugin_string_dup_n(&reference->name, name.start, name.length);
    return true;
}

// Appends the name of an object's field to the pointer.
static void append_name(text_t *pointer, text_t name) {
    append(pointer, "/", 1);
    for (size_t at = 0; at < name.length; at++) {
        char character = name.start[at];
        if (character == '~') append(pointer, "~0", 2);
        else if (character == '/') append(pointer, "~1", 2);
        else append(pointer, &character, 1);
    }
}

static void append_index(text_t *pointer, unsigned index) {
    char digits[12];
    append(pointer, digits, sprintf(digits, "/%u", index));
}

// Adds the references in the next value.
static bool add_references(search_t *search, failure_t *failure) {
    skip_space(search);
    char first = *search->rest;
    if (first == '"') return add_reference(search, string(search), failure);
    if (first != '{' && first != '[') {
        search->rest += strcspn(search->rest, ",]} \t\r\n");
        return true;
    }
    size_t length = search->pointer.length;
    for (unsigned index = 0; *search->rest != '}' && *search->rest != ']'; index++) {
        // The bracket, or a comma.
        search->rest++;
        skip_space(search);
        if (*search->rest == '}' || *search->rest == ']') break;
        if (first == '{') {
            append_name(&search->pointer, string(search));
            skip_space(search);
            search->rest++;
        } else {
            append_index(&search->pointer, index);
        }
        if (!add_references(search, failure)) return false;
        search->pointer.length = length;
        skip_space(search);
    }
    search->rest++;
    return true;
}

void exports_keywright_interpolation_settings_descriptor_describe_settings(plugin_string_t *schema) {
    plugin_string_dup(schema, SETTINGS_SCHEMA);
}

bool exports_keywright_interpolation_resolver_find_references(plugin_string_t *document, plugin_string_t *settings,
                                                              exports_keywright_interpolation_resolver_list_reference_t *found,
                                                              failure_t *failure) {
    *found = (exports_keywright_interpolation_resolver_list_reference_t){0};
    char *text = strndup((char *)document->ptr, document->len);
    // Escapes at most double the length of the names in a pointer.
    search_t search = {text, {malloc(2 * document->len), 0}, found};
    bool is_valid = add_references(&search, failure);
    free(search.pointer.start);
    free(text);
    plugin_string_free(document);
    plugin_string_free(settings);
    return is_valid;
}
