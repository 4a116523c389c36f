"""Generates values of the type `sample-token`: random bytes in hexadecimal."""

import json

from wit_world import exports
from wit_world.exports.descriptor import Description
from wit_world.exports.generator import Generation
from wit_world.imports.random import get_random_bytes


def make_value(parameters):
    """Generates a value. EDIT THIS FUNCTION, then the schemas and the description below.

    Use only get_random_bytes for randomness: `random` returns the same numbers in every call of a plugin, and `secrets` and
    os.urandom trap. Import modules at the top of the file, not in functions.
    """
    return get_random_bytes(parameters["length"]).hex()


# The parameters of a request. The host validates them and fills in the defaults before it calls the plugin.
PARAMETERS_SCHEMA = {
    "type": "object",
    "properties": {
        "length": {
            "description": "Number of random bytes.",
            "type": "integer",
            "minimum": 16,
            "maximum": 64,
            "default": 32,
        }
    },
    "additionalProperties": False,
}

# The generated value. Mark secret parts as `writeOnly`.
VALUE_SCHEMA = {"type": "string", "pattern": "^([0-9a-f]{2}){16,64}$", "writeOnly": True}


class Descriptor(exports.Descriptor):
    def describe(self) -> Description:
        return Description(
            credential_type="sample-token",
            plugin_version="0.1.0",
            summary="Random tokens",
            parameters_schema=json.dumps(PARAMETERS_SCHEMA),
            value_schema=json.dumps(VALUE_SCHEMA),
            issuer_parameter=None,
            # For the default parameters: 32 bytes.
            entropy_bits_min=256,
        )


class Generator(exports.Generator):
    def generate(self, generation: Generation) -> str:
        return json.dumps(make_value(json.loads(generation.parameters)))
