// Package plugin makes values of the type `sample-token`: random bytes, in hexadecimal digits.
package plugin

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"

	wit "go.bytecodealliance.org/pkg/wit/types"
	descriptor "keywright-plugin-sample-token/generated/keywright_generator_descriptor"
	generator "keywright-plugin-sample-token/generated/keywright_generator_generator"
	types "keywright-plugin-sample-token/generated/keywright_generator_types"
)

type parameters struct {
	Length int `json:"length"`
}

// makeValue makes a value. EDIT THIS FUNCTION, and then what is said of it below.
// What crypto/rand gives is the randomness of the host.
func makeValue(parameters parameters) (any, error) {
	bytes := make([]byte, parameters.Length)
	rand.Read(bytes)
	return hex.EncodeToString(bytes), nil
}

// What a caller may ask for. Before makeValue is called, the host has checked it, and filled in the defaults.
const parametersSchema = `{"type": "object", "additionalProperties": false, "properties": {
	"length": {"description": "How many random bytes.", "type": "integer", "minimum": 16, "maximum": 64, "default": 32}
}}`

// What a value looks like. What is secret is `writeOnly`.
const valueSchema = `{"type": "string", "pattern": "^([0-9a-f]{2}){16,64}$", "writeOnly": true}`

// Describe says what the plugin makes.
func Describe() descriptor.Description {
	return descriptor.Description{
		CredentialType: "sample-token", PluginVersion: "0.1.0", Summary: "Random tokens",
		ParametersSchema: parametersSchema, ValueSchema: valueSchema,
		EntropyBitsMin: wit.Some[uint32](256), // with the default parameters: 32 bytes
	}
}

// Generate makes a value for the host.
func Generate(generation generator.Generation) wit.Result[string, types.Failure] {
	var asked parameters
	if err := json.Unmarshal([]byte(generation.Parameters), &asked); err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	value, err := makeValue(asked)
	if err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	return wit.Ok[string, types.Failure](string(text))
}
