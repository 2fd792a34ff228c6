//! `signalbox serve`: all backends behind one address.

use crate::banner;
use crate::failure::Failure;
use crate::front_tls::FrontSecurity;
use crate::output;
use signalbox_assembly::assemble::{App, StateFiles, assemble};
use signalbox_assembly::authentication::{self, Authentication};
use signalbox_assembly::backend_auth;
use signalbox_assembly::data_dir::DataDir;
use signalbox_assembly::key_file::KeyFile;
use signalbox_assembly::logging::log_warnings;
use signalbox_assembly::recording::Recording;
use signalbox_assembly::reload::{Follower, Reloader};
use signalbox_assembly::signals::{Hangups, Signals};
use signalbox_config::loader::Loader;
use signalbox_config::{CheckedConfig, Config, ListenConfig, Transport};
use signalbox_control::api::{ApiState, routes};
use signalbox_control::control_socket::Control;
use signalbox_control::open_files;
use signalbox_control::status::ProcessInfo;
use signalbox_engine::Principal;
use signalbox_engine::authenticator::Challenge;
use signalbox_engine::record::TapeKind;
use signalbox_govern::ApiKeySecret;
use signalbox_relay::{Relay, RelayEntry};
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::admission::Admission;
use signalbox_transport::http_front::{self, FrontSpec, PathSecret};
use signalbox_transport::router::Router;
use signalbox_transport::tcp_front::{self, TcpSpec};
use signalbox_transport::tls::FrontTls;
use signalbox_transport::workers::Workers;
use std::io::{ErrorKind, IsTerminal as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Exit code after a second signal: 128 + SIGINT, as a shell reports it.
pub(super) const FORCED: u8 = 130;
/// Maximum time that the banner waits to learn whether the store of tapes works.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// Grace period for connections after all sessions are closed.
const CONNECTIONS_END: Duration = Duration::from_secs(2);

/// Serves until a signal arrives.
pub(super) async fn run(loaded: CheckedConfig, loader: Loader, json: bool) -> Result<ExitCode, Failure> {
    let config = loaded.config;
    open_files::raise_limit(config.gateway.max_connections);
    let data_dir = DataDir::prepare(&config.data_dir)?;
    let mut signals = Signals::listen().map_err(Failure::Start)?;
    let hangups = Hangups::listen().map_err(Failure::Start)?;
    let admin = match config.source {
        None => KeyFile::of(data_dir.path()).make_admin(data_dir.path(), unix_millis())?,
        Some(_) => None,
    };
    let server = Server::build(
        &config,
        loader,
        &data_dir,
        listen(SocketAddr::new(config.listen.host, config.listen.port)).await?,
    )?;
    if json {
        tracing::info!(url = server.url(), data = %config.data_dir.display(), "serving MCP");
    } else {
        let not_recording = match &server.app().recording {
            Some(recording) => recording.failing(FIRST_LOOK).await,
            None => None,
        };
        output::say(banner::serving(&config, server.url(), not_recording.as_deref()));
    }
    if let Some((key, file)) = admin {
        announce_admin(&key, &file, json);
    }
    if let Some(security) = server.security() {
        security.announce(json);
    }
    log_warnings(&loaded.warnings);
    let app = server.app().clone();
    tokio::spawn(Arc::clone(server.reloader()).follow(hangups));
    let (stop, stopping) = watch::channel(false);
    let mut serving = std::pin::pin!(server.run(stopping));
    tokio::select! {
        () = &mut serving => return Ok(ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::info!(signal, "stopping once calls in flight have finished; a second signal stops at once");
            stop.send_replace(true);
        }
    }
    tokio::select! {
        () = &mut serving => Ok(ExitCode::SUCCESS),
        signal = signals.next() => {
            tracing::warn!(signal, "stopping at once");
            app.abandon().await;
            Ok(ExitCode::from(FORCED))
        }
    }
}

/// Announces the administration key: its file, and on a terminal the key itself. Logs are kept, so the key is never
/// logged.
fn announce_admin(key: &ApiKeySecret, file: &Path, json: bool) {
    if json {
        return tracing::info!(file = %file.display(), "made a key for the API");
    }
    let shown = if std::io::stderr().is_terminal() { format!("{} (kept in ", key.reveal()) } else { "(in ".to_owned() };
    output::say(format!("  admin     {shown}{})", file.display()));
}

pub(super) async fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => Failure::PortTaken(address),
        _ => Failure::Listen { address, error },
    })
}

/// Front end that the listener serves.
enum Front {
    Http(Arc<FrontSpec>),
    Tcp(Arc<TcpSpec>),
}

impl Front {
    fn new(
        config: &Config,
        authentication: &Authentication,
        admission: Arc<Admission>,
        tls: Option<Arc<FrontTls>>,
        relay: Option<&Arc<Relay>>,
    ) -> Self {
        let authenticators = authentication.authenticators().clone();
        let authentication_timeout = config.auth.timeout;
        if config.listen.transport == Transport::Tcp {
            return Self::Tcp(Arc::new(TcpSpec { admission, authenticators, authentication_timeout, tls }));
        }
        let challenge = authentication.resource().map(|resource| Arc::clone(resource) as Arc<dyn Challenge>);
        Self::Http(Arc::new(FrontSpec {
            path: config.listen.path.clone(),
            admission,
            authenticators,
            authentication_timeout,
            challenge,
            transport: "http",
            tls,
            path_secret: config
                .auth
                .metrics_secret
                .as_ref()
                .map(|secret| PathSecret::new(routes::METRICS, secret.expose())),
            entry: relay.map(|relay| Arc::new(RelayEntry(Arc::clone(relay))) as _),
            ..FrontSpec::default()
        }))
    }
}

/// Returns the allowed host names: those configured, and the host of the relay's public URL.
fn hosts(config: &Config) -> Vec<String> {
    let public = config.relay.as_ref().and_then(|relay| relay.public_url.as_ref());
    let host = public.and_then(|url| url.split_once("://")).map(|(_, host)| host.to_owned());
    config.gateway.allowed_hosts.iter().cloned().chain(host).collect()
}

/// Returns the parts of the front that follow the configuration, including its certificates.
fn followers(admission: &Arc<Admission>, users: Follower, tls: Option<Arc<FrontTls>>) -> Vec<Follower> {
    let admission = Arc::clone(admission);
    let limits: Follower = Box::new(move |config: &Config| {
        let (admission, gateway, hosts) = (Arc::clone(&admission), config.gateway.clone(), hosts(config));
        Ok(Box::new(move || {
            let places = open_files::divide(gateway.max_connections).clients;
            admission.set(places, &gateway.allowed_origins, &hosts);
        }))
    });
    let certificates = tls.map(|tls| -> Follower {
        Box::new(move |_| {
            let read = tls.read_again()?;
            let tls = Arc::clone(&tls);
            Ok(Box::new(move || tls.take_over(read)))
        })
    });
    [limits, users].into_iter().chain(certificates).collect()
}

/// Formats the URL that clients connect to.
fn url(listen: &ListenConfig, address: SocketAddr) -> String {
    match (listen.transport, listen.tls.is_some()) {
        (Transport::Http, false) => format!("http://{address}{}", listen.path),
        (Transport::Http, true) => format!("https://{address}{}", listen.path),
        (Transport::WebSocket, false) => format!("ws://{address}{}", listen.path),
        (Transport::WebSocket, true) => format!("wss://{address}{}", listen.path),
        (Transport::Tcp, false) => format!("tcp://{address}"),
        (Transport::Tcp, true) => format!("tls://{address}"),
    }
}

/// All that `serve` runs, on a listener that the caller has bound.
pub struct Server {
    app: App,
    front: Front,
    router: Arc<Router>,
    listener: TcpListener,
    control: Option<Control>,
    url: String,
    reloader: Arc<Reloader>,
    workers: Workers,
    security: Option<FrontSecurity>,
    authentication: Arc<Authentication>,
}

impl Server {
    /// Assembles the server without starting it. Needs a Tokio runtime for the control socket.
    ///
    /// # Errors
    /// If a backend cannot be created from its configuration.
    pub fn build(config: &Config, loader: Loader, data_dir: &DataDir, listener: TcpListener) -> Result<Self, Failure> {
        let principal = Principal::anonymous();
        let recording = Recording::start(config, TapeKind::Serve, data_dir)?;
        let address = listener.local_addr().map_err(Failure::Start)?;
        let pages = backend_auth::page_host(config, address);
        let state = StateFiles { catalog: Some(data_dir.catalog()), sessions: Some(data_dir.sessions()) };
        let app = assemble(config, principal.clone(), state, recording, pages)?;
        let rules = &config.gateway;
        let places = open_files::divide(rules.max_connections).clients;
        let admission = Admission::new(places, &rules.allowed_origins, &hosts(config));
        let security = FrontSecurity::load(config, data_dir)?;
        let tls = security.as_ref().map(|security| Arc::clone(&security.tls));
        let url = url(&config.listen, address);
        let authentication = Arc::new(Authentication::load(config, data_dir.path(), &url, principal, &app)?);
        if let Some(server) = authentication.server() {
            app.gateway.forget_sessions(|principal, used| server.is_newer(principal, used));
        }
        let following = followers(&admission, authentication::follower(&app, Some(&authentication)), tls.clone());
        let reloader = Reloader::new(app.clone(), loader, config.clone(), true, following);
        if let Some(relay) = &app.relay {
            relay.start(url.strip_suffix(&config.listen.path).unwrap_or(&url));
        }
        let front = Front::new(config, &authentication, admission, tls.clone(), app.relay.as_ref());
        let served = ApiState::new(&reloader, ProcessInfo { command: "serve", url: Some(url.clone()), tls });
        let router = routes::router(&served, Some(&authentication))?;
        let control = Control::open(data_dir, &app.gateway, &router);
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let gateway = Arc::downgrade(&app.gateway);
        let idle = move || {
            if let Some(gateway) = gateway.upgrade() {
                gateway.idle()
            }
        };
        let workers = Workers::start(cores, idle).map_err(Failure::Start)?;
        workers.handles().iter().for_each(|handle| app.gateway.runtimes.add(handle.clone()));
        Ok(Self { app, front, router, listener, control, url, reloader, workers, security, authentication })
    }

    /// URL that clients connect to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// TLS of the front, if it is on. Its files can be reloaded at any time.
    #[must_use]
    pub fn security(&self) -> Option<&FrontSecurity> {
        self.security.as_ref()
    }

    /// Gateway and the services assembled around it.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Reloader that applies changes of the configuration.
    #[must_use]
    pub fn reloader(&self) -> &Arc<Reloader> {
        &self.reloader
    }

    /// Starts the backends and serves until `stop` is set. Then finishes calls in flight and stops the backends.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let Self { app, front, router, listener, control, reloader, workers, security, authentication, .. } = self;
        let drain = || reloader.current().gateway.drain;
        app.gateway.start();
        let _watching = security.as_ref().map(FrontSecurity::watch);
        let _keeping_up = authentication.keep_up(&app.gateway);
        let (gateway, stopping) = (Arc::clone(&app.gateway), stop.clone());
        let serving = async {
            match front {
                Front::Http(spec) => {
                    http_front::serve(listener, gateway, spec, router, &workers, stopping).await;
                }
                Front::Tcp(spec) => tcp_front::serve(listener, gateway, spec, &workers, stopping).await,
            }
        };
        let until_stopped = async {
            let mut serving = std::pin::pin!(serving);
            let closed = tokio::select! {
                () = &mut serving => true,
                _ = stop.wait_for(|stop| *stop) => false,
            };
            if closed {
                return app.shut_down(drain()).await;
            }
            // Responses are still written while the gateway drains, and the last ones after it.
            let ending = async {
                app.shut_down(drain()).await;
                tokio::time::sleep(CONNECTIONS_END).await;
            };
            tokio::select! {
                () = serving => app.shut_down(drain()).await,
                () = ending => tracing::warn!("dropping connections that did not end in time"),
            }
        };
        tokio::select! {
            () = until_stopped => {}
            () = Control::serve(control.as_ref()) => {}
        }
    }
}

#[cfg(test)]
mod refused_routes;
#[cfg(test)]
mod tests {
    use super::*;
    use http::{Method, StatusCode};
    use serde_json::Value;
    use signalbox_assembly::data_dir::run_folder;
    use signalbox_assembly::live_feed::MAX_WATCHERS;
    use signalbox_config::{ConfigLocation, Environment, Overrides};
    use signalbox_control::control_socket::{self, AskError, LineStream};
    use signalbox_engine::FactSink as _;
    use signalbox_transport::router::Listener;
    use std::path::{Path, PathBuf};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpStream, UnixStream};

    async fn get(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    /// A server with its data in this folder, and where it listens.
    async fn built(root: &Path) -> (Server, SocketAddr) {
        let overrides = Overrides { data_dir: Some(root.into()), ..Overrides::default() };
        let config = Config::load(&ConfigLocation::Defaults, &|_| None, &overrides).unwrap().config;
        let data_dir = DataDir::prepare(&config.data_dir).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let loader = Loader::new(None, Environment { overrides, ..Environment::default() }, |_| None);
        (Server::build(&config, loader, &data_dir, listener).unwrap(), address)
    }

    /// The control socket of the only process with its data in this folder.
    fn control_socket(root: &Path) -> PathBuf {
        control_socket::sockets(&run_folder(root)).unwrap().remove(0)
    }

    #[tokio::test]
    async fn the_api_is_at_the_control_socket_and_asks_for_a_credential_at_the_listener() {
        let root = tempfile::tempdir().unwrap();
        let (server, address) = built(root.path()).await;
        let (router, gateway) = (Arc::clone(&server.router), Arc::clone(&server.app().gateway));
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(server.run(stopping));
        let socket = control_socket(root.path());
        while !gateway.is_ready() {
            tokio::task::yield_now().await;
        }
        for route in router.routes() {
            let at_listener = route.mount().is_at(Listener::Tcp);
            let answer = get(address, &route.path().replace("{id}", "1")).await;
            // The pages of sign-ins and approvals are there only for good links.
            let found = at_listener && !["/auth/connect/", "/approve/"].iter().any(|one| route.path().starts_with(one));
            assert_eq!(!answer.starts_with("HTTP/1.1 404"), found, "{}", route.path());
            if route.path().starts_with("/api/") && at_listener && route.method() == Method::GET {
                assert!(answer.starts_with("HTTP/1.1 401"), "{}: {answer}", route.path());
            }
            if at_listener {
                // The MCP endpoint cannot be put there.
                let file = root.path().join("signalbox.toml");
                std::fs::write(&file, format!("[mcp.protocol.transport]\npath = {:?}\n", route.path())).unwrap();
                Config::load(&ConfigLocation::File(file), &|_| None, &Overrides::default()).unwrap_err();
            }
            let asked = route.mount().is_at(Listener::Control) && route.path() != routes::LIVE;
            if asked && route.method() == Method::GET && !route.path().contains('{') {
                control_socket::ask(&socket, route.path()).await.unwrap();
            }
        }
        stop.send_replace(true);
        running.await.unwrap();
    }

    #[tokio::test]
    async fn whoever_watches_hears_the_end_and_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let (server, _) = built(root.path()).await;
        let live = Arc::clone(&server.app().live);
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(server.run(stopping));
        let socket = control_socket(root.path());
        let mut watching = Vec::new();
        for _ in 0..MAX_WATCHERS {
            let mut lines = LineStream::open(&socket, routes::LIVE).await.unwrap();
            let greeting: Value = serde_json::from_slice(&lines.next().await.unwrap().unwrap()).unwrap();
            assert_eq!(greeting["type"], "watching");
            watching.push(lines);
        }
        let refused = LineStream::open(&socket, routes::LIVE).await.map(|_| ());
        assert!(
            matches!(&refused, Err(AskError::Refused { status: StatusCode::SERVICE_UNAVAILABLE, .. })),
            "{refused:?}"
        );
        drop(watching);
        while live.wants_messages() {
            tokio::task::yield_now().await;
        }
        let mut events = UnixStream::connect(&socket).await.unwrap();
        let ask = format!("GET {} HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\n", routes::LIVE);
        events.write_all(ask.as_bytes()).await.unwrap();
        let mut heard = String::new();
        while !heard.contains("data: {\"type\":\"watching\"") {
            let mut chunk = [0; 1024];
            let read = events.read(&mut chunk).await.unwrap();
            assert!(read > 0, "{heard}");
            heard.push_str(std::str::from_utf8(&chunk[..read]).unwrap());
        }
        assert!(heard.contains("content-type: text/event-stream\r\n"), "{heard}");
        let mut lines = LineStream::open(&socket, routes::LIVE).await.unwrap();
        stop.send_replace(true);
        while lines.next().await.unwrap().is_some() {}
        running.await.unwrap();
        while live.wants_messages() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_server_is_built_on_any_listener_and_stops_when_told() {
        let root = tempfile::tempdir().unwrap();
        let (server, address) = built(root.path()).await;
        assert_eq!(server.url(), format!("http://{address}/mcp"));
        let gateway = Arc::clone(&server.app().gateway);
        let (stop, stopping) = watch::channel(false);
        let running = tokio::spawn(server.run(stopping));
        assert!(get(address, "/healthz").await.ends_with("\r\n\r\nok\n"));
        while !gateway.is_ready() {
            tokio::task::yield_now().await;
        }
        assert!(get(address, "/readyz").await.ends_with("\r\n\r\nready\n"));
        assert!(get(address, "/api/v1/status").await.starts_with("HTTP/1.1 401"));
        stop.send_replace(true);
        running.await.unwrap();
        assert!(TcpStream::connect(address).await.is_err());
        assert!(gateway.is_draining());
    }
}
