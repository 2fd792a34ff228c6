//! Holding messages back until one that must come first was accepted.

use tokio::sync::watch;

/// Closed while `notifications/initialized` is on its way, since POSTs overtake each other and some servers refuse a request
/// that comes before it; and while the stream for what belongs to no request opens, since some servers ask there in the middle
/// of a call, and what they say before somebody listens is lost.
#[derive(Default)]
pub(crate) struct Gate(Option<Closed>);

/// What a message waits for.
pub(crate) type Closed = watch::Receiver<()>;

/// Dropping it opens the gate.
pub(crate) type Hold = watch::Sender<()>;

impl Gate {
    /// Closes the gate for messages that are sent from now on.
    pub(crate) fn close(&mut self) -> Hold {
        let (hold, closed) = watch::channel(());
        self.0 = Some(closed);
        hold
    }

    /// What a message that is sent now has to wait for; none where the gate is open.
    pub(crate) fn closed(&mut self) -> Option<Closed> {
        self.0.take_if(|closed| closed.has_changed().is_err());
        self.0.clone()
    }
}

/// Waits until the gate opens.
pub(crate) async fn wait(closed: Option<Closed>) {
    if let Some(mut closed) = closed {
        while closed.changed().await.is_ok() {}
    }
}
