// Package plugin generates values of the type `sample-token`: random bytes in hexadecimal.
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

// makeValue generates a value. EDIT THIS FUNCTION, then the schemas and the description below.
// crypto/rand reads the randomness of the host.
func makeValue(parameters parameters) (any, error) {
	bytes := make([]byte, parameters.Length)
	rand.Read(bytes)
	return hex.EncodeToString(bytes), nil
}

// The parameters of a request. The host validates them and fills in the defaults before it calls the plugin.
const parametersSchema = `{"type": "object", "additionalProperties": false, "properties": {
	"length": {"description": "Number of random bytes.", "type": "integer", "minimum": 16, "maximum": 64, "default": 32}
}}`

// The generated value. Mark secret parts as `writeOnly`.
const valueSchema = `{"type": "string", "pattern": "^([0-9a-f]{2}){16,64}$", "writeOnly": true}`

// Describe returns the plugin's description.
func Describe() descriptor.Description {
	return descriptor.Description{
		CredentialType: "sample-token", PluginVersion: "0.1.0", Summary: "Random tokens",
		ParametersSchema: parametersSchema, ValueSchema: valueSchema,
		EntropyBitsMin: wit.Some[uint32](256), // for the default parameters: 32 bytes
	}
}

// Generate generates a value for the host.
func Generate(generation generator.Generation) wit.Result[string, types.Failure] {
	var requested parameters
	if err := json.Unmarshal([]byte(generation.Parameters), &requested); err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	value, err := makeValue(requested)
	if err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	text, err := json.Marshal(value)
	if err != nil {
		return wit.Err[string](types.MakeFailureOther(err.Error()))
	}
	return wit.Ok[string, types.Failure](string(text))
}
