//! Forwards all events of a link, and reports some of them to an observer.

use bytes::Bytes;
use signalbox_engine::back::{Outbound, ToBackend};
use signalbox_engine::budget::Share;
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::{BoxFuture, LinkEvents, RequestSender};
use signalbox_wire::{Envelope, RejectedMessage};
use std::sync::Arc;
use std::time::Duration;

/// Observer of link events. It is called before the event is forwarded.
pub(crate) trait LinkObserver: Send + Sync {
    /// Reports a message from the backend.
    fn on_message(&self) {}

    /// Reports a request that failed.
    fn on_failure(&self) {}

    /// Reports that the connection was lost.
    fn on_lost(&self) {}
}

/// Forwards all events of a link.
pub(crate) struct ObservedEvents<N> {
    pub events: Arc<dyn LinkEvents>,
    pub observer: N,
}

impl<N: LinkObserver> LinkEvents for ObservedEvents<N> {
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        self.observer.on_message();
        self.events.received(bytes, about, status);
    }

    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.observer.on_message();
        self.events.message(message, about, status);
    }

    fn event(&self, message: Envelope, about: Option<u64>, status: Option<u16>, id: &str) {
        self.observer.on_message();
        self.events.event(message, about, status, id);
    }

    fn room(&self) -> Option<BoxFuture<()>> {
        self.events.room()
    }

    fn user(&self) -> Option<BackendUser> {
        self.events.user()
    }

    fn asker(&self, key: u64) -> RequestSender {
        self.events.asker(key)
    }

    fn share(&self) -> Option<Arc<Share>> {
        self.events.share()
    }

    fn failed(&self, key: u64, fault: Fault) {
        self.observer.on_failure();
        self.events.failed(key, fault);
    }

    fn is_wanted(&self, key: u64) -> bool {
        self.events.is_wanted(key)
    }

    fn retried(&self, key: u64) {
        self.events.retried(key);
    }

    fn parted(&self, key: u64, retry: Option<Duration>) {
        self.events.parted(key, retry);
    }

    fn expired(&self, message: ToBackend) {
        self.events.expired(message);
    }

    fn doubted(&self) {
        self.events.doubted();
    }

    fn asks(&self, message: Outbound) -> ToBackend {
        self.events.asks(message)
    }

    fn told(&self, answer: &Bytes) {
        self.events.told(answer);
    }

    fn garbage(&self, why: &RejectedMessage) {
        self.events.garbage(why);
    }

    fn dropped(&self, reason: &'static str) {
        self.events.dropped(reason);
    }

    fn stray_line(&self, line: String) {
        self.events.stray_line(line);
    }

    fn last_words(&self, lines: Vec<String>) {
        self.events.last_words(lines);
    }

    fn lost(&self, why: String) {
        self.observer.on_lost();
        self.events.lost(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::FaultKind;
    use signalbox_engine::back;
    use std::sync::Mutex;

    /// Writes down what it is told.
    #[derive(Default)]
    struct Told(Mutex<Vec<&'static str>>);

    impl Told {
        fn note(&self, what: &'static str) {
            self.0.lock().unwrap().push(what);
        }
    }

    impl LinkEvents for Told {
        fn user(&self) -> Option<signalbox_engine::BackendUser> {
            None
        }

        fn received(&self, _: Bytes, _: Option<u64>, _: Option<u16>) {
            self.note("received");
        }

        fn message(&self, _: Envelope, _: Option<u64>, _: Option<u16>) {
            self.note("message");
        }

        fn room(&self) -> Option<BoxFuture<()>> {
            self.note("room");
            None
        }

        fn share(&self) -> Option<Arc<Share>> {
            self.note("share");
            None
        }

        fn failed(&self, _: u64, _: Fault) {
            self.note("failed");
        }

        fn is_wanted(&self, _: u64) -> bool {
            self.note("is_wanted");
            false
        }

        fn retried(&self, _: u64) {
            self.note("retried");
        }

        fn parted(&self, _: u64, _: Option<Duration>) {
            self.note("parted");
        }

        fn expired(&self, _: ToBackend) {
            self.note("expired");
        }

        fn doubted(&self) {
            self.note("doubted");
        }

        fn asks(&self, message: Outbound) -> ToBackend {
            self.note("asks");
            message.leave_untold(7)
        }

        fn told(&self, _: &Bytes) {
            self.note("told");
        }

        fn garbage(&self, _: &RejectedMessage) {
            self.note("garbage");
        }

        fn dropped(&self, _: &'static str) {
            self.note("dropped");
        }

        fn stray_line(&self, _: String) {
            self.note("stray_line");
        }

        fn last_words(&self, _: Vec<String>) {
            self.note("last_words");
        }

        fn lost(&self, _: String) {
            self.note("lost");
        }
    }

    struct Nothing;
    impl LinkObserver for Nothing {}

    /// Whatever is not passed on is lost for its receiver without anybody seeing it: a byte budget is not charged, a
    /// retry or a dropped event is not counted.
    #[test]
    fn everything_is_passed_on() {
        let told = Arc::new(Told::default());
        let observed_events = ObservedEvents { events: Arc::clone(&told) as Arc<dyn LinkEvents>, observer: Nothing };
        let bytes = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"a"}"#);
        let rejected = signalbox_wire::Message::look(Bytes::from_static(b"x"), &signalbox_wire::Limits::default());
        observed_events.received(bytes.clone(), None, None);
        observed_events.message(Envelope::parse(bytes.clone()).unwrap(), None, None);
        assert!(observed_events.room().is_none() && observed_events.share().is_none() && !observed_events.is_wanted(1));
        observed_events.failed(1, Fault::new(FaultKind::Internal, "x"));
        observed_events.retried(1);
        observed_events.parted(1, None);
        observed_events.expired(observed_events.asks(back::probe("{}")));
        observed_events.doubted();
        observed_events.told(&bytes);
        observed_events.garbage(&rejected.map(drop).unwrap_err());
        observed_events.dropped("x");
        observed_events.stray_line(String::new());
        observed_events.last_words(Vec::new());
        observed_events.lost(String::new());
        let expected = "received message room share is_wanted failed retried parted asks expired doubted told garbage dropped \
                        stray_line last_words lost";
        assert_eq!(told.0.lock().unwrap().join(" "), expected);
    }
}
