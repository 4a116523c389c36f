//! Binds the configured addresses, listens on them, and accepts, serves and closes connections.
//!
//! A server binds its addresses before any slow start-up step, so that it reports a busy port at once. It listens when
//! it is ready. Until then, the system refuses connections, so clients and load balancers try another server, and a
//! health check that only connects fails.
//!
//! A connection takes a slot, performs the TLS handshake, and is served (`connection.rs`). `timeouts.rs` records its bytes and
//! requests, and decides from them whether it may stay open.

mod connection;
mod timeouts;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    future::poll_fn,
    io,
    net::{IpAddr, SocketAddr},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};

use keywright_api::{Connection, Pipeline, client_network};
use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use tokio_rustls::server::TlsStream;

use self::{
    connection::{Ended, Protocols, RequestExecutor, SHORT_HEAD_TIME, Stage, shutdown_started},
    timeouts::{ConnectionTracker, Timeouts, TrackedStream},
};
use crate::{
    app::App,
    config::{Config, ListenAddress, ServerSection},
    measurements::handshake_failed,
    process::{self, ServiceManager, StopSignals},
    started::StartupError,
    tls::Tls,
};

/// Serves requests until the process receives a shutdown signal, then completes the requests in progress.
pub(crate) async fn serve(
    mut app: App,
    bound: BoundAddresses,
    config: &Config,
    mut stop: StopSignals,
) -> Result<(), StartupError> {
    let database_connections_max = config.storage.connections_max();
    let config = &config.server;
    process::raise_open_file_limit(config.connections_max.count(), database_connections_max);
    let listeners = bound.listen()?;
    app.start().await?;
    let connections = Connections::new(app.tls, app.pipeline, config);
    for address in listeners.addresses() {
        tracing::info!(server.address = %address, "listening");
    }
    if let (Some(announcement), Some(address)) = (&app.announcement, listeners.addresses().first())
    {
        announcement.print(*address);
    }
    let service_manager = ServiceManager::ready(listeners.addresses());

    loop {
        tokio::select! {
            () = stop.received() => break,
            () = connections.accept_one(&listeners) => {}
        }
    }
    drop(listeners);
    app.background.request_stop();
    service_manager.stopping();
    tracing::info!("shutting down: completing requests in progress, refusing new ones");
    connections
        .finish(config.shutdown_seconds_max.seconds())
        .await;
    app.background.finish().await;
    if let Some(audit) = &app.audit {
        audit.close().await;
    }
    app.database.close().await;
    Ok(())
}

struct Connections {
    limit: ConnectionLimit,
    stage: watch::Sender<Stage>,
    shared: Shared,
}

/// The services and limits that all connections share.
#[derive(Clone)]
struct Shared {
    tls: Arc<Tls>,
    pipeline: Arc<Pipeline>,
    protocols: Protocols,
    handshake_time_max: Duration,
    timeouts: Timeouts,
}

impl Connections {
    fn new(tls: Arc<Tls>, pipeline: Arc<Pipeline>, config: &ServerSection) -> Self {
        let stage = watch::Sender::new(Stage::Open);
        Self {
            limit: ConnectionLimit::new(
                config.connections_max.count(),
                config.connections_per_address_max(),
            ),
            shared: Shared {
                tls,
                pipeline,
                protocols: Protocols::new(config, RequestExecutor(stage.clone())),
                handshake_time_max: config.handshake_seconds_max.seconds(),
                timeouts: Timeouts {
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
        let Some(slot) = self.slot().await else {
            return;
        };
        let accepted = loop {
            tokio::select! {
                accepted = listeners.accept() => break accepted,
                () = self.limit.slot_released() => self.reopen_if_plenty(),
            }
        };
        match accepted {
            Ok((stream, peer)) => match self.limit.assign(slot, peer.ip()) {
                Some(slot) => self.spawn(stream, peer, slot),
                None => {
                    tracing::debug!(client.address = %peer, "closed a connection: its address has too many connections");
                }
            },
            Err(cause) => {
                // Most likely, the process has no file descriptors left until other connections are closed.
                tracing::warn!(error = %cause, "could not accept a connection");
                self.set_stage(Stage::Scarce);
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }

    /// Returns a free slot. If no slot is free, closes idle and silent connections, and waits for a slot.
    async fn slot(&self) -> Option<Slot> {
        if let Some(slot) = self.limit.free_slot() {
            self.reopen_if_plenty();
            return Some(slot);
        }
        if self.set_stage(Stage::Scarce) {
            tracing::warn!(
                "reached the connection limit: closing idle and silent connections; new connections wait"
            );
        }
        self.limit.wait_for_slot().await
    }

    fn reopen_if_plenty(&self) {
        if self.limit.has_plenty() {
            self.set_stage(Stage::Open);
        }
    }

    /// Sends the stage to all connections. Returns whether the stage has changed.
    fn set_stage(&self, stage: Stage) -> bool {
        self.stage.send_if_modified(|current| {
            let is_new = *current != stage;
            *current = stage;
            is_new
        })
    }

    fn spawn(&self, stream: TcpStream, peer: SocketAddr, slot: UsedSlot) {
        let shared = self.shared.clone();
        let mut stage = self.stage.subscribe();
        tokio::spawn(async move {
            let _slot = slot;
            let tracker = ConnectionTracker::new();
            let handshake = shared.handshake(stream, Arc::clone(&tracker), stage.clone());
            let stream = tokio::select! {
                () = shutdown_started(&mut stage) => return,
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
            // Before the certificate is verified again, so that no reload in between is missed.
            let client = shared.tls.presented_chain(stream.get_ref().1);
            let connection = match shared.connection_facts(&stream, peer) {
                Ok(connection) => connection,
                Err(cause) => {
                    tracing::debug!(client.address = %peer, error = %cause, "connection ended early");
                    return;
                }
            };
            let served = pin!(shared.protocols.serve(
                stream,
                connection,
                shared.pipeline,
                tracker,
                shared.timeouts,
                stage,
            ));
            let ended = shared.tls.serve_while_trusted(client, served).await;
            match ended.unwrap_or(Ended::Aborted(CLIENT_REJECTED)) {
                Ended::Completed(Ok(())) => {}
                Ended::Completed(Err(cause)) => {
                    tracing::debug!(client.address = %peer, error = %cause, "connection ended early");
                }
                Ended::Aborted(reason) => {
                    tracing::debug!(client.address = %peer, reason, "aborted the connection");
                }
            }
        });
    }

    /// Closes all connections, and waits until their requests are complete. Aborts the requests after this time.
    async fn finish(self, time_max: Duration) {
        self.set_stage(Stage::ShuttingDown);
        // Each connection, and each request that runs in a task of its own, holds a receiver until it ends.
        if timeout(time_max, self.stage.closed()).await.is_err() {
            tracing::warn!(
                server.shutdown_seconds_max = time_max.as_secs(),
                "aborting requests that are still in progress"
            );
            self.set_stage(Stage::Aborting);
            // A request that blocks its thread, because a file does not respond, can't be aborted.
            if timeout(ABORT_TIME_MAX, self.stage.closed()).await.is_err() {
                tracing::error!("shutting down without completing blocked requests");
            }
        }
    }
}

impl Shared {
    async fn handshake(
        &self,
        stream: TcpStream,
        tracker: Arc<ConnectionTracker>,
        mut stage: watch::Receiver<Stage>,
    ) -> io::Result<TlsStream<TrackedStream>> {
        // Small responses must not wait for the client's acknowledgement of earlier responses.
        let _ = stream.set_nodelay(true);
        let stream = TrackedStream::new(stream, tracker, self.timeouts.write);
        let too_late = async {
            // An error means that the listener is gone.
            let scarce = stage.wait_for(|stage| *stage == Stage::Scarce);
            let _ = timeout(
                self.handshake_time_max.saturating_sub(SHORT_HEAD_TIME),
                scarce,
            )
            .await;
            sleep(self.handshake_time_max.min(SHORT_HEAD_TIME)).await;
        };
        tokio::select! {
            accepted = self.tls.accept(stream) => accepted,
            () = too_late => Err(io::Error::new(io::ErrorKind::TimedOut, "it took too long")),
        }
    }

    /// Returns the properties of a connection for its requests.
    fn connection_facts(
        &self,
        stream: &TlsStream<TrackedStream>,
        peer: SocketAddr,
    ) -> io::Result<Connection> {
        let (transport, session) = stream.get_ref();
        Ok(Connection {
            peer,
            local: transport.stream().local_addr()?,
            client_certificate: self.tls.client_certificate(session),
        })
    }
}

/// The slots for connections, in total and per address. Each connection uses one slot.
struct ConnectionLimit {
    count: usize,
    free: Arc<Semaphore>,
    per_address_max: usize,
    used: Arc<UsedSlots>,
}

/// A free slot, released on drop.
type Slot = OwnedSemaphorePermit;

/// A slot used by a client, released on drop.
struct UsedSlot {
    source: IpAddr,
    used: Arc<UsedSlots>,
    _slot: Slot,
}

/// The number of slots used per source. There are at most as many sources as slots.
#[derive(Default)]
struct UsedSlots {
    by_source: Mutex<HashMap<IpAddr, usize>>,
    /// Notified of each released slot.
    released: Notify,
}

impl ConnectionLimit {
    fn new(count: usize, per_address_max: usize) -> Self {
        Self {
            count,
            free: Arc::new(Semaphore::new(count)),
            per_address_max,
            used: Arc::default(),
        }
    }

    fn free_slot(&self) -> Option<Slot> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    async fn wait_for_slot(&self) -> Option<Slot> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    /// Waits until a client has released a slot since the last call.
    async fn slot_released(&self) {
        self.used.released.notified().await;
    }

    /// Returns whether enough slots are free again. A slot that no client uses yet is free.
    fn has_plenty(&self) -> bool {
        let used: usize = self.used.by_source.lock().values().sum();
        self.count.saturating_sub(used) >= self.count.div_ceil(PLENTY_DIVISOR)
    }

    /// Uses a slot for a client, unless its address has reached its limit.
    fn assign(&self, slot: Slot, client: IpAddr) -> Option<UsedSlot> {
        let source = client_network(client);
        let mut used = self.used.by_source.lock();
        let count = used.entry(source).or_default();
        if *count >= self.per_address_max {
            return None;
        }
        *count = count.saturating_add(1);
        Some(UsedSlot {
            source,
            used: Arc::clone(&self.used),
            _slot: slot,
        })
    }
}

impl Drop for UsedSlot {
    fn drop(&mut self) {
        let mut used = self.used.by_source.lock();
        if let Entry::Occupied(mut count) = used.entry(self.source) {
            *count.get_mut() = count.get().saturating_sub(1);
            if *count.get() == 0 {
                count.remove();
            }
        }
        drop(used);
        self.used.released.notify_one();
    }
}

/// Enough slots are free if their number is at least the total divided by this number.
const PLENTY_DIVISOR: usize = 16;

const CLIENT_REJECTED: &str = "the reloaded CAs do not verify the client certificate";

const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum time to wait for aborted requests.
const ABORT_TIME_MAX: Duration = Duration::from_secs(5);

/// The addresses of one setting, bound.
pub(crate) struct BoundAddresses {
    setting: &'static str,
    sockets: Vec<TcpSocket>,
    addresses: Vec<SocketAddr>,
}

/// The addresses of one setting, listened on.
pub(crate) struct Listeners {
    sockets: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    /// Counts the attempts to accept a connection, so that each starts with another listener.
    attempts: AtomicUsize,
}

impl BoundAddresses {
    /// Binds all addresses of a host name that belong to this machine.
    pub(crate) fn bind(
        configured: &ListenAddress,
        setting: &'static str,
    ) -> Result<Self, StartupError> {
        let resolved = configured.resolve();
        let resolved = resolved.map_err(|cause| refused(setting, configured, cause))?;
        Self::bind_all(&resolved, setting)
    }

    fn bind_all(addresses: &[SocketAddr], setting: &'static str) -> Result<Self, StartupError> {
        let mut bound = Self {
            setting,
            sockets: Vec::with_capacity(addresses.len()),
            addresses: Vec::with_capacity(addresses.len()),
        };
        let mut missing = None;
        for mut address in addresses.iter().copied() {
            // If the system chooses the port, it is the same for all addresses.
            if let (0, Some(first)) = (address.port(), bound.addresses.first()) {
                address.set_port(first.port());
            }
            match bind(address).and_then(|socket| Ok((socket.local_addr()?, socket))) {
                Ok((address, socket)) => {
                    bound.sockets.push(socket);
                    bound.addresses.push(address);
                }
                Err(cause) if is_missing(&cause) => missing = Some((address, cause)),
                Err(cause) => return Err(refused(setting, &address, cause)),
            }
        }
        match missing {
            Some((address, cause)) if bound.sockets.is_empty() => {
                Err(refused(setting, &address, cause))
            }
            Some((address, cause)) => {
                tracing::warn!(setting, %address, %cause, "skipped an address of the host name: this machine does not have it");
                Ok(bound)
            }
            None => Ok(bound),
        }
    }

    /// Returns the bound addresses, with the ports that the system chose.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    pub(crate) fn listen(self) -> Result<Listeners, StartupError> {
        let sockets = self.sockets.into_iter().zip(&self.addresses);
        let listeners = sockets.map(|(socket, address)| {
            let listening = socket.listen(BACKLOG_MAX);
            listening.map_err(|cause| refused(self.setting, address, cause))
        });
        Ok(Listeners {
            sockets: listeners.collect::<Result<_, _>>()?,
            addresses: self.addresses,
            attempts: AtomicUsize::new(0),
        })
    }
}

impl Listeners {
    /// Returns the addresses, with the ports that the system chose. There is at least one.
    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Waits for a connection to any of the addresses.
    pub(crate) async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let count = self.sockets.len();
        poll_fn(|context| {
            let first = self.attempts.fetch_add(1, Ordering::Relaxed) % count;
            let rotated = self.sockets.iter().cycle().skip(first).take(count);
            for listener in rotated {
                if let Poll::Ready(accepted) = listener.poll_accept(context) {
                    return Poll::Ready(accepted);
                }
            }
            Poll::Pending
        })
        .await
    }
}

fn refused(setting: &str, address: &impl fmt::Display, cause: io::Error) -> StartupError {
    StartupError::while_doing(format!("listening on {address} ({setting})"), cause)
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Permits a restarted server to bind the same address at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Returns whether the machine does not have an address, for example because IPv6 is off.
fn is_missing(cause: &io::Error) -> bool {
    cause.kind() == io::ErrorKind::AddrNotAvailable
        || cause.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

/// Maximum number of connections that wait to be accepted; the kernel may allow fewer. Further clients must retry.
const BACKLOG_MAX: u32 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    fn take(limit: &ConnectionLimit, client: &str) -> Option<UsedSlot> {
        limit.assign(limit.free_slot().unwrap(), client.parse().unwrap())
    }

    #[test]
    fn addresses_of_one_network_or_host_count_together() {
        for (one, other, are_one) in [
            ("2001:db8::1", "2001:db8::ffff:0:0:2", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
        ] {
            let limit = ConnectionLimit::new(8, 1);
            let _one = take(&limit, one).unwrap();
            assert_eq!(take(&limit, other).is_none(), are_one, "{one} {other}");
        }
    }

    #[tokio::test]
    async fn slots_are_plentiful_again_once_enough_are_released() {
        for (count, few) in [(1, 0), (2, 0), (16, 0), (17, 1), (32, 1)] {
            let limit = ConnectionLimit::new(count, count);
            let mut used: Vec<_> = (0..count)
                .filter_map(|_| take(&limit, "192.0.2.1"))
                .collect();
            assert!(!limit.has_plenty());
            used.truncate(count - few - 1);
            limit.slot_released().await;
            assert!(limit.has_plenty(), "{count}");
            let next = limit.free_slot();
            assert!(limit.has_plenty(), "{count}");
            drop(next);
        }
    }

    #[test]
    fn addresses_without_connections_are_forgotten() {
        let limit = ConnectionLimit::new(8, 2);
        for last in 0..=255_u8 {
            drop(take(&limit, &format!("192.0.2.{last}")));
        }
        assert!(limit.used.by_source.lock().is_empty());
    }

    fn bound(addresses: &[&str]) -> Result<BoundAddresses, StartupError> {
        let addresses: Vec<_> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        BoundAddresses::bind_all(&addresses, "server.listen")
    }

    #[tokio::test]
    async fn connections_to_each_address_are_accepted() {
        let listeners = bound(&["127.0.0.1:0", "127.0.0.2:0"]).unwrap();
        let listeners = listeners.listen().unwrap();
        let [first, second] = listeners.addresses() else {
            panic!("{:?}", listeners.addresses());
        };
        assert_eq!(first.port(), second.port());
        for address in [first, second, first, second] {
            let _client = TcpStream::connect(address).await.unwrap();
            let (accepted, _) = listeners.accept().await.unwrap();
            assert_eq!(accepted.local_addr().unwrap(), *address);
        }
    }

    #[tokio::test]
    async fn a_missing_address_is_skipped_unless_it_is_the_only_one() {
        let listeners = bound(&["192.0.2.1:0", "127.0.0.1:0"]).unwrap();
        assert_eq!(listeners.addresses().len(), 1);
        assert!(bound(&["192.0.2.1:0"]).is_err());
    }

    #[tokio::test]
    async fn one_busy_address_of_several_is_an_error() {
        let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let busy = busy.local_addr().unwrap().to_string();
        assert!(bound(&["127.0.0.2:0", &busy]).is_err());
    }
}
