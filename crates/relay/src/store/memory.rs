//! Sessions of a single gateway, in memory. They end with the process.

use super::{
    AnswerOutcome, CreateOutcome, EVENT_QUEUE, EventReader, MAX_ANSWERED, NumberedResult, QueueOutcome, RelayEvent,
    RelayStore, RelayStoreError, SessionCounts, StoreFuture,
};
use crate::code::Code;
use crate::result_owner::ResultOwner;
use crate::session::SessionRecord;
use crate::tool_request::{ToolAnswer, ToolRequest};
use bytes::Bytes;
use signalbox_engine::lock::LockResultExt as _;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// Maximum number of subscribers of one session: streams and pending calls.
const MAX_SUBSCRIBERS: usize = 1_024;

/// Store that keeps everything in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    sessions: Mutex<Sessions>,
}

#[derive(Debug, Default)]
struct Sessions {
    by_code: HashMap<Code, Session>,
    by_mcp: HashMap<Box<str>, Code>,
}

/// Session with its queues and subscribers.
#[derive(Debug)]
struct Session {
    record: SessionRecord,
    waiting: VecDeque<ToolRequest>,
    answered: VecDeque<Box<str>>,
    results: VecDeque<StoredResult>,
    last_result: u64,
    lead: Option<Lead>,
    subscribers: Vec<mpsc::Sender<RelayEvent>>,
}

/// Result with its owner, and whether a client of that owner has received it.
#[derive(Debug)]
struct StoredResult {
    owner: ResultOwner,
    result: NumberedResult,
    given: bool,
}

#[derive(Debug)]
struct Lead {
    holder: Box<str>,
    stream: Box<str>,
    until: u64,
}

impl Session {
    fn new(record: SessionRecord) -> Self {
        Self {
            record,
            waiting: VecDeque::new(),
            answered: VecDeque::new(),
            results: VecDeque::new(),
            last_result: 0,
            lead: None,
            subscribers: Vec::new(),
        }
    }

    /// Sends an event to all subscribers. Disconnects those that lag behind; they re-read the full state when they
    /// reconnect.
    fn notify(&mut self, event: &RelayEvent) {
        self.subscribers.retain(|subscriber| subscriber.try_send(event.clone()).is_ok());
    }

    fn drop_overdue(&mut self, now: u64) {
        self.waiting.retain(|request| now < request.deadline);
    }

    fn take(&mut self, id: &str, now: u64) -> Option<ToolRequest> {
        self.drop_overdue(now);
        let place = self.waiting.iter().position(|request| *request.id == *id)?;
        self.waiting.remove(place)
    }

    fn leads(&self, now: u64) -> Option<&Lead> {
        self.lead.as_ref().filter(|lead| now < lead.until)
    }
}

impl Sessions {
    fn live(&mut self, code: &Code, now: u64) -> Option<&mut Session> {
        self.by_code.get_mut(code).filter(|session| session.record.is_live(now))
    }

    fn remove(&mut self, code: &Code) -> bool {
        let Some(mut session) = self.by_code.remove(code) else { return false };
        self.by_mcp.retain(|_, bound| bound != code);
        session.notify(&RelayEvent::Ended);
        true
    }

    fn sweep(&mut self, now: u64) {
        let over = |(code, session): (&Code, &Session)| (!session.record.is_live(now)).then(|| code.clone());
        let over: Vec<Code> = self.by_code.iter().filter_map(over).collect();
        for code in over {
            self.remove(&code);
        }
    }
}

impl MemoryStore {
    /// Runs `act` on all sessions under the lock.
    fn with<T: Send + 'static>(&self, act: impl FnOnce(&mut Sessions) -> T) -> StoreFuture<'_, T> {
        let done = act(&mut self.sessions.lock().unpoisoned());
        Box::pin(std::future::ready(Ok(done)))
    }

    /// Runs `act` on a session. Returns `other` if there is none.
    fn in_session<T: Send + 'static>(
        &self,
        code: &Code,
        now: u64,
        other: T,
        act: impl FnOnce(&mut Session) -> T,
    ) -> StoreFuture<'_, T> {
        self.with(|sessions| match sessions.live(code, now) {
            Some(session) => act(session),
            None => other,
        })
    }
}

impl RelayStore for MemoryStore {
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> StoreFuture<'_, CreateOutcome> {
        self.with(|sessions| {
            if sessions.by_code.len() >= most {
                sessions.sweep(now);
            }
            if sessions.live(&record.code, now).is_some() || sessions.by_mcp.contains_key(&record.mcp_id) {
                return CreateOutcome::Taken;
            }
            if sessions.by_code.len() >= most {
                return CreateOutcome::Full;
            }
            sessions.remove(&record.code);
            sessions.by_mcp.insert(record.mcp_id.clone(), record.code.clone());
            sessions.by_code.insert(record.code.clone(), Session::new(record));
            CreateOutcome::Both
        })
    }

    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Option<SessionRecord>> {
        self.in_session(code, now, None, |session| Some(session.record.clone()))
    }

    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> StoreFuture<'a, Option<SessionRecord>> {
        self.with(|sessions| {
            let code = sessions.by_mcp.get(mcp_id)?.clone();
            sessions.live(&code, now).map(|session| session.record.clone())
        })
    }

    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        self.with(|sessions| {
            let known = sessions.by_mcp.get(mcp_id).cloned().is_some_and(|bound| sessions.live(&bound, now).is_some());
            let found = known && sessions.live(code, now).is_some();
            if found {
                sessions.by_mcp.insert(mcp_id.into(), code.clone());
            }
            found
        })
    }

    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            session.record.until = session.record.until.max(until);
            true
        })
    }

    fn remove<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, bool> {
        self.with(|sessions| sessions.remove(code))
    }

    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> StoreFuture<'a, ()> {
        self.with(|sessions| {
            let Some(code) = sessions.by_mcp.remove(mcp_id) else { return };
            let own = sessions
                .by_code
                .get(&code)
                .is_some_and(|session| *session.record.mcp_id == *mcp_id && session.lead.is_none());
            if own && !sessions.by_mcp.values().any(|bound| *bound == code) {
                sessions.remove(&code);
            }
        })
    }

    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            session.record.tokened = true;
            true
        })
    }

    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            session.record.tools = Some(tools.into());
            session.notify(&RelayEvent::ToolsChanged);
            true
        })
    }

    fn push<'a>(
        &'a self,
        code: &'a Code,
        request: ToolRequest,
        most: usize,
        now: u64,
    ) -> StoreFuture<'a, QueueOutcome> {
        self.in_session(code, now, QueueOutcome::NoSession, |session| {
            session.drop_overdue(now);
            if session.waiting.len() >= most {
                return QueueOutcome::Full;
            }
            let event = RelayEvent::Requested { id: request.id.clone() };
            session.waiting.push_back(request);
            session.notify(&event);
            QueueOutcome::Queued
        })
    }

    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, Vec<ToolRequest>> {
        self.in_session(code, now, Vec::new(), |session| {
            session.drop_overdue(now);
            session.waiting.iter().cloned().collect()
        })
    }

    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            let found = session.waiting.iter_mut().find(|request| *request.id == *id && now < request.deadline);
            let is_there = found.is_some();
            if let Some(request) = found.filter(|request| request.sent_to.is_none()) {
                request.sent_to = Some(journal.into());
            }
            is_there
        })
    }

    fn answer<'a>(
        &'a self,
        code: &'a Code,
        id: &'a str,
        answer: ToolAnswer,
        now: u64,
    ) -> StoreFuture<'a, AnswerOutcome> {
        self.in_session(code, now, AnswerOutcome::Unknown, |session| {
            if session.take(id, now).is_none() {
                let known = session.answered.iter().any(|known| **known == *id);
                return if known { AnswerOutcome::Duplicate } else { AnswerOutcome::Unknown };
            }
            if session.answered.len() >= MAX_ANSWERED {
                session.answered.pop_front();
            }
            session.answered.push_back(id.into());
            session.notify(&RelayEvent::Answered { id: id.into(), answer: Arc::new(answer) });
            AnswerOutcome::Taken
        })
    }

    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            let place = session.waiting.iter().position(|request| *request.id == *id);
            let taken = place.and_then(|place| session.waiting.remove(place)).is_some();
            if taken {
                session.notify(&RelayEvent::Cancelled { id: id.into(), reason: reason.into() });
            }
            taken
        })
    }

    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> StoreFuture<'a, ()> {
        self.with(|sessions| sessions.by_code.get_mut(code).into_iter().for_each(|session| session.notify(&event)))
    }

    fn push_result<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        data: Bytes,
        most: usize,
        now: u64,
    ) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| {
            if session.results.len() >= most {
                session.results.pop_front();
            }
            session.last_result += 1;
            let result = NumberedResult { number: session.last_result, data };
            session.results.push_back(StoredResult { owner: owner.clone(), result, given: false });
            session.notify(&RelayEvent::Results);
            true
        })
    }

    fn results<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        after: Option<u64>,
        now: u64,
    ) -> StoreFuture<'a, Vec<NumberedResult>> {
        let is_due = |kept: &&StoredResult| {
            kept.owner == *owner && after.map_or(!kept.given, |after| kept.result.number > after)
        };
        self.in_session(code, now, Vec::new(), |session| {
            session.results.iter().filter(is_due).map(|kept| kept.result.clone()).collect()
        })
    }

    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> StoreFuture<'a, ()> {
        self.in_session(code, now, (), |session| {
            let own = session.results.iter_mut().filter(|kept| kept.owner == *owner && kept.result.number <= number);
            own.for_each(|kept| kept.given = true);
            // Keep a few delivered results: another stream of the same owner may still be about to read them.
            let spare = number.saturating_sub(KEPT_DELIVERED);
            session.results.retain(|kept| !kept.given || kept.result.number > spare);
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
        self.in_session(code, now, false, |session| {
            let (free, same) = match session.leads(now) {
                None => (true, false),
                Some(lead) => (*lead.holder == *holder, *lead.stream == *stream),
            };
            if free || same {
                session.lead = Some(Lead { holder: holder.into(), stream: stream.into(), until });
                if !same {
                    session.notify(&RelayEvent::LeadChanged);
                }
            }
            free || same
        })
    }

    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> StoreFuture<'a, ()> {
        self.in_session(code, now, (), |session| {
            if session.lead.as_ref().is_some_and(|lead| *lead.stream == *stream) {
                session.lead = None;
                session.notify(&RelayEvent::LeadChanged);
            }
        })
    }

    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> StoreFuture<'a, bool> {
        self.in_session(code, now, false, |session| session.leads(now).is_some())
    }

    fn subscribe<'a>(&'a self, code: &'a Code) -> StoreFuture<'a, EventReader> {
        let (sender, reader) = mpsc::channel(EVENT_QUEUE);
        let subscribed = self.with(|sessions| match sessions.by_code.get_mut(code) {
            Some(session) => {
                session.subscribers.retain(|subscriber| !subscriber.is_closed());
                let free = session.subscribers.len() < MAX_SUBSCRIBERS;
                if free {
                    session.subscribers.push(sender);
                }
                free
            }
            // The session does not exist: dropping the sender ends the reader at once.
            None => true,
        });
        Box::pin(async move {
            match subscribed.await? {
                true => Ok(reader),
                false => Err(RelayStoreError::Unreachable(format!(
                    "{MAX_SUBSCRIBERS} streams and calls wait at one session"
                ))),
            }
        })
    }

    fn sweep(&self, now: u64) -> StoreFuture<'_, ()> {
        self.with(|sessions| sessions.sweep(now))
    }

    fn counts(&self) -> SessionCounts {
        let sessions = self.sessions.lock().unpoisoned();
        let connected = sessions.by_code.values().filter(|session| session.lead.is_some()).count();
        SessionCounts { sessions: sessions.by_code.len(), connected }
    }
}

/// Number of results kept after delivery, for other streams of the same owner.
const KEPT_DELIVERED: u64 = 16;
