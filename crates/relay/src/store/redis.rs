//! Sessions in Redis: several gateways serve them, and they survive a gateway.
//!
//! ```text
//! RedisStore ──► Line ── commands, one script (relay.lua) ──► Redis
//!     └────────► Hub ◄── events by publish and subscribe ───────┘
//! ```
//!
//! Each method is one run of one script, so it is done as a whole or not at all, whichever gateway asks. Nobody polls: what
//! happens is published, and kept in a short log, from which a gateway that lost its connection reads what it missed. A Redis
//! that was restarted without its data knows no sessions: they are over.

pub mod address;
mod hub;
mod line;
mod notice;
#[cfg(test)]
mod tests;

use super::{Answered, Created, EventReader, NumberedResult, Pushed, RelayEvent, RelayStore, StoreError, Stored};
use crate::code::Code;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::tool_request::{ToolAnswer, ToolRequest};
use address::{BadAddress, RedisAddress};
use bytes::Bytes;
use hub::{Hub, MAX_WISHES, Wish};
use line::Line;
use notice::Notice;
use serde::de::DeserializeOwned;
use signalbox_engine::lock::LockResultExt as _;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// The longest id that is looked for. Those that are given out are far shorter.
const MAX_ID: usize = 256;

/// A record as the script has it: itself, when it ends, whether a token was shown, the tools.
type Fields = Option<Vec<Option<String>>>;

/// The store.
#[derive(Debug)]
pub struct RedisStore {
    line: Arc<Line>,
    wishes: mpsc::Sender<Wish>,
    /// What the hub reads, until the first wish has it started.
    wished: Mutex<Option<mpsc::Receiver<Wish>>>,
    sessions: AtomicUsize,
    workers: AtomicUsize,
}

impl RedisStore {
    /// A store at this address: `redis://…` or `rediss://…`. Redis need not be there yet.
    ///
    /// # Errors
    /// If the address is none.
    pub fn open(address: &str) -> Result<Self, BadAddress> {
        Ok(Self::at(RedisAddress::read(address)?))
    }

    /// A store at this address.
    #[must_use]
    pub fn at(address: RedisAddress) -> Self {
        let line = Arc::new(Line::new(address));
        let (wishes, wished) = mpsc::channel(MAX_WISHES);
        let wished = Mutex::new(Some(wished));
        Self { line, wishes, wished, sessions: AtomicUsize::new(0), workers: AtomicUsize::new(0) }
    }

    /// The connection for events is opened when somebody first wants to hear of any.
    fn start_hub(&self) {
        if let Some(wished) = self.wished.lock().unpoisoned().take() {
            tokio::spawn(Hub::run(Arc::clone(&self.line), wished));
        }
    }

    /// An act on a session that says yes or no, and may be done twice.
    async fn yes(&self, act: &str, code: &Code, arguments: &[&str], now: u64) -> Result<bool, StoreError> {
        let mut call = self.line.call(act, now);
        call.arg(code.expose()).arg(arguments);
        self.line.run_again(&call).await
    }

    /// An act on a session, done once.
    async fn word(&self, act: &str, code: &Code, arguments: &[&str], now: u64) -> Result<String, StoreError> {
        let mut call = self.line.call(act, now);
        call.arg(code.expose()).arg(arguments);
        self.line.run(&call).await
    }
}

impl RelayStore for RedisStore {
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> Stored<'_, Created> {
        Box::pin(async move {
            let (written, until, most) = (written(&record)?, record.until.to_string(), most.to_string());
            let (ended, lead) = (Notice::write(&RelayEvent::Ended), Notice::write(&RelayEvent::LeadChanged));
            let arguments = [&*record.mcp_id, &written, &until, &most, &ended, &lead];
            match self.word("create", &record.code, &arguments, now).await?.as_str() {
                "both" => Ok(Created::Both),
                "taken" => Ok(Created::Taken),
                "full" => Ok(Created::Full),
                _ => Err(unexpected()),
            }
        })
    }

    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Option<SessionRecord>> {
        Box::pin(async move {
            let mut call = self.line.call("by_code", now);
            call.arg(code.expose());
            read_record(self.line.run_again(&call).await?)
        })
    }

    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> Stored<'a, Option<SessionRecord>> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(None);
            }
            let mut call = self.line.call("by_mcp", now);
            call.arg(mcp_id);
            read_record(self.line.run_again(&call).await?)
        })
    }

    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> Stored<'a, bool> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(false);
            }
            let mut call = self.line.call("bind", now);
            call.arg(mcp_id).arg(code.expose());
            self.line.run_again(&call).await
        })
    }

    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> Stored<'a, bool> {
        Box::pin(async move { self.yes("touch", code, &[&until.to_string()], now).await })
    }

    fn remove<'a>(&'a self, code: &'a Code) -> Stored<'a, bool> {
        Box::pin(async move {
            let mut call = self.line.call("remove", 0);
            call.arg(code.expose()).arg(Notice::write(&RelayEvent::Ended));
            self.line.run(&call).await
        })
    }

    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> Stored<'a, ()> {
        Box::pin(async move {
            if mcp_id.len() > MAX_ID {
                return Ok(());
            }
            let mut call = self.line.call("forget_mcp", 0);
            call.arg(mcp_id).arg(Notice::write(&RelayEvent::Ended));
            self.line.run(&call).await
        })
    }

    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool> {
        Box::pin(async move { self.yes("set", code, &["tokened", "1"], now).await })
    }

    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> Stored<'a, bool> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::ToolsChanged);
            self.yes("set", code, &["tools", tools, &event], now).await
        })
    }

    fn push<'a>(&'a self, code: &'a Code, request: ToolRequest, most: usize, now: u64) -> Stored<'a, Pushed> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::Requested { id: request.id.clone() });
            let (deadline, most) = (request.deadline.to_string(), most.to_string());
            let mut call = self.line.call("push", now);
            call.arg(code.expose()).arg(&[&*request.id, &written(&request)?, &deadline, &most, &event]);
            match self.line.run_again::<String>(&call).await?.as_str() {
                "queued" => Ok(Pushed::Queued),
                "full" => Ok(Pushed::Full),
                "none" => Ok(Pushed::NoSession),
                "taken" => Err(StoreError::Unreadable("a request of another session has the same id".to_owned())),
                _ => Err(unexpected()),
            }
        })
    }

    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Vec<ToolRequest>> {
        Box::pin(async move {
            let mut call = self.line.call("unanswered", now);
            call.arg(code.expose());
            let found: Vec<Vec<Option<String>>> = self.line.run_again(&call).await?;
            found.into_iter().map(read_request).collect()
        })
    }

    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> Stored<'a, bool> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(false);
            }
            self.yes("mark_sent", code, &[id, journal], now).await
        })
    }

    fn answer<'a>(&'a self, code: &'a Code, id: &'a str, answer: ToolAnswer, now: u64) -> Stored<'a, Answered> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(Answered::Unknown);
            }
            let answer = Arc::new(answer);
            let kept = written(&*answer)?;
            let event = RelayEvent::Answered { id: id.into(), answer: Arc::clone(&answer) };
            let told = Notice::write_answer(&event, &answer, kept.len());
            match self.word("answer", code, &[id, &kept, &Notice::write(&event), &told], now).await?.as_str() {
                "taken" => Ok(Answered::Taken),
                "duplicate" => Ok(Answered::Duplicate),
                "unknown" => Ok(Answered::Unknown),
                _ => Err(unexpected()),
            }
        })
    }

    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> Stored<'a, bool> {
        Box::pin(async move {
            if id.len() > MAX_ID {
                return Ok(false);
            }
            let event = Notice::write(&RelayEvent::Cancelled { id: id.into(), reason: reason.into() });
            self.yes("withdraw", code, &[id, &event], now).await
        })
    }

    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> Stored<'a, ()> {
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
    ) -> Stored<'a, bool> {
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
    ) -> Stored<'a, Vec<NumberedResult>> {
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

    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> Stored<'a, ()> {
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
    ) -> Stored<'a, bool> {
        Box::pin(async move {
            let event = Notice::write(&RelayEvent::LeadChanged);
            self.yes("take_lead", code, &[holder, stream, &until.to_string(), &event], now).await
        })
    }

    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> Stored<'a, ()> {
        Box::pin(async move {
            let mut call = self.line.call("yield_lead", now);
            call.arg(code.expose()).arg(stream).arg(Notice::write(&RelayEvent::LeadChanged));
            self.line.run_again(&call).await
        })
    }

    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool> {
        Box::pin(async move { self.yes("has_lead", code, &[], now).await })
    }

    fn subscribe<'a>(&'a self, code: &'a Code) -> Stored<'a, EventReader> {
        Box::pin(async move {
            self.start_hub();
            let (reply, reader) = oneshot::channel();
            let busy = || StoreError::Unreachable("Redis did not take a subscription in time".to_owned());
            let asked = async {
                self.wishes.send(Wish { code: code.clone(), reply }).await.map_err(|_| busy())?;
                reader.await.map_err(|_| busy())?
            };
            match timeout(self.line.address().timeout(), asked).await {
                Ok(reader) => reader,
                Err(_) => {
                    line::Counters::add(&self.line.counters.timeouts);
                    Err(busy())
                }
            }
        })
    }

    fn sweep(&self, now: u64) -> Stored<'_, ()> {
        Box::pin(async move {
            let mut call = self.line.call("sweep", now);
            call.arg(Notice::write(&RelayEvent::Ended)).arg(Notice::write(&RelayEvent::LeadChanged));
            let (sessions, workers) = self.line.run_again(&call).await?;
            self.sessions.store(sessions, Ordering::Relaxed);
            self.workers.store(workers, Ordering::Relaxed);
            Ok(())
        })
    }

    fn counts(&self) -> (usize, usize) {
        (self.sessions.load(Ordering::Relaxed), self.workers.load(Ordering::Relaxed))
    }

    fn trouble(&self) -> Option<StoreError> {
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

fn unexpected() -> StoreError {
    StoreError::Unreadable("the script answers in another form".to_owned())
}

fn written(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Unreadable("it cannot be written as JSON".to_owned()))
}

/// What is wrong is not told in the words of the parser, which may repeat what it read.
fn read<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| StoreError::Unreadable(format!("{what} of another form")))
}

/// What changes stands beside the record.
fn read_record(fields: Fields) -> Result<Option<SessionRecord>, StoreError> {
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

fn read_request(fields: Vec<Option<String>>) -> Result<ToolRequest, StoreError> {
    let Ok([Some(request), sent_to]) = <[Option<String>; 2]>::try_from(fields) else { return Err(unexpected()) };
    let mut request: ToolRequest = read(&request, "a request")?;
    request.sent_to = sent_to.map(Into::into).or(request.sent_to);
    Ok(request)
}
