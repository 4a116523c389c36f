package plugin

import (
	"encoding/json"
	"strings"

	wit "go.bytecodealliance.org/pkg/wit/types"
	types "keywright-plugin-sample-token/generated/keywright_generator_types"
)

// decode decodes parameters or settings, and refuses unknown ones.
func decode(text string, into any) error {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// invalid is a failure for the caller, with status 400: a parameter breaks a rule. For a field of a value in Accept and
// Recover, use MakeFailureInvalidValue in the same way.
func invalid(parameter, rule string) *types.Failure {
	violation := types.Violation{Member: wit.Some(parameter), Rule: rule}
	failure := types.MakeFailureInvalidParameters(violation)
	return &failure
}

// other is a failure for the author, which a server only logs. It must not contain a secret. For a failure of the operator, use
// MakeFailureMisconfigured in the same way.
func other(err error) *types.Failure {
	failure := types.MakeFailureOther(err.Error())
	return &failure
}
