//! The connection that events come by. One task has it, and hands events to whoever listens in this process.
//!
//! When the connection is lost nobody who listens is told: the task opens another one, with back-off, reads from the log of each
//! session what was missed, and goes on. Readers end only where events are lost for good.

use super::line::{Counters, FIRST_WAIT, LONGEST_WAIT, Line, told};
use super::notice::{Heard, Notice};
use crate::code::Code;
use crate::store::{EVENT_QUEUE, EventReader, RelayEvent, StoreError};
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

/// Who want to listen and were not served yet.
pub const MAX_WISHES: usize = 1_024;
/// Messages that were read from the connection and not handed on yet. If there are more, the log is read instead.
const MAX_PUSHES: usize = 1_024;
/// Sessions that are listened to in one process.
const MAX_ROOMS: usize = 100_000;
/// Readers of one session in one process.
const MAX_READERS: usize = 1_024;
/// Sessions that are subscribed to by one command.
const BATCH: usize = 256;
/// How often it is made sure that the connection lives, and sessions that nobody listens to are given up.
const PING: Duration = Duration::from_secs(15);

/// Somebody wants to hear of a session.
pub struct Wish {
    /// Which.
    pub code: Code,
    /// Where the reader goes.
    pub reply: oneshot::Sender<Result<EventReader, StoreError>>,
}

/// Who listens to a session here, and the number of the last event that they were told.
struct Room {
    readers: Vec<mpsc::Sender<RelayEvent>>,
    last: u64,
}

struct Message {
    channel: Vec<u8>,
    text: String,
}

/// A connection, what comes by it, and the sign that it is lost or more came than can be held.
struct Ear {
    connection: MultiplexedConnection,
    pushes: mpsc::Receiver<Message>,
    lost: Arc<Notify>,
}

/// The task.
pub struct Hub {
    line: Arc<Line>,
    rooms: HashMap<Code, Room>,
    /// Subscribed to, and not wanted any more.
    leaving: HashSet<Code>,
}

impl Hub {
    /// Serves wishes until nobody can have any.
    pub async fn run(line: Arc<Line>, mut wishes: mpsc::Receiver<Wish>) {
        let mut hub = Self { line, rooms: HashMap::new(), leaving: HashSet::new() };
        let mut wait = FIRST_WAIT;
        loop {
            let began = Instant::now();
            let why = match hub.open().await {
                Ok(ear) => match hub.serve(ear, &mut wishes).await {
                    Ok(()) => return,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if began.elapsed() > LONGEST_WAIT {
                wait = FIRST_WAIT;
            }
            tracing::debug!(error = %why, "no events come from the relay's store");
            hub.line.set_deaf(Some(why.clone()));
            let until = Instant::now() + wait;
            wait = (wait * 2).min(LONGEST_WAIT);
            loop {
                tokio::select! {
                    () = sleep_until(until) => break,
                    wish = wishes.recv() => match wish {
                        Some(wish) => drop(wish.reply.send(Err(why.clone()))),
                        None => return,
                    },
                }
            }
        }
    }

    async fn open(&self) -> Result<Ear, StoreError> {
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
        Ok(Ear { connection, pushes, lost })
    }

    /// Until the connection is lost, or nobody can have a wish any more.
    async fn serve(&mut self, mut ear: Ear, wishes: &mut mpsc::Receiver<Wish>) -> Result<(), StoreError> {
        self.resume(&mut ear.connection).await?;
        self.line.set_deaf(None);
        let mut tick = interval(PING);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tick.tick().await;
        let mut batch = Vec::new();
        loop {
            tokio::select! {
                // What came already is told before more is asked for.
                biased;
                () = ear.lost.notified() => return Err(StoreError::Unreachable("the connection was lost".to_owned())),
                Some(message) = ear.pushes.recv() => self.heard(message).await?,
                count = wishes.recv_many(&mut batch, BATCH) => match count {
                    0 => return Ok(()),
                    _ => self.admit(&mut ear.connection, &mut batch).await?,
                },
                _ = tick.tick() => self.tidy(&mut ear.connection).await?,
            }
        }
    }

    /// Subscribes to everything that is listened to, and tells what was missed.
    async fn resume(&mut self, connection: &mut MultiplexedConnection) -> Result<(), StoreError> {
        self.leaving.clear();
        self.rooms.retain(|_, room| room.readers.iter().any(|reader| !reader.is_closed()));
        let codes: Vec<Code> = self.rooms.keys().cloned().collect();
        for some in codes.chunks(BATCH) {
            self.subscribe(connection, some).await?;
        }
        for code in codes {
            self.catch_up(&code).await?;
        }
        Ok(())
    }

    async fn subscribe(&self, connection: &mut MultiplexedConnection, codes: &[Code]) -> Result<(), StoreError> {
        let channels = self.channels(codes);
        self.in_time(connection.subscribe(&channels)).await
    }

    async fn in_time(&self, doing: impl Future<Output = redis::RedisResult<()>>) -> Result<(), StoreError> {
        match timeout(self.line.address().timeout(), doing).await {
            Ok(done) => done.map_err(|error| told(&error)),
            Err(_) => {
                Counters::add(&self.line.counters.timeouts);
                Err(StoreError::Unreachable("Redis does not answer on the connection for events".to_owned()))
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

    /// Tells the readers of a session what happened after the last event that they know of.
    async fn catch_up(&mut self, code: &Code) -> Result<(), StoreError> {
        let Some(room) = self.rooms.get(code) else { return Ok(()) };
        let mut call = self.line.call("missed", unix_millis());
        call.arg(code.expose()).arg(room.last);
        let mut found: std::vec::IntoIter<Value> = self.line.run_again::<Vec<Value>>(&call).await?.into_iter();
        match found.next() {
            Some(Value::Int(-1)) => self.end(code, true),
            Some(Value::Int(last)) if last >= 0 => {
                for event in found {
                    let text = String::from_redis_value(event).unwrap_or_default();
                    Counters::add(&self.line.counters.caught_up);
                    self.tell(code, &text).await?;
                }
                if let Some(room) = self.rooms.get_mut(code) {
                    room.last = last.unsigned_abs();
                }
            }
            // Events are lost for good: whoever listens looks at everything anew.
            _ => self.end(code, false),
        }
        Ok(())
    }

    /// Nobody is told anything of this session any more.
    fn end(&mut self, code: &Code, over: bool) {
        let Some(mut room) = self.rooms.remove(code) else { return };
        if over {
            room.tell(&RelayEvent::Ended, &self.line.counters);
        } else {
            room.readers.iter().for_each(|_| Counters::add(&self.line.counters.let_go));
        }
        self.leaving.insert(code.clone());
    }

    async fn heard(&mut self, message: Message) -> Result<(), StoreError> {
        let Some(code) = self.code_of(&message.channel) else { return Ok(()) };
        let Some((number, text)) = Notice::numbered(&message.text) else { return Ok(()) };
        let Some(room) = self.rooms.get_mut(&code) else { return Ok(()) };
        if number == 0 {
            return self.tell(&code, text).await;
        }
        match number.checked_sub(room.last) {
            // It was read from the log already.
            None | Some(0) => Ok(()),
            Some(1) => {
                self.tell(&code, text).await?;
                if let Some(room) = self.rooms.get_mut(&code) {
                    room.last = number;
                }
                Ok(())
            }
            Some(_) => self.catch_up(&code).await,
        }
    }

    /// Hands an event on. If its answer cannot be read now, that is tried again by another connection.
    async fn tell(&mut self, code: &Code, text: &str) -> Result<(), StoreError> {
        let event = match Notice::read(text) {
            Some(Heard::Event(RelayEvent::Ended)) => {
                self.end(code, true);
                return Ok(());
            }
            Some(Heard::Event(event)) => event,
            Some(Heard::Answered(id)) => {
                let answer = Arc::new(self.answer_of(&id).await?);
                RelayEvent::Answered { id, answer }
            }
            None => return Ok(()),
        };
        if let Some(room) = self.rooms.get_mut(code) {
            room.tell(&event, &self.line.counters);
        }
        Ok(())
    }

    async fn answer_of(&self, id: &str) -> Result<ToolAnswer, StoreError> {
        let mut call = self.line.call("answer_of", unix_millis());
        call.arg(id);
        let found: Option<String> = self.line.run_again(&call).await?;
        let read = found.and_then(|text| serde_json::from_str(&text).ok());
        Ok(read.unwrap_or_else(|| ToolAnswer::Error(WorkerError::outcome_unknown())))
    }

    /// Gives everybody a reader. That of a session which is not there has ended.
    async fn admit(&mut self, connection: &mut MultiplexedConnection, batch: &mut Vec<Wish>) -> Result<(), StoreError> {
        let fresh: HashSet<&Code> =
            batch.iter().map(|wish| &wish.code).filter(|code| !self.rooms.contains_key(*code)).collect();
        let fresh: Vec<Code> = fresh.into_iter().cloned().collect();
        if let Err(error) = self.enter(connection, &fresh).await {
            for wish in batch.drain(..) {
                let _ = wish.reply.send(Err(error.clone()));
            }
            return Err(error);
        }
        for Wish { code, reply } in batch.drain(..) {
            let (sender, reader) = mpsc::channel(EVENT_QUEUE);
            let added = self.rooms.get_mut(&code).is_none_or(|room| room.add(sender));
            let full = || StoreError::Unreachable(format!("{MAX_READERS} streams and calls wait at one session"));
            let _ = reply.send(if added { Ok(reader) } else { Err(full()) });
        }
        Ok(())
    }

    /// Listens to these sessions, as far as they are there, from now on.
    async fn enter(&mut self, connection: &mut MultiplexedConnection, codes: &[Code]) -> Result<(), StoreError> {
        if codes.is_empty() {
            return Ok(());
        }
        if self.rooms.len() + codes.len() > MAX_ROOMS {
            return Err(StoreError::Unreachable(format!("{MAX_ROOMS} sessions are listened to already")));
        }
        // First, so that nothing is missed between the two.
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
                    self.rooms.insert(code.clone(), Room { readers: Vec::new(), last });
                }
                Err(_) => drop(self.leaving.insert(code.clone())),
            }
        }
        Ok(())
    }

    /// Gives up sessions that nobody listens to, and makes sure that the connection lives.
    async fn tidy(&mut self, connection: &mut MultiplexedConnection) -> Result<(), StoreError> {
        let idle = |(code, room): (&Code, &mut Room)| {
            room.readers.retain(|reader| !reader.is_closed());
            room.readers.is_empty().then(|| code.clone())
        };
        let idle: Vec<Code> = self.rooms.iter_mut().filter_map(idle).collect();
        for code in idle {
            self.rooms.remove(&code);
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

impl Room {
    fn add(&mut self, reader: mpsc::Sender<RelayEvent>) -> bool {
        self.readers.retain(|reader| !reader.is_closed());
        let free = self.readers.len() < MAX_READERS;
        if free {
            self.readers.push(reader);
        }
        free
    }

    /// Whoever does not keep up is let go, and looks at everything anew when it comes back.
    fn tell(&mut self, event: &RelayEvent, counters: &Counters) {
        self.readers.retain(|reader| match reader.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(_)) => {
                Counters::add(&counters.let_go);
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
