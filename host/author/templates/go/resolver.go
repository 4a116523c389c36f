// Package plugin finds the references in documents: each string `((name))` refers to the credential `name`.
package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	wit "go.bytecodealliance.org/pkg/wit/types"
	resolver "keywright-plugin-sample-token/generated/keywright_interpolation_resolver"
)

// referencedName returns the name of the credential that a string refers to, and whether there is one. EDIT THIS FUNCTION.
func referencedName(text string) (string, bool) {
	rest, isOpened := strings.CutPrefix(text, "((")
	name, isClosed := strings.CutSuffix(rest, "))")
	return name, isOpened && isClosed
}

// references returns the references in the value at a JSON Pointer.
func references(pointer string, value any) ([]resolver.Reference, *resolver.Failure) {
	var found []resolver.Reference
	switch value := value.(type) {
	case string:
		name, isReference := referencedName(value)
		if isReference && name == "" {
			// A failure for the caller, with status 400.
			failure := resolver.MakeFailureInvalidDocument("the reference (()) has no name")
			return nil, &failure
		}
		if isReference {
			found = append(found, resolver.Reference{Pointer: pointer, Name: name})
		}
	case []any:
		for index, item := range value {
			within, failure := references(pointer+"/"+strconv.Itoa(index), item)
			if failure != nil {
				return nil, failure
			}
			found = append(found, within...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
			within, failure := references(pointer+"/"+escaped, value[name])
			if failure != nil {
				return nil, failure
			}
			found = append(found, within...)
		}
	}
	return found, nil
}

// The operator's settings in the configuration of the plugin: none. A server refuses a configuration with other settings.
const settingsSchema = `{"type": "object", "additionalProperties": false}`

// DescribeSettings returns the schema of the settings.
func DescribeSettings() string {
	return settingsSchema
}

// FindReferences finds the references in a document for the host.
func FindReferences(document, _ string) wit.Result[[]resolver.Reference, resolver.Failure] {
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		return wit.Err[[]resolver.Reference](other(err))
	}
	found, failure := references("", value)
	if failure != nil {
		return wit.Err[[]resolver.Reference](*failure)
	}
	return wit.Ok[[]resolver.Reference, resolver.Failure](found)
}

// other is a failure for the author, which a server only logs. It must not contain a part of the document. For a failure of the
// operator, use MakeFailureMisconfigured in the same way.
func other(err error) resolver.Failure {
	return resolver.MakeFailureOther(fmt.Sprintf("malformed JSON: %T", err))
}
