//! Audit records that an answer waits for.

use super::{HandlerResult, RouteFault};
use signalbox_engine::audit::IntentWrite;
use std::fmt;

/// Confirmations of the records of a request, which its answer waits for. A handler hands them over instead of awaiting
/// them: a client that disconnects would otherwise end it before it has recorded everything that it did.
#[derive(Default)]
pub struct PendingRecords(Vec<IntentWrite>);

impl PendingRecords {
    pub(super) fn add(&mut self, write: Option<IntentWrite>) {
        self.0.extend(write);
    }

    /// Waits for all records. Returns false if one of them could not be written and must be.
    async fn are_written(self) -> bool {
        let mut written = true;
        for write in self.0 {
            written &= write.await;
        }
        written
    }
}

impl fmt::Debug for PendingRecords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PendingRecords").field(&self.0.len()).finish()
    }
}

/// Waits for the records of a request and then returns its answer, or the problem that they could not be written.
pub(super) async fn confirmed(mut answered: HandlerResult, used: Option<IntentWrite>) -> HandlerResult {
    let mut records = answered.as_mut().map(|answer| std::mem::take(&mut answer.records)).unwrap_or_default();
    records.add(used);
    let written = records.are_written().await;
    match answered {
        Ok(answer) if !written && answer.status.as_u16() < 400 => Err(RouteFault::NotRecorded),
        answered => answered,
    }
}

#[cfg(test)]
mod tests {
    use super::super::RoutedAnswer;
    use super::*;
    use http::StatusCode;
    use std::task::{Context, Poll, Waker};
    use tokio::sync::oneshot;

    fn write() -> (oneshot::Sender<bool>, Option<IntentWrite>) {
        let (written, told) = oneshot::channel();
        (written, Some(Box::pin(async { told.await.unwrap_or(false) })))
    }

    /// Answers with this status once both records, the handler's and the observer's, have this outcome.
    fn end(status: StatusCode, outcome: (bool, bool)) -> HandlerResult {
        let ((first, own), (second, used)) = (write(), write());
        let answer = RoutedAnswer::json(status, "{}").once_recorded(own);
        let mut answering = Box::pin(confirmed(Ok(answer), used));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(answering.as_mut().poll(&mut cx).is_pending(), "it waits for both");
        first.send(outcome.0).unwrap();
        assert!(answering.as_mut().poll(&mut cx).is_pending(), "it waits for the second");
        second.send(outcome.1).unwrap();
        let Poll::Ready(answered) = answering.as_mut().poll(&mut cx) else { panic!("everything is written") };
        answered
    }

    #[test]
    fn an_answer_leaves_once_all_its_records_are_written_and_tells_if_they_cannot_be() {
        assert_eq!(end(StatusCode::OK, (true, true)).unwrap().status, StatusCode::OK);
        for outcome in [(false, true), (true, false)] {
            for status in [StatusCode::OK, StatusCode::SEE_OTHER] {
                let problem = end(status, outcome).unwrap_err();
                assert_eq!((&problem, problem.status()), (&RouteFault::NotRecorded, StatusCode::SERVICE_UNAVAILABLE));
            }
            // What failed anyway keeps its own reason.
            assert_eq!(end(StatusCode::BAD_REQUEST, outcome).unwrap().status, StatusCode::BAD_REQUEST);
        }
    }
}
