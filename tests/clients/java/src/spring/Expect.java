package spring;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.Objects;

import org.springframework.credhub.core.CredHubException;
import org.springframework.credhub.support.certificate.CertificateCredential;
import org.springframework.http.HttpStatus;
import org.springframework.web.reactive.function.client.WebClientResponseException;

/** Assertions about the results of calls. */
final class Expect {
    private Expect() {
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) {
            throw new AssertionError("expected " + expected + ", got " + actual);
        }
    }

    static void different(Object one, Object other) {
        if (Objects.equals(one, other)) {
            throw new AssertionError("both are " + one);
        }
    }

    static void isTrue(boolean condition, Object shown) {
        if (!condition) {
            throw new AssertionError("unexpected: " + shown);
        }
    }

    /** Fails unless the server refuses a call with this status. Some reactive operations keep the exception of the HTTP client. */
    static void refused(HttpStatus status, Runnable call) {
        try {
            call.run();
        } catch (CredHubException refused) {
            equal(status, refused.getStatusCode());
            return;
        } catch (WebClientResponseException refused) {
            equal(status, refused.getStatusCode());
            return;
        }
        throw new AssertionError("the call succeeded");
    }

    /** Fails unless the certificate was signed by a CA's certificate. */
    static void signedBy(String caCertificate, CertificateCredential leaf) throws Exception {
        parse(leaf.getCertificate()).verify(parse(caCertificate).getPublicKey());
        equal(caCertificate, leaf.getCertificateAuthority());
    }

    private static X509Certificate parse(String pem) throws Exception {
        var bytes = new ByteArrayInputStream(pem.getBytes(StandardCharsets.US_ASCII));
        return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(bytes);
    }
}
