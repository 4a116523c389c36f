//! Errors that `keywright check-config` reports, each in a setting of the example.

/// A text of the example, its replacement, and the start of the expected finding.
pub(super) const MISTAKES: &[(&str, &str, &str)] = &[
    ("0.0.0.0:8844", "0.0.0.0", "server.listen: "),
    ("listen = \"0.0.0.0:8844\"", "", "server.listen: is missing"),
    (
        "4096",
        "0",
        "server.connections_max: must be from 1 to 1000000, not 0",
    ),
    (
        "#: connections_per_address_max = 4096",
        "connections_per_address_max = 4097",
        "server.connections_per_address_max: must not exceed server.connections_max (4096), but is 4097",
    ),
    (
        "connections_max",
        "conections_max",
        "server.conections_max: unknown setting; did you mean server.connections_max?",
    ),
    (
        "tls/server.pem",
        "tls/absent.pem",
        "server.tls.certificate: reading the TLS certificate",
    ),
    (
        "tls/server.pem",
        "tls/server-key.pem",
        "server.tls.certificate: ",
    ),
    (
        "tls/server-key.pem",
        "tls/ca.pem",
        "server.tls.private_key: ",
    ),
    (
        "tls/server-key.pem",
        "tls/other-signing-key.pem",
        "server.tls.private_key: does not match server.tls.certificate",
    ),
    (
        "#: client_authorities =",
        "client_authorities = \"tls/server.pem\" #",
        "server.tls.client_authorities: ",
    ),
    (
        "[storage]\nfile",
        "[storage]\n#",
        "storage: exactly one of storage.file (SQLite) and storage.url (PostgreSQL) must be set",
    ),
    (
        "lib/keywright/keywright.db",
        "lib/absent/keywright.db",
        "storage.file: there is no folder",
    ),
    (
        "lib/keywright/keywright.db",
        "lib/keywright",
        "storage.file: ",
    ),
    (
        "[storage]\nfile",
        "[storage]\nurl = \"postgres://k:hunter2@db/k\"\n#",
        "storage.url: reading the URL: the database's URL must not contain a password",
    ),
    (
        "[storage]\nfile",
        "[storage]\nurl = \"mysql://db/k\"\nroot_certificate = \"absent.pem\"\n#",
        "storage.root_certificate: ",
    ),
    (
        "service/encryption.key",
        "service/absent.key",
        "encryption.keys[0].file: reading a secret",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"raw\"\nfile = \"tls/server.pem\"\n#",
        "encryption.keys[0].file: a raw encryption key must be",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"password\"\nfile = \"empty.key\"\n#",
        "encryption.keys[0].file: an encryption password is empty",
    ),
    (
        "provider = \"raw\"",
        "provider = \"raw\"\nenvironment = \"A\"",
        "encryption.keys[0]: exactly one of file and environment",
    ),
    (
        "provider = \"raw\"\nfile",
        "provider = \"raw\"\nenvironment = \"ABSENT\"\n#",
        "encryption.keys[0].environment: the environment variable ABSENT is not set",
    ),
    (
        "active = true",
        "active = false",
        "encryption.keys: no encryption key is active",
    ),
    (
        "url = \"https://uaa",
        "url = \"http://uaa",
        "authentication.url: ",
    ),
    (
        "url = \"https://uaa",
        "#",
        "authentication.url: no authentication is configured",
    ),
    (
        "#: trusted_authorities =",
        "trusted_authorities = \"tls/server-key.pem\" #",
        "authentication.url: ",
    ),
    (
        "#: trusted_authorities =",
        "static_key = { public_key = \"tls/ca.pem\", issuer = \"i\" } #",
        "authentication.static_key.public_key: ",
    ),
    (
        "[authentication]",
        "[authentication]\nscopes_required = []",
        "authentication: ",
    ),
    (
        "path = \"/*\"",
        "path = \"/a*\"",
        "authorization.permissions[0]: ",
    ),
    (
        "log/keywright/audit.log",
        "log/absent/audit.log",
        "audit.file: there is no folder",
    ),
    ("sink = \"file\"", "sink = \"off\"", "audit.file: "),
    (
        "[plugins]",
        "[[retention.policies]]\npath = \"*\"\nversions_max = 1\n[plugins]",
        "retention.policies: reading retention.policies for \"*\": path must not be only an asterisk",
    ),
    (
        "[plugins]",
        "[console]\nurl = \"https://a.example\"\nclient_id = \"c\"\nclient_secret_environment = \"ABSENT\"\n[plugins]",
        "console.client_secret_environment: the environment variable ABSENT is not set",
    ),
    (
        "listen = \"127.0.0.1:9001\"",
        "listen = \"0.0.0.0:8844\"",
        "management.listen: must differ from server.listen",
    ),
    (
        "#: actors = [\"uaa-client:keywright-admin\"]",
        "actors = [\"admin\"]",
        "management.actors: ",
    ),
    (
        "lib/keywright/plugin-cache",
        "log",
        "plugins.cache_directory: ",
    ),
    (
        "[plugins]",
        "[log]\nfilter = \"a=b=c\"\n[plugins]",
        "log.filter: ",
    ),
    (
        "[plugins]",
        "[console]\nurl = \"http://a.example\"\nclient_id = \"c\"\n[plugins]",
        "console: console.url must be an https address without a path",
    ),
    (
        "[plugins]",
        "[console]\nurl = \"https://a.example/b\"\nclient_id = \"c\"\n[plugins]",
        "console: console.url must be an https address without a path",
    ),
    (
        "[plugins]",
        "[console]\nurl = \"https://a.example\"\nclient_id = \"c\"\nscopes = [\"a\"]\n[plugins]",
        "console: console.scopes must include openid",
    ),
    (
        "[plugins]",
        "[console]\nurl = \"https://a.example\"\nclient_id = \"c\"\nclient_secret_file = \"absent\"\n[plugins]",
        "console.client_secret_file: reading a secret",
    ),
    (
        "[plugins]",
        "[development_identity_provider]\nsigning_key = \"k\"\naccess_token_seconds = 1\nrefresh_token_seconds = 1\nclients = [{ id = \"c\", secret = \"hunter2\" }]\nusers = []\n[plugins]",
        "development_identity_provider: the development identity provider can't be served on 0.0.0.0:8844",
    ),
    (
        "[storage]",
        "[storage]\nreaders_max = 1001",
        "storage.readers_max: must be from 1 to 1000, not 1001",
    ),
    (
        "[storage]",
        "[storage]\nwriters_max = 1001",
        "storage.writers_max: must be from 1 to 1000, not 1001",
    ),
    (
        "[storage]",
        "[storage]\nwait_seconds_max = 3601",
        "storage.wait_seconds_max: must be from 1 to 3600, not 3601",
    ),
    (
        "[[encryption.keys]]",
        "[[encryption.keys]]\nprovider = \"raw\"\nfile = \"same.key\"\n[[encryption.keys]]",
        "encryption.keys: encryption.keys[0] and encryption.keys[1] are the same key",
    ),
    (
        "[[encryption.keys]]",
        "[[encryption.keys]]\nprovider = \"kms\"\nsocket = \"kms.sock\"\n[[encryption.keys]]\nprovider = \"kms\"\nsocket = \"kms.sock\"\n[[encryption.keys]]",
        "encryption.keys: encryption.keys[0] and encryption.keys[1] are the same key",
    ),
    (
        "[[encryption.keys]]",
        "[[encryption.keys]]\nprovider = \"kms\"\nsocket = \"kms.sock\"\nhost = \"a b\"\n[[encryption.keys]]",
        "encryption.keys[0]: using a key management plugin: invalid host \"a b\" for the key management plugin",
    ),
    (
        "[[encryption.keys]]",
        "[[encryption.keys]]\nprovider = \"kms\"\nsocket = \"kms.sock\"\ntrusted_authorities = \"absent.pem\"\n[[encryption.keys]]",
        "encryption.keys[0].trusted_authorities: reading the CAs",
    ),
    (
        "[[encryption.keys]]",
        "[[encryption.keys]]\nprovider = \"kms\"\nsocket = \"kms.sock\"\ntrusted_authorities = \"empty.key\"\n[[encryption.keys]]",
        "encryption.keys[0]: using a key management plugin: the trusted authorities",
    ),
    (
        "listen = \"127.0.0.1:9001\"",
        "listen = \"127.0.0.1:8844\"",
        "management.listen: must not use the port of server.listen",
    ),
    (
        "[plugins]",
        "[generators.\"a.b\"]\ncomponent = 7\n[plugins]",
        "generators.a.b.component: must be text",
    ),
    (
        "[plugins]",
        "[generators.x]\ncomponent = \"oci://registry.example.com/x:1\"\n[plugins]",
        "generators.x.component: the reference has no digest",
    ),
    (
        "[plugins]",
        "[generators.x]\ncomponent = \"oci://registry.example.com/X@sha256:0\"\n[plugins]",
        "generators.x.component: invalid digest",
    ),
    (
        "[plugins]",
        "[generators.x]\ncomponent = \"x.wasm\"\nsignature = { minisign_public_key = \"hunter2\" }\n[plugins]",
        "generators.x.signature: reading minisign_public_key",
    ),
    (
        "[plugins]",
        "[generators.x]\ncomponent = \"x.wasm\"\nsignature = { cosign_public_key = \"absent.pub\" }\n[plugins]",
        "generators.x.signature: reading the public key",
    ),
    (
        "[plugins]",
        "[registry]\ncomponent_bytes_max = 67108865\n[plugins]",
        "registry.component_bytes_max: must be from 1 to 67108864, not 67108865",
    ),
    (
        "[plugins]",
        "[registry]\nfetch_seconds_max = 3601\n[plugins]",
        "registry.fetch_seconds_max: must be from 1 to 3600, not 3601",
    ),
    (
        "[plugins]",
        "[registry]\ndocker_config = \"empty.key\"\n[plugins]",
        "registry.docker_config: reading the Docker login file",
    ),
    (
        "[plugins]",
        "[[registry.hosts]]\nhost = \"https://registry.example.com\"\n[plugins]",
        "registry.hosts",
    ),
    (
        "[plugins]",
        "[[registry.hosts]]\nhost = \"h\"\nuser = \"ada\"\n[plugins]",
        "registry.hosts[0]: for h, user and password_file must be set together",
    ),
    (
        "[plugins]",
        "[[registry.hosts]]\nhost = \"h\"\ntrusted_authorities = \"empty.key\"\n[plugins]",
        "registry.hosts[0]: using the registry h: the trusted certificates",
    ),
    (
        "[plugins]",
        "[[registry.hosts]]\nhost = \"h\"\n[[registry.hosts]]\nhost = \"H\"\n[plugins]",
        "registry.hosts[0]: registry.hosts contains the host h more than once",
    ),
    (
        "[plugins]",
        "[retention]\ninterval_seconds = 86401\n[plugins]",
        "retention.interval_seconds: must be from 1 to 86400, not 86401",
    ),
    (
        "[plugins]",
        "[[retention.policies]]\npath = \"/*\"\nversions_max = 10001\n[plugins]",
        "retention.policies[0].versions_max: must be from 1 to 10000, not 10001",
    ),
    (
        "[plugins]",
        "[[retention.policies]]\npath = \"/a*\"\nversions_max = 1\n[plugins]",
        "retention.policies: reading retention.policies for \"/a*\"",
    ),
    (
        "[plugins]",
        "[[retention.policies]]\npath = \"/*\"\n[plugins]",
        "retention.policies: reading retention.policies for \"/*\"",
    ),
];
