//! Sessions in Redis: several gateways share them, and they outlive a gateway.
//!
//! ```text
//! RedisStore ──► RedisConnection ── commands, one script (relay.lua) ──► Redis
//!     └────────► Hub ◄── events by publish and subscribe ──────────────────┘
//! ```
//!
//! Each method is one run of one script, so it is atomic across gateways. There is no polling: events are published,
//! and kept in a short log, from which a gateway that lost its connection reads what it missed. After Redis has
//! restarted without its data, all sessions are over.

pub mod address;
mod connection;
mod hub;
mod notice;
#[cfg(test)]
mod tests;

use super::{
    AnswerOutcome, CreateOutcome, EventReader, NumberedResult, QueueOutcome, RelayEvent, RelayStore, RelayStoreError,
    SessionCounts, StoreFuture,
};
use crate::code::Code;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::tool_request::{ToolAnswer, ToolRequest};
use address::{RedisAddress, RedisAddressError};
use bytes::Bytes;
use connection::RedisConnection;
use hub::{Hub, MAX_SUBSCRIBE_REQUESTS, SubscribeRequest};
use notice::Notice;
use serde::de::DeserializeOwned;
use signalbox_engine::lock::LockResultExt as _;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// Maximum length of an id in a lookup. Real ids are far shorter.
const MAX_ID: usize = 256;

/// Record as the script returns it: the record, its expiry, the token mark, the tools.
type Fields = Option<Vec<Option<String>>>;

/// Store that keeps everything in Redis.
#[derive(Debug)]
pub struct RedisStore {
    line: Arc<RedisConnection>,
    requests: mpsc::Sender<SubscribeRequest>,
    /// Queue of subscriptions, until the hub starts and takes it.
    pending_requests: Mutex<Option<mpsc::Receiver<SubscribeRequest>>>,
    sessions: AtomicUsize,
    workers: AtomicUsize,
}

impl RedisStore {
    /// Opens a store at this address: `redis://…` or `rediss://…`. Redis need not be reachable yet.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn open(address: &str) -> Result<Self, RedisAddressError> {
        Ok(Self::at(RedisAddress::read(address)?))
    }

    /// Opens a store at a parsed address.
    #[must_use]
    pub fn at(address: RedisAddress) -> Self {
        let line = Arc::new(RedisConnection::new(address));
        let (requests, pending_requests) = mpsc::channel(MAX_SUBSCRIBE_REQUESTS);
        let pending_requests = Mutex::new(Some(pending_requests));
        Self { line, requests, pending_requests, sessions: AtomicUsize::new(0), workers: AtomicUsize::new(0) }
    }

    /// Starts the hub on the first subscription, so that the event connection is opened only if needed.
    fn start_hub(&self) {
        if let Some(pending_requests) = self.pending_requests.lock().unpoisoned().take() {
            tokio::spawn(Hub::run(Arc::clone(&self.line), pending_requests));
        }
    }

    /// Runs an idempotent action on a session that returns a boolean.
    async fn yes(&self, act: &str, code: &Code, arguments: &[&str], now: u64) -> Result<bool, RelayStoreError> {
        let mut call = self.line.call(act, now);
        call.arg(code.expose()).arg(arguments);
        self.line.run_again(&call).await
    }

    /// Runs an action on a session once, without retry.
    async fn word(&self, act: &str, code: &Code, arguments: &[&str], now: u64) -> Result<String, RelayStoreError> {
        let mut call = self.line.call(act, now);
        call.arg(code.expose()).arg(arguments);
        self.line.run(&call).await
    }
}

impl RelayStore for RedisStore {
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> StoreFuture<'_, CreateOutcome> {
        Box::pin(async move {
            let (written, until, most) = (written(&record)?, record.until.to_string(), most.to_string());
            let (ended, lead) = (Notice::write(&RelayEvent::Ended), Notice::write(&RelayEvent::LeadChanged));
            let arguments = [&*record.mcp_id, &written, &until, &most, &ended, &lead];
            match self.word("create", &record.code, &arguments, now).await?.as_str() {
                "both" => Ok(CreateOutcome::Both),
                "taken" => Ok(CreateOutcome::Taken),
                "full" => Ok(CreateOutcome::Full),
                _ => Err(unexpected()),
            }
        })
    }

    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Option<SessionRecord>> {
        Box::pin(async move {
            let mut call = self.line.call("by_code", now);
            call.arg(code.expose());
            read_record(self.line.run_again(&call).await?)
        })
    }

    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> StoreFuture<'a, Option<SessionRecord>> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(None);
            }
            let mut call = self.line.call("by_mcp", now);
            call.arg(mcp_id);
            read_record(self.line.run_again(&call).await?)
        })
    }

    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(false);
            }
            let mut call = self.line.call("bind", now);
            call.arg(mcp_id).arg(code.expose());
            self.line.run_again(&call).await
        })
    }

    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.yes("touch", code, &[&until.to_string()], now).await })
    }

    fn remove<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut call = self.line.call("remove", 0);
            call.arg(code.expose()).arg(Notice::write(&RelayEvent::Ended));
            self.line.run(&call).await
        })
    }

    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(());
            }
            let mut call = self.line.call("forget_mcp", 0);
            call.arg(mcp_id).arg(Notice::write(&RelayEvent::Ended));
            self.line.run(&call).await
        })
    }

    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.yes("set", code, &["tokened", "1"], now).await })
    }

    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::ToolsChanged);
            self.yes("set", code, &["tools", tools, &event], now).await
        })
    }

    fn push<'a>(
        &'a self,
        code: &'a Code,
        request: ToolRequest,
        most: usize,
        now: u64,
    ) -> StoreFuture<'a, QueueOutcome> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::Requested { id: request.id.clone() });
            let (deadline, most) = (request.deadline.to_string(), most.to_string());
            let mut call = self.line.call("push", now);
            call.arg(code.expose()).arg(&[&*request.id, &written(&request)?, &deadline, &most, &event]);
            match self.line.run_again::<String>(&call).await?.as_str() {
                "queued" => Ok(QueueOutcome::Queued),
                "full" => Ok(QueueOutcome::Full),
                "none" => Ok(QueueOutcome::NoSession),
                "taken" => Err(RelayStoreError::Unreadable("a request of another session has the same id".to_owned())),
                _ => Err(unexpected()),
            }
        })
    }

    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Vec<ToolRequest>> {
        Box::pin(async move {
            let mut call = self.line.call("unanswered", now);
            call.arg(code.expose());
            let found: Vec<Vec<Option<String>>> = self.line.run_again(&call).await?;
            found.into_iter().map(read_request).collect()
        })
    }

    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(false);
            }
            self.yes("mark_sent", code, &[id, journal], now).await
        })
    }

    fn answer<'a>(
        &'a self,
        code: &'a Code,
        id: &'a str,
        answer: ToolAnswer,
        now: u64,
    ) -> StoreFuture<'a, AnswerOutcome> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(AnswerOutcome::Unknown);
            }
            let answer = Arc::new(answer);
            let kept = written(&*answer)?;
            let event = RelayEvent::Answered { id: id.into(), answer: Arc::clone(&answer) };
            let told = Notice::write_answer(&event, &answer, kept.len());
            match self.word("answer", code, &[id, &kept, &Notice::write(&event), &told], now).await?.as_str() {
                "taken" => Ok(AnswerOutcome::Taken),
                "duplicate" => Ok(AnswerOutcome::Duplicate),
                "unknown" => Ok(AnswerOutcome::Unknown),
                _ => Err(unexpected()),
            }
        })
    }

    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(false);
            }
            let event = Notice::write(&RelayEvent::Cancelled { id: id.into(), reason: reason.into() });
            self.yes("withdraw", code, &[id, &event], now).await
        })
    }

    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut call = self.line.call("publish", 0);
            call.arg(code.expose()).arg(Notice::write(&event));
            self.line.run(&call).await
        })
    }

    fn push_result<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        data: Bytes,
        most: usize,
        now: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut call = self.line.call("push_result", now);
            let event = Notice::write(&RelayEvent::Results);
            call.arg(code.expose()).arg(owner.as_str()).arg(&data[..]).arg(most).arg(event);
            self.line.run(&call).await
        })
    }

    fn results<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        after: Option<u64>,
        now: u64,
    ) -> StoreFuture<'a, Vec<NumberedResult>> {
        Box::pin(async move {
            let mut call = self.line.call("results", now);
            call.arg(code.expose()).arg(owner.as_str()).arg(after);
            let mut found = self.line.run_again::<Vec<String>>(&call).await?.into_iter();
            let mut results = Vec::new();
            while let (Some(number), Some(data)) = (found.next(), found.next()) {
                let number = number.parse().map_err(|_| unexpected())?;
                results.push(NumberedResult { number, data: data.into() });
            }
            Ok(results)
        })
    }

    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut call = self.line.call("delivered", now);
            call.arg(code.expose()).arg(owner.as_str()).arg(number);
            self.line.run_again(&call).await
        })
    }

    fn take_lead<'a>(
        &'a self,
        code: &'a Code,
        holder: &'a str,
        stream: &'a str,
        until: u64,
        now: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::LeadChanged);
            self.yes("take_lead", code, &[holder, stream, &until.to_string(), &event], now).await
        })
    }

    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let mut call = self.line.call("yield_lead", now);
            call.arg(code.expose()).arg(stream).arg(Notice::write(&RelayEvent::LeadChanged));
            self.line.run_again(&call).await
        })
    }

    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        Box::pin(async move { self.yes("has_lead", code, &[], now).await })
    }

    fn subscribe<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, EventReader> {
        Box::pin(async move {
            self.start_hub();
            let (reply, reader) = oneshot::channel();
            let busy = || RelayStoreError::Unreachable("Redis did not take a subscription in time".to_owned());
            let asked = async {
                self.requests.send(SubscribeRequest { code: code.clone(), reply }).await.map_err(|_| busy())?;
                reader.await.map_err(|_| busy())?
            };
            match timeout(self.line.address().timeout(), asked).await {
                Ok(reader) => reader,
                Err(_) => {
                    connection::RedisCounters::add(&self.line.counters.timeouts);
                    Err(busy())
                }
            }
        })
    }

    fn sweep(&self, now: u64) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let mut call = self.line.call("sweep", now);
            call.arg(Notice::write(&RelayEvent::Ended)).arg(Notice::write(&RelayEvent::LeadChanged));
            let (sessions, workers) = self.line.run_again(&call).await?;
            self.sessions.store(sessions, Ordering::Relaxed);
            self.workers.store(workers, Ordering::Relaxed);
            Ok(())
        })
    }

    fn counts(&self) -> SessionCounts {
        SessionCounts {
            sessions: self.sessions.load(Ordering::Relaxed),
            connected: self.workers.load(Ordering::Relaxed),
        }
    }

    fn trouble(&self) -> Option<RelayStoreError> {
        self.line.trouble()
    }

    fn metrics(&self) -> String {
        let counters = &self.line.counters;
        let mut out = String::new();
        for (name, help, value) in [
            ("timeouts", "Commands and connections that Redis did not answer in time.", &counters.timeouts),
            ("failures", "Commands and connections that failed otherwise.", &counters.failures),
            ("connections", "Connections to Redis that were made.", &counters.connections),
            ("caught_up", "Events that were read again after a lost connection.", &counters.caught_up),
            ("let_go", "Listeners that were let go because they missed events.", &counters.let_go),
        ] {
            let (name, value) = (format!("signalbox_relay_redis_{name}_total"), value.load(Ordering::Relaxed));
            let _ = write!(out, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}\n");
        }
        out
    }
}

fn unexpected() -> RelayStoreError {
    RelayStoreError::Unreadable("the script answers in another form".to_owned())
}

fn written(value: &impl serde::Serialize) -> Result<String, RelayStoreError> {
    serde_json::to_string(value).map_err(|_| RelayStoreError::Unreadable("it cannot be written as JSON".to_owned()))
}

/// Parses JSON. The error omits the parser's message, which may repeat the input.
fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, RelayStoreError> {
    serde_json::from_str(text).map_err(|_| RelayStoreError::Unreadable(format!("{what} of another form")))
}

/// Reads a record. The fields that change are stored beside it and take precedence.
fn read_record(fields: Fields) -> Result<Option<SessionRecord>, RelayStoreError> {
    let Some(fields) = fields else { return Ok(None) };
    let Ok([Some(record), Some(until), tokened, tools]) = <[Option<String>; 4]>::try_from(fields) else {
        return Err(unexpected());
    };
    let mut record: SessionRecord = read(&record, "a session")?;
    record.until = until.parse().map_err(|_| unexpected())?;
    record.tokened = record.tokened || tokened.is_some();
    record.tools = tools.map(Into::into).or(record.tools);
    Ok(Some(record))
}

fn read_request(fields: Vec<Option<String>>) -> Result<ToolRequest, RelayStoreError> {
    let Ok([Some(request), sent_to]) = <[Option<String>; 2]>::try_from(fields) else { return Err(unexpected()) };
    let mut request: ToolRequest = read(&request, "a request")?;
    request.sent_to = sent_to.map(Into::into).or(request.sent_to);
    Ok(request)
}
