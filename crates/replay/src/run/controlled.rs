//! Replays calls under the control of a [`ReplayHandle`].

use super::control::{Next, Preview};
use super::control_handle::ReplayHandle;
use super::report::{CallReport, ReplayVerdict};
use super::{AnswerBook, Connection, OnError, RunError, Runner, recorded_error};
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use signalbox_wire::Era;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that one wait lasts while there is nothing to send.
const IDLE: Duration = Duration::from_secs(3600);

/// Connections of a controlled run. At most one is open.
struct ControlledConnection<'c> {
    control: &'c ReplayHandle,
    connect: &'c mut dyn FnMut() -> Connection,
    /// Open connection with the index of its recorded session.
    open: Option<(usize, Connection)>,
}

/// Outcome of one exchange.
enum Outcome {
    Answered(Value, Duration),
    Late(Duration),
    /// The run was stopped during the exchange.
    Stopped,
}

impl Runner<'_> {
    /// Replays calls under interactive control until stopped. Calls that were never sent are reported as skipped.
    ///
    /// # Errors
    /// If a handshake fails, or a connection breaks while a call is in flight.
    pub async fn controlled(
        &mut self,
        control: &ReplayHandle,
        connect: &mut dyn FnMut() -> Connection,
    ) -> Result<(), RunError> {
        let recorded =
            control.look(|control| control.calls().iter().map(|call| Arc::clone(&call.recorded)).collect::<Vec<_>>());
        self.rebinding.expect(recorded.iter().map(|call| &**call));
        let began = Instant::now();
        let mut line = ControlledConnection { control, connect, open: None };
        loop {
            let mut news = control.news();
            self.tell_preview(control);
            match control.next(began.elapsed()) {
                Next::Send { index, edited, reconnect } => {
                    if reconnect {
                        line.open = None;
                    }
                    self.send_controlled(index, edited, &mut line).await?;
                }
                Next::Inject { id, request } => self.inject(id, request, &mut line).await?,
                Next::Wait(most) => {
                    tokio::select! {
                        _ = news.changed() => {}
                        () = tokio::time::sleep(most.unwrap_or(IDLE)) => {}
                        () = self.listen(&mut line) => {}
                    }
                }
                Next::End => break,
            }
        }
        let skipped = control.look(|control| {
            let unsent = control.calls().iter().filter(|call| call.report.is_none());
            unsent.map(|call| Arc::clone(&call.recorded)).collect::<Vec<_>>()
        });
        skipped.iter().for_each(|call| self.note(call, ReplayVerdict::Skipped, None));
        Ok(())
    }

    /// Publishes the request that would be sent next.
    fn tell_preview(&self, control: &ReplayHandle) {
        let wanted = control.look(|control| {
            let index = control.wants_preview()?;
            Some((index, Arc::clone(&control.calls().get(index)?.recorded)))
        });
        if let Some((index, call)) = wanted {
            let preview = Preview { request: self.rebound(&call).ok(), not_sent: self.request(&call).err() };
            control.act(|control| control.previewed(index, preview));
        }
    }

    /// Sends one call and records its verdict.
    async fn send_controlled(
        &mut self,
        index: usize,
        edited: Option<Value>,
        line: &mut ControlledConnection<'_>,
    ) -> Result<(), RunError> {
        let Some((call, session)) = line.call(index) else { return Ok(()) };
        let was_edited = edited.is_some();
        let request = match edited.map_or_else(|| self.request(&call), Ok) {
            Ok(request) => request,
            Err(verdict) => {
                let report = self.renote(&call, verdict, None);
                line.control.act(|control| control.done(index, report, None));
                return Ok(());
            }
        };
        self.open(session, line).await?;
        let mut tries = 1;
        let outcome = loop {
            let outcome = self.exchange(request.clone(), AnswerBook::new(&call), line).await?;
            let failed = |answer: &Value| answer.get("error").is_some() && !recorded_error(&call);
            let again = matches!(&outcome, Outcome::Answered(answer, _) if failed(answer));
            if !again || self.settings.on_error != OnError::Retry || tries >= self.settings.tries {
                break outcome;
            }
            tries += 1;
        };
        let answer = match outcome {
            Outcome::Stopped => return Ok(()),
            Outcome::Late(took) => {
                self.forget(&call);
                self.note(&call, ReplayVerdict::Unanswered, Some(took));
                None
            }
            Outcome::Answered(answer, took) => {
                self.forget(&call);
                self.compare(&call, answer.clone(), took, true);
                Some(answer)
            }
        };
        let Some(noted) = self.report.calls.last_mut() else { return Ok(()) };
        noted.edited = was_edited;
        let report = noted.clone();
        let ends = report.verdict.is_failure() && self.settings.on_error == OnError::Stop;
        line.control.act(|control| {
            control.done(index, report, Some((&request, answer.as_ref())));
            if ends {
                control.stop();
            }
        });
        Ok(())
    }

    /// Sends an injected request in the session of the call at the position.
    async fn inject(
        &mut self,
        id: u64,
        mut request: Value,
        line: &mut ControlledConnection<'_>,
    ) -> Result<(), RunError> {
        let place = line.control.look(|control| control.position().min(control.calls().len().saturating_sub(1)));
        let Some((call, session)) = line.call(place) else {
            line.control.act(|control| control.answered(id, None));
            return Ok(());
        };
        describe(&mut request, &call);
        self.open(session, line).await?;
        let answer = match self.exchange(request, AnswerBook::empty(), line).await? {
            Outcome::Answered(answer, _) => Some(answer),
            Outcome::Late(_) | Outcome::Stopped => None,
        };
        line.control.act(|control| control.answered(id, answer.as_ref()));
        Ok(())
    }

    /// Opens a connection for a session unless it is already open.
    async fn open(&mut self, session: usize, line: &mut ControlledConnection<'_>) -> Result<(), RunError> {
        if line.open.as_ref().is_some_and(|(open, _)| *open == session) {
            return Ok(());
        }
        let mut connection = (line.connect)();
        let calls = line.control.look(|control| {
            let of_session = control.calls().iter().filter(|call| call.session == session);
            of_session.map(|call| Arc::clone(&call.recorded)).collect::<Vec<_>>()
        });
        self.introduce(&calls, &mut connection).await?;
        line.open = Some((session, connection));
        Ok(())
    }

    /// Sends a request and waits for its answer. Answers server requests in the meantime.
    async fn exchange(
        &mut self,
        request: Value,
        mut asked: AnswerBook,
        line: &mut ControlledConnection<'_>,
    ) -> Result<Outcome, RunError> {
        let Some((_, connection)) = &mut line.open else { return Err(RunError::Ended) };
        let sent = Instant::now();
        let id = connection.send_request(request).await?;
        loop {
            let left = self.settings.timeout.saturating_sub(sent.elapsed());
            let heard = tokio::select! {
                heard = connection.next(left) => heard?,
                () = line.control.stopped() => return Ok(Outcome::Stopped),
            };
            let Some(message) = heard else { return Ok(Outcome::Late(sent.elapsed())) };
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(name), Some(id)) => {
                    let answer = asked.answer(name);
                    connection.answer(id, answer).await?;
                }
                (Some(_), None) => self.report.notifications += 1,
                (None, answered) if answered.and_then(Value::as_u64) == Some(id) => {
                    return Ok(Outcome::Answered(message, sent.elapsed()));
                }
                _ => {}
            }
        }
    }

    /// Reads messages while no call is in flight. If the connection ends, the next call opens a new one.
    async fn listen(&mut self, line: &mut ControlledConnection<'_>) {
        let Some((_, connection)) = &mut line.open else { return std::future::pending().await };
        match connection.next(IDLE).await {
            Ok(Some(message)) if message.get("method").is_some() => match message.get("id") {
                Some(id) if connection.answer(id, None).await.is_err() => line.open = None,
                Some(_) => {}
                None => self.report.notifications += 1,
            },
            Ok(_) => {}
            Err(_) => line.open = None,
        }
    }

    /// Replaces the previous verdict of a call.
    fn renote(&mut self, call: &RecordedCall, verdict: ReplayVerdict, took: Option<Duration>) -> CallReport {
        self.forget(call);
        let report = CallReport::new(call, verdict, took);
        self.report.calls.push(report.clone());
        report
    }

    fn forget(&mut self, call: &RecordedCall) {
        self.report.calls.retain(|noted| noted.seq != call.seq);
    }
}

impl ControlledConnection<'_> {
    fn call(&self, index: usize) -> Option<(Arc<RecordedCall>, usize)> {
        self.control.look(|control| control.calls().get(index).map(|call| (Arc::clone(&call.recorded), call.session)))
    }
}

/// Copies the `_meta` of a recorded request to an injected one that has none, so that the server sees the same client.
fn describe(request: &mut Value, call: &RecordedCall) {
    if call.era != Era::Modern || request.pointer("/params/_meta").is_some() {
        return;
    }
    let recorded = call.request.as_ref().and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    if let Some(meta) = recorded.as_ref().and_then(|recorded| recorded.pointer("/params/_meta")) {
        request["params"]["_meta"] = meta.clone();
    }
}
