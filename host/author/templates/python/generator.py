"""Generates values of the type `sample-token`: random bytes in hexadecimal."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.descriptor import Description
from wit_world.exports.generator import Generation
from wit_world.imports.random import get_random_bytes
from wit_world.imports.types import Failure_InvalidParameters, Violation


def make_value(parameters, settings):
    """Generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.

    Use only get_random_bytes for randomness: `random` returns the same numbers in every call of a plugin, and `secrets` and
    os.urandom trap. Import modules at the top of the file, not in functions.
    """
    length_max = settings.get("length_max", 64)
    if parameters["length"] > length_max:
        raise invalid("length", f"must be at most {length_max}")
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


# The operator's settings, such as `settings = { length_max = 48 }` in the configuration of the plugin. A server refuses a
# configuration with other settings.
SETTINGS_SCHEMA = {
    "type": "object",
    "properties": {"length_max": {"description": "Maximum of the parameter length.", "type": "integer", "minimum": 16}},
    "additionalProperties": False,
}


def invalid(parameter, rule):
    """A failure for the caller, with status 400: a parameter breaks a rule.

    For a field of a value in `accept` and `recover`, use Failure_InvalidValue in the same way. For a failure of the author or the
    operator, which a server only logs, raise Err(Failure_Other(text)) or Err(Failure_Misconfigured(text)), without secrets.
    """
    return Err(Failure_InvalidParameters(Violation(parameter, rule)))


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


class SettingsDescriptor(exports.SettingsDescriptor):
    def describe_settings(self) -> str:
        return json.dumps(SETTINGS_SCHEMA)


class Generator(exports.Generator):
    def generate(self, generation: Generation) -> str:
        return json.dumps(make_value(json.loads(generation.parameters), json.loads(generation.settings)))
