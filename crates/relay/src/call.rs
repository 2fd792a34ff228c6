//! A call of a page's tool, from the queue to its end.

use crate::code::Code;
use crate::counters::RelayCounters;
use crate::json_text::JsonText;
use crate::random;
use crate::relay::Relay;
use crate::settings::millis;
use crate::store::{EventReader, QueueOutcome, RelayEvent};
use crate::tool_request::{ToolAnswer, ToolRequest, WorkerError};
use signalbox_runtime::clock::unix_millis;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Outcome of a call.
#[derive(Debug)]
pub enum CallEnd {
    /// The page has answered.
    Answered(Arc<ToolAnswer>),
    /// The session has ended.
    Expired,
    /// The call failed, with the error in the form that pages use.
    Failed(WorkerError),
}

/// Call of a page's tool.
#[derive(Debug)]
pub struct RelayCall {
    /// Code of the session.
    pub code: Code,
    pub tool: String,
    /// Arguments, a JSON object.
    pub arguments: JsonText,
    /// True if the call may be executed twice.
    pub idempotent: bool,
    /// Maximum time in the queue and at the page together.
    pub within: Duration,
}

impl RelayCall {
    /// Has a page execute the call. Calls `progress` with each progress message. Dropping the future withdraws the
    /// call.
    pub async fn run(self, relay: &Arc<Relay>, mut progress: impl FnMut(&str) + Send) -> CallEnd {
        let deadline = Instant::now() + self.within;
        let Ok(id) = random::request_id() else { return failed("internal_error", "the system gives no random bytes") };
        // Subscribe before the request is queued, so that its answer is not missed.
        let mut events = match relay.store.subscribe(&self.code).await {
            Ok(events) => events,
            Err(error) => return failed("internal_error", &error.to_string()),
        };
        let mut withdrawal =
            Withdrawal { relay: Arc::clone(relay), code: self.code.clone(), id: id.clone(), armed: true };
        match self.push(relay, &id).await {
            Ok(QueueOutcome::Queued) => {}
            Ok(QueueOutcome::NoSession) => {
                withdrawal.armed = false;
                return CallEnd::Expired;
            }
            Ok(QueueOutcome::Full) => {
                withdrawal.armed = false;
                let most = relay.settings.limits.queue;
                return failed("queue_full", &format!("{most} requests wait for the page already"));
            }
            Err(error) => return failed("internal_error", &error.to_string()),
        }
        let end = loop {
            let event = tokio::select! {
                event = timeout_at(deadline, events.recv()) => event,
                () = relay.closed() => {
                    let _ = relay.store.withdraw(&self.code, &id, "cancelled", unix_millis()).await;
                    break failed("shutting_down", "the gateway shuts down; the page may have carried out the call");
                }
            };
            match event {
                Err(_) => {
                    RelayCounters::add(&relay.counts.timeouts);
                    let _ = relay.store.withdraw(&self.code, &id, "timeout", unix_millis()).await;
                    break failed("timeout", &too_slow(self.within));
                }
                Ok(Some(RelayEvent::Answered { id: told, answer })) if *told == *id => break CallEnd::Answered(answer),
                Ok(Some(RelayEvent::Progressed { id: told, progress: how_far })) if *told == *id => {
                    progress(how_far.get())
                }
                Ok(Some(RelayEvent::Ended)) => break CallEnd::Expired,
                Ok(Some(_)) => {}
                Ok(None) => match self.reread(relay, &id).await {
                    Ok(fresh) => events = fresh,
                    Err(end) => break end,
                },
            }
        };
        withdrawal.armed = false;
        end
    }

    async fn push(&self, relay: &Relay, id: &str) -> Result<QueueOutcome, crate::store::RelayStoreError> {
        let now = unix_millis();
        let deadline = now.saturating_add(millis(self.within));
        let request = ToolRequest {
            id: id.into(),
            tool: self.tool.as_str().into(),
            arguments: self.arguments.clone(),
            at: now,
            deadline,
            idempotent: self.idempotent,
            sent_to: None,
        };
        relay.store.push(&self.code, request, relay.settings.limits.queue, now).await
    }

    /// Subscribes again after events were missed. If the request is still queued, its answer is yet to come; otherwise
    /// its outcome is unknown.
    async fn reread(&self, relay: &Relay, id: &str) -> Result<EventReader, CallEnd> {
        let trouble = |error: crate::store::RelayStoreError| failed("internal_error", &error.to_string());
        let events = relay.store.subscribe(&self.code).await.map_err(trouble)?;
        let now = unix_millis();
        if relay.store.by_code(&self.code, now).await.map_err(trouble)?.is_none() {
            return Err(CallEnd::Expired);
        }
        let waiting = relay.store.unanswered(&self.code, now).await.map_err(trouble)?;
        match waiting.iter().any(|request| *request.id == *id) {
            true => Ok(events),
            false => Err(CallEnd::Failed(WorkerError::outcome_unknown())),
        }
    }
}

fn too_slow(within: Duration) -> String {
    format!(
        "the page did not answer within {} s; it may not be connected, or may still be at work",
        within.as_secs_f64()
    )
}

fn failed(kind: &str, message: &str) -> CallEnd {
    CallEnd::Failed(WorkerError { kind: kind.into(), message: message.into(), details: None })
}

/// Guard that withdraws a call when its future is dropped.
struct Withdrawal {
    relay: Arc<Relay>,
    code: Code,
    id: String,
    armed: bool,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (relay, code, id) = (Arc::clone(&self.relay), self.code.clone(), std::mem::take(&mut self.id));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let _ = relay.store.withdraw(&code, &id, "cancelled", unix_millis()).await;
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RelaySettings;
    use crate::store::memory::MemoryStore;

    /// SIGTERM took 20 s while calls waited for a page.
    #[tokio::test]
    async fn calls_end_with_an_error_when_the_gateway_shuts_down() {
        let relay = Relay::new(RelaySettings::default(), Arc::new(MemoryStore::default()));
        let code = relay.create(None).await.unwrap().record.code;
        let call = |idempotent| {
            let arguments = JsonText::empty_object();
            let within = Duration::from_secs(30);
            RelayCall { code: code.clone(), tool: "t".to_owned(), arguments, idempotent, within }
        };
        let waits = tokio::spawn({
            let (relay, call) = (Arc::clone(&relay), call(false));
            async move { call.run(&relay, |_| {}).await }
        });
        while relay.store.unanswered(&code, unix_millis()).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        relay.end_calls();
        for end in [waits.await.unwrap(), call(true).run(&relay, |_| {}).await] {
            assert!(matches!(&end, CallEnd::Failed(error) if &*error.kind == "shutting_down"), "{end:?}");
        }
        assert!(relay.store.unanswered(&code, unix_millis()).await.unwrap().is_empty());
    }
}
