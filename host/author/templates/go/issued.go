// Package plugin generates values of the type `sample-token`: an Ed25519 key, with a certificate for a host name that a CA of
// the server signs.
package plugin

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"time"

	wit "go.bytecodealliance.org/pkg/wit/types"
	descriptor "keywright-plugin-sample-token/generated/keywright_generator_descriptor"
	generator "keywright-plugin-sample-token/generated/keywright_generator_issued_generator"
	types "keywright-plugin-sample-token/generated/keywright_generator_types"
	issuer "keywright-plugin-sample-token/generated/keywright_signing_issuer"
)

type parameters struct {
	CA         string `json:"ca"`
	CommonName string `json:"common_name"`
	Duration   int    `json:"duration"`
}

// settings are the operator's, such as `settings = { domain = ".example.com" }` in the configuration of the plugin.
type settings struct {
	Domain string `json:"domain"`
}

type value struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	PrivateKey  string `json:"private_key"`
}

// makeValue generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.
// ca is the CA that the parameter `ca` names. crypto/rand reads the randomness of the host.
func makeValue(parameters parameters, settings settings, now time.Time, ca *issuer.Issuer) (any, *types.Failure) {
	if !strings.HasSuffix(parameters.CommonName, settings.Domain) {
		return nil, invalid("common_name", "must end in "+settings.Domain)
	}
	key := ed25519.NewKeyFromSeed(randomBytes(ed25519.SeedSize))
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, other(err)
	}
	body, err := certificateBody(parameters, now, key, ca)
	if err != nil {
		return nil, other(err)
	}
	signed := ca.SignCertificate(body)
	if signed.IsErr() {
		cause := signed.Err()
		if cause.Tag() == issuer.SigningErrorRefused {
			return nil, other(errors.New(cause.Refused()))
		}
		return nil, other(errors.New(cause.Other()))
	}
	return value{
		CA:          encodePEM("CERTIFICATE", ca.Certificate()),
		Certificate: encodePEM("CERTIFICATE", signed.Ok()),
		PrivateKey:  encodePEM("PRIVATE KEY", encoded),
	}, nil
}

// certificateBody encodes the body of a certificate for a TLS server. The host checks it before the CA signs it.
func certificateBody(parameters parameters, now time.Time, key ed25519.PrivateKey, ca *issuer.Issuer) ([]byte, error) {
	public := key.Public().(ed25519.PublicKey)
	template := x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(append([]byte{1}, randomBytes(15)...)),
		Subject:               pkix.Name{CommonName: parameters.CommonName},
		NotBefore:             now,
		NotAfter:              now.AddDate(0, 0, parameters.Duration),
		SubjectKeyId:          public[:20],
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{parameters.CommonName},
	}
	parent := x509.Certificate{RawSubject: ca.Subject(), SubjectKeyId: ca.SubjectKeyIdentifier().SomeOr(nil)}
	// The key signs its own certificate. Only the body is used, with the signature algorithm of the CA.
	encoded, err := x509.CreateCertificate(rand.Reader, &template, &parent, public, key)
	if err != nil {
		return nil, err
	}
	var certificate struct {
		Body                 struct{ Version, SerialNumber, Signature, Issuer, Validity, Subject, PublicKey, Extensions asn1.RawValue }
		Algorithm, Signature asn1.RawValue
	}
	if _, err := asn1.Unmarshal(encoded, &certificate); err != nil {
		return nil, err
	}
	certificate.Body.Signature = asn1.RawValue{FullBytes: ca.SignatureAlgorithm()}
	return asn1.Marshal(certificate.Body)
}

func encodePEM(label string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: label, Bytes: der}))
}

func randomBytes(length int) []byte {
	bytes := make([]byte, length)
	rand.Read(bytes)
	return bytes
}

// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin. Before it uses the
// plugin, it generates values with the example, signed by a CA that exists only for tests.
const parametersSchema = `{"type": "object", "additionalProperties": false, "required": ["ca", "common_name"], "properties": {
	"ca": {"description": "Name of the CA.", "type": "string"},
	"common_name": {"description": "Host name.", "type": "string", "pattern": "^[a-z0-9-]+([.][a-z0-9-]+)*$", "maxLength": 64},
	"duration": {"description": "Validity in days.", "type": "integer", "minimum": 1, "maximum": 3650, "default": 90}
}, "examples": [{"ca": "/my/ca", "common_name": "app.example.com"}]}`

// The generated value. Mark secret parts as `writeOnly`.
const valueSchema = `{"type": "object", "additionalProperties": false, "required": ["ca", "certificate", "private_key"], "properties": {
	"ca": {"type": "string"}, "certificate": {"type": "string"}, "private_key": {"type": "string", "writeOnly": true}
}}`

// The operator's settings. A server refuses a configuration with other settings.
const settingsSchema = `{"type": "object", "additionalProperties": false, "properties": {
	"domain": {"description": "End of all host names.", "type": "string"}
}}`

// DescribeSettings returns the schema of the settings.
func DescribeSettings() string {
	return settingsSchema
}

// Describe returns the plugin's description.
func Describe() descriptor.Description {
	return descriptor.Description{
		CredentialType: "sample-token", PluginVersion: "0.1.0", Summary: "Keys with certificates",
		ParametersSchema: parametersSchema, ValueSchema: valueSchema,
		IssuerParameter: wit.Some("ca"),
		EntropyBitsMin:  wit.Some[uint32](256), // for the example
	}
}

// Generate generates a value for the host.
func Generate(generation generator.Generation, ca wit.Option[*issuer.Issuer]) wit.Result[string, types.Failure] {
	if ca.IsNone() {
		return wit.Err[string](*invalid("ca", "must name a CA"))
	}
	// A plugin must return what it borrowed.
	defer ca.Some().Drop()
	var configured settings
	if err := decode(generation.Settings, &configured); err != nil {
		return wit.Err[string](*other(err))
	}
	var requested parameters
	if err := decode(generation.Parameters, &requested); err != nil {
		return wit.Err[string](*other(err))
	}
	now := time.Unix(int64(generation.NowSeconds), 0).UTC()
	made, failure := makeValue(requested, configured, now, ca.Some())
	if failure != nil {
		return wit.Err[string](*failure)
	}
	text, err := json.Marshal(made)
	if err != nil {
		return wit.Err[string](*other(err))
	}
	return wit.Ok[string, types.Failure](string(text))
}
