//! The listener, its limits and its TLS.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf};

use keywright_api::{Limits, RequestLimits};
use keywright_core::response_memory::ResponseLimits;
use keywright_crypto::client_certificate_facts;
use rustls::{crypto::aws_lc_rs, sign::CertifiedKey};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    findings::Findings,
    source::Section,
    values::{ListenAddress, Number},
};
use crate::{process, tls::certificates};

/// The listener and its limits.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerSection {
    /// The address and port to listen on: `127.0.0.1:8844`, `[::1]:8844` or `localhost:8844`. A host name is resolved
    /// once, at start-up; the server listens on each of its addresses that belongs to this machine.
    #[schemars(with = "String")]
    pub(crate) listen: ListenAddress,
    /// TLS certificates of the server and its clients.
    pub(crate) tls: TlsConfig,

    /// Maximum number of open connections. At the limit, the server closes connections that have been idle for a
    /// second, or whose handshake or first head is incomplete after 2 seconds, and accepts further ones as slots become
    /// free.
    #[serde(default)]
    pub(crate) connections_max: Number<1, 1_000_000, 4_096>,
    /// Maximum number of open connections per client address (per /64 network for IPv6); further ones are closed
    /// immediately. Defaults to a quarter of `connections_max`. Behind a load balancer that hides client addresses, set
    /// it to the value of `connections_max`.
    connections_per_address_max: Option<Number<1, 1_000_000, 1_024>>,
    /// Maximum number of concurrent requests on one HTTP/2 connection.
    #[serde(default)]
    pub(crate) streams_per_connection_max: Number<1, 10_000, 128>,
    /// Maximum number of concurrent authenticated requests; further ones get status 503. Requests that need no identity
    /// (`/health`, `/info`) or get status 401 do not count.
    #[serde(default)]
    pub(crate) requests_max: Number<1, 1_000_000, 1_024>,
    /// Maximum number of concurrent authenticated requests per actor; further ones get status 429. Defaults to a
    /// quarter of `requests_max`.
    requests_per_actor_max: Option<Number<1, 1_000_000, 256>>,
    /// Maximum number of requests per actor and second, which is also the maximum burst; further ones get status 429.
    /// Unlimited by default.
    requests_per_second_max: Option<Number<1, 1_000_000, 1_000>>,

    /// Maximum size of a request's head; a larger one gets status 431.
    #[serde(default)]
    pub(crate) header_bytes_max: Number<8_192, 1_048_576, 65_536>,
    /// Maximum number of header fields of a request; more get status 431.
    #[serde(default)]
    pub(crate) header_fields_max: Number<16, 1_024, 100>,
    /// Maximum length of a request's path and query; longer ones get status 414.
    #[serde(default)]
    pub(crate) uri_bytes_max: Number<1_024, 65_536, 8_192>,
    /// Maximum size of a request's body; a larger one gets status 413. Must not exceed `response_bytes_max`.
    #[serde(default)]
    pub(crate) request_bytes_max: Number<1_024, 268_435_456, 1_048_576>,

    /// Maximum size of a response. A request for a larger one gets status 413.
    #[serde(default)]
    pub(crate) response_bytes_max: Number<1_048_576, 1_073_741_824, 33_554_432>,
    /// Maximum size of all responses in memory together, until their clients have received them. Requests beyond it get
    /// status 503. Responses of up to 128 KiB do not count; a response counts twice while it is being built. The body of a
    /// request counts like a response that is being built.
    #[serde(default)]
    pub(crate) responses_bytes_max: Number<2_097_152, 1_099_511_627_776, 268_435_456>,
    /// Maximum size of all responses in memory for one actor. Requests beyond it get status 429. Defaults to a quarter
    /// of `responses_bytes_max`.
    responses_bytes_per_actor_max: Option<Number<1_048_576, 1_099_511_627_776, 67_108_864>>,

    /// Maximum duration of a TLS handshake.
    #[serde(default)]
    pub(crate) handshake_seconds_max: Number<1, 3_600, 10>,
    /// Maximum time for a request's head to arrive. For the first request of a connection, the time starts at the end of
    /// the handshake. For later requests, it starts at the first byte over HTTP/1.1; over HTTP/2, only
    /// `idle_seconds_max` applies to them.
    #[serde(default)]
    pub(crate) header_seconds_max: Number<1, 3_600, 15>,
    /// Maximum time for a request's body to arrive; a slower one gets status 408.
    #[serde(default)]
    pub(crate) body_seconds_max: Number<1, 3_600, 30>,
    /// Maximum time for which a client may accept no data while the server is sending; then the connection is closed.
    #[serde(default)]
    pub(crate) write_seconds_max: Number<1, 3_600, 30>,
    /// Maximum time a connection may be open without a request in progress.
    #[serde(default)]
    pub(crate) idle_seconds_max: Number<1, 86_400, 120>,
    /// Maximum lifetime of a connection. The server then completes the requests in progress and closes it, and the
    /// client reconnects. This bounds how long a replaced server certificate or an expired client certificate stays in
    /// use.
    #[serde(default)]
    pub(crate) connection_seconds_max: Number<1, 604_800, 3_600>,
    /// Interval between pings on an HTTP/2 connection.
    #[serde(default)]
    pub(crate) ping_interval_seconds: Number<1, 86_400, 30>,
    /// Maximum time for a client to acknowledge a ping; then the connection is closed.
    #[serde(default)]
    pub(crate) ping_seconds_max: Number<1, 3_600, 20>,
    /// Maximum time to complete requests in progress at shutdown.
    #[serde(default)]
    pub(crate) shutdown_seconds_max: Number<1, 86_400, 30>,
}

/// The TLS certificates of the server and its clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsConfig {
    /// The file with the certificate chain, in PEM, with the server's certificate first. The server reloads the files of this
    /// section at SIGHUP.
    pub(crate) certificate: PathBuf,
    /// The file with the private key of `certificate`, in PEM: PKCS#8, PKCS#1 or SEC1.
    pub(crate) private_key: PathBuf,
    /// The file with the CA certificates that client certificates are verified against, in PEM. Without it, the server requests
    /// no client certificates.
    pub(crate) client_authorities: Option<PathBuf>,
}

impl Section for ServerSection {
    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let tls = &mut self.tls;
        [&mut tls.certificate, &mut tls.private_key]
            .into_iter()
            .chain(&mut tls.client_authorities)
            .collect()
    }
}

impl ServerSection {
    /// Returns the maximum number of open connections per client address.
    pub(crate) fn connections_per_address_max(&self) -> usize {
        let all = self.connections_max.count();
        self.connections_per_address_max
            .map_or_else(|| all.div_ceil(ADDRESS_SHARE_DIVISOR), Number::count)
    }

    /// Returns the maximum number of concurrent authenticated requests per actor.
    fn requests_per_actor_max(&self) -> usize {
        let all = self.requests_max.count();
        self.requests_per_actor_max
            .map_or_else(|| all.div_ceil(ACTOR_SHARE_DIVISOR), Number::count)
    }

    /// Returns the limits of a request's body.
    pub(crate) fn body_limits(&self) -> Limits {
        Limits {
            body_bytes_max: self.request_bytes_max.count(),
            body_deadline: self.body_seconds_max.seconds(),
        }
    }

    pub(crate) fn request_limits(&self) -> RequestLimits {
        RequestLimits {
            requests_max: self.requests_max.count(),
            requests_per_actor_max: self.requests_per_actor_max(),
            requests_per_second_max: self
                .requests_per_second_max
                .and_then(|requests| NonZeroU32::new(requests.count_u32())),
            uri_bytes_max: self.uri_bytes_max.count(),
            header_fields_max: self.header_fields_max.count(),
        }
    }

    /// Returns the maximum size of all responses in memory for one actor.
    fn responses_bytes_per_actor_max(&self) -> usize {
        let all = self.responses_bytes_max.count();
        self.responses_bytes_per_actor_max
            .map_or_else(|| all.div_ceil(ACTOR_SHARE_DIVISOR), Number::count)
    }

    /// Returns the memory limits of responses.
    pub(crate) fn response_limits(&self) -> ResponseLimits {
        ResponseLimits {
            response_bytes_max: self.response_bytes_max.count(),
            responses_bytes_max: self.responses_bytes_max.count(),
            responses_bytes_per_actor_max: self.responses_bytes_per_actor_max(),
        }
    }

    /// Returns the settings that contradict others, each with the reason.
    pub(crate) fn mistakes(&self) -> Vec<(String, String)> {
        let per_address = self.connections_per_address_max();
        let response = ("response_bytes_max", self.response_bytes_max.count());
        let all_responses = self.responses_bytes_max.count();
        let of_actor = (
            "responses_bytes_per_actor_max",
            self.responses_bytes_per_actor_max(),
        );
        let pairs = [
            (
                ("connections_per_address_max", per_address),
                ("connections_max", self.connections_max.count()),
            ),
            (
                ("requests_per_actor_max", self.requests_per_actor_max()),
                ("requests_max", self.requests_max.count()),
            ),
            (
                ("uri_bytes_max", self.uri_bytes_max.count()),
                ("header_bytes_max", self.header_bytes_max.count()),
            ),
            (
                ("request_bytes_max", self.request_bytes_max.count()),
                response,
            ),
            // A response counts twice while it is being built.
            (response, ("responses_bytes_max / 2", all_responses / 2)),
            (response, of_actor),
            (of_actor, ("responses_bytes_max", all_responses)),
        ];
        let larger = pairs.into_iter().filter(|(part, whole)| part.1 > whole.1);
        larger
            .map(|((part, number), (whole, max))| {
                let what = format!("must be at most server.{whole} ({max}), not {number}");
                (format!("server.{part}"), what)
            })
            .collect()
    }

    /// Checks the section, and returns the addresses to listen on.
    pub(crate) fn check(&self, findings: &mut Findings) -> Vec<SocketAddr> {
        for (setting, what) in self.mistakes() {
            findings.mistake(setting, what);
        }
        self.tls.check(findings);
        findings.warn_if_world_accessible(PRIVATE_KEY, &self.tls.private_key);
        self.listen.resolve_or_report("server.listen", findings)
    }
}

impl TlsConfig {
    /// Reads the files as a server does, and reports all errors.
    fn check(&self, findings: &mut Findings) {
        let now = process::now();
        let chain = certificates::read_server_chain(&self.certificate);
        let chain = findings.ok_or_report(CERTIFICATE, chain);
        let key = findings.ok_or_report(
            PRIVATE_KEY,
            certificates::read_private_key(&self.private_key),
        );
        let facts = chain
            .as_ref()
            .and_then(|chain| client_certificate_facts(chain.first()?));
        if let Some(facts) = facts.filter(|facts| facts.expires_at < now) {
            findings.warning(CERTIFICATE, format!("expired on {}", facts.expires_at));
        }
        if let (Some(chain), Some(key)) = (chain, key) {
            let certified = CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider());
            let certified = certified.map_err(|cause| certificates::pair_refused(self, &cause));
            findings.ok_or_report(PRIVATE_KEY, certified);
        }
        let Some(file) = &self.client_authorities else {
            return;
        };
        let authorities = findings.ok_or_report(
            AUTHORITIES,
            certificates::read_client_authorities(file, now),
        );
        for (number, authority) in (1..).zip(authorities.into_iter().flatten()) {
            if !authority.facts.is_valid_at(now) {
                let (from, until) = (authority.facts.valid_from, authority.facts.expires_at);
                let what = format!("certificate {number} is only valid from {from} until {until}");
                findings.warning(AUTHORITIES, what);
            }
        }
    }
}

const AUTHORITIES: &str = "server.tls.client_authorities";
const CERTIFICATE: &str = "server.tls.certificate";
const PRIVATE_KEY: &str = "server.tls.private_key";

/// The default limit per address is `connections_max` divided by this number.
const ADDRESS_SHARE_DIVISOR: usize = 4;

/// Each default limit per actor is the limit for all actors divided by this number.
const ACTOR_SHARE_DIVISOR: usize = 4;
