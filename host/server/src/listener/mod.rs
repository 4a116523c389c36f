//! Accepts, serves and ends connections.
//!
//! A connection takes a slot (`places.rs`), performs the TLS handshake, and is served (`protocol.rs`). Its bytes
//! (`watched.rs`) and requests are recorded in its `activity.rs`. From that, `judgement.rs` decides whether it may stay
//! open, and `ending.rs` enforces the decision. `unread.rs` discards bodies that no handler read.

mod activity;
mod ending;
mod judgement;
mod places;
mod protocol;
mod unread;
mod watched;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use keywright_api::{Connection, Pipeline};
use tokio::{net::TcpStream, sync::watch, time::timeout};
use tokio_rustls::server::TlsStream;

use self::{
    activity::Activity,
    ending::{EndSignals, Ended, RequestExecutor, Stage, process_ends},
    judgement::Times,
    places::{Place, Places, TakenPlace},
    protocol::Protocols,
    watched::Watched,
};
use crate::{
    config::{Config, ServerSection},
    listening::{BoundAddresses, Listeners},
    measurements::handshake_failed,
    process::{self, ServiceManager},
    served::Served,
    started::StartRefused,
    tls::{self, Tls},
};

/// Serves requests until the process receives a shutdown signal, then completes the requests in progress.
pub(crate) async fn serve(
    mut served: Served,
    bound: BoundAddresses,
    config: &Config,
) -> Result<(), StartRefused> {
    let database_connections_max = config.storage.connections_max();
    let config = &config.server;
    process::raise_open_file_limit(config.connections_max.count(), database_connections_max);
    let listeners = bound.listen()?;
    let mut end = EndSignals::new()?;
    served.begin().await?;
    let connections = Connections::new(served.tls, served.pipeline, config);
    for address in listeners.addresses() {
        tracing::info!(server.address = %address, "listening");
    }
    if let (Some(announcement), Some(address)) =
        (&served.announcement, listeners.addresses().first())
    {
        announcement.print(*address);
    }
    let service_manager = ServiceManager::ready(listeners.addresses());

    loop {
        tokio::select! {
            () = end.received() => break,
            () = connections.accept_one(&listeners) => {}
        }
    }
    drop(listeners);
    served.background.tell_to_stop();
    service_manager.stopping();
    tracing::info!("shutting down: completing requests in progress, refusing new ones");
    connections
        .finish(config.shutdown_seconds_max.seconds())
        .await;
    served.background.finish().await;
    if let Some(audit) = &served.audit {
        audit.close().await;
    }
    served.database.close().await;
    Ok(())
}

/// Maximum idle time of a connection while slots are short.
pub(crate) const SHORT_IDLE_TIME: Duration = Duration::from_secs(1);

/// The open connections.
struct Connections {
    places: Places,
    stage: watch::Sender<Stage>,
    terms: Terms,
}

/// The services and limits that all connections share.
#[derive(Clone)]
struct Terms {
    tls: Arc<Tls>,
    pipeline: Arc<Pipeline>,
    protocols: Protocols,
    handshake_time_max: Duration,
    times: Times,
}

impl Connections {
    fn new(tls: Arc<Tls>, pipeline: Arc<Pipeline>, config: &ServerSection) -> Self {
        let stage = watch::Sender::new(Stage::Open);
        Self {
            places: Places::new(
                config.connections_max.count(),
                config.connections_per_address_max(),
            ),
            terms: Terms {
                tls,
                pipeline,
                protocols: Protocols::new(config, RequestExecutor(stage.clone())),
                handshake_time_max: config.handshake_seconds_max.seconds(),
                times: Times {
                    head: config.header_seconds_max.seconds(),
                    idle: config.idle_seconds_max.seconds(),
                    write: config.write_seconds_max.seconds(),
                    connection: config.connection_seconds_max.seconds(),
                },
            },
            stage,
        }
    }

    /// Waits for a free slot and a connection, and serves the connection concurrently with the others.
    async fn accept_one(&self, listeners: &Listeners) {
        let Some(place) = self.place().await else {
            return;
        };
        let accepted = loop {
            tokio::select! {
                accepted = listeners.accept() => break accepted,
                () = self.places.left() => self.open_if_plenty(),
            }
        };
        match accepted {
            Ok((stream, peer)) => match self.places.take(place, peer.ip()) {
                Some(place) => self.spawn(stream, peer, place),
                None => {
                    tracing::debug!(client.address = %peer, "closed: its address has too many connections");
                }
            },
            Err(cause) => {
                // Most likely, the process has no file descriptors left until other connections end.
                tracing::warn!(error = %cause, "a connection could not be accepted");
                self.tell(Stage::Short);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Returns a free slot. If there is none, ends idle connections and waits for one.
    async fn place(&self) -> Option<Place> {
        if let Some(place) = self.places.free_place() {
            self.open_if_plenty();
            return Some(place);
        }
        if self.tell(Stage::Short) {
            tracing::warn!(
                "as many connections are open as may be: idle ones are ended, further ones wait"
            );
        }
        self.places.wait_for_place().await
    }

    fn open_if_plenty(&self) {
        if self.places.are_plenty() {
            self.tell(Stage::Open);
        }
    }

    /// Sends the stage to all connections. Returns whether the stage has changed.
    fn tell(&self, stage: Stage) -> bool {
        self.stage.send_if_modified(|current| {
            let is_new = *current != stage;
            *current = stage;
            is_new
        })
    }

    fn spawn(&self, stream: TcpStream, peer: SocketAddr, place: TakenPlace) {
        let terms = self.terms.clone();
        let mut stage = self.stage.subscribe();
        tokio::spawn(async move {
            let _place = place;
            let activity = Activity::new();
            let handshake = terms.shake_hands(stream, Arc::clone(&activity));
            let stream = tokio::select! {
                () = process_ends(&mut stage) => return,
                stream = handshake => stream,
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(cause) => {
                    handshake_failed(&cause);
                    tracing::debug!(client.address = %peer, error = %cause, "TLS handshake failed");
                    return;
                }
            };
            let connection = match described(&stream, peer) {
                Ok(connection) => connection,
                Err(cause) => {
                    tracing::debug!(client.address = %peer, error = %cause, "connection ended early");
                    return;
                }
            };
            let served = terms.protocols.serve(
                stream,
                connection,
                terms.pipeline,
                activity,
                terms.times,
                stage,
            );
            match served.await {
                Ended::Itself(Ok(())) => {}
                Ended::Itself(Err(cause)) => {
                    tracing::debug!(client.address = %peer, error = %cause, "connection ended early");
                }
                Ended::Cut(reason) => {
                    tracing::debug!(client.address = %peer, reason, "connection is cut off");
                }
            }
        });
    }

    /// Ends all connections, and waits until their requests are complete. Cuts them off after this time.
    async fn finish(self, time_max: Duration) {
        self.tell(Stage::Ending);
        // Each connection, and each request that runs in a task of its own, holds a receiver until it ends.
        if timeout(time_max, self.stage.closed()).await.is_err() {
            tracing::warn!("aborted requests that were still in progress after {time_max:?}");
            self.tell(Stage::CutOff);
            // A request that blocks its thread, because a file does not respond, can't be cut off.
            if timeout(CUT_OFF_TIME_MAX, self.stage.closed())
                .await
                .is_err()
            {
                tracing::error!("requests are blocked; the server ends without them");
            }
        }
    }
}

impl Terms {
    async fn shake_hands(
        &self,
        stream: TcpStream,
        activity: Arc<Activity>,
    ) -> io::Result<TlsStream<Watched>> {
        // Small responses must not wait for the client's acknowledgement of earlier ones.
        let _ = stream.set_nodelay(true);
        let stream = Watched::new(stream, activity, self.times.write);
        timeout(self.handshake_time_max, self.tls.accept(stream))
            .await
            .unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")))
    }
}

/// Returns the properties of a connection for its requests.
fn described(stream: &TlsStream<Watched>, peer: SocketAddr) -> io::Result<Connection> {
    let (transport, session) = stream.get_ref();
    Ok(Connection {
        peer,
        local: transport.stream().local_addr()?,
        client_certificate: tls::client_certificate(session),
    })
}

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum time to wait for requests that were cut off.
const CUT_OFF_TIME_MAX: Duration = Duration::from_secs(5);
