//! The only way to the client. [`FrontMachine::send`] turns every message into a [`ToClient`] and records its fact;
//! streams accept nothing else. It takes only a [`ClientMessage`]: judged by the interceptors, or the gateway's own.

use super::judging::ClientMessage;
use super::{Context, FrontMachine};
use crate::command::Command;
use crate::dialect::DialectRequest;
use crate::dialect::error::{DialectError, Stamp};
use crate::fact::{Fact, MessageFact, Point};
use crate::fault::{Fault, FaultKind};
use crate::keys::{ExchangeId, StreamId};
use bytes::Bytes;
use signalbox_wire::{Envelope, Era, RawId};

/// Message on its way to the client.
#[derive(Clone, Debug)]
pub struct ToClient {
    stream: StreamId,
    bytes: Bytes,
    last: bool,
    droppable: bool,
    status: u16,
    number: u64,
    /// True if the client speaks the governed dialect.
    governed: bool,
}

impl ToClient {
    /// Returns the stream that carries the message.
    #[must_use]
    pub fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the bytes of the message.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the bytes of the message, by value.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns true for the answer, after which the stream carries nothing more.
    #[must_use]
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// Returns true if the message may be dropped, and counted, when the stream is full.
    #[must_use]
    pub fn is_droppable(&self) -> bool {
        self.droppable
    }

    /// Returns the HTTP status for an answer sent as one JSON body.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Builds the refusal of a message that never reached a session.
    #[must_use]
    pub fn refusal(id: Option<&RawId>, era: Era, fault: &Fault, status: u16) -> Self {
        let bytes = fault.reply(id, era);
        Self { stream: StreamId(0), bytes, last: true, droppable: false, status, number: 0, governed: false }
    }

    /// Replaces an answer that could not be recorded by a refusal, at this time in milliseconds since 1970.
    #[must_use]
    pub fn not_recorded(self, unix_ms: u64) -> Self {
        let id = Envelope::parse(self.bytes).ok().and_then(|message| message.id());
        let text = "the answer could not be recorded and is withheld; the call may have been carried out";
        let fault = Fault::new(FaultKind::NotRecorded, text);
        let bytes = match self.governed {
            false => fault.reply(id.as_ref(), Era::Legacy),
            true => {
                let asked = DialectRequest::Invoke { tool_id: "".into(), version: None };
                DialectError::of(&fault, &asked).reply(id.as_ref(), Stamp { audit_id: None, unix_ms })
            }
        };
        Self { bytes, ..self }
    }

    /// Returns the number of the message in its fact; 0 if facts are not recorded.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Stream of a message, and how to send it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Delivery {
    pub stream: StreamId,
    pub last: bool,
    pub droppable: bool,
    pub status: u16,
}

impl Delivery {
    /// Describes a message in the middle of a stream.
    pub fn midway(stream: StreamId) -> Self {
        Self { stream, last: false, droppable: false, status: 200 }
    }

    /// Describes a message in the middle of a stream that is dropped for a slow reader.
    pub fn droppable(stream: StreamId) -> Self {
        Self { droppable: true, ..Self::midway(stream) }
    }

    /// Describes the answer, which ends the stream.
    pub fn last(stream: StreamId, status: u16) -> Self {
        Self { last: true, status, ..Self::midway(stream) }
    }
}

impl FrontMachine {
    /// Sends a message to the client and records it.
    pub(super) fn send(
        &self,
        exchange: Option<ExchangeId>,
        way: Delivery,
        passed: ClientMessage,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let number = self.record_sent(exchange, &passed, None, ctx, out);
        let Delivery { stream, last, droppable, status } = way;
        let (bytes, governed) = (passed.into_bytes(), self.governed);
        out.push(Command::Send(ToClient { stream, bytes, last, droppable, status, number, governed }));
    }

    /// Records and counts a message that cannot reach the client.
    pub(super) fn lose(
        &self,
        exchange: Option<ExchangeId>,
        passed: &ClientMessage,
        reason: &'static str,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        self.record_sent(exchange, passed, Some(reason), ctx, out);
        out.push(Command::Dropped(reason));
    }

    /// Refuses a request that has no exchange.
    pub(super) fn send_fault(
        &self,
        stream: StreamId,
        id: Option<&RawId>,
        era: Era,
        fault: &Fault,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let (reply, status) = self.refusal(None, id, era, fault, ctx);
        self.send(None, Delivery::last(stream, status), ClientMessage::own(reply), ctx, out);
    }

    fn record_sent(
        &self,
        exchange: Option<ExchangeId>,
        passed: &ClientMessage,
        lost: Option<&'static str>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> u64 {
        if !ctx.message_facts {
            return 0;
        }
        let number = ctx.numbers.message();
        let caller = self.caller_of(exchange).clone();
        out.push(Command::Fact(Fact::Message(MessageFact {
            exchange,
            backend: exchange.and_then(|id| self.exchanges.get(&id)?.backend.clone()),
            number,
            own: passed.is_own(),
            lost,
            ..MessageFact::new((ctx.clock)(), self.session, caller, Point::ClientOut, passed.bytes().clone())
        })));
        number
    }
}
