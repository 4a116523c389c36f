package spring;

import java.util.List;

import org.springframework.credhub.core.CredHubOperations;
import org.springframework.credhub.core.certificate.CredHubCertificateOperations;
import org.springframework.credhub.core.credential.CredHubCredentialOperations;
import org.springframework.credhub.support.CredentialDetails;
import org.springframework.credhub.support.CredentialName;
import org.springframework.credhub.support.SimpleCredentialName;
import org.springframework.credhub.support.certificate.CertificateCredential;
import org.springframework.credhub.support.certificate.CertificateCredentialDetails;
import org.springframework.credhub.support.certificate.CertificateCredentialRequest;
import org.springframework.credhub.support.certificate.CertificateParameters;
import org.springframework.credhub.support.certificate.CertificateParametersRequest;
import org.springframework.credhub.support.certificate.ExtendedKeyUsage;
import org.springframework.credhub.support.certificate.KeyUsage;

/** Certificates, and the rotation of a CA: the steps of Spring CredHub's own integration tests, in one flow. */
final class Certificates {
    private static final CredentialName CA = new SimpleCredentialName("spring", "ca");
    private static final CredentialName LEAF = new SimpleCredentialName("spring", "leaf");

    private final CredHubCredentialOperations credentials;
    private final CredHubCertificateOperations certificates;

    Certificates(CredHubOperations operations) {
        this.credentials = operations.credentials();
        this.certificates = operations.certificates();
    }

    void run() throws Exception {
        CredentialDetails<CertificateCredential> ca = credentials.generate(CertificateParametersRequest.builder()
            .name(CA)
            .parameters(CertificateParameters.builder()
                .commonName("spring").certificateAuthority(true).selfSign(true).build())
            .build());
        CredentialDetails<CertificateCredential> leaf = credentials.generate(CertificateParametersRequest.builder()
            .name(LEAF)
            .parameters(CertificateParameters.builder()
                .commonName("leaf").certificateAuthorityCredential(CA).duration(30)
                .alternateNames("leaf.example").organization("Spring").organizationUnit("CredHub")
                .locality("here").state("there").country("AT")
                .keyUsage(KeyUsage.DIGITAL_SIGNATURE).extendedKeyUsage(ExtendedKeyUsage.SERVER_AUTH)
                .build())
            .build());
        Expect.signedBy(ca.getValue().getCertificate(), leaf.getValue());
        rotate(ca.getId(), ca.getValue().getCertificate());
        set(leaf.getValue());
        regenerateByName();
    }

    /** Rotates the CA from the first to the last step. */
    private void rotate(String oldVersion, String oldCertificate) throws Exception {
        Expect.equal(1, history().size());
        String id = certificates.getByName(CA).getId();

        CertificateCredentialDetails transitional = certificates.regenerate(id, true);
        String newVersion = transitional.getId();
        Expect.isTrue(transitional.isTransitional(), transitional);
        Expect.different(oldCertificate, transitional.getValue().getCertificate());
        Expect.equal(2, history().size());
        Expect.equal(oldVersion, credentials.getByName(CA, CertificateCredential.class).getId());

        List<CertificateCredentialDetails> moved = certificates.updateTransitionalVersion(id, oldVersion);
        Expect.equal(List.of(newVersion, oldVersion), moved.stream().map(CertificateCredentialDetails::getId).toList());
        Expect.equal(List.of(false, true), moved.stream().map(CertificateCredentialDetails::isTransitional).toList());

        Expect.equal(List.of(LEAF.getName()),
            certificates.regenerate(CA).stream().map(CredentialName::getName).toList());
        String newCertificate = transitional.getValue().getCertificate();
        Expect.signedBy(newCertificate, credentials.getByName(LEAF, CertificateCredential.class).getValue());

        List<CertificateCredentialDetails> cleared = certificates.updateTransitionalVersion(id, null);
        Expect.equal(List.of(newVersion), cleared.stream().map(CertificateCredentialDetails::getId).toList());
        Expect.isTrue(!cleared.get(0).isTransitional(), cleared);
    }

    private List<CredentialDetails<CertificateCredential>> history() {
        return credentials.getByNameWithHistory(CA, CertificateCredential.class);
    }

    private void set(CertificateCredential value) {
        CredentialName name = new SimpleCredentialName("spring", "set-certificate");
        credentials.write(CertificateCredentialRequest.builder().name(name).value(value).build());
        CertificateCredential read = credentials.getByName(name, CertificateCredential.class).getValue();
        Expect.equal(value.getCertificate(), read.getCertificate());
        Expect.equal(value.getPrivateKey(), read.getPrivateKey());
        Expect.isTrue(certificates.getAll().size() == 3, certificates.getAll());
    }

    private void regenerateByName() {
        String old = credentials.getByName(LEAF, CertificateCredential.class).getId();
        Expect.different(old, credentials.regenerate(LEAF, CertificateCredential.class).getId());
    }
}
