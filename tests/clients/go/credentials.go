package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"code.cloudfoundry.org/credhub-cli/credhub"
	"code.cloudfoundry.org/credhub-cli/credhub/auth"
	library "code.cloudfoundry.org/credhub-cli/credhub/credentials"
	"code.cloudfoundry.org/credhub-cli/credhub/credentials/generate"
	"code.cloudfoundry.org/credhub-cli/credhub/credentials/values"
	"code.cloudfoundry.org/credhub-cli/credhub/server"
	"github.com/hashicorp/go-version"
)

// operations calls the methods that concern the server as a whole.
func operations(calls *calls) {
	client := calls.client
	calls.record("Client")
	expect(client.Client() != nil, "no HTTP client")
	info := call(calls, "Info", func() (*server.Info, error) { return client.Info() })
	expect(info.App.Name != "", "the server has no name: %+v", info)
	authURL := call(calls, "AuthURL", client.AuthURL)
	expect(authURL == info.AuthServer.URL, "%s is not %s", authURL, info.AuthServer.URL)
	level := call(calls, "ServerVersion", func() (*version.Version, error) { return client.ServerVersion() })
	expect(level.Segments()[0] == 2, "the API level is %s", level)
	response := call(calls, "Request", func() (*http.Response, error) {
		return client.Request(http.MethodGet, "/api/v1/key-usage", nil, nil, true)
	})
	expect(response.StatusCode == http.StatusOK, "%s", response.Status)
	_ = response.Body.Close()
}

// credentials sets and generates credentials of each type, and reads them.
func credentials(calls *calls) {
	client := calls.client
	value := call(calls, "SetValue", func() (library.Value, error) { return client.SetValue("/go/value", "one") })
	expect(value.Value == "one" && value.Name == "/go/value" && value.Type == "value", "%+v", value)
	document := values.JSON{"host": "db.example", "ports": []any{5432.0}}
	call(calls, "SetJSON", func() (library.JSON, error) { return client.SetJSON("/go/json", document) })
	call(calls, "SetPassword", func() (library.Password, error) { return client.SetPassword("/go/password", "secret") })
	call(calls, "SetUser", func() (library.User, error) {
		return client.SetUser("/go/user", values.User{Username: "me", Password: "secret"})
	})
	labelled := func(options *credhub.SetOptions) error {
		options.Metadata = library.Metadata{"team": "go"}
		return nil
	}
	set := call(calls, "SetCredential", func() (library.Credential, error) {
		return client.SetCredential("/go/labelled", "value", "two", labelled)
	})
	expect(set.Metadata["team"] == "go", "%+v", set)

	latest := call(calls, "GetLatestValue", func() (library.Value, error) { return client.GetLatestValue("/go/value") })
	expect(latest.Id == value.Id && latest.Value == "one", "%+v", latest)
	object := call(calls, "GetLatestJSON", func() (library.JSON, error) { return client.GetLatestJSON("/go/json") })
	expect(object.Value["host"] == "db.example", "%+v", object)
	password := call(calls, "GetLatestPassword", func() (library.Password, error) {
		return client.GetLatestPassword("/go/password")
	})
	expect(password.Value == "secret", "the password differs")
	user := call(calls, "GetLatestUser", func() (library.User, error) { return client.GetLatestUser("/go/user") })
	expect(user.Value.Username == "me" && user.Value.Password == "secret", "%s", user.Value.Username)
	expect(strings.HasPrefix(user.Value.PasswordHash, "$6$"), "%s", user.Value.PasswordHash)

	generated(calls)
	interpolation(calls)
}

// generated generates credentials of the types without a CA.
func generated(calls *calls) {
	client := calls.client
	password := call(calls, "GeneratePassword", func() (library.Password, error) {
		return client.GeneratePassword("/go/generated/password", generate.Password{Length: 40}, credhub.Overwrite)
	})
	expect(len(password.Value) == 40, "%d characters", len(password.Value))
	for _, mode := range []credhub.Mode{credhub.NoOverwrite, credhub.Converge} {
		kept := call(calls, "GeneratePassword", func() (library.Password, error) {
			return client.GeneratePassword("/go/generated/password", generate.Password{Length: 40}, mode)
		})
		expect(kept.Id == password.Id, "mode %s added a version", mode)
	}
	for _, name := range []string{"", "me"} {
		user := call(calls, "GenerateUser", func() (library.User, error) {
			return client.GenerateUser("/go/generated/user", generate.User{Username: name}, credhub.Overwrite)
		})
		expect((name == "") != (user.Value.Username == name), "%q became %q", name, user.Value.Username)
	}
	rsa := call(calls, "GenerateRSA", func() (library.RSA, error) {
		return client.GenerateRSA("/go/generated/rsa", generate.RSA{KeyLength: 2048}, credhub.NoOverwrite)
	})
	ssh := call(calls, "GenerateSSH", func() (library.SSH, error) {
		return client.GenerateSSH("/go/generated/ssh", generate.SSH{KeyLength: 2048, Comment: "me"}, credhub.NoOverwrite)
	})
	expect(strings.HasSuffix(ssh.Value.PublicKey, " me"), "%s", ssh.Value.PublicKey)
	expect(ssh.Value.PublicKeyFingerprint != "", "no fingerprint")
	labelled := func(options *credhub.GenerateOptions) error {
		options.Metadata = library.Metadata{"team": "go"}
		return nil
	}
	credential := call(calls, "GenerateCredential", func() (library.Credential, error) {
		return client.GenerateCredential("/go/generated/any", "password", map[string]any{}, credhub.Overwrite, labelled)
	})
	expect(credential.Metadata["team"] == "go", "%+v", credential.Metadata)

	call(calls, "SetRSA", func() (library.RSA, error) { return client.SetRSA("/go/rsa", rsa.Value) })
	read := call(calls, "GetLatestRSA", func() (library.RSA, error) { return client.GetLatestRSA("/go/rsa") })
	expect(read.Value == rsa.Value, "the RSA key differs")
	call(calls, "SetSSH", func() (library.SSH, error) { return client.SetSSH("/go/ssh", ssh.Value.SSH) })
	key := call(calls, "GetLatestSSH", func() (library.SSH, error) { return client.GetLatestSSH("/go/ssh") })
	expect(key.Value.SSH == ssh.Value.SSH, "the SSH key differs")
	regenerated := call(calls, "Regenerate", func() (library.Credential, error) {
		return client.Regenerate("/go/generated/password")
	})
	expect(regenerated.Id != password.Id && len(regenerated.Value.(string)) == 40, "the password was not regenerated")
}

// interpolation replaces a reference in service bindings.
func interpolation(calls *calls) {
	bindings := `{"db": [{"label": "db", "credentials": {"credhub-ref": "((/go/json))"}}]}`
	text := call(calls, "InterpolateString", func() (string, error) { return calls.client.InterpolateString(bindings) })
	var services map[string][]struct{ Credentials map[string]any }
	err := json.Unmarshal([]byte(text), &services)
	expect(err == nil && services["db"][0].Credentials["host"] == "db.example", "%s", text)
}

// versions reads versions, finds credentials, and deletes one.
func versions(calls *calls) {
	client := calls.client
	call(calls, "SetValue", func() (library.Value, error) { return client.SetValue("/go/value", "two") })
	latest := call(calls, "GetLatestVersion", func() (library.Credential, error) {
		return client.GetLatestVersion("/go/value")
	})
	expect(latest.Value == "two", "%v", latest.Value)
	all := call(calls, "GetAllVersions", func() ([]library.Credential, error) { return client.GetAllVersions("/go/value") })
	expect(len(all) == 2 && all[0].Id == latest.Id && all[1].Value == "one", "%+v", all)
	one := call(calls, "GetNVersions", func() ([]library.Credential, error) { return client.GetNVersions("/go/value", 1) })
	expect(len(one) == 1 && one[0].Id == latest.Id, "%+v", one)
	old := call(calls, "GetById", func() (library.Credential, error) { return client.GetById(all[1].Id) })
	expect(old.Value == "one", "%v", old.Value)

	below := call(calls, "FindByPath", func() (library.FindResults, error) { return client.FindByPath("/go/generated") })
	expect(len(below.Credentials) == 5, "%+v", below)
	like := call(calls, "FindByPartialName", func() (library.FindResults, error) { return client.FindByPartialName("LABEL") })
	expect(len(like.Credentials) == 1 && like.Credentials[0].Name == "/go/labelled", "%+v", like)
	call(calls, "Delete", func() (any, error) { return nil, client.Delete("/go/value") })
	gone := refuse(calls, "GetLatestVersion", func() (library.Credential, error) {
		return client.GetLatestVersion("/go/value")
	})
	var notFound *credhub.NotFoundError
	expect(errors.As(gone, &notFound), "%T: %v", gone, gone)
}

// login replaces the token, and ends the login.
func login(calls *calls) {
	strategy := calls.client.Auth.(*auth.OAuthStrategy)
	call(calls, "Auth.Refresh", func() (any, error) { return nil, strategy.Refresh() })
	call(calls, "Auth.Logout", func() (any, error) { return nil, strategy.Logout() })
	expect(strategy.AccessToken() == "", "the token was kept")
	call(calls, "Auth.Login", func() (any, error) { return nil, strategy.Login() })
	strategy.SetTokens("not-a-token", "")
	invalid := refuse(calls, "GetLatestVersion", func() (library.Credential, error) {
		return calls.client.GetLatestVersion("/go/json")
	})
	var refused *credhub.Error
	expect(errors.As(invalid, &refused) && refused.Name == "invalid_token", "%v", invalid)
}
