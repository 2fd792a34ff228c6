//! How the tasks of a link learn that it is to end.

use tokio::sync::watch;

/// Waits until the link is closed, or dropped with the sender in it. May be cancelled.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
