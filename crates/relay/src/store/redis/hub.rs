//! Event connection to Redis. One task owns it and forwards events to the subscribers of this process.
//!
//! When the connection is lost, subscribers do not notice: the task reconnects with back-off, reads the missed events
//! from the log of each session, and continues. Readers end only if events are lost for good.

use super::connection::{FIRST_WAIT, LONGEST_WAIT, RedisConnection, RedisCounters, store_error};
use super::notice::{Notice, ParsedNotice};
use crate::code::Code;
use crate::store::{EVENT_QUEUE, EventReader, RelayEvent, RelayStoreError};
use crate::tool_request::{ToolAnswer, WorkerError};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, PushInfo, PushKind, Value};
use signalbox_runtime::clock::unix_millis;
use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

/// Maximum number of queued subscriptions.
pub const MAX_SUBSCRIBE_REQUESTS: usize = 1_024;
/// Maximum number of messages that are read from the connection and not yet forwarded. On overflow, the log is read
/// instead.
const MAX_PUSHES: usize = 1_024;
/// Maximum number of subscribed sessions per process.
const MAX_SUBSCRIPTIONS: usize = 100_000;
/// Maximum number of readers of one session per process.
const MAX_READERS: usize = 1_024;
/// Maximum number of sessions per subscribe command.
const BATCH: usize = 256;
/// Interval at which the connection is checked and unused subscriptions are dropped.
const PING: Duration = Duration::from_secs(15);

/// Request to subscribe to a session.
pub struct SubscribeRequest {
    /// Code of the session.
    pub code: Code,
    /// Recipient of the event reader.
    pub reply: oneshot::Sender<Result<EventReader, RelayStoreError>>,
}

/// Readers of a session in this process, with the number of the last event sent to them.
struct Subscription {
    readers: Vec<mpsc::Sender<RelayEvent>>,
    last: u64,
}

struct Message {
    channel: Vec<u8>,
    text: String,
}

/// Open connection, the messages that arrive on it, and the signal that it is lost or has overflowed.
struct EventConnection {
    connection: MultiplexedConnection,
    pushes: mpsc::Receiver<Message>,
    lost: Arc<Notify>,
}

/// Task that owns the event connection.
pub struct Hub {
    line: Arc<RedisConnection>,
    subscriptions: HashMap<Code, Subscription>,
    /// Sessions that are still subscribed to but no longer needed.
    leaving: HashSet<Code>,
}

impl Hub {
    /// Serves subscriptions until all senders are gone.
    pub async fn run(line: Arc<RedisConnection>, mut requests: mpsc::Receiver<SubscribeRequest>) {
        let mut hub = Self { line, subscriptions: HashMap::new(), leaving: HashSet::new() };
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            let why = match hub.open().await {
                Ok(events) => match hub.serve(events, &mut requests).await {
                    Ok(()) => return,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if began.elapsed() > LONGEST_WAIT {
                wait = FIRST_WAIT;
            }
            tracing::debug!(error = %why, "no events come from the relay's store");
            hub.line.set_event_failure(Some(why.clone()));
            let until = Instant::now() + wait;
            wait = (wait * 2).min(LONGEST_WAIT);
            loop {
                tokio::select! {
                    () = sleep_until(until) => break,
                    request = requests.recv() => match request {
                        Some(request) => drop(request.reply.send(Err(why.clone()))),
                        None => return,
                    },
                }
            }
        }
    }

    async fn open(&self) -> Result<EventConnection, RelayStoreError> {
        let (sender, pushes) = mpsc::channel(MAX_PUSHES);
        let lost = Arc::new(Notify::new());
        let sign = Arc::clone(&lost);
        let take = move |push: PushInfo| -> Result<(), redis::aio::SendError> {
            match push.kind {
                PushKind::Disconnection => sign.notify_one(),
                PushKind::Message => {
                    if let Some(message) = message(push.data)
                        && sender.try_send(message).is_err()
                    {
                        sign.notify_one();
                    }
                }
                _ => {}
            }
            Ok(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.line.connect_timeout()))
            .set_response_timeout(Some(self.line.address().timeout()))
            .set_push_sender(take);
        let connection = self.line.open(&config).await?;
        Ok(EventConnection { connection, pushes, lost })
    }

    /// Forwards events until the connection is lost. Returns `Ok` when all senders of subscriptions are gone.
    async fn serve(
        &mut self,
        mut events: EventConnection,
        requests: &mut mpsc::Receiver<SubscribeRequest>,
    ) -> Result<(), RelayStoreError> {
        self.resume(&mut events.connection).await?;
        self.line.set_event_failure(None);
        let mut tick = interval(PING);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.tick().await;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                // Forward what has arrived before subscribing to more.
                biased;
                () = events.lost.notified() => return Err(RelayStoreError::Unreachable("the connection was lost".to_owned())),
                Some(message) = events.pushes.recv() => self.handle_message(message).await?,
                count = requests.recv_many(&mut batch, BATCH) => match count {
                    0 => return Ok(()),
                    _ => self.admit(&mut events.connection, &mut batch).await?,
                },
                _ = tick.tick() => self.tidy(&mut events.connection).await?,
            }
        }
    }

    /// Subscribes to all sessions again and forwards the events that were missed.
    async fn resume(&mut self, connection: &mut MultiplexedConnection) -> Result<(), RelayStoreError> {
        self.leaving.clear();
        self.subscriptions.retain(|_, subscription| subscription.readers.iter().any(|reader| !reader.is_closed()));
        let codes: Vec<Code> = self.subscriptions.keys().cloned().collect();
        for some in codes.chunks(BATCH) {
            self.subscribe(connection, some).await?;
        }
        for code in codes {
            self.catch_up(&code).await?;
        }
        Ok(())
    }

    async fn subscribe(&self, connection: &mut MultiplexedConnection, codes: &[Code]) -> Result<(), RelayStoreError> {
        let channels = self.channels(codes);
        self.in_time(connection.subscribe(&channels)).await
    }

    async fn in_time(&self, doing: impl Future<Output = redis::RedisResult<()>>) -> Result<(), RelayStoreError> {
        match timeout(self.line.address().timeout(), doing).await {
            Ok(done) => done.map_err(|error| store_error(&error)),
            Err(_) => {
                RedisCounters::add(&self.line.counters.timeouts);
                Err(RelayStoreError::Unreachable("Redis does not answer on the connection for events".to_owned()))
            }
        }
    }

    fn channels(&self, codes: &[Code]) -> Vec<String> {
        let prefix = self.line.address().prefix();
        codes.iter().map(|code| format!("{prefix}session:{}:events", code.expose())).collect()
    }

    fn code_of(&self, channel: &[u8]) -> Option<Code> {
        let channel = std::str::from_utf8(channel).ok()?;
        let code = channel.strip_prefix(self.line.address().prefix())?.strip_prefix("session:")?;
        Code::parse(code.strip_suffix(":events")?).ok()
    }

    /// Forwards the events that a session's readers have missed.
    async fn catch_up(&mut self, code: &Code) -> Result<(), RelayStoreError> {
        let Some(subscription) = self.subscriptions.get(code) else { return Ok(()) };
        let mut call = self.line.call("missed", unix_millis());
        call.arg(code.expose()).arg(subscription.last);
        let mut found: std::vec::IntoIter<Value> = self.line.run_again::<Vec<Value>>(&call).await?.into_iter();
        match found.next() {
            Some(Value::Int(-1)) => self.end(code, true),
            Some(Value::Int(last)) if last >= 0 => {
                for event in found {
                    let text = String::from_redis_value(event).unwrap_or_default();
                    RedisCounters::add(&self.line.counters.caught_up);
                    self.notify(code, &text).await?;
                }
                if let Some(subscription) = self.subscriptions.get_mut(code) {
                    subscription.last = last.unsigned_abs();
                }
            }
            // Events are lost for good: end the readers, which then re-read the full state.
            _ => self.end(code, false),
        }
        Ok(())
    }

    /// Ends all readers of a session.
    fn end(&mut self, code: &Code, over: bool) {
        let Some(mut subscription) = self.subscriptions.remove(code) else { return };
        if over {
            subscription.notify(&RelayEvent::Ended, &self.line.counters);
        } else {
            subscription.readers.iter().for_each(|_| RedisCounters::add(&self.line.counters.let_go));
        }
        self.leaving.insert(code.clone());
    }

    async fn handle_message(&mut self, message: Message) -> Result<(), RelayStoreError> {
        let Some(code) = self.code_of(&message.channel) else { return Ok(()) };
        let Some((number, text)) = Notice::numbered(&message.text) else { return Ok(()) };
        let Some(subscription) = self.subscriptions.get_mut(&code) else { return Ok(()) };
        if number == 0 {
            return self.notify(&code, text).await;
        }
        match number.checked_sub(subscription.last) {
            // Already read from the log.
            None | Some(0) => Ok(()),
            Some(1) => {
                self.notify(&code, text).await?;
                if let Some(subscription) = self.subscriptions.get_mut(&code) {
                    subscription.last = number;
                }
                Ok(())
            }
            Some(_) => self.catch_up(&code).await,
        }
    }

    /// Forwards an event. If its answer cannot be read now, the task tries again on a new connection.
    async fn notify(&mut self, code: &Code, text: &str) -> Result<(), RelayStoreError> {
        let event = match Notice::read(text) {
            Some(ParsedNotice::Event(RelayEvent::Ended)) => {
                self.end(code, true);
                return Ok(());
            }
            Some(ParsedNotice::Event(event)) => event,
            Some(ParsedNotice::Answered(id)) => {
                let answer = Arc::new(self.answer_of(&id).await?);
                RelayEvent::Answered { id, answer }
            }
            None => return Ok(()),
        };
        if let Some(subscription) = self.subscriptions.get_mut(code) {
            subscription.notify(&event, &self.line.counters);
        }
        Ok(())
    }

    async fn answer_of(&self, id: &str) -> Result<ToolAnswer, RelayStoreError> {
        let mut call = self.line.call("answer_of", unix_millis());
        call.arg(id);
        let found: Option<String> = self.line.run_again(&call).await?;
        let read = found.and_then(|text| serde_json::from_str(&text).ok());
        Ok(read.unwrap_or_else(|| ToolAnswer::Error(WorkerError::outcome_unknown())))
    }

    /// Gives each requester a reader. The reader of a session that does not exist ends at once.
    async fn admit(
        &mut self,
        connection: &mut MultiplexedConnection,
        batch: &mut Vec<SubscribeRequest>,
    ) -> Result<(), RelayStoreError> {
        let fresh: HashSet<&Code> =
            batch.iter().map(|request| &request.code).filter(|code| !self.subscriptions.contains_key(*code)).collect();
        let fresh: Vec<Code> = fresh.into_iter().cloned().collect();
        if let Err(error) = self.enter(connection, &fresh).await {
            for request in batch.drain(..) {
                let _ = request.reply.send(Err(error.clone()));
            }
            return Err(error);
        }
        for SubscribeRequest { code, reply } in batch.drain(..) {
            let (sender, reader) = mpsc::channel(EVENT_QUEUE);
            let added = self.subscriptions.get_mut(&code).is_none_or(|subscription| subscription.add(sender));
            let full = || RelayStoreError::Unreachable(format!("{MAX_READERS} streams and calls wait at one session"));
            let _ = reply.send(if added { Ok(reader) } else { Err(full()) });
        }
        Ok(())
    }

    /// Subscribes to those of the sessions that exist.
    async fn enter(&mut self, connection: &mut MultiplexedConnection, codes: &[Code]) -> Result<(), RelayStoreError> {
        if codes.is_empty() {
            return Ok(());
        }
        if self.subscriptions.len() + codes.len() > MAX_SUBSCRIPTIONS {
            return Err(RelayStoreError::Unreachable(format!("{MAX_SUBSCRIPTIONS} sessions are listened to already")));
        }
        // Subscribe first, so that no event is missed before the head is read.
        self.subscribe(connection, codes).await?;
        let mut call = self.line.call("heads", unix_millis());
        for code in codes {
            call.arg(code.expose());
        }
        let heads: Vec<i64> = self.line.run_again(&call).await?;
        for (code, head) in codes.iter().zip(heads) {
            match u64::try_from(head) {
                Ok(last) => {
                    self.leaving.remove(code);
                    self.subscriptions.insert(code.clone(), Subscription { readers: Vec::new(), last });
                }
                Err(_) => drop(self.leaving.insert(code.clone())),
            }
        }
        Ok(())
    }

    /// Unsubscribes from unused sessions, and checks the connection.
    async fn tidy(&mut self, connection: &mut MultiplexedConnection) -> Result<(), RelayStoreError> {
        let idle = |(code, subscription): (&Code, &mut Subscription)| {
            subscription.readers.retain(|reader| !reader.is_closed());
            subscription.readers.is_empty().then(|| code.clone())
        };
        let idle: Vec<Code> = self.subscriptions.iter_mut().filter_map(idle).collect();
        for code in idle {
            self.subscriptions.remove(&code);
            self.leaving.insert(code);
        }
        let leaving: Vec<Code> = self.leaving.drain().collect();
        for some in leaving.chunks(BATCH) {
            let channels = self.channels(some);
            self.in_time(connection.unsubscribe(&channels)).await?;
        }
        self.in_time(redis::cmd("PING").exec_async(connection)).await
    }
}

impl Subscription {
    fn add(&mut self, reader: mpsc::Sender<RelayEvent>) -> bool {
        self.readers.retain(|reader| !reader.is_closed());
        let free = self.readers.len() < MAX_READERS;
        if free {
            self.readers.push(reader);
        }
        free
    }

    /// Sends an event to all readers. Disconnects those that lag behind; they re-read the full state when they
    /// reconnect.
    fn notify(&mut self, event: &RelayEvent, counters: &RedisCounters) {
        self.readers.retain(|reader| match reader.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                RedisCounters::add(&counters.let_go);
                false
            }
        });
    }
}

fn message(data: Vec<Value>) -> Option<Message> {
    let [channel, text] = <[Value; 2]>::try_from(data).ok()?;
    let (Value::BulkString(channel), Value::BulkString(text)) = (channel, text) else { return None };
    Some(Message { channel, text: String::from_utf8(text).ok()? })
}
