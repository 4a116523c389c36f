"""Makes values of the type `sample-token`: random bytes, in hexadecimal digits."""

import json

from wit_world import exports
from wit_world.exports.descriptor import Description
from wit_world.exports.generator import Generation
from wit_world.imports.random import get_random_bytes


def make_value(parameters):
    """Makes a value. EDIT THIS FUNCTION, and then what is said of it below.

    Draw what is random by get_random_bytes alone: `random` gives the same numbers in every call of a plugin, and `secrets` and
    os.urandom end the call. Import what is needed above, not here.
    """
    return get_random_bytes(parameters["length"]).hex()


# What a caller may ask for. Before make_value is called, the host has checked it, and filled in the defaults.
PARAMETERS_SCHEMA = {
    "type": "object",
    "properties": {
        "length": {
            "description": "How many random bytes.",
            "type": "integer",
            "minimum": 16,
            "maximum": 64,
            "default": 32,
        }
    },
    "additionalProperties": False,
}

# What a value looks like. What is secret is `writeOnly`.
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
            # With the default parameters: 32 bytes.
            entropy_bits_min=256,
        )


class Generator(exports.Generator):
    def generate(self, generation: Generation) -> str:
        return json.dumps(make_value(json.loads(generation.parameters)))
