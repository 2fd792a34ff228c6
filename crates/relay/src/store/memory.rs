//! Sessions of one gateway, which end with it.

use super::{
    Answered, Created, EVENT_QUEUE, EventReader, MAX_ANSWERED, NumberedResult, Pushed, RelayEvent, RelayStore,
    StoreError, Stored,
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

/// Subscribers of one session: streams and calls that wait.
const MAX_SUBSCRIBERS: usize = 1_024;

/// The store.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rooms: Mutex<Rooms>,
}

#[derive(Debug, Default)]
struct Rooms {
    by_code: HashMap<Code, Room>,
    by_mcp: HashMap<Box<str>, Code>,
}

/// One session.
#[derive(Debug)]
struct Room {
    record: SessionRecord,
    waiting: VecDeque<ToolRequest>,
    answered: VecDeque<Box<str>>,
    results: VecDeque<KeptResult>,
    last_result: u64,
    lead: Option<Lead>,
    subscribers: Vec<mpsc::Sender<RelayEvent>>,
}

/// A result, and whether a client of its owner got it.
#[derive(Debug)]
struct KeptResult {
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

impl Room {
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

    /// Whoever does not keep up is let go, and looks at everything anew when it comes back.
    fn tell(&mut self, event: &RelayEvent) {
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

impl Rooms {
    fn live(&mut self, code: &Code, now: u64) -> Option<&mut Room> {
        self.by_code.get_mut(code).filter(|room| room.record.is_live(now))
    }

    fn remove(&mut self, code: &Code) -> bool {
        let Some(mut room) = self.by_code.remove(code) else { return false };
        self.by_mcp.retain(|_, bound| bound != code);
        room.tell(&RelayEvent::Ended);
        true
    }

    fn sweep(&mut self, now: u64) {
        let over = |(code, room): (&Code, &Room)| (!room.record.is_live(now)).then(|| code.clone());
        let over: Vec<Code> = self.by_code.iter().filter_map(over).collect();
        for code in over {
            self.remove(&code);
        }
    }
}

impl MemoryStore {
    /// What `act` makes of everything, at once.
    fn with<T: Send + 'static>(&self, act: impl FnOnce(&mut Rooms) -> T) -> Stored<'_, T> {
        let done = act(&mut self.rooms.lock().unpoisoned());
        Box::pin(std::future::ready(Ok(done)))
    }

    /// What `act` makes of a session; `other` where there is none.
    fn in_room<T: Send + 'static>(
        &self,
        code: &Code,
        now: u64,
        other: T,
        act: impl FnOnce(&mut Room) -> T,
    ) -> Stored<'_, T> {
        self.with(|rooms| match rooms.live(code, now) {
            Some(room) => act(room),
            None => other,
        })
    }
}

impl RelayStore for MemoryStore {
    fn create(&self, record: SessionRecord, most: usize, now: u64) -> Stored<'_, Created> {
        self.with(|rooms| {
            if rooms.by_code.len() >= most {
                rooms.sweep(now);
            }
            if rooms.live(&record.code, now).is_some() || rooms.by_mcp.contains_key(&record.mcp_id) {
                return Created::Taken;
            }
            if rooms.by_code.len() >= most {
                return Created::Full;
            }
            rooms.remove(&record.code);
            rooms.by_mcp.insert(record.mcp_id.clone(), record.code.clone());
            rooms.by_code.insert(record.code.clone(), Room::new(record));
            Created::Both
        })
    }

    fn by_code<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Option<SessionRecord>> {
        self.in_room(code, now, None, |room| Some(room.record.clone()))
    }

    fn by_mcp<'a>(&'a self, mcp_id: &'a str, now: u64) -> Stored<'a, Option<SessionRecord>> {
        self.with(|rooms| {
            let code = rooms.by_mcp.get(mcp_id)?.clone();
            rooms.live(&code, now).map(|room| room.record.clone())
        })
    }

    fn bind<'a>(&'a self, mcp_id: &'a str, code: &'a Code, now: u64) -> Stored<'a, bool> {
        self.with(|rooms| {
            let known = rooms.by_mcp.get(mcp_id).cloned().is_some_and(|bound| rooms.live(&bound, now).is_some());
            let found = known && rooms.live(code, now).is_some();
            if found {
                rooms.by_mcp.insert(mcp_id.into(), code.clone());
            }
            found
        })
    }

    fn touch<'a>(&'a self, code: &'a Code, until: u64, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            room.record.until = room.record.until.max(until);
            true
        })
    }

    fn remove<'a>(&'a self, code: &'a Code) -> Stored<'a, bool> {
        self.with(|rooms| rooms.remove(code))
    }

    fn forget_mcp<'a>(&'a self, mcp_id: &'a str) -> Stored<'a, ()> {
        self.with(|rooms| {
            let Some(code) = rooms.by_mcp.remove(mcp_id) else { return };
            let own =
                rooms.by_code.get(&code).is_some_and(|room| *room.record.mcp_id == *mcp_id && room.lead.is_none());
            if own && !rooms.by_mcp.values().any(|bound| *bound == code) {
                rooms.remove(&code);
            }
        })
    }

    fn set_tokened<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            room.record.tokened = true;
            true
        })
    }

    fn set_tools<'a>(&'a self, code: &'a Code, tools: &'a str, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            room.record.tools = Some(tools.into());
            room.tell(&RelayEvent::ToolsChanged);
            true
        })
    }

    fn push<'a>(&'a self, code: &'a Code, request: ToolRequest, most: usize, now: u64) -> Stored<'a, Pushed> {
        self.in_room(code, now, Pushed::NoSession, |room| {
            room.drop_overdue(now);
            if room.waiting.len() >= most {
                return Pushed::Full;
            }
            let event = RelayEvent::Requested { id: request.id.clone() };
            room.waiting.push_back(request);
            room.tell(&event);
            Pushed::Queued
        })
    }

    fn unanswered<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, Vec<ToolRequest>> {
        self.in_room(code, now, Vec::new(), |room| {
            room.drop_overdue(now);
            room.waiting.iter().cloned().collect()
        })
    }

    fn mark_sent<'a>(&'a self, code: &'a Code, id: &'a str, journal: &'a str, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            let found = room.waiting.iter_mut().find(|request| *request.id == *id && now < request.deadline);
            let is_there = found.is_some();
            if let Some(request) = found.filter(|request| request.sent_to.is_none()) {
                request.sent_to = Some(journal.into());
            }
            is_there
        })
    }

    fn answer<'a>(&'a self, code: &'a Code, id: &'a str, answer: ToolAnswer, now: u64) -> Stored<'a, Answered> {
        self.in_room(code, now, Answered::Unknown, |room| {
            if room.take(id, now).is_none() {
                let known = room.answered.iter().any(|known| **known == *id);
                return if known { Answered::Duplicate } else { Answered::Unknown };
            }
            if room.answered.len() >= MAX_ANSWERED {
                room.answered.pop_front();
            }
            room.answered.push_back(id.into());
            room.tell(&RelayEvent::Answered { id: id.into(), answer: Arc::new(answer) });
            Answered::Taken
        })
    }

    fn withdraw<'a>(&'a self, code: &'a Code, id: &'a str, reason: &'a str, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            let place = room.waiting.iter().position(|request| *request.id == *id);
            let taken = place.and_then(|place| room.waiting.remove(place)).is_some();
            if taken {
                room.tell(&RelayEvent::Cancelled { id: id.into(), reason: reason.into() });
            }
            taken
        })
    }

    fn publish<'a>(&'a self, code: &'a Code, event: RelayEvent) -> Stored<'a, ()> {
        self.with(|rooms| rooms.by_code.get_mut(code).into_iter().for_each(|room| room.tell(&event)))
    }

    fn push_result<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        data: Bytes,
        most: usize,
        now: u64,
    ) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| {
            if room.results.len() >= most {
                room.results.pop_front();
            }
            room.last_result += 1;
            let result = NumberedResult { number: room.last_result, data };
            room.results.push_back(KeptResult { owner: owner.clone(), result, given: false });
            room.tell(&RelayEvent::Results);
            true
        })
    }

    fn results<'a>(
        &'a self,
        code: &'a Code,
        owner: &'a ResultOwner,
        after: Option<u64>,
        now: u64,
    ) -> Stored<'a, Vec<NumberedResult>> {
        let is_due =
            |kept: &&KeptResult| kept.owner == *owner && after.map_or(!kept.given, |after| kept.result.number > after);
        self.in_room(code, now, Vec::new(), |room| {
            room.results.iter().filter(is_due).map(|kept| kept.result.clone()).collect()
        })
    }

    fn delivered<'a>(&'a self, code: &'a Code, owner: &'a ResultOwner, number: u64, now: u64) -> Stored<'a, ()> {
        self.in_room(code, now, (), |room| {
            let own = room.results.iter_mut().filter(|kept| kept.owner == *owner && kept.result.number <= number);
            own.for_each(|kept| kept.given = true);
            // Other streams that were there when a result came have read it by the time the next but some comes.
            let spare = number.saturating_sub(KEPT_DELIVERED);
            room.results.retain(|kept| !kept.given || kept.result.number > spare);
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
        self.in_room(code, now, false, |room| {
            let (free, same) = match room.leads(now) {
                None => (true, false),
                Some(lead) => (*lead.holder == *holder, *lead.stream == *stream),
            };
            if free || same {
                room.lead = Some(Lead { holder: holder.into(), stream: stream.into(), until });
                if !same {
                    room.tell(&RelayEvent::LeadChanged);
                }
            }
            free || same
        })
    }

    fn yield_lead<'a>(&'a self, code: &'a Code, stream: &'a str, now: u64) -> Stored<'a, ()> {
        self.in_room(code, now, (), |room| {
            if room.lead.as_ref().is_some_and(|lead| *lead.stream == *stream) {
                room.lead = None;
                room.tell(&RelayEvent::LeadChanged);
            }
        })
    }

    fn has_lead<'a>(&'a self, code: &'a Code, now: u64) -> Stored<'a, bool> {
        self.in_room(code, now, false, |room| room.leads(now).is_some())
    }

    fn subscribe<'a>(&'a self, code: &'a Code) -> Stored<'a, EventReader> {
        let (sender, reader) = mpsc::channel(EVENT_QUEUE);
        let subscribed = self.with(|rooms| match rooms.by_code.get_mut(code) {
            Some(room) => {
                room.subscribers.retain(|subscriber| !subscriber.is_closed());
                let free = room.subscribers.len() < MAX_SUBSCRIBERS;
                if free {
                    room.subscribers.push(sender);
                }
                free
            }
            // Nobody will tell of it: the reader ends at once.
            None => true,
        });
        Box::pin(async move {
            match subscribed.await? {
                true => Ok(reader),
                false => {
                    Err(StoreError::Unreachable(format!("{MAX_SUBSCRIBERS} streams and calls wait at one session")))
                }
            }
        })
    }

    fn sweep(&self, now: u64) -> Stored<'_, ()> {
        self.with(|rooms| rooms.sweep(now))
    }

    fn counts(&self) -> (usize, usize) {
        let rooms = self.rooms.lock().unpoisoned();
        (rooms.by_code.len(), rooms.by_code.values().filter(|room| room.lead.is_some()).count())
    }
}

/// Results that are kept after some client got them, for other streams of the same moment.
const KEPT_DELIVERED: u64 = 16;
