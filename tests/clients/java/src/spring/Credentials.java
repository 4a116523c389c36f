package spring;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

import org.springframework.credhub.core.CredHubOperations;
import org.springframework.credhub.core.credential.CredHubCredentialOperations;
import org.springframework.credhub.support.CredentialDetails;
import org.springframework.credhub.support.CredentialName;
import org.springframework.credhub.support.CredentialRequest;
import org.springframework.credhub.support.CredentialSummary;
import org.springframework.credhub.support.KeyLength;
import org.springframework.credhub.support.ServiceInstanceCredentialName;
import org.springframework.credhub.support.ServicesData;
import org.springframework.credhub.support.SimpleCredentialName;
import org.springframework.credhub.support.WriteMode;
import org.springframework.credhub.support.json.JsonCredential;
import org.springframework.credhub.support.json.JsonCredentialRequest;
import org.springframework.credhub.support.password.PasswordCredential;
import org.springframework.credhub.support.password.PasswordCredentialRequest;
import org.springframework.credhub.support.password.PasswordParameters;
import org.springframework.credhub.support.password.PasswordParametersRequest;
import org.springframework.credhub.support.rsa.RsaCredential;
import org.springframework.credhub.support.rsa.RsaCredentialRequest;
import org.springframework.credhub.support.rsa.RsaParameters;
import org.springframework.credhub.support.rsa.RsaParametersRequest;
import org.springframework.credhub.support.ssh.SshCredential;
import org.springframework.credhub.support.ssh.SshCredentialRequest;
import org.springframework.credhub.support.ssh.SshParameters;
import org.springframework.credhub.support.ssh.SshParametersRequest;
import org.springframework.credhub.support.user.UserCredential;
import org.springframework.credhub.support.user.UserCredentialRequest;
import org.springframework.credhub.support.user.UserParametersRequest;
import org.springframework.credhub.support.value.ValueCredential;
import org.springframework.credhub.support.value.ValueCredentialRequest;
import org.springframework.http.HttpStatus;

/** Credentials of all types but certificates. */
final class Credentials {
    private final CredHubOperations operations;
    private final CredHubCredentialOperations credentials;

    Credentials(CredHubOperations operations) {
        this.operations = operations;
        this.credentials = operations.credentials();
    }

    void run() {
        Expect.isTrue(operations.info().version().isVersion2(), operations.info().version());
        write();
        generatePassword();
        generateUser();
        generateKeys();
        read();
        interpolate();
        delete();
    }

    private static CredentialName name(String last) {
        return new SimpleCredentialName("spring", last);
    }

    private void write() {
        write(ValueCredentialRequest.builder().name(name("value")).value("one").build(),
            ValueCredential.class, ValueCredential::getValue);
        write(PasswordCredentialRequest.builder().name(name("password")).value("secret").build(),
            PasswordCredential.class, PasswordCredential::getPassword);
        JsonCredential json = new JsonCredential(Map.of("host", "db.example", "port", 5432));
        write(JsonCredentialRequest.builder().name(name("json")).value(json).build(),
            JsonCredential.class, Map::copyOf);
        UserCredential user = new UserCredential("me", "secret");
        UserCredential written = write(UserCredentialRequest.builder().name(name("user")).value(user).build(),
            UserCredential.class, value -> List.of(value.getUsername(), value.getPassword()));
        Expect.isTrue(written.getPasswordHash().startsWith("$6$"), "no hash of the password");
    }

    /** Writes a credential, reads it by name and by id, and compares the values through a function. */
    private <T> T write(CredentialRequest<T> request, Class<T> type, Function<T, Object> compared) {
        CredentialDetails<T> written = credentials.write(request);
        CredentialName name = written.getName();
        Expect.equal(request.getName(), name.getName());
        Object expected = compared.apply(request.getValue());
        Expect.equal(expected, compared.apply(written.getValue()));
        Expect.equal(expected, compared.apply(credentials.getByName(name, type).getValue()));
        Expect.equal(expected, compared.apply(credentials.getById(written.getId(), type).getValue()));
        return written.getValue();
    }

    private void generatePassword() {
        CredentialName name = name("generated-password");
        CredentialDetails<PasswordCredential> first = credentials.generate(password(name, WriteMode.OVERWRITE));
        Expect.equal(40, first.getValue().getPassword().length());
        for (WriteMode keeping : List.of(WriteMode.CONVERGE, WriteMode.NO_OVERWRITE)) {
            CredentialDetails<PasswordCredential> kept = credentials.generate(password(name, keeping));
            Expect.equal(first.getId(), kept.getId());
        }
        CredentialDetails<PasswordCredential> regenerated = credentials.regenerate(name, PasswordCredential.class);
        Expect.different(first.getId(), regenerated.getId());
        Expect.equal(40, regenerated.getValue().getPassword().length());
    }

    private static PasswordParametersRequest password(CredentialName name, WriteMode mode) {
        PasswordParameters parameters = PasswordParameters.builder()
            .length(40).excludeLower(false).excludeUpper(true).excludeNumber(false).includeSpecial(true)
            .build();
        return PasswordParametersRequest.builder().name(name).mode(mode).parameters(parameters).build();
    }

    private void generateUser() {
        CredentialName name = name("generated-user");
        PasswordParameters parameters = new PasswordParameters(20, false, false, false, true);
        CredentialDetails<UserCredential> named = credentials.generate(
            UserParametersRequest.builder().name(name).username("me").parameters(parameters).build());
        Expect.equal("me", named.getValue().getUsername());
        Expect.equal(20, named.getValue().getPassword().length());
        CredentialDetails<UserCredential> regenerated = credentials.regenerate(name, UserCredential.class);
        Expect.equal("me", regenerated.getValue().getUsername());
        Expect.different(named.getValue().getPassword(), regenerated.getValue().getPassword());
    }

    /** Generates RSA and SSH keys, sets them under other names, and regenerates one. */
    private void generateKeys() {
        CredentialDetails<RsaCredential> rsa = credentials.generate(RsaParametersRequest.builder()
            .name(name("generated-rsa")).parameters(new RsaParameters(KeyLength.LENGTH_2048)).build());
        write(RsaCredentialRequest.builder().name(name("rsa")).value(rsa.getValue()).build(),
            RsaCredential.class, RsaCredential::getPrivateKey);

        CredentialName sshName = name("generated-ssh");
        CredentialDetails<SshCredential> ssh = credentials.generate(SshParametersRequest.builder()
            .name(sshName).parameters(new SshParameters(KeyLength.LENGTH_2048, "me")).build());
        Expect.isTrue(ssh.getValue().getPublicKey().endsWith(" me"), ssh.getValue().getPublicKey());
        Expect.isTrue(ssh.getValue().getPublicKeyFingerprint() != null, "no fingerprint");
        SshCredential pair = new SshCredential(ssh.getValue().getPublicKey(), ssh.getValue().getPrivateKey());
        write(SshCredentialRequest.builder().name(name("ssh")).value(pair).build(),
            SshCredential.class, SshCredential::getPrivateKey);
        Expect.different(pair.getPrivateKey(),
            credentials.regenerate(sshName, SshCredential.class).getValue().getPrivateKey());
    }

    private void read() {
        CredentialName name = name("value");
        credentials.write(ValueCredentialRequest.builder().name(name).value("two").build());
        List<CredentialDetails<ValueCredential>> all = credentials.getByNameWithHistory(name, ValueCredential.class);
        Expect.equal(List.of("two", "one"), all.stream().map(each -> each.getValue().getValue()).toList());
        List<CredentialDetails<ValueCredential>> last = credentials.getByNameWithHistory(name, 1, ValueCredential.class);
        Expect.equal(1, last.size());
        Expect.equal(all.get(0).getId(), last.get(0).getId());

        List<CredentialSummary> named = credentials.findByName(new SimpleCredentialName("GENERATED-"));
        Expect.equal(4, named.size());
        List<CredentialSummary> below = credentials.findByPath("/spring");
        Expect.equal(10, below.size());
        Expect.isTrue(below.stream().allMatch(each -> each.getVersionCreatedAt() != null), below);
    }

    private void interpolate() {
        CredentialName name = ServiceInstanceCredentialName.builder()
            .serviceBrokerName("broker").serviceOfferingName("db").serviceBindingId("1").credentialName("credentials")
            .build();
        JsonCredential json = new JsonCredential(Map.of("host", "db.example"));
        credentials.write(JsonCredentialRequest.builder().name(name).value(json).build());
        Map<String, Object> reference = Map.of("credhub-ref", "((" + name.getName() + "))");
        Map<String, Object> binding = new HashMap<>(Map.of("label", "db", "credentials", reference));
        ServicesData services = new ServicesData(new HashMap<>(Map.of("db", List.of(binding))));
        ServicesData interpolated = operations.interpolation().interpolateServiceData(services);
        Expect.equal(Map.of("host", "db.example"), interpolated.get("db").get(0).get("credentials"));
        Expect.equal("db", interpolated.get("db").get(0).get("label"));
    }

    private void delete() {
        CredentialName name = name("value");
        credentials.deleteByName(name);
        Expect.refused(HttpStatus.NOT_FOUND, () -> credentials.getByName(name, ValueCredential.class));
        Expect.refused(HttpStatus.BAD_REQUEST, () -> credentials.write(
            ValueCredentialRequest.builder().name(new SimpleCredentialName("not a name")).value("x").build()));
    }
}
