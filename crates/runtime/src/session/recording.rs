//! Facts that a session records about itself, and strict recording: calls and answers wait until they are recorded.

use super::handling::Facts;
use super::{Session, SessionState};
use bytes::Bytes;
use signalbox_engine::command::{Listen, Watch};
use signalbox_engine::fact::{LostFact, MessageFact, Point, SessionFact};
use signalbox_engine::front::{Mode, ToClient};
use signalbox_engine::{Command, Event, ExchangeId, Fact, Fault, FaultKind};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// Returns true for a session that lasts longer than one request.
    pub(crate) fn is_persistent(&self) -> bool {
        self.mode != Mode::Stateless
    }

    /// Records a fact that describes the session.
    pub(crate) fn record_introduction(&self) {
        if let Some(fact) = self.introduction() {
            self.gateway.note(self, [fact]);
        }
    }

    /// Returns the fact that describes the session. `None` if no sink records messages, or the session is stateless.
    pub(super) fn introduction(&self) -> Option<Fact> {
        let wanted = self.gateway.message_facts() && self.is_persistent();
        wanted.then(|| {
            Fact::Session(Arc::new(SessionFact {
                at: crate::clock::now(),
                session: self.key,
                caller: self.caller.clone(),
                external: (!self.external.is_empty()).then(|| Arc::from(&*self.external)),
                transport: self.via,
                client: self.client(),
            }))
        })
    }

    /// Returns the fact that a message to the client was lost after it had been recorded as sent.
    pub(super) fn lost(&self, number: u64, reason: &'static str) -> Fact {
        Fact::Lost(Arc::new(LostFact {
            at: crate::clock::now(),
            session: self.key,
            caller: self.caller.clone(),
            exchange: None,
            point: Point::ClientOut,
            number,
            reason,
        }))
    }

    /// Records undelivered messages as lost.
    pub(super) fn record_lost(&self, numbers: &[u64]) {
        if !numbers.is_empty() {
            self.gateway.counters.dropped("client_gone");
            let inner = self.lock();
            self.gateway.note(self, numbers.iter().map(|number| self.lost(*number, "client_gone")));
            drop(inner);
        }
    }

    /// Records messages that are sent again to a client that resumed its stream. Each refers to the number of the
    /// original.
    pub fn sent_again(&self, messages: &[(u64, Bytes)]) {
        if messages.is_empty() || !self.gateway.message_facts() {
            return;
        }
        let at = crate::clock::now();
        let fact = |(first, bytes): &(u64, Bytes)| {
            Fact::Message(MessageFact {
                number: self.gateway.numbers.message(),
                again: NonZeroU64::new(*first),
                ..MessageFact::new(at, self.key, self.caller.clone(), Point::ClientOut, bytes.clone())
            })
        };
        let inner = self.lock();
        self.gateway.note(self, messages.iter().map(fact));
        drop(inner);
    }

    /// Sends answers after they, and everything before them, are recorded. [`UnrecordedAnswers::note`] must have
    /// counted them.
    pub(super) fn send_once_written(self: &Arc<Self>, answers: Vec<ToClient>) {
        let written = self.gateway.unwritten.in_time(self.gateway.written());
        let unrecorded = UnrecordedAnswers { session: Arc::clone(self), answers: answers.len() };
        tokio::spawn(async move {
            let kept = written.await;
            let session = &unrecorded.session;
            let (mut inner, mut facts) = (session.lock(), Facts::new());
            for answer in answers {
                let answer = if kept {
                    answer
                } else {
                    session.gateway.counters.dropped("not_recorded");
                    answer.not_recorded(crate::clock::unix_millis())
                };
                session.send(&mut inner, answer, &mut facts);
            }
            if !facts.is_empty() {
                session.gateway.note(session, facts);
            }
            drop(inner);
            drop(unrecorded);
        });
    }

    /// Carries out the commands that send to a backend once `written` resolves to true, and fails them if it resolves
    /// to false. All other commands are carried out at once.
    pub(super) fn perform_once(
        self: &Arc<Self>,
        written: impl Future<Output = bool> + Send + 'static,
        commands: impl IntoIterator<Item = Command>,
    ) {
        let reaches = |command: &Command| {
            matches!(
                command,
                Command::Forward { .. }
                    | Command::Watch(_)
                    | Command::Fork { .. }
                    | Command::SendAndDiscard { .. }
                    | Command::Listen(Listen::Open { .. })
                    | Command::Tell { .. }
                    | Command::LogLevel { .. }
            )
        };
        let (waiting, others): (Vec<Command>, Vec<Command>) = commands.into_iter().partition(reaches);
        others.into_iter().for_each(|command| self.perform(command));
        if waiting.is_empty() {
            return;
        }
        let (session, written) = (Arc::clone(self), self.gateway.unwritten.in_time(written));
        tokio::spawn(async move {
            let kept = written.await;
            for command in waiting {
                // Skip a call that was cancelled meanwhile, or whose client has left.
                if exchange_of(&command).is_some_and(|exchange| !session.waits_for(exchange)) {
                    continue;
                }
                match command {
                    command if kept => session.perform(command),
                    Command::Forward { exchange, .. }
                    | Command::Watch(Watch { exchange, .. })
                    | Command::Listen(Listen::Open { exchange, .. }) => {
                        session.gateway.counters.dropped("not_recorded");
                        let text = "the call could not be recorded, and is not carried out without";
                        let fault = Fault::new(FaultKind::NotRecorded, text);
                        session.handle(Event::Failed { exchange, fault });
                    }
                    _ => session.gateway.counters.dropped("not_recorded"),
                }
            }
        });
    }
}

/// Answers that wait to be recorded. Their calls count as in flight, although the machine is done with them.
pub(super) struct UnrecordedAnswers {
    session: Arc<Session>,
    answers: usize,
}

impl UnrecordedAnswers {
    /// Counts answers that are about to wait.
    pub fn note(session: &Session, inner: &mut SessionState, answers: usize) {
        inner.unwritten += answers;
        session.gateway.unwritten.add(answers);
        session.gateway.counters.in_flight.fetch_add(answers as i64, Ordering::Relaxed);
    }
}

impl Drop for UnrecordedAnswers {
    fn drop(&mut self) {
        let gateway = &self.session.gateway;
        self.session.lock().unwritten -= self.answers;
        gateway.unwritten.done(self.answers);
        gateway.counters.in_flight.fetch_sub(self.answers as i64, Ordering::Relaxed);
    }
}

/// Returns the exchange that waits for the outcome of a command.
fn exchange_of(command: &Command) -> Option<ExchangeId> {
    match command {
        Command::Forward { exchange, .. }
        | Command::Watch(Watch { exchange, .. })
        | Command::Listen(Listen::Open { exchange, .. }) => Some(*exchange),
        _ => None,
    }
}
