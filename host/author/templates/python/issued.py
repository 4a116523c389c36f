"""Generates values of the type `sample-token`: an Ed25519 key, with a certificate for a host name that a CA of the server signs."""

import json
from datetime import datetime, timedelta, timezone

from asn1crypto import pem
from asn1crypto.keys import PublicKeyInfo
from asn1crypto.x509 import GeneralName, Name, SignedDigestAlgorithm, TbsCertificate, Time
from componentize_py_types import Err
from ecdsa import Ed25519, SigningKey
from wit_world import exports
from wit_world.exports.descriptor import Description
from wit_world.exports.issued_generator import Generation
from wit_world.imports.issuer import Issuer
from wit_world.imports.random import get_random_bytes
from wit_world.imports.types import Failure_InvalidParameters, Failure_Other, Violation


def make_value(parameters, settings, now, ca):
    """Generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.

    `ca` is the CA that the parameter `ca` names. Use only get_random_bytes for randomness. Import modules at the top of the file.
    """
    domain = settings.get("domain", "")
    if not parameters["common_name"].endswith(domain):
        raise invalid("common_name", f"must end in {domain}")
    key = SigningKey.from_string(get_random_bytes(32), curve=Ed25519)
    body = certificate_body(parameters, now, key.verifying_key, ca)
    try:
        certificate = ca.sign_certificate(body.dump())
    except Err as error:
        # A failure for the author, which a server only logs. It must not contain a secret.
        raise Err(Failure_Other(error.value.value))
    return {
        "ca": pem.armor("CERTIFICATE", ca.certificate()).decode(),
        "certificate": pem.armor("CERTIFICATE", certificate).decode(),
        "private_key": key.to_pem(format="pkcs8").decode(),
    }


def certificate_body(parameters, now, public_key, ca):
    """Returns the body of a certificate for a TLS server. The host checks it before the CA signs it."""
    host = parameters["common_name"]
    authority = ca.subject_key_identifier()
    extensions = [
        {"extn_id": "key_identifier", "extn_value": public_key.to_der()[-20:]},
        {"extn_id": "basic_constraints", "critical": True, "extn_value": {"ca": False}},
        {"extn_id": "key_usage", "critical": True, "extn_value": {"digital_signature"}},
        {"extn_id": "extended_key_usage", "extn_value": ["server_auth"]},
        {"extn_id": "subject_alt_name", "extn_value": [GeneralName("dns_name", host)]},
    ]
    if authority is not None:
        extensions.append({"extn_id": "authority_key_identifier", "extn_value": {"key_identifier": authority}})
    return TbsCertificate(
        {
            "version": "v3",
            "serial_number": int.from_bytes(b"\1" + get_random_bytes(15)),
            "signature": SignedDigestAlgorithm.load(ca.signature_algorithm()),
            "issuer": Name.load(ca.subject()),
            "validity": {"not_before": time(now), "not_after": time(now + timedelta(parameters["duration"]))},
            "subject": Name.build({"common_name": host}),
            "subject_public_key_info": PublicKeyInfo.load(public_key.to_der()),
            "extensions": extensions,
        }
    )


def time(moment):
    """Returns the form of a time that RFC 5280 requires."""
    return Time("utc_time" if moment.year < 2050 else "general_time", moment)


# The parameters of a request. The host validates them and fills in the defaults before it calls the plugin. Before it uses the
# plugin, it generates values with the example, signed by a CA that exists only for tests.
PARAMETERS_SCHEMA = {
    "type": "object",
    "properties": {
        "ca": {"description": "Name of the CA.", "type": "string"},
        "common_name": {
            "description": "Host name.",
            "type": "string",
            "pattern": "^[a-z0-9-]+([.][a-z0-9-]+)*$",
            "maxLength": 64,
        },
        "duration": {
            "description": "Validity in days.",
            "type": "integer",
            "minimum": 1,
            "maximum": 3650,
            "default": 90,
        },
    },
    "required": ["ca", "common_name"],
    "additionalProperties": False,
    "examples": [{"ca": "/my/ca", "common_name": "app.example.com"}],
}

# The generated value. Mark secret parts as `writeOnly`.
VALUE_SCHEMA = {
    "type": "object",
    "properties": {
        "ca": {"type": "string"},
        "certificate": {"type": "string"},
        "private_key": {"type": "string", "writeOnly": True},
    },
    "required": ["ca", "certificate", "private_key"],
    "additionalProperties": False,
}

# The operator's settings, such as `settings = { domain = ".example.com" }` in the configuration of the plugin. A server refuses a
# configuration with other settings.
SETTINGS_SCHEMA = {
    "type": "object",
    "properties": {"domain": {"description": "End of all host names.", "type": "string"}},
    "additionalProperties": False,
}


def invalid(parameter, rule):
    """A failure for the caller, with status 400: a parameter breaks a rule.

    For a field of a value in `accept` and `recover`, use Failure_InvalidValue in the same way.
    """
    return Err(Failure_InvalidParameters(Violation(parameter, rule)))


class Descriptor(exports.Descriptor):
    def describe(self) -> Description:
        return Description(
            credential_type="sample-token",
            plugin_version="0.1.0",
            summary="Keys with certificates",
            parameters_schema=json.dumps(PARAMETERS_SCHEMA),
            value_schema=json.dumps(VALUE_SCHEMA),
            issuer_parameter="ca",
            # For the example: the 32 bytes of the key.
            entropy_bits_min=256,
        )


class SettingsDescriptor(exports.SettingsDescriptor):
    def describe_settings(self) -> str:
        return json.dumps(SETTINGS_SCHEMA)


class IssuedGenerator(exports.IssuedGenerator):
    def generate(self, generation: Generation, issuer: Issuer | None) -> str:
        if issuer is None:
            raise invalid("ca", "must name a CA")
        parameters, settings = json.loads(generation.parameters), json.loads(generation.settings)
        now = datetime.fromtimestamp(generation.now_seconds, timezone.utc)
        return json.dumps(make_value(parameters, settings, now, issuer))
