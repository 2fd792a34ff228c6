//! Counters of notifications received and sent, by method.

use crate::content::{MESSAGE, kind_of, of_message};
use foldhash::HashMap;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{MessageKind, NotificationStats};
use std::collections::BTreeMap;
use std::hash::Hash;

/// Maximum number of methods counted separately over all tapes. The rest is counted together.
const MAX_METHODS: usize = 10_000;
/// Name under which the remaining methods are counted.
const OTHERS: &str = "(others)";

/// Points at which notifications are received.
pub const CAME: [Point; 2] = [Point::ClientIn, Point::BackendIn];
/// Points at which notifications are sent.
pub const WENT: [Point; 2] = [Point::BackendOut, Point::ClientOut];

/// Returns the codes of notifications at these points.
pub fn codes(points: [Point; 2]) -> [u8; 2] {
    points.map(|point| of_message(point, MessageKind::Notification))
}

/// Returns the direction of a notification, received (0) or sent (1), by the code of its entry; `None` if it is not a
/// notification. The codes alternate between points of receiving and sending.
fn way(what: u8) -> Option<usize> {
    let notification = MessageKind::ALL.get(kind_of(what)?) == Some(&MessageKind::Notification);
    notification.then(|| usize::from((what - MESSAGE) / 8) % 2)
}

/// Counts the notifications of a batch or a slice, keyed by the store's form of the method.
#[derive(Debug)]
pub struct Notifications<Method>(HashMap<Method, [i64; 2]>);

impl<Method> Default for Notifications<Method> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<Method: Eq + Hash> Notifications<Method> {
    /// Counts an entry if it is a notification.
    pub fn add(&mut self, what: u8, method: Option<Method>) {
        if let (Some(way), Some(method)) = (way(what), method) {
            self.0.entry(method).or_default()[way] += 1;
        }
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers received and sent for each method.
    pub fn counts(&self) -> impl Iterator<Item = (&Method, [i64; 2])> {
        self.0.iter().map(|(method, counts)| (method, *counts))
    }
}

/// Totals over several tapes, by the name of the method.
#[derive(Default, Debug)]
pub struct NotificationCounts(BTreeMap<String, NotificationStats>);

impl NotificationCounts {
    /// Adds the counts of a method on one tape.
    pub fn add(&mut self, method: String, [came, went]: [u64; 2]) {
        if (came, went) == (0, 0) {
            return;
        }
        let known = self.0.contains_key(&method) || self.0.len() < MAX_METHODS;
        let stats = self.0.entry(if known { method } else { OTHERS.to_owned() }).or_default();
        stats.came += came;
        stats.went += went;
    }

    /// Returns the totals, ordered by method.
    pub fn finish(self) -> Vec<(String, NotificationStats)> {
        self.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S-30.
    #[test]
    fn what_came_and_what_went_are_told_apart() {
        let of = |point| way(of_message(point, MessageKind::Notification));
        assert_eq!([of(Point::ClientIn), of(Point::BackendIn)], [Some(0); 2]);
        assert_eq!([of(Point::ClientOut), of(Point::BackendOut)], [Some(1); 2]);
        assert_eq!(way(of_message(Point::ClientIn, MessageKind::Request)), None);
        assert_eq!((way(0), way(4)), (None, None));
        assert_eq!([codes(CAME), codes(WENT)].map(|codes| codes.map(way)), [[Some(0); 2], [Some(1); 2]]);
    }
}
