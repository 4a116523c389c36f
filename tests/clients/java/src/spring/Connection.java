package spring;

import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;

import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

import org.springframework.credhub.configuration.ClientHttpConnectorFactory;
import org.springframework.credhub.configuration.ClientHttpRequestFactoryFactory;
import org.springframework.credhub.core.CredHubProperties;
import org.springframework.credhub.core.CredHubTemplate;
import org.springframework.credhub.core.ReactiveCredHubTemplate;
import org.springframework.credhub.support.ClientOptions;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.reactive.ClientHttpConnector;
import org.springframework.http.converter.FormHttpMessageConverter;
import org.springframework.security.oauth2.client.AuthorizedClientServiceOAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.AuthorizedClientServiceReactiveOAuth2AuthorizedClientManager;
import org.springframework.security.oauth2.client.InMemoryOAuth2AuthorizedClientService;
import org.springframework.security.oauth2.client.InMemoryReactiveOAuth2AuthorizedClientService;
import org.springframework.security.oauth2.client.OAuth2AuthorizedClientProviderBuilder;
import org.springframework.security.oauth2.client.ReactiveOAuth2AuthorizedClientProviderBuilder;
import org.springframework.security.oauth2.client.endpoint.RestClientClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.endpoint.WebClientReactiveClientCredentialsTokenResponseClient;
import org.springframework.security.oauth2.client.registration.ClientRegistration;
import org.springframework.security.oauth2.client.registration.InMemoryClientRegistrationRepository;
import org.springframework.security.oauth2.client.registration.InMemoryReactiveClientRegistrationRepository;
import org.springframework.security.oauth2.core.AuthorizationGrantType;
import org.springframework.security.oauth2.core.http.converter.OAuth2AccessTokenResponseHttpMessageConverter;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;

/** The address of a server, and the authentication to it. */
final class Connection {
    private static final String REGISTRATION = "keywright";

    private final CredHubProperties properties = new CredHubProperties();
    private final String caFile;
    private ClientOptions options = new ClientOptions();
    private ClientRegistration registration;

    Connection(String server, String caFile) {
        properties.setUrl(server);
        this.caFile = caFile;
    }

    /** Authenticates with a token that the server's development identity provider issues to a client. */
    void authenticateAsClient(String id, String secret) {
        options = new ClientOptions(null, null, new String[] {caFile});
        CredHubProperties.OAuth2 oauth2 = new CredHubProperties.OAuth2();
        oauth2.setRegistrationId(REGISTRATION);
        properties.setOauth2(oauth2);
        registration = ClientRegistration.withRegistrationId(REGISTRATION)
            .clientId(id)
            .clientSecret(secret)
            .authorizationGrantType(AuthorizationGrantType.CLIENT_CREDENTIALS)
            .tokenUri(properties.getUrl() + "/identity/oauth/token")
            .build();
    }

    /** Authenticates by a client certificate. Spring CredHub takes it from the default context of the virtual machine. */
    void authenticateByCertificate(String certificateFile, String keyFile) throws Exception {
        KeyStore trusted = emptyStore();
        trusted.setCertificateEntry("ca", certificate(caFile));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);

        KeyStore own = emptyStore();
        own.setKeyEntry("app", key(keyFile), new char[0], new Certificate[] {certificate(certificateFile)});
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(own, new char[0]);

        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        SSLContext.setDefault(context);
    }

    CredHubTemplate blocking() {
        ClientHttpRequestFactory http = ClientHttpRequestFactoryFactory.create(options);
        if (registration == null) {
            return new CredHubTemplate(properties, http);
        }
        RestTemplate tokenRequests = new RestTemplate(
            Arrays.asList(new FormHttpMessageConverter(), new OAuth2AccessTokenResponseHttpMessageConverter()));
        tokenRequests.setRequestFactory(http);
        var tokens = new RestClientClientCredentialsTokenResponseClient();
        tokens.setRestClient(RestClient.create(tokenRequests));
        var registrations = new InMemoryClientRegistrationRepository(registration);
        var manager = new AuthorizedClientServiceOAuth2AuthorizedClientManager(
            registrations, new InMemoryOAuth2AuthorizedClientService(registrations));
        manager.setAuthorizedClientProvider(OAuth2AuthorizedClientProviderBuilder.builder()
            .clientCredentials(grant -> grant.accessTokenResponseClient(tokens))
            .build());
        return new CredHubTemplate(properties, http, registrations, manager);
    }

    ReactiveCredHubTemplate reactive() {
        ClientHttpConnector http = ClientHttpConnectorFactory.create(options);
        if (registration == null) {
            return new ReactiveCredHubTemplate(properties, http);
        }
        var tokens = new WebClientReactiveClientCredentialsTokenResponseClient();
        tokens.setWebClient(WebClient.builder().clientConnector(http).build());
        var registrations = new InMemoryReactiveClientRegistrationRepository(registration);
        var manager = new AuthorizedClientServiceReactiveOAuth2AuthorizedClientManager(
            registrations, new InMemoryReactiveOAuth2AuthorizedClientService(registrations));
        manager.setAuthorizedClientProvider(ReactiveOAuth2AuthorizedClientProviderBuilder.builder()
            .clientCredentials(grant -> grant.accessTokenResponseClient(tokens))
            .build());
        return new ReactiveCredHubTemplate(properties, http, manager);
    }

    private static KeyStore emptyStore() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        return store;
    }

    private static Certificate certificate(String file) throws Exception {
        try (InputStream pem = Files.newInputStream(Path.of(file))) {
            return CertificateFactory.getInstance("X.509").generateCertificate(pem);
        }
    }

    /** Reads an elliptic-curve key in PKCS#8. */
    private static PrivateKey key(String file) throws Exception {
        String base64 = Files.readString(Path.of(file)).replaceAll("-----[A-Z ]+-----", "");
        byte[] der = Base64.getMimeDecoder().decode(base64);
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(der));
    }
}
