// Generates values of the type `sample-token`: random bytes in hexadecimal.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin.
static const char PARAMETERS_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"length\": {\"description\":"
    " \"Number of random bytes.\", \"type\": \"integer\", \"minimum\": 16, \"maximum\": 64, \"default\": 32}}}";

// The generated value. Mark secret parts as `writeOnly`.
static const char VALUE_SCHEMA[] =
    "{\"type\": \"string\", \"pattern\": \"^([0-9a-f]{2}){16,64}$\", \"writeOnly\": true}";

// The operator's settings, such as `settings = { length_max = 48 }` in the configuration of the plugin. A server refuses a
// configuration with other settings.
static const char SETTINGS_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"length_max\": {\"description\":"
    " \"Maximum of the parameter length.\", \"type\": \"integer\", \"minimum\": 16}}}";

typedef exports_keywright_generator_generator_failure_t failure_t;

// Reports a failure to the caller, with status 400: a parameter breaks a rule. For a field of a value in `accept` and `recover`, use
// INVALID_VALUE in the same way. For a failure of the author or the operator, which a server only logs, use OTHER or MISCONFIGURED.
static void invalid(failure_t *failure, const char *parameter, const char *rule) {
    failure->tag = KEYWRIGHT_GENERATOR_TYPES_FAILURE_INVALID_PARAMETERS;
    failure->val.invalid_parameters.member.is_some = true;
    plugin_string_dup(&failure->val.invalid_parameters.member.val, parameter);
    plugin_string_dup(&failure->val.invalid_parameters.rule, rule);
}

// Generates a value, as JSON, or reports a failure and returns NULL. EDIT THIS FUNCTION, then the schemas above and the description
// below. The parameters and the settings are JSON: {"length":32}. If they contain arbitrary text, use a JSON library.
static char *make_value(const char *parameters, const char *settings, failure_t *failure) {
    unsigned length = 0, length_max = 64;
    sscanf(parameters, "{\"length\":%u", &length);
    sscanf(settings, "{\"length_max\":%u", &length_max);
    if (length > length_max) {
        invalid(failure, "length", "must be at most the setting length_max");
        return NULL;
    }
    plugin_list_u8_t bytes;
    wasi_random_random_get_random_bytes(length, &bytes);
    char *value = malloc(2 * bytes.len + 3), *end = value;
    end += sprintf(end, "\"");
    for (size_t i = 0; i < bytes.len; i++) end += sprintf(end, "%02x", bytes.ptr[i]);
    sprintf(end, "\"");
    plugin_list_u8_free(&bytes);
    return value;
}

void exports_keywright_generator_descriptor_describe(exports_keywright_generator_descriptor_description_t *description) {
    memset(description, 0, sizeof *description);
    plugin_string_dup(&description->credential_type, "sample-token");
    plugin_string_dup(&description->plugin_version, "0.1.0");
    plugin_string_dup(&description->summary, "Random tokens");
    plugin_string_dup(&description->parameters_schema, PARAMETERS_SCHEMA);
    plugin_string_dup(&description->value_schema, VALUE_SCHEMA);
    // For the default parameters: 32 bytes.
    description->entropy_bits_min.is_some = true;
    description->entropy_bits_min.val = 256;
}

void exports_keywright_generator_settings_descriptor_describe_settings(plugin_string_t *schema) {
    plugin_string_dup(schema, SETTINGS_SCHEMA);
}

bool exports_keywright_generator_generator_generate(exports_keywright_generator_generator_generation_t *generation,
                                                    plugin_string_t *value, failure_t *failure) {
    char *parameters = strndup((char *)generation->parameters.ptr, generation->parameters.len);
    char *settings = strndup((char *)generation->settings.ptr, generation->settings.len);
    char *made = make_value(parameters, settings, failure);
    if (made != NULL) plugin_string_set(value, made);
    free(parameters);
    free(settings);
    exports_keywright_generator_generator_generation_free(generation);
    return made != NULL;
}
