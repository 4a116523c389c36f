// Package plugin generates values of the type `sample-token`: random bytes in hexadecimal.
package plugin

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	wit "go.bytecodealliance.org/pkg/wit/types"
	descriptor "keywright-plugin-sample-token/generated/keywright_generator_descriptor"
	generator "keywright-plugin-sample-token/generated/keywright_generator_generator"
	types "keywright-plugin-sample-token/generated/keywright_generator_types"
)

type parameters struct {
	Length int `json:"length"`
}

// settings are the operator's, such as `settings = { length_max = 48 }` in the configuration of the plugin.
type settings struct {
	LengthMax int `json:"length_max"`
}

// makeValue generates a value. EDIT THIS FUNCTION, then the schemas, the settings and the description below.
// crypto/rand reads the randomness of the host. There is no clock: use generation.NowSeconds.
func makeValue(parameters parameters, settings settings) (any, *types.Failure) {
	if parameters.Length > settings.LengthMax {
		return nil, invalid("length", fmt.Sprintf("must be at most %d", settings.LengthMax))
	}
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

// The operator's settings. A server refuses a configuration with other settings.
const settingsSchema = `{"type": "object", "additionalProperties": false, "properties": {
	"length_max": {"description": "Maximum of the parameter length.", "type": "integer", "minimum": 16}
}}`

// DescribeSettings returns the schema of the settings.
func DescribeSettings() string {
	return settingsSchema
}

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
	configured := settings{LengthMax: 64}
	if err := decode(generation.Settings, &configured); err != nil {
		return wit.Err[string](*other(err))
	}
	var requested parameters
	if err := decode(generation.Parameters, &requested); err != nil {
		return wit.Err[string](*other(err))
	}
	value, failure := makeValue(requested, configured)
	if failure != nil {
		return wit.Err[string](*failure)
	}
	text, err := json.Marshal(value)
	if err != nil {
		return wit.Err[string](*other(err))
	}
	return wit.Ok[string, types.Failure](string(text))
}
