// Generates random UUIDs (RFC 9562, version 4), or tokens: random bytes in base64 for URLs (RFC 4648, section 5).

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

static const char PARAMETERS_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"format\": {\"type\": \"string\", \"enum\": [\"uuid\", \"token\"], \"default\": \"uuid\"},"
    "\"bytes\": {\"description\": \"Number of random bytes in a token.\","
    " \"type\": \"integer\", \"minimum\": 16, \"maximum\": 64, \"default\": 32}}}";
static const char VALUE_SCHEMA[] = "{\"type\": \"string\", \"pattern\": \"^[A-Za-z0-9_-]{22,86}$\", \"writeOnly\": true}";
static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void exports_keywright_generator_descriptor_describe(exports_keywright_generator_descriptor_description_t *description) {
  memset(description, 0, sizeof *description);
  plugin_string_dup(&description->credential_type, "uuid");
  plugin_string_dup(&description->plugin_version, "0.1.0");
  plugin_string_dup(&description->summary, "UUIDs and tokens");
  plugin_string_dup(&description->parameters_schema, PARAMETERS_SCHEMA);
  plugin_string_dup(&description->value_schema, VALUE_SCHEMA);
  description->entropy_bits_min.is_some = true;
  description->entropy_bits_min.val = 122;
}

// Two digits per byte, grouped by hyphens: 8-4-4-4-12.
static char *write_uuid(char *out, uint8_t *bytes) {
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // The version.
  bytes[8] = (bytes[8] & 0x3f) | 0x80; // The variant.
  for (int i = 0; i < 16; i++) {
    out += sprintf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
  }
  return out;
}

// One character per six bits; the last one is padded with zero bits.
static char *write_token(char *out, const uint8_t *bytes, size_t length) {
  for (size_t bit = 0; bit < 8 * length; bit += 6) {
    unsigned pair = bytes[bit / 8] << 8 | (bit / 8 + 1 < length ? bytes[bit / 8 + 1] : 0);
    *out++ = ALPHABET[pair >> (10 - bit % 8) & 63];
  }
  return out;
}

bool exports_keywright_generator_generator_generate(exports_keywright_generator_generator_generation_t *generation,
                                                    plugin_string_t *value,
                                                    exports_keywright_generator_generator_failure_t *failure) {
  (void)failure; // The host has validated the parameters against the schema.
  char *parameters = strndup((char *)generation->parameters.ptr, generation->parameters.len);
  bool is_token = strstr(parameters, "\"token\"");
  size_t length = is_token ? atoi(strpbrk(strstr(parameters, "\"bytes\""), "0123456789")) : 16;
  plugin_list_u8_t bytes;
  wasi_random_random_get_random_bytes(length, &bytes);
  char text[90] = "\"", *end = is_token ? write_token(text + 1, bytes.ptr, length) : write_uuid(text + 1, bytes.ptr);
  *end = '"';
  plugin_string_dup(value, text);
  return true;
}
