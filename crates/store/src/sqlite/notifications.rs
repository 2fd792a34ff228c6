//! How many notifications of each method came and went.

use super::failure::Failure;
use super::key::key;
use super::names::NamesById;
use crate::content::{MESSAGE, kind_of};
use foldhash::HashMap;
use rusqlite::{Connection, Transaction};
use signalbox_engine::record::{MessageKind, NotificationStats};
use std::collections::BTreeMap;

/// Most methods that are told apart in numbers over all tapes; the rest is one line.
const MAX_METHODS: usize = 10_000;
/// The line of those beyond.
const OTHERS: &str = "(others)";

/// The notifications of a batch or a slice, by the number of their method.
#[derive(Default, Debug)]
pub struct Notifications(HashMap<i64, [i64; 2]>);

/// Whether a notification came (0) or went (1), by the code of its entry; none where it is no notification. Points where
/// messages come and go take turns in the codes.
fn way(what: u8) -> Option<usize> {
    let notification = MessageKind::ALL.get(kind_of(what)?) == Some(&MessageKind::Notification);
    notification.then(|| usize::from((what - MESSAGE) / 8) % 2)
}

impl Notifications {
    /// One more entry, which may be none of them.
    pub fn add(&mut self, what: u8, method: Option<i64>) {
        if let (Some(way), Some(method)) = (way(what), method) {
            self.0.entry(method).or_default()[way] += 1;
        }
    }

    /// Those between two places of a tape.
    pub fn between(transaction: &Transaction<'_>, tape: i64, first: u64, below: u64) -> rusqlite::Result<Self> {
        let mut all = Self::default();
        let mut select =
            transaction.prepare_cached("SELECT what, method FROM tape_entries WHERE id >= ?1 AND id < ?2")?;
        let mut rows = select.query([key(tape, first), key(tape, below)])?;
        while let Some(row) = rows.next()? {
            all.add(row.get(0)?, row.get(1)?);
        }
        Ok(all)
    }

    /// Adds them to those of their tape.
    pub fn keep(&self, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
        let sql = "INSERT INTO notifications (tape, method, came, went) VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (tape, method) DO UPDATE SET came = came + excluded.came, went = went + excluded.went";
        if self.0.is_empty() {
            return Ok(());
        }
        let mut upsert = transaction.prepare_cached(sql)?;
        for (method, [came, went]) in &self.0 {
            upsert.execute([tape, *method, *came, *went])?;
        }
        Ok(())
    }

    /// Takes them off those of their tape.
    pub fn take_off(mut self, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
        self.0.values_mut().flatten().for_each(|count| *count = -*count);
        self.keep(transaction, tape)
    }
}

/// Adds the numbers of a tape to those by name.
pub fn add(
    connection: &Connection,
    tape: i64,
    names: &mut NamesById,
    told: &mut BTreeMap<String, NotificationStats>,
) -> Result<(), Failure> {
    let mut select = connection.prepare_cached("SELECT method, came, went FROM notifications WHERE tape = ?1")?;
    let mut rows = select.query([tape])?;
    while let Some(row) = rows.next()? {
        let name = names.name(connection, row.get(0)?)?.map_or_else(String::new, ToString::to_string);
        let counts = [row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64];
        if counts == [0, 0] {
            continue;
        }
        let name = if told.contains_key(&name) || told.len() < MAX_METHODS { name } else { OTHERS.to_owned() };
        let stats = told.entry(name).or_default();
        stats.came += counts[0];
        stats.went += counts[1];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::of_message;
    use signalbox_engine::fact::Point;

    #[test]
    fn s_30_what_came_and_what_went_are_told_apart() {
        let of = |point| way(of_message(point, MessageKind::Notification));
        assert_eq!([of(Point::ClientIn), of(Point::BackendIn)], [Some(0); 2]);
        assert_eq!([of(Point::ClientOut), of(Point::BackendOut)], [Some(1); 2]);
        assert_eq!(way(of_message(Point::ClientIn, MessageKind::Request)), None);
        assert_eq!((way(0), way(4)), (None, None));
    }
}
