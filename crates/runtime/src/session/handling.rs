//! Event handling of a session. The machine runs under the session lock; messages are pushed and facts noted under the
//! same lock, which keeps both in order. All other commands are carried out after unlocking.

use super::intents;
use super::recording::UnrecordedAnswers;
use super::{Session, SessionState};
use crate::outbox::{OutgoingMessage, PushOutcome};
use signalbox_engine::catalog::{CallerView, Selector};
use signalbox_engine::fact::MessageFact;
use signalbox_engine::front::{Mode, ToClient};
use signalbox_engine::{BackendUser, Carrier, Command, Context, Event, Fact, StreamId};
use signalbox_wire::Envelope;
use smallvec::SmallVec;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Facts of one event, in order. Most events have few.
pub(super) type Facts = SmallVec<[Fact; 4]>;

thread_local! {
    /// Command buffer for the next event on this thread. Per thread and not per session, since thousands of sessions
    /// may be idle.
    static COMMANDS: Cell<Vec<Command>> = const { Cell::new(Vec::new()) };
}
/// Maximum capacity of a command buffer that is kept for reuse.
const MAX_COMMANDS_KEPT: usize = 64;

impl Session {
    /// Feeds one event that happened at `now` to the machine and carries out its commands.
    pub(super) fn handle_at(self: &Arc<Self>, event: Event, carrier: Carrier<'_>, now: Instant) {
        match &event {
            // A message that the front has already verified is not verified again: its nonce is new only once.
            Event::Received { message, .. } if carrier.caller.is_none() && carrier.refusal.is_none() => {
                match self.gateway.confirm(carrier.connection_caller.unwrap_or(&self.caller), message) {
                    Ok(None) => {
                        self.handle_proved(event, Carrier { caller: carrier.connection_caller, ..carrier }, now)
                    }
                    Ok(Some(caller)) => self.handle_proved(event, Carrier { caller: Some(&caller), ..carrier }, now),
                    Err(fault) => self.handle_proved(event, Carrier { refusal: Some(&fault), ..carrier }, now),
                }
            }
            _ => self.handle_proved(event, carrier, now),
        }
    }

    fn handle_proved(self: &Arc<Self>, event: Event, carrier: Carrier<'_>, now: Instant) {
        let tracer = self.gateway.tracer.as_deref();
        let session = Some(&*self.external).filter(|_| self.mode == Mode::Session);
        let begin = |message: &Envelope| tracer?.begin(message, Carrier { session, ..carrier });
        let catalog = self.gateway.catalog.snapshot();
        let ready = |selector: &Selector| self.gateway.lists_ready(&self.caller, selector, &catalog);
        let task_home = |task: &str| self.gateway.tasks.home(&self.principal, task);
        let changes = |backend: &str, uri: &str| self.gateway.reads.generation(backend, uri);
        let settings = self.gateway.settings();
        let dialect = self.dialect(self.gateway.audit_run());
        let successor = self.successor.load();
        let caller = match (&event, carrier.caller) {
            (_, Some(caller)) => caller,
            // A message without a caller of its own comes from a caller with the rights of the opener.
            (Event::Received { .. }, None) => &self.caller,
            (_, None) => successor.as_deref().unwrap_or(&self.caller),
        };
        if let (Event::Received { .. }, Some(caller)) = (&event, carrier.caller) {
            self.follow_credential(caller);
        }
        let user = match (&event, carrier.caller) {
            (Event::Received { .. }, _) => self.used_by(caller),
            (_, Some(caller)) => Arc::new(BackendUser::of(self.principal.clone(), caller)),
            (_, None) => self.user.load_full(),
        };
        let visibility = self.gateway.visibility();
        let sight = visibility.map(|visibility| CallerView::of(visibility, caller));
        let ctx = Context {
            now,
            unix_ms: &crate::clock::unix_millis,
            catalog: &catalog,
            caller: carrier.caller,
            user: &user,
            refusal: carrier.refusal,
            operations: &self.gateway.operations,
            task_calls: &self.gateway.task_calls,
            numbers: &self.gateway.numbers,
            chain: &self.gateway.chain,
            session,
            session_started: self.started,
            face: self.gateway.face(&self.caller),
            server_info: &settings.server_info,
            instance: &self.gateway.instance,
            instructions: &settings.instructions,
            max_in_flight: settings.max_in_flight,
            round_timeout: settings.park_timeout,
            changes: &changes,
            dialect: dialect.as_ref(),
            error_detail: settings.error_detail,
            message_facts: self.gateway.message_facts(),
            trace: tracer.map(|_| &begin as _),
            task_home: &task_home,
            clock: &crate::clock::now,
            sight: sight.as_ref(),
            lists_ready: &ready,
            sign_ins: &|| self.gateway.sign_ins(&user),
        };
        self.run(event, &ctx);
    }

    fn run(self: &Arc<Self>, event: Event, ctx: &Context<'_>) {
        let (mut after, mut facts) = (SmallVec::<[Command; 2]>::new(), Facts::new());
        let (mut late, mut effects) = (Vec::new(), Vec::new());
        let mut inner = self.lock();
        let mut commands = COMMANDS.take();
        let before = inner.machine.in_flight();
        inner.machine.handle(event, ctx, &mut commands);
        inner.forget_timers();
        let opened = inner.machine.in_flight() as i64 - before as i64;
        if let (None, Some(client)) = (self.client.get(), inner.machine.client())
            && self.client.set(Arc::clone(client)).is_ok()
        {
            facts.extend(self.introduction());
            self.gateway.store_session(self, client, None);
        }
        let durable = self.gateway.is_durable();
        for command in commands.drain(..) {
            match command {
                Command::Send(message) if message.is_last() && durable => late.push(message),
                Command::Send(message) => self.send(&mut inner, message, &mut facts),
                Command::End { stream } => self.end(&mut inner, stream, &mut facts),
                Command::Fact(fact) => facts.push(fact),
                Command::Effects(list) if effects.is_empty() => effects = list,
                Command::Effects(list) => effects.extend(list),
                other => after.push(other),
            }
        }
        if commands.capacity() <= MAX_COMMANDS_KEPT {
            COMMANDS.set(commands);
        }
        let intended = self.write_intents(&facts, &after, ctx);
        let notification = self.notification_intent(&facts, &after, ctx);
        if !late.is_empty() {
            UnrecordedAnswers::note(self, &mut inner, late.len());
        }
        // Noted before the lock is released, so that facts keep the order of the events.
        if !facts.is_empty() {
            // Drained, because passing `facts` by value would move the whole inline array.
            self.gateway.note(self, facts.drain(..));
        }
        drop(inner);
        if opened != 0 {
            self.gateway.counters.in_flight.fetch_add(opened, Ordering::Relaxed);
            self.gateway.ticker.speed_up();
        }
        let told = notification.and_then(|intent| self.write_notification(intent, &mut after));
        match (durable, intents::both(intended, told)) {
            (false, None) => after.drain(..).for_each(|command| self.perform(command)),
            (false, Some(mut intended)) => match intents::poll_now(&mut intended) {
                Some(true) => after.drain(..).for_each(|command| self.perform(command)),
                Some(false) => self.perform_once(std::future::ready(false), after),
                None => self.perform_once(intended, after),
            },
            (true, None) => self.perform_once(self.gateway.written(), after),
            (true, Some(intended)) => {
                let written = self.gateway.written();
                self.perform_once(async move { intended.await && written.await }, after);
            }
        }
        // Effects come last, so that logging and counting do not delay messages.
        self.gateway.run_effects(effects);
        if !late.is_empty() {
            self.send_once_written(late);
        }
    }

    /// Writes a message to its stream under the session lock, so that messages leave in the order in which they were
    /// decided. An answer of a batch is held back until the batch is complete.
    pub(super) fn send(&self, inner: &mut SessionState, message: ToClient, facts: &mut Facts) {
        let (stream, droppable) = (message.stream(), message.is_droppable());
        let mut out = OutgoingMessage::new(message);
        if out.is_weighed() {
            out.charge(self.share());
        }
        if let Some((stream, mut out)) = inner.batches.pass(stream, out) {
            if out.is_joined() && out.is_weighed() {
                out.charge(self.share());
            }
            self.write(inner, stream, out, droppable, facts);
        }
    }

    /// Writes to a stream. Counts and records the message as lost if it cannot be delivered.
    pub(super) fn write(
        &self,
        inner: &mut SessionState,
        stream: StreamId,
        mut out: OutgoingMessage,
        droppable: bool,
        facts: &mut Facts,
    ) {
        let ends = out.last && self.mode != Mode::Pipe;
        out.last = ends;
        let numbers = out.numbers().collect::<SmallVec<[u64; 4]>>();
        let Some(outbox) = inner.streams.get(&stream) else {
            return self.lose("client_gone", &numbers, facts);
        };
        // A stream may always hold one message. Further ones need space in the session's budget.
        let too_much = out.is_weighed() && !outbox.is_empty() && self.share().is_exceeded();
        let pushed = if too_much { PushOutcome::Dropped } else { outbox.push(out, droppable) };
        match pushed {
            PushOutcome::Taken if ends => drop(inner.streams.remove(&stream)),
            PushOutcome::Taken => {}
            PushOutcome::Closed => self.lose("client_gone", &numbers, facts),
            PushOutcome::Dropped => {
                // A reader this far behind will never get its answer, so close the stream instead of leaving the client
                // to wait. The machine is told when the reader is dropped.
                if !droppable {
                    outbox.close();
                }
                self.lose("slow_client", &numbers, facts);
            }
        }
    }

    /// Counts undeliverable messages. Marks the facts that are about to be noted as lost, or adds facts that say so.
    fn lose(&self, reason: &'static str, numbers: &[u64], facts: &mut Facts) {
        self.gateway.counters.dropped(reason);
        for number in numbers {
            let same =
                |fact: &&mut Fact| matches!(fact, Fact::Message(MessageFact { number: own, .. }) if own == number);
            match facts.iter_mut().rev().find(same) {
                Some(Fact::Message(message)) => message.lost = Some(reason),
                _ => facts.push(self.lost(*number, reason)),
            }
        }
    }
}
