//! `GET /api/stream`: requests to a page, or results to a client. The role is decided as follows:
//!
//! ```text
//! it says worker, or shows a worker's token or id ────────────────► Worker
//! it says client, or posted only to /api/request in the session ──► Client
//! it posted only to /api/response in the session ─────────────────► Worker
//! unknown: Worker while no page is connected, else Client ────────► changes if it posts to /api/request
//! ```

use super::legacy_request::{
    RouteRefusal, address, code_outside, header, is_tokened, owner, peer, proved, session, shows_worker, token,
};
use crate::random;
use crate::refusal::LegacyRefusal;
use crate::relay::Relay;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::store::{EventReader, RelayEvent, RelayStoreError};
use crate::stream_roles::StreamRole;
use crate::worker::Worker;
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::budget::WEIGHED;
use signalbox_engine::standing::Credential;
use signalbox_runtime::clock::unix_millis;
use signalbox_transport::router::{AnswerEvent, Events, RoutedAnswer, RoutedRequest};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

/// Queue length of a stream, in events.
const QUEUE: usize = 64;
/// Maximum time that a large event waits for memory, and the interval at which it retries.
const MEMORY_WAIT: Duration = Duration::from_secs(5);
const MEMORY_RETRY: Duration = Duration::from_millis(50);
/// Interval at which a silent stream checks the credential that it was opened with.
const CREDENTIAL_CHECK: Duration = Duration::from_millis(500);
/// Maximum length of a page id or a journal id, in bytes.
const MAX_ID: usize = 128;

pub async fn open(relay: Arc<Relay>, asked: RoutedRequest) -> Result<RoutedAnswer, RouteRefusal> {
    let accepts = header(&asked.headers, "accept").unwrap_or("*/*").to_ascii_lowercase();
    if !["text/event-stream", "*/*", "text/*"].iter().any(|kind| accepts.contains(kind)) {
        let why = "this is a stream of events: send `Accept: text/event-stream`".to_owned();
        return Err(RouteRefusal::of(LegacyRefusal::Validation(why)));
    }
    let record = session(&relay, code_outside(&asked), &address(&asked)).await?;
    let who = peer(&asked);
    let shown = token(&asked.headers, None);
    let role = match asked.query.get("role") {
        Some("worker") => Some(StreamRole::Worker),
        Some("client") => Some(StreamRole::Client),
        Some(_) => {
            return Err(RouteRefusal::about(
                LegacyRefusal::Validation("role is worker or client".to_owned()),
                &record.code,
            ));
        }
        None if shows_worker(&asked.headers) => Some(StreamRole::Worker),
        None => None,
    };
    let known = role.or_else(|| relay.roles.of(&record.mark, &who));
    if known == Some(StreamRole::Client) {
        proved(&relay, &asked)?;
    } else if known == Some(StreamRole::Worker) || shown.is_some() {
        is_tokened(&relay, &record, shown).await?;
    }
    let random = random::request_id().map_err(|_| RouteRefusal::of(LegacyRefusal::Internal))?;
    let given = |name: &str| header(&asked.headers, name).filter(|text| text.len() <= MAX_ID).map(str::to_owned);
    let journal = given("x-worker-journal").unwrap_or_default();
    // Once a page has presented its token, a stream cannot become a worker without it, nor by leaving its role open.
    let role = if known.is_none() && (record.tokened || relay.settings.proof_needed) {
        Some(StreamRole::Client)
    } else {
        known
    };
    if role == Some(StreamRole::Client) {
        proved(&relay, &asked)?;
    }
    // The stream of a client ends no stream of a page, whose id it may know.
    let id = given("x-worker-id").filter(|_| role != Some(StreamRole::Client));
    let holder = id.unwrap_or_else(|| random.clone());
    let standing = asked.caller.identity().standing.as_ref();
    let credential = standing.and_then(|standing| standing.credential.clone());
    let (events, reader) = mpsc::channel(QUEUE);
    let replaced = relay.replace_stream(&record.code, &holder);
    let stream = Stream {
        worker: Worker::new(record.code.clone(), &holder, &journal, &random),
        roles: relay.roles.follow(),
        owner: owner(&relay, &asked),
        credential,
        peer: who,
        role,
        leads: false,
        delivered: None,
        events,
        relay,
        record,
    };
    tokio::spawn(stream.run(replaced));
    Ok(RoutedAnswer::events(Reader(reader)))
}

/// Reading end of a stream, polled by its connection.
struct Reader(mpsc::Receiver<AnswerEvent>);

impl Events for Reader {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>> {
        self.0.poll_recv(cx)
    }
}

/// Waits until a credential is no longer valid; forever without one.
async fn lapse(credential: Option<&Credential>) {
    let Some(credential) = credential else { return std::future::pending().await };
    while credential.is_current(unix_millis()) {
        tokio::time::sleep(CREDENTIAL_CHECK).await;
    }
}

/// Event stream of a page or a client.
struct Stream {
    relay: Arc<Relay>,
    record: SessionRecord,
    worker: Worker,
    /// Address and name of the reader.
    peer: String,
    /// Owner of the results that it carries.
    owner: ResultOwner,
    /// Credential of the reader, if it can expire or be revoked.
    credential: Option<Credential>,
    /// Role of the stream, once it is known.
    role: Option<StreamRole>,
    roles: watch::Receiver<u64>,
    leads: bool,
    /// Number of the last result sent.
    delivered: Option<u64>,
    events: mpsc::Sender<AnswerEvent>,
}

/// Reason for the end of a stream.
enum End {
    /// The reader has disconnected, or the page has opened another stream.
    Gone,
    /// The session has ended.
    Expired,
    /// The credential has expired, was revoked, or stands for other rights by now.
    Unproved,
    Failed(RelayStoreError),
    /// The memory budget is exhausted.
    NoRoom(LegacyRefusal),
}

impl From<RelayStoreError> for End {
    fn from(error: RelayStoreError) -> Self {
        Self::Failed(error)
    }
}

impl Stream {
    async fn run(mut self, replaced: oneshot::Receiver<()>) {
        let Err(end) = self.carry(replaced).await;
        let (relay, code) = (Arc::clone(&self.relay), self.record.code.clone());
        match end {
            End::Gone => {}
            End::Expired => {
                let refusal = LegacyRefusal::SessionExpired;
                self.send_error(refusal.name().0, &refusal.to_string()).await;
            }
            End::Unproved => {
                let refusal = LegacyRefusal::Unauthenticated;
                self.send_error(refusal.name().0, &refusal.to_string()).await;
            }
            End::NoRoom(refusal) => self.send_error(refusal.name().0, &refusal.to_string()).await,
            End::Failed(error) => {
                relay.failed(&error);
                self.send_error("polling_error", "the relay cannot be used now").await;
            }
        }
        if self.leads {
            let _ = relay.store.yield_lead(&code, &self.worker.stream, unix_millis()).await;
        }
        relay.forget_stream(&code, &self.worker.holder);
    }

    /// Sends events until the stream ends.
    async fn carry(&mut self, mut replaced: oneshot::Receiver<()>) -> Result<std::convert::Infallible, End> {
        let mut events = self.relay.store.subscribe(&self.record.code).await?;
        if self.may_work() {
            self.leads = self.worker.take_lead(&self.relay).await?;
        }
        // The role is unknown: while a page is connected, the stream is a client's.
        if self.role.is_none() && !self.leads {
            self.role = Some(StreamRole::Client);
        }
        self.send_connected().await?;
        self.send_all().await?;
        let pause = self.relay.heartbeat();
        let mut beat = Instant::now() + pause;
        loop {
            tokio::select! {
                event = events.recv() => self.handle_event(event, &mut events).await?,
                () = sleep_until(beat) => {
                    self.heartbeat().await?;
                    beat = Instant::now() + pause;
                }
                () = lapse(self.credential.as_ref()) => return Err(End::Unproved),
                Ok(()) = self.roles.changed() => self.decide().await?,
                _ = &mut replaced => return Err(End::Gone),
                () = self.events.closed() => return Err(End::Gone),
            }
        }
    }

    fn may_work(&self) -> bool {
        self.role != Some(StreamRole::Client)
    }

    async fn handle_event(&mut self, event: Option<RelayEvent>, events: &mut EventReader) -> Result<(), End> {
        // A page that answers for the first time reveals its role, and must not be sent its own result.
        self.decide().await?;
        match event {
            Some(RelayEvent::Requested { .. }) if self.leads => self.send_requests().await,
            Some(RelayEvent::Results) => self.send_results().await,
            Some(RelayEvent::Cancelled { id, reason }) if self.leads && self.worker.was_given(&id) => {
                self.send_event("cancel", json!({"id": id, "requestId": id, "reason": reason})).await
            }
            Some(RelayEvent::LeadChanged) if self.role == Some(StreamRole::Worker) && !self.leads => {
                self.leads = self.worker.take_lead(&self.relay).await?;
                if !self.leads {
                    return Ok(());
                }
                self.send_event("promoted", json!({"timestamp": unix_millis()})).await?;
                self.send_requests().await
            }
            Some(RelayEvent::Ended) => Err(End::Expired),
            Some(_) => Ok(()),
            None => {
                if self.relay.store.by_code(&self.record.code, unix_millis()).await?.is_none() {
                    return Err(End::Expired);
                }
                *events = self.relay.store.subscribe(&self.record.code).await?;
                self.send_all().await
            }
        }
    }

    /// Fails once the credential has ended, so that nothing more is sent even before its next check.
    fn check_credential(&self) -> Result<(), End> {
        match &self.credential {
            Some(credential) if !credential.is_current(unix_millis()) => Err(End::Unproved),
            _ => Ok(()),
        }
    }

    /// Settles the role if the peer has revealed it by what it posted.
    async fn decide(&mut self) -> Result<(), End> {
        if self.role.is_none() {
            self.role = self.relay.roles.of(&self.record.mark, &self.peer);
            if self.role == Some(StreamRole::Client) && self.leads {
                self.leads = false;
                self.relay.store.yield_lead(&self.record.code, &self.worker.stream, unix_millis()).await?;
            }
        }
        Ok(())
    }

    async fn heartbeat(&mut self) -> Result<(), End> {
        let now = unix_millis();
        let until = now.saturating_add(self.relay.settings.ttl_ms());
        // An open page keeps its session alive; a listening client does not.
        let kept = match self.leads {
            true => self.relay.store.touch(&self.record.code, until, now).await?,
            false => self.relay.store.by_code(&self.record.code, now).await?.is_some(),
        };
        if !kept {
            return Err(End::Expired);
        }
        if self.role == Some(StreamRole::Worker) || self.leads {
            let led = self.leads;
            self.leads = self.worker.take_lead(&self.relay).await?;
            if self.leads && !led {
                self.send_event("promoted", json!({"timestamp": now})).await?;
                self.send_requests().await?;
            }
        }
        self.send_event("heartbeat", json!({"timestamp": now})).await
    }

    async fn send_all(&mut self) -> Result<(), End> {
        if self.leads {
            self.send_requests().await?;
        }
        self.send_results().await
    }

    async fn send_requests(&mut self) -> Result<(), End> {
        loop {
            let due = self.worker.due(&self.relay).await?;
            if due.is_empty() {
                return Ok(());
            }
            for request in due {
                self.check_credential()?;
                self.put(Some("tool-request"), request.into()).await?;
            }
        }
    }

    /// Sends results to clients, and to peers that have not proved to be a page.
    async fn send_results(&mut self) -> Result<(), End> {
        if self.role == Some(StreamRole::Worker) {
            return Ok(());
        }
        let (relay, code) = (Arc::clone(&self.relay), self.record.code.clone());
        for result in relay.store.results(&code, &self.owner, self.delivered, unix_millis()).await? {
            self.check_credential()?;
            self.put(None, result.data).await?;
            self.delivered = Some(result.number);
            relay.store.delivered(&code, &self.owner, result.number, unix_millis()).await?;
        }
        if self.delivered.is_none() {
            let before = relay.store.results(&code, &self.owner, Some(0), unix_millis()).await?;
            self.delivered = before.last().map(|last| last.number);
        }
        Ok(())
    }

    async fn send_connected(&self) -> Result<(), End> {
        let mut data = json!({
            "code": self.record.code.expose(),
            "message": "Connected to the session's stream",
            "timestamp": unix_millis(),
        });
        if self.may_work() {
            data["workerId"] = Value::from(&*self.worker.holder);
            data["standby"] = Value::from(!self.leads);
        }
        data["heartbeatMs"] = Value::from(crate::settings::millis(self.relay.heartbeat()));
        self.send_event("connected", data).await
    }

    async fn send_error(&self, name: &str, message: &str) {
        let _ = self.send_event("error", json!({"error": name, "message": message, "timestamp": unix_millis()})).await;
    }

    async fn send_event(&self, name: &str, data: Value) -> Result<(), End> {
        self.put(Some(name), data.to_string().into()).await
    }

    async fn put(&self, name: Option<&str>, data: Bytes) -> Result<(), End> {
        let large = data.len() >= WEIGHED;
        let data = if large { self.held(data).await? } else { data };
        // A large event occupies the whole queue.
        let permits = self.events.reserve_many(if large { QUEUE } else { 1 }).await;
        let event = AnswerEvent { id: None, name: name.map(str::to_owned), data };
        permits.map_err(|_| End::Gone)?.next().ok_or(End::Gone)?.send(event);
        Ok(())
    }

    /// Charges a large event to the memory budget, waiting for room. If there is none in time, the stream ends, and the
    /// page receives the request again when it reconnects.
    async fn held(&self, data: Bytes) -> Result<Bytes, End> {
        let deadline = Instant::now() + MEMORY_WAIT;
        loop {
            match self.relay.shares.hold_for_page(data.clone()) {
                Ok(held) => return Ok(held),
                Err(refused) if Instant::now() >= deadline => return Err(End::NoRoom(self.relay.no_room(refused))),
                Err(_) => tokio::time::sleep(MEMORY_RETRY).await,
            }
        }
    }
}
