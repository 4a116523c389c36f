// A program on the CredHub library for Go that calls every method of the library against a server.
//
//	go-client SERVER CA_FILE secret CLIENT_ID CLIENT_SECRET
//	go-client SERVER CA_FILE certificate CERTIFICATE_FILE KEY_FILE
//
// It prints a line for each call. If a call fails, or returns an unexpected result, it exits with status 1.
package main

import (
	"os"

	"code.cloudfoundry.org/credhub-cli/credhub"
	"code.cloudfoundry.org/credhub-cli/credhub/auth"
)

func main() {
	if len(os.Args) != 6 {
		fail("usage: go-client SERVER CA_FILE secret|certificate ID_OR_CERTIFICATE SECRET_OR_KEY")
	}
	server, method := os.Args[1], os.Args[3]
	connect := func(more ...credhub.Option) *credhub.CredHub {
		client, err := credhub.New(server, append(options(os.Args[2:]), more...)...)
		if err != nil {
			fail("credhub.New: %v", err)
		}
		return client
	}
	calls := &calls{client: connect(), seen: map[string]bool{}}
	operations(calls)
	credentials(calls)
	versions(calls)
	certificates(calls)
	permissionsV2(calls)
	permissionsV1(calls, connect(credhub.ServerVersion("1.9.0")))
	if method == "secret" {
		login(calls)
	}
	calls.expectAll()
}

// options returns the trusted CA and the authentication from the arguments.
func options(arguments []string) []credhub.Option {
	caFile, method, first, second := arguments[0], arguments[1], arguments[2], arguments[3]
	ca, err := os.ReadFile(caFile)
	if err != nil {
		fail("%v", err)
	}
	trust := credhub.CaCerts(string(ca))
	switch method {
	case "secret":
		return []credhub.Option{trust, credhub.Auth(auth.UaaClientCredentials(first, second))}
	case "certificate":
		return []credhub.Option{trust, credhub.ClientCert(first, second)}
	}
	fail("unknown method %q", method)
	return nil
}
