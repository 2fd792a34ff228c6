//! The control socket: serves the routes mounted there over HTTP to the user who owns the process.

use crate::admission::Admission;
use crate::front_clock::TICK;
use crate::http_front::{ClientConnection, FrontSpec, FrontState, handle_control, serve_http};
use crate::router::Router;
use signalbox_engine::Principal;
use signalbox_engine::authenticator::{Authenticators, ConnectionProof, OwnerAuthenticator};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::Gateway;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Maximum number of open connections. Further ones wait to be accepted.
pub const MAX_CONNECTIONS: usize = 32;
/// Maximum time to receive a request head.
const HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time that a caller may leave written data unread. A terminal that follows events may be suspended for long.
const READER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// Pause after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until dropped. Dropping it ends all connections.
pub async fn serve(listener: &UnixListener, gateway: Arc<Gateway>, router: Arc<Router>) {
    let spec = FrontSpec {
        admission: Admission::new(MAX_CONNECTIONS, &[], &[]),
        header_timeout: HEADER_TIMEOUT,
        reader_timeout: READER_TIMEOUT,
        authenticators: Authenticators::new(vec![Arc::new(OwnerAuthenticator)]),
        transport: "control",
        ..FrontSpec::default()
    };
    let front = FrontState::new(gateway, Arc::new(spec), router);
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    let lines = || front.connections.lock().unpoisoned();
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let entered = tokio::select! {
            entered = enter(listener, &room) => entered,
            _ = tick.tick(), if !lines().is_empty() => {
                lines().tick(&front);
                continue;
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let (socket, place) = match entered {
            Ok(entered) => entered,
            Err(error) => {
                tracing::warn!(%error, "a control connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if lines().is_empty() {
            // The clock does not advance while there is no connection.
            front.clock.advance();
        }
        let connection = ClientConnection::new(Arc::clone(&front), None, None);
        connection.set_secured(user_of(&socket));
        lines().add(&connection);
        connections.spawn(async move {
            serve_http(socket, &connection, handle_control).await;
            drop(place);
        });
    }
}

/// Accepts the next connection once there is room for it.
async fn enter(listener: &UnixListener, room: &Arc<Semaphore>) -> io::Result<(UnixStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    listener.accept().await.map(|(socket, _)| (socket, place))
}

/// Returns the user at the other end of the socket.
fn user_of(socket: &UnixStream) -> Option<ConnectionProof> {
    let peer = socket.peer_cred().ok()?;
    Some(ConnectionProof::Owner(Principal::named(&format!("uid:{}", peer.uid()))))
}
