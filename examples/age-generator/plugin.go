// Package plugin generates age identities: X25519 keys, as printed by `age-keygen` (https://age-encryption.org/v1).
package plugin

import (
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"strings"

	wit "go.bytecodealliance.org/pkg/wit/types"

	descriptor "age-generator/generated/keywright_generator_descriptor"
	generator "age-generator/generated/keywright_generator_generator"
	types "age-generator/generated/keywright_generator_types"
)

const parametersSchema = `{"type": "object", "additionalProperties": false}`
const valueSchema = `{
	"type": "object",
	"properties": {
		"identity": {"type": "string", "pattern": "^AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}$", "writeOnly": true},
		"recipient": {"type": "string", "pattern": "^age1[02-9ac-hj-np-z]{58}$"}
	},
	"required": ["identity", "recipient"],
	"additionalProperties": false
}`

func Describe() descriptor.Description {
	return descriptor.Description{CredentialType: "age", PluginVersion: "0.1.0", Summary: "age identities",
		ParametersSchema: parametersSchema, ValueSchema: valueSchema, EntropyBitsMin: wit.Some[uint32](251)}
}

// Generate generates an identity and its recipient from 32 random bytes. In a plugin, crypto/rand reads the host's randomness.
func Generate(generator.Generation) wit.Result[string, types.Failure] {
	secret := make([]byte, 32)
	rand.Read(secret)
	key, err := ecdh.X25519().NewPrivateKey(secret)
	if err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	identity := strings.ToUpper(bech32("age-secret-key-", secret))
	value := fmt.Sprintf(`{"identity": "%s", "recipient": "%s"}`, identity, bech32("age", key.PublicKey().Bytes()))
	return wit.Ok[string, types.Failure](value)
}
