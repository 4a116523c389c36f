module keywright.example/clients/go

go 1.25.7

require (
	code.cloudfoundry.org/credhub-cli v0.0.0-20260622130231-57c8cb0f1d6e
	github.com/hashicorp/go-version v1.9.0
)

require (
	github.com/cloudfoundry/go-socks5 v0.0.0-20250423223041-4ad5fea42851 // indirect
	github.com/cloudfoundry/socks5-proxy v0.2.179 // indirect
	golang.org/x/crypto v0.53.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.46.0 // indirect
)
