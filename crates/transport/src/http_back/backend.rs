//! State shared by all links to one backend: its address, headers and connections, and how requests are sent.

use super::{HttpSpec, headers};
use crate::backend_fault::{SpecError, ended_tls, fault, unreachable};
use crate::http1::{Conn, Head, HttpError, HttpRequest, HttpTarget, Pool, RequestDraft, SendError, body};
use crate::tls;
use http::header::{HeaderName, HeaderValue, WWW_AUTHENTICATE};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::caller_places::CallerPlaces;
use signalbox_runtime::{AuthHeader, AuthRefusal, BackendCredentials, LinkEvents, RequestIdentity, RequestSender};
use signalbox_wire::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

/// Scheme that this transport serves.
const SCHEME: &str = "http";
/// Maximum time to read the rest of an unneeded body before its connection is dropped.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Maximum size of an unneeded body that is read to keep its connection.
const DRAIN_BYTES: usize = 64 * 1024;

/// Maximum number of characters of a body that a fault quotes.
const SHOWN: usize = 200;
/// Maximum number of bytes of a body that are searched for secrets before it is cut.
const LOOKED_THROUGH: usize = 4096;
/// Minimum length of a secret. Shorter values are not hidden: hiding every `1` would hide everything.
const SHORTEST_SECRET: usize = 6;

/// Secrets of a request besides the configured headers: the session id and the credential.
pub(crate) type Hidden<'a> = [Option<&'a HeaderValue>; 2];

/// A backend with its configured headers and its connections.
pub(crate) struct Backend {
    pub name: Arc<str>,
    pub target: HttpTarget,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub credentials: Option<Arc<dyn BackendCredentials>>,
    /// Precomputed start of the head of every POST.
    pub post_start: RequestDraft,
    pub limits: Limits,
    pub pool: Arc<Pool>,
    /// Maximum number of times a message is sent again that was certainly not processed.
    pub retries: u32,
    /// Number of retries so far.
    pub retried: AtomicU64,
    /// Number of sessions whose DELETE is in flight.
    pub ending: AtomicUsize,
    connect_timeout: Duration,
    places: Arc<CallerPlaces>,
}

/// Returns on whose behalf a request of a link is sent. The caller is looked up only if the credential depends on it.
fn behalf(credentials: &dyn BackendCredentials, events: &dyn LinkEvents, key: Option<u64>) -> RequestIdentity {
    let asker = key.filter(|_| credentials.is_per_caller()).map_or(RequestSender::Gateway, |key| events.asker(key));
    RequestIdentity { user: events.user(), asker }
}

impl Backend {
    pub(crate) fn new(spec: HttpSpec) -> Result<Self, SpecError> {
        let target = HttpTarget::parse(&spec.url, SCHEME).and_then(|target| target.with_tls(&spec.name, spec.tls));
        let target = target.map_err(|error| SpecError::Target { backend: Arc::clone(&spec.name), error })?;
        let mut headers = spec.headers;
        for (_, value) in &mut headers {
            value.set_sensitive(true);
        }
        Ok(Self {
            post_start: headers::post_start(&target, &headers),
            target,
            headers,
            credentials: spec.credentials,
            limits: spec.limits,
            pool: Pool::new(spec.max_idle, spec.idle_timeout),
            retries: spec.retries,
            retried: AtomicU64::new(0),
            ending: AtomicUsize::new(0),
            connect_timeout: spec.connect_timeout,
            places: spec.places,
            name: spec.name,
        })
    }

    /// Returns the credential for a request of a link. `key` is set for a caller's request.
    pub(crate) async fn credential(
        &self,
        events: &dyn LinkEvents,
        key: Option<u64>,
    ) -> Result<Option<AuthHeader>, Fault> {
        match &self.credentials {
            Some(credentials) => credentials.current(behalf(&**credentials, events, key)).await,
            None => Ok(None),
        }
    }

    /// Returns another credential if the backend refused the last one; `None` if it did not, or if no other would help.
    pub(crate) async fn renew_credential(
        &self,
        events: &dyn LinkEvents,
        key: Option<u64>,
        head: &Head,
        used: Option<&AuthHeader>,
    ) -> Result<Option<AuthHeader>, Fault> {
        let (Some(credentials), status @ (401 | 403)) = (&self.credentials, head.status.as_u16()) else {
            return Ok(None);
        };
        let refusal = AuthRefusal { status, challenges: head.texts(&WWW_AUTHENTICATE), used: used.cloned() };
        credentials.renewed(behalf(&**credentials, events, key), refusal).await
    }

    /// Sends a request on a pooled connection, or a new one. A pooled one may turn out to be closed: a request of which
    /// no byte was written is then sent on another; any other may have been processed and is not.
    pub(crate) async fn exchange(
        &self,
        events: &dyn LinkEvents,
        mut kept: Option<Box<Conn>>,
        mut request: HttpRequest,
    ) -> Result<(Box<Conn>, Head), Fault> {
        while let Some(mut conn) = kept {
            request = match conn.send(request).await {
                Ok(head) => return Ok((conn, head)),
                Err(SendError::Unsent(unsent, _)) => unsent,
                Err(SendError::Failed(error)) => return Err(self.no_answer(&error)),
            };
            kept = self.pool.take();
        }
        Box::pin(self.exchange_alone(events, request)).await
    }

    /// Sends a request on a new connection.
    pub(crate) async fn exchange_alone(
        &self,
        events: &dyn LinkEvents,
        request: HttpRequest,
    ) -> Result<(Box<Conn>, Head), Fault> {
        let mut conn = self.open(events).await?;
        match conn.send(request).await {
            Ok(head) => Ok((conn, head)),
            Err(SendError::Unsent(_, why)) => Err(self.not_sent(why.map(HttpError::Io).as_ref())),
            Err(SendError::Failed(error)) => Err(self.no_answer(&error)),
        }
    }

    /// Opens a connection. It holds a place of the caller until it is idle.
    async fn open(&self, events: &dyn LinkEvents) -> Result<Box<Conn>, Fault> {
        let place = match events.user() {
            Some(user) => {
                let entered = self.places.enter(user.principal(), self.connect_timeout).await;
                Some(entered.map_err(|full| {
                    self.fault(FaultKind::Overloaded, format_args!("gets no further connection: {full}"))
                })?)
            }
            None => None,
        };
        let opened = Conn::open(&self.target, self.connect_timeout).await;
        let mut conn = opened.map_err(|error| unreachable(&self.name, &self.target, &error))?;
        conn.occupy(place);
        Ok(conn)
    }

    /// Reads and discards the rest of a body, so that its connection can be reused.
    pub(crate) async fn finish(&self, mut conn: Box<Conn>) {
        let reading = body::whole(&mut conn, DRAIN_BYTES, || None);
        if let Ok(Ok(_)) = tokio::time::timeout(DRAIN_TIME, reading).await {
            self.pool.put(conn);
        }
    }

    /// Creates a fault of this backend. `text` continues after its name.
    pub(crate) fn fault(&self, kind: FaultKind, text: impl std::fmt::Display) -> Fault {
        fault(&self.name, kind, text)
    }

    /// Returns a hint on how to sign in at a backend that refused us.
    pub(crate) fn sign_in_hint(&self) -> String {
        let name = &self.name;
        match self.credentials.is_some() {
            true => format!("; `signalbox login {name}` signs in there"),
            false => format!(
                "; set `auth = {{ type = \"oauth\" }}` in `[backends.{name}]` and run `signalbox login {name}`, or give \
                 it a credential under `headers`"
            ),
        }
    }

    /// Returns the fault for a request that was not sent.
    fn not_sent(&self, why: Option<&HttpError>) -> Fault {
        let text = match why.and_then(|error| tls::find(error)) {
            Some(error) => ended_tls(error),
            None => "closed the connection before it took the request".to_owned(),
        };
        self.fault(FaultKind::BackendDown, text)
    }

    /// Returns the fault for a request that was sent and got no response.
    fn no_answer(&self, error: &HttpError) -> Fault {
        if let Some(error) = tls::find(error) {
            let text = ended_tls(error);
            return self.fault(FaultKind::BackendDied, text);
        }
        if matches!(error, HttpError::Malformed(_)) {
            let text = format!("answered in something else than HTTP/1.1: {error}");
            return self.fault(FaultKind::BackendGarbage, text);
        }
        let text = format!("closed the connection before the answer ({error})");
        self.fault(FaultKind::BackendDied, text)
    }

    /// Appends the beginning of a body to a text, if there is one.
    pub(crate) fn quote(&self, text: &mut String, body: &[u8], hidden: Hidden<'_>) {
        let excerpt = self.excerpt(body, hidden);
        if !excerpt.is_empty() {
            text.push_str(": ");
            text.push_str(&excerpt);
        }
    }

    /// Returns the beginning of a body as one printable line, without any secrets we sent.
    pub(crate) fn excerpt(&self, body: &[u8], hidden: Hidden<'_>) -> String {
        let start = body.get(..LOOKED_THROUGH).unwrap_or(body);
        let mut text = String::from_utf8_lossy(start).into_owned();
        for secret in self.secrets(hidden) {
            if secret.len() >= SHORTEST_SECRET {
                text = text.replace(secret, "[hidden]");
            }
        }
        let shown: String = text.trim().escape_debug().take(SHOWN).collect();
        shown.replace("\\\"", "\"")
    }

    /// Returns the values that must not be repeated: header values, whole and without a leading `Bearer`, and the
    /// values of the query.
    fn secrets<'a>(&'a self, hidden: Hidden<'a>) -> impl Iterator<Item = &'a str> {
        let values = self.headers.iter().map(|(_, value)| value).chain(hidden.into_iter().flatten());
        let values = values.filter_map(|value| value.to_str().ok());
        let values = values.flat_map(|value| [value, value.rsplit(' ').next().unwrap_or(value)]);
        let query = self.target.uri.query().unwrap_or_default().split('&');
        values.chain(query.map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value)))
    }
}
