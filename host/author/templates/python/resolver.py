"""Finds the references in documents: each string `((name))` refers to the credential `name`."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.resolver import Failure_InvalidDocument, Reference


def referenced_name(text):
    """Returns the name of the credential that a string refers to, or None if it is not a reference. EDIT THIS FUNCTION."""
    if text == "(())":
        # A failure for the caller, with status 400. For a failure of the author or the operator, which a server only logs, raise
        # Err(Failure_Other(text)) or Err(Failure_Misconfigured(text)), without a part of the document.
        raise Err(Failure_InvalidDocument("the reference (()) has no name"))
    return text[2:-2] if text.startswith("((") and text.endswith("))") else None


def references(pointer, value):
    """Returns the references in the value at a JSON Pointer."""
    if isinstance(value, str):
        name = referenced_name(value)
        return [] if name is None else [Reference(pointer, name)]
    if isinstance(value, list):
        fields = enumerate(value)
    elif isinstance(value, dict):
        fields = ((name.replace("~", "~0").replace("/", "~1"), field) for name, field in value.items())
    else:
        return []
    return [reference for name, field in fields for reference in references(f"{pointer}/{name}", field)]


# The operator's settings in the configuration of the plugin: none. A server refuses a configuration with other settings.
SETTINGS_SCHEMA = {"type": "object", "additionalProperties": False}


class SettingsDescriptor(exports.SettingsDescriptor):
    def describe_settings(self) -> str:
        return json.dumps(SETTINGS_SCHEMA)


class Resolver(exports.Resolver):
    def find_references(self, document: str, settings: str) -> list[Reference]:
        return references("", json.loads(document))
