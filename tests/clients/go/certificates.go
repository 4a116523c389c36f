package main

import (
	"crypto/x509"
	"encoding/pem"
	"slices"

	"code.cloudfoundry.org/credhub-cli/credhub"
	library "code.cloudfoundry.org/credhub-cli/credhub/credentials"
	"code.cloudfoundry.org/credhub-cli/credhub/credentials/generate"
	"code.cloudfoundry.org/credhub-cli/credhub/credentials/values"
)

// certificates generates a CA and a certificate, regenerates the certificates below the CA, and sets a certificate.
func certificates(calls *calls) {
	client := calls.client
	ca := call(calls, "GenerateCertificate", func() (library.Certificate, error) {
		request := generate.Certificate{CommonName: "go", IsCA: true, SelfSign: true}
		return client.GenerateCertificate("/go/ca", request, credhub.NoOverwrite)
	})
	leaf := call(calls, "GenerateCertificate", func() (library.Certificate, error) {
		request := generate.Certificate{
			CommonName: "leaf", Ca: "/go/ca", Duration: 30, AlternativeNames: []string{"leaf.example"},
			KeyUsage: []string{"digital_signature"}, ExtendedKeyUsage: []string{"server_auth"},
		}
		return client.GenerateCertificate("/go/leaf", request, credhub.NoOverwrite)
	})
	expect(leaf.DurationUsed == 30 && !leaf.DurationOverridden, "%d days", leaf.DurationUsed)
	expectChain(leaf.Value)

	regenerated := call(calls, "BulkRegenerate", func() (library.BulkRegenerateResults, error) {
		return client.BulkRegenerate("/go/ca")
	})
	expect(slices.Equal(regenerated.Certificates, []string{"/go/leaf"}), "%v", regenerated.Certificates)
	latest := call(calls, "GetLatestCertificate", func() (library.Certificate, error) {
		return client.GetLatestCertificate("/go/leaf")
	})
	expect(latest.Id != leaf.Id, "the leaf was not regenerated")
	expectChain(latest.Value)

	set := call(calls, "SetCertificate", func() (library.Certificate, error) {
		value := values.Certificate{
			CaName: "/go/ca", Certificate: leaf.Value.Certificate, PrivateKey: leaf.Value.PrivateKey,
		}
		return client.SetCertificate("/go/set", value)
	})
	expect(set.Value.Ca == ca.Value.Certificate, "the CA's certificate differs")

	all := call(calls, "GetAllCertificatesMetadata", func() ([]library.CertificateMetadata, error) {
		return client.GetAllCertificatesMetadata()
	})
	expect(len(all) == 3, "%+v", all)
	one := call(calls, "GetCertificateMetadataByName", func() (library.CertificateMetadata, error) {
		return client.GetCertificateMetadataByName("/go/ca")
	})
	expect(one.SignedBy == "/go/ca" && len(one.Signs) == 2, "%+v", one)
	expect(len(one.Versions) == 1 && one.Versions[0].Id == ca.Id, "%+v", one.Versions)
	expect(one.Versions[0].CertificateAuthority && one.Versions[0].SelfSigned, "%+v", one.Versions)
}

// expectChain exits if the certificate does not chain to its CA.
func expectChain(value values.Certificate) {
	roots := x509.NewCertPool()
	expect(roots.AppendCertsFromPEM([]byte(value.Ca)), "the CA is not a PEM certificate")
	block, _ := pem.Decode([]byte(value.Certificate))
	certificate, err := x509.ParseCertificate(block.Bytes)
	expect(err == nil, "%v", err)
	_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: "leaf.example"})
	expect(err == nil, "%v", err)
}
