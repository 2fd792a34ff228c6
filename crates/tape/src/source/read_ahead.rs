//! Reads entries on one thread while another processes them.

use signalbox_engine::record::{Body, Content, Entry};
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};

/// Maximum number of entries per batch, and approximate maximum of their bytes.
const MAX_BATCH: usize = 256;
const MAX_BYTES: usize = 1 << 20;
/// Maximum number of batches in the channel.
const MAX_WAITING: usize = 2;

/// Runs `read` on a thread of its own and `each` on this one. `read` passes entries to its callback until that returns
/// false, which happens after `each` has returned false. Returns the result of `read`.
///
/// # Errors
/// Fails if no thread can be started.
pub(super) fn read_ahead<R: Send>(
    read: impl FnOnce(&mut dyn FnMut(Entry) -> bool) -> R + Send,
    mut each: impl FnMut(Entry) -> bool,
) -> io::Result<R> {
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::sync_channel(MAX_WAITING);
        let reading = std::thread::Builder::new().name("read".to_owned()).spawn_scoped(scope, move || {
            let mut batch = Batch { sender, entries: Vec::with_capacity(MAX_BATCH), bytes: 0 };
            let read = read(&mut |entry| batch.push(entry));
            batch.send();
            read
        })?;
        work(receiver, &mut each);
        reading.join().map_err(|_| io::Error::other("the thread that reads has panicked"))
    })
}

/// Processes the entries until `each` returns false. Dropping the receiver stops the reader.
fn work(receiver: Receiver<Vec<Entry>>, each: &mut impl FnMut(Entry) -> bool) {
    for entry in receiver.into_iter().flatten() {
        if !each(entry) {
            return;
        }
    }
}

struct Batch {
    sender: SyncSender<Vec<Entry>>,
    entries: Vec<Entry>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, entry: Entry) -> bool {
        if let Content::Message(message) = &entry.content
            && let Body::Whole(body) = &message.body
        {
            self.bytes += body.len();
        }
        self.entries.push(entry);
        if self.entries.len() < MAX_BATCH && self.bytes < MAX_BYTES {
            return true;
        }
        self.send()
    }

    /// Sends the batch. Returns false if the receiver is gone.
    fn send(&mut self) -> bool {
        self.bytes = 0;
        let entries = std::mem::replace(&mut self.entries, Vec::with_capacity(MAX_BATCH));
        self.sender.send(entries).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(seq: u64) -> Entry {
        Entry::new(seq, 0, "".into(), Content::SessionEnded)
    }

    #[test]
    fn entries_come_in_their_order_and_no_more_than_are_wanted() {
        let mut seen = Vec::new();
        let read = |give: &mut dyn FnMut(Entry) -> bool| (1..=1_000).take_while(|seq| give(entry(*seq))).count();
        let given = read_ahead(read, |entry| {
            seen.push(entry.seq);
            true
        });
        assert_eq!((given.unwrap(), seen), (1_000, (1..=1_000).collect()));
        let mut count = 0;
        let endless = |give: &mut dyn FnMut(Entry) -> bool| (1..).take_while(|seq| give(entry(*seq))).count();
        let given = read_ahead(endless, |_| {
            count += 1;
            count < 10
        });
        assert!(given.unwrap() < 10 * MAX_BATCH);
        assert_eq!(count, 10);
    }
}
