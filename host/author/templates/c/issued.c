// Generates values of the type `sample-token`: a certificate for a host name and the caller's public key, which a CA of the server
// signs.

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plugin.h"

// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin. Before it uses the
// plugin, it generates values with the example, signed by a CA that exists only for tests.
static const char PARAMETERS_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"ca\", \"common_name\", \"public_key\"],"
    " \"properties\": {"
    "\"ca\": {\"description\": \"Name of the CA.\", \"type\": \"string\"},"
    "\"common_name\": {\"description\": \"Host name.\", \"type\": \"string\", \"pattern\": \"^[a-z0-9-]+([.][a-z0-9-]+)*$\","
    " \"maxLength\": 64},"
    "\"duration\": {\"description\": \"Validity in days.\", \"type\": \"integer\", \"minimum\": 1, \"maximum\": 3650, \"default\": 90},"
    "\"public_key\": {\"description\": \"Public key of the host, SubjectPublicKeyInfo in base64.\","
    " \"type\": \"string\", \"pattern\": \"^[A-Za-z0-9+/]+={0,2}$\", \"maxLength\": 2048}},"
    "\"examples\": [{\"ca\": \"/my/ca\", \"common_name\": \"app.example.com\","
    " \"public_key\": \"MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\"}]}";

// The generated value. Mark secret parts as `writeOnly`: here, the private key never leaves the caller.
static const char VALUE_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"required\": [\"ca\", \"certificate\"],"
    " \"properties\": {\"ca\": {\"type\": \"string\"}, \"certificate\": {\"type\": \"string\"}}}";

// The operator's settings, such as `settings = { domain = ".example.com" }` in the configuration of the plugin. A server refuses a
// configuration with other settings.
static const char SETTINGS_SCHEMA[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {\"domain\": {\"description\":"
    " \"End of all host names.\", \"type\": \"string\", \"pattern\": \"^[a-z0-9.-]*$\"}}}";

typedef exports_keywright_generator_issued_generator_failure_t failure_t;
typedef keywright_signing_issuer_borrow_issuer_t issuer_t;
typedef plugin_list_u8_t bytes_t;

static const char BASE64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Tags of DER.
enum { INTEGER = 0x02, OCTET_STRING = 0x04, OBJECT_IDENTIFIER = 0x06, UTF8_STRING = 0x0c, UTC_TIME = 0x17, GENERALIZED_TIME = 0x18 };
enum { SEQUENCE = 0x30, SET = 0x31 };

// The last number of the OIDs of extensions.
enum { SUBJECT_KEY_IDENTIFIER = 14, SUBJECT_ALTERNATIVE_NAME = 17, AUTHORITY_KEY_IDENTIFIER = 35 };

// The extensions that are the same in all certificates: basic constraints (no CA), key usage (digital signature), extended key usage
// (server authentication).
static const char FIXED_EXTENSIONS[] =
    "\x30\x0c\x06\x03\x55\x1d\x13\x01\x01\xff\x04\x02\x30\x00"
    "\x30\x0e\x06\x03\x55\x1d\x0f\x01\x01\xff\x04\x04\x03\x02\x07\x80"
    "\x30\x13\x06\x03\x55\x1d\x25\x04\x0c\x30\x0a\x06\x08\x2b\x06\x01\x05\x05\x07\x03\x01";

// The length of a key identifier: the end of the public key.
static const size_t IDENTIFIER_BYTES = 20;

// Reports a failure to the caller, with status 400: a parameter breaks a rule. For a field of a value in `accept` and `recover`, use
// INVALID_VALUE in the same way. For a failure of the author or the operator, which a server only logs, use OTHER or MISCONFIGURED.
static void *invalid(failure_t *failure, const char *parameter, const char *rule) {
    failure->tag = KEYWRIGHT_GENERATOR_TYPES_FAILURE_INVALID_PARAMETERS;
    failure->val.invalid_parameters.member.is_some = true;
    plugin_string_dup(&failure->val.invalid_parameters.member.val, parameter);
    plugin_string_dup(&failure->val.invalid_parameters.rule, rule);
    return NULL;
}

// Returns the text of a parameter or a setting, or "" if there is none. Its pattern allows no escapes: for other text, use a JSON
// library.
static char *text_of(const char *object, const char *name) {
    char key[32];
    const char *text = strstr(object, strcat(strcat(strcpy(key, "\""), name), "\":\""));
    return text == NULL ? strdup("") : strndup(text + strlen(key), strcspn(text + strlen(key), "\""));
}

// Decodes base64 in place.
static bytes_t decoded(char *base64) {
    bytes_t bytes = {(uint8_t *)base64, 0};
    unsigned bits = 0, count = 0;
    for (; *base64 != '\0' && *base64 != '='; base64++) {
        bits = bits << 6 | (strchr(BASE64, *base64) - BASE64);
        count += 6;
        if (count >= 8) bytes.ptr[bytes.len++] = bits >> (count -= 8);
    }
    return bytes;
}

// Prints a certificate as PEM in a JSON string.
static void print_certificate(FILE *json, bytes_t der) {
    fputs("\"-----BEGIN CERTIFICATE-----\\n", json);
    for (size_t at = 0; at < der.len; at += 3) {
        size_t rest = der.len - at;
        unsigned bits = der.ptr[at] << 16 | (rest > 1 ? der.ptr[at + 1] << 8 : 0) | (rest > 2 ? der.ptr[at + 2] : 0);
        for (unsigned digit = 0; digit < 4; digit++) fputc(digit > rest ? '=' : BASE64[bits >> (18 - 6 * digit) & 63], json);
        if (at % 48 == 45 || rest <= 3) fputs("\\n", json);
    }
    fputs("-----END CERTIFICATE-----\\n\"", json);
}

// DER, encoded from its end to its start, because the length of an element precedes its contents.
typedef struct {
    uint8_t *start;
} der_t;

static void prepend(der_t *der, const void *bytes, size_t length) {
    der->start -= length;
    memcpy(der->start, bytes, length);
}

// Prepends the header of an element with this tag, whose contents are all bytes before `end`.
static void enclose(der_t *der, uint8_t tag, const uint8_t *end) {
    size_t length = end - der->start;
    if (length > 0xff) prepend(der, (uint8_t[]){tag, 0x82, length >> 8, length}, 4);
    else if (length > 0x7f) prepend(der, (uint8_t[]){tag, 0x81, length}, 3);
    else prepend(der, (uint8_t[]){tag, length}, 2);
}

static void prepend_element(der_t *der, uint8_t tag, const void *bytes, size_t length) {
    const uint8_t *end = der->start;
    prepend(der, bytes, length);
    enclose(der, tag, end);
}

// Encloses the bytes before `end` in an extension that is not critical. The OID is 2.5.29.`id`.
static void enclose_in_extension(der_t *der, uint8_t id, const uint8_t *end) {
    enclose(der, OCTET_STRING, end);
    prepend(der, (uint8_t[]){OBJECT_IDENTIFIER, 3, 0x55, 0x1d, id}, 5);
    enclose(der, SEQUENCE, end);
}

static void prepend_extensions(der_t *der, const char *host, bytes_t public_key, issuer_t ca) {
    const uint8_t *extensions = der->start, *end = der->start;
    bytes_t authority;
    if (keywright_signing_issuer_method_issuer_subject_key_identifier(ca, &authority)) {
        prepend_element(der, 0x80, authority.ptr, authority.len);
        enclose(der, SEQUENCE, end);
        enclose_in_extension(der, AUTHORITY_KEY_IDENTIFIER, end);
    }
    end = der->start;
    prepend_element(der, 0x82, host, strlen(host));
    enclose(der, SEQUENCE, end);
    enclose_in_extension(der, SUBJECT_ALTERNATIVE_NAME, end);
    end = der->start;
    prepend_element(der, OCTET_STRING, public_key.ptr + public_key.len - IDENTIFIER_BYTES, IDENTIFIER_BYTES);
    enclose_in_extension(der, SUBJECT_KEY_IDENTIFIER, end);
    prepend(der, FIXED_EXTENSIONS, sizeof FIXED_EXTENSIONS - 1);
    enclose(der, SEQUENCE, extensions);
    enclose(der, 0xa3, extensions);
}

static void prepend_time(der_t *der, time_t time) {
    struct tm parts;
    gmtime_r(&time, &parts);
    char text[32];
    bool is_short = parts.tm_year < 150;
    size_t length = strftime(text, sizeof text, is_short ? "%y%m%d%H%M%SZ" : "%Y%m%d%H%M%SZ", &parts);
    prepend_element(der, is_short ? UTC_TIME : GENERALIZED_TIME, text, length);
}

// Encodes the body of a certificate for a TLS server. The host checks it before the CA signs it.
static bytes_t certificate_body(const char *host, bytes_t public_key, time_t from, time_t until, issuer_t ca) {
    bytes_t certificate, issuer, algorithm, serial_number;
    keywright_signing_issuer_method_issuer_certificate(ca, &certificate);
    keywright_signing_issuer_method_issuer_subject(ca, &issuer);
    keywright_signing_issuer_method_issuer_signature_algorithm(ca, &algorithm);
    wasi_random_random_get_random_bytes(16, &serial_number);
    // Positive, and without leading zeros.
    serial_number.ptr[0] = (serial_number.ptr[0] & 0x3f) | 0x40;
    // The CA's certificate contains its subject and its key identifier.
    size_t size = certificate.len + algorithm.len + public_key.len + 1024;
    der_t der = {(uint8_t *)malloc(size) + size};
    const uint8_t *end = der.start;
    prepend_extensions(&der, host, public_key, ca);
    prepend(&der, public_key.ptr, public_key.len);
    const uint8_t *subject = der.start;
    prepend_element(&der, UTF8_STRING, host, strlen(host));
    prepend(&der, "\x06\x03\x55\x04\x03", 5);
    enclose(&der, SEQUENCE, subject);
    enclose(&der, SET, subject);
    enclose(&der, SEQUENCE, subject);
    const uint8_t *validity = der.start;
    prepend_time(&der, until);
    prepend_time(&der, from);
    enclose(&der, SEQUENCE, validity);
    prepend(&der, issuer.ptr, issuer.len);
    prepend(&der, algorithm.ptr, algorithm.len);
    prepend_element(&der, INTEGER, serial_number.ptr, serial_number.len);
    // Version 3.
    prepend(&der, "\xa0\x03\x02\x01\x02", 5);
    enclose(&der, SEQUENCE, end);
    return (bytes_t){der.start, end - der.start};
}

// Generates a value, as JSON, or reports a failure and returns NULL. EDIT THIS FUNCTION, then the schemas above and the description
// below. `ca` is the CA that the parameter `ca` names. Each call runs in a new instance, so its memory is not freed.
static char *make_value(const char *parameters, const char *settings, time_t now, issuer_t ca, failure_t *failure) {
    const char *host = text_of(parameters, "common_name"), *domain = text_of(settings, "domain");
    size_t length = strlen(host), domain_length = strlen(domain);
    if (length < domain_length || strcmp(host + length - domain_length, domain) != 0) {
        return invalid(failure, "common_name", "must end in the setting domain");
    }
    bytes_t public_key = decoded(text_of(parameters, "public_key"));
    if (public_key.len < IDENTIFIER_BYTES) return invalid(failure, "public_key", "must be a SubjectPublicKeyInfo");
    int days = 0;
    sscanf(strstr(parameters, "\"duration\":"), "\"duration\":%d", &days);
    bytes_t body = certificate_body(host, public_key, now, now + days * 24 * 60 * 60, ca), issuer, certificate;
    keywright_signing_issuer_signing_error_t error;
    if (!keywright_signing_issuer_method_issuer_sign_certificate(ca, &body, &certificate, &error)) {
        failure->tag = KEYWRIGHT_GENERATOR_TYPES_FAILURE_OTHER;
        failure->val.other = error.tag == KEYWRIGHT_SIGNING_ISSUER_SIGNING_ERROR_REFUSED ? error.val.refused : error.val.other;
        return NULL;
    }
    keywright_signing_issuer_method_issuer_certificate(ca, &issuer);
    char *value;
    size_t value_length;
    FILE *json = open_memstream(&value, &value_length);
    fputs("{\"ca\":", json);
    print_certificate(json, issuer);
    fputs(",\"certificate\":", json);
    print_certificate(json, certificate);
    fputs("}", json);
    fclose(json);
    return value;
}

void exports_keywright_generator_descriptor_describe(exports_keywright_generator_descriptor_description_t *description) {
    memset(description, 0, sizeof *description);
    plugin_string_dup(&description->credential_type, "sample-token");
    plugin_string_dup(&description->plugin_version, "0.1.0");
    plugin_string_dup(&description->summary, "Certificates for public keys");
    plugin_string_dup(&description->parameters_schema, PARAMETERS_SCHEMA);
    plugin_string_dup(&description->value_schema, VALUE_SCHEMA);
    description->issuer_parameter.is_some = true;
    plugin_string_dup(&description->issuer_parameter.val, "ca");
    // A value has no secret, so it needs no random bits.
}

void exports_keywright_generator_settings_descriptor_describe_settings(plugin_string_t *schema) {
    plugin_string_dup(schema, SETTINGS_SCHEMA);
}

bool exports_keywright_generator_issued_generator_generate(
    exports_keywright_generator_issued_generator_generation_t *generation, issuer_t *maybe_ca, plugin_string_t *value,
    failure_t *failure) {
    if (maybe_ca == NULL) {
        invalid(failure, "ca", "must name a CA");
        return false;
    }
    char *parameters = strndup((char *)generation->parameters.ptr, generation->parameters.len);
    char *settings = strndup((char *)generation->settings.ptr, generation->settings.len);
    char *made = make_value(parameters, settings, generation->now_seconds, *maybe_ca, failure);
    // A plugin must return what it borrowed.
    keywright_signing_issuer_issuer_drop_borrow(*maybe_ca);
    if (made != NULL) plugin_string_set(value, made);
    return made != NULL;
}
