package spring;

import org.springframework.credhub.core.CredHubOperations;
import org.springframework.credhub.core.CredHubTemplate;
import org.springframework.credhub.core.ReactiveCredHubTemplate;

/**
 * Calls every operation of Spring CredHub against a server.
 *
 * <pre>
 * java spring.Main blocking|reactive SERVER CA_FILE secret CLIENT_ID CLIENT_SECRET
 * java spring.Main blocking|reactive SERVER CA_FILE certificate CERTIFICATE_FILE KEY_FILE
 * </pre>
 *
 * It prints a line for each call. If a call fails, or returns an unexpected result, it exits with status 1.
 */
public final class Main {
    private Main() {
    }

    /** Runs the program. */
    public static void main(String[] arguments) {
        try {
            run(arguments);
        } catch (Throwable cause) {
            System.out.println("FAILED");
            cause.printStackTrace(System.out);
            System.exit(1);
        }
        // Threads of the HTTP clients would keep the process alive.
        System.exit(0);
    }

    private static void run(String[] arguments) throws Exception {
        if (arguments.length != 6) {
            throw new IllegalArgumentException("six arguments are required");
        }
        Connection connection = new Connection(arguments[1], arguments[2]);
        switch (arguments[3]) {
            case "secret" -> connection.authenticateAsClient(arguments[4], arguments[5]);
            case "certificate" -> connection.authenticateByCertificate(arguments[4], arguments[5]);
            default -> throw new IllegalArgumentException(arguments[3]);
        }
        Recorder recorder = new Recorder();
        CredHubOperations operations;
        if (arguments[0].equals("reactive")) {
            ReactiveCredHubTemplate template = connection.reactive();
            recorder.call("doWithWebClient", () -> template.doWithWebClient(
                client -> client.get().uri("/api/v1/key-usage").retrieve().toBodilessEntity()).block());
            operations = recorder.recording(CredHubOperations.class, template);
        } else {
            CredHubTemplate template = connection.blocking();
            recorder.call("doWithRest", () -> template.doWithRest(
                rest -> rest.getForEntity("/api/v1/key-usage", String.class)));
            operations = recorder.recording(CredHubOperations.class, template);
        }
        new Credentials(operations).run();
        new Certificates(operations).run();
        new Permissions(operations).run();
        recorder.expectAll();
    }
}
