"""Generates secrets for time-based one-time passwords (RFC 6238), with the URI that authenticator apps read as a QR code."""

import base64
import json
from urllib.parse import quote, urlencode

from wit_world import exports
from wit_world.exports import descriptor as descriptions
from wit_world.imports import random

ALGORITHMS = {"SHA1": 20, "SHA256": 32, "SHA512": 64}  # output length in bytes

PARAMETERS_SCHEMA = {
    "type": "object",
    "properties": {
        "issuer": {"description": "Provider of the account.", "type": "string", "pattern": "^[^:]{1,64}$"},
        "account": {"description": "Name of the account.", "type": "string", "pattern": "^[^:]{1,64}$"},
        "digits": {"type": "integer", "enum": [6, 7, 8], "default": 6},
        "period": {"description": "In seconds.", "type": "integer", "minimum": 15, "maximum": 300, "default": 30},
        "algorithm": {"type": "string", "enum": list(ALGORITHMS), "default": "SHA1"},
    },
    "required": ["issuer", "account"],
    "additionalProperties": False,
    "examples": [{"issuer": "Example", "account": "ada@example.com"}],
}

VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "secret": {"type": "string", "pattern": "^[A-Z2-7]+$", "writeOnly": True},
        "uri": {"type": "string", "pattern": "^otpauth://totp/", "writeOnly": True},
    },
    "required": ["secret", "uri"],
    "additionalProperties": False,
}


class Descriptor(exports.Descriptor):
    def describe(self):
        return descriptions.Description(
            credential_type="totp",
            plugin_version="0.1.0",
            summary="Secrets for time-based one-time passwords",
            parameters_schema=json.dumps(PARAMETERS_SCHEMA),
            value_schema=json.dumps(VALUE_SCHEMA),
            issuer_parameter=None,
            entropy_bits_min=8 * ALGORITHMS["SHA1"],
        )


class Generator(exports.Generator):
    def generate(self, generation):
        parameters = json.loads(generation.parameters)
        # The secret is as long as the output of the hash function (RFC 4226). Apps accept no base32 padding.
        drawn = random.get_random_bytes(ALGORITHMS[parameters["algorithm"]])
        secret = base64.b32encode(drawn).decode().rstrip("=")
        label = quote(f"{parameters['issuer']}:{parameters['account']}", safe=":@")
        query = {"secret": secret} | {name: parameters[name] for name in ("issuer", "algorithm", "digits", "period")}
        return json.dumps({"secret": secret, "uri": f"otpauth://totp/{label}?{urlencode(query, quote_via=quote)}"})
