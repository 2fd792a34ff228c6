//! One row of the table of entries, and how it becomes an entry again.

use super::Failure;
use super::names::NamesById;
use crate::body_codec::BodyCodec;
use crate::content::{self, Columns};
use crate::limits::SEQ_BITS;
use crate::pack::Torn;
use crate::{extra, splice};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use signalbox_engine::record::{Body, Entry};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many bodies that others refer to are remembered while one question is answered.
const MAX_BASES: usize = 16;

/// How many bytes an entry keeps, in SQL.
pub const BYTES: &str = "(length(body) + coalesce(length(extra), 0))";

/// How many bytes some entries keep besides the bodies of messages, in SQL.
pub const ASIDE: &str =
    "coalesce(sum(coalesce(length(extra), 0) + CASE WHEN what < 16 THEN length(body) ELSE 0 END), 0)";

/// A row as it is stored.
#[derive(Debug)]
pub struct SqliteRow<'a> {
    /// Its key.
    pub id: i64,
    /// When.
    pub at: i64,
    /// The session.
    pub session: Option<i64>,
    /// The exchange.
    pub exchange: Option<i64>,
    /// The principal, by the number of its name.
    pub principal: i64,
    /// The code of what it is.
    pub what: u8,
    /// The method, by the number of its name.
    pub method: Option<i64>,
    /// The tool, prompt or URI, by the number of its name.
    pub subject: Option<i64>,
    /// The backend, by the number of its name.
    pub backend: Option<i64>,
    /// The code of an error.
    pub error_code: Option<i64>,
    length: Option<i64>,
    form: u8,
    packed: &'a [u8],
    extra: Option<&'a [u8]>,
}

impl<'a> SqliteRow<'a> {
    /// The columns, in the order in which they are read.
    pub const COLUMNS: &'static str =
        "id, at, session, exchange, principal, what, method, subject, backend, error_code, length, form, body, extra";

    /// Reads them.
    pub fn read(row: &'a Row<'_>) -> Result<Self, Failure> {
        Ok(Self {
            id: row.get(0)?,
            at: row.get(1)?,
            session: row.get(2)?,
            exchange: row.get(3)?,
            principal: row.get(4)?,
            what: row.get(5)?,
            method: row.get(6)?,
            subject: row.get(7)?,
            backend: row.get(8)?,
            error_code: row.get(9)?,
            length: row.get(10)?,
            form: row.get(11)?,
            packed: row.get_ref(12)?.as_blob().map_err(|_| Torn("a body is missing"))?,
            extra: row.get_ref(13)?.as_blob_or_null().map_err(|_| Torn("the extra data of a message is not a blob"))?,
        })
    }

    /// True if it is a message.
    pub fn is_message(&self) -> bool {
        content::is_message(self.what)
    }

    /// Its body, as it is kept.
    pub fn body(&self, codec: &mut BodyCodec) -> Result<Body, Torn> {
        codec.unpack(self.form, self.packed)
    }

    /// The entry, with this body.
    pub fn entry(&self, connection: &Connection, names: &mut NamesById, body: Body) -> Result<Entry, Failure> {
        let mut name = |id: Option<i64>| -> Result<Option<Arc<str>>, Failure> {
            let Some(id) = id else { return Ok(None) };
            let name = names.name(connection, id)?.ok_or(Torn("a name is missing"))?;
            Ok(Some(Arc::clone(name)))
        };
        let columns = Columns {
            what: self.what,
            method: name(self.method)?,
            subject: name(self.subject)?,
            backend: name(self.backend)?,
            error_code: self.error_code,
            length: self.length.map(|length| length as u64),
        };
        let principal = name(Some(self.principal))?.unwrap_or_default();
        let mut entry = Entry {
            session: self.session.map(|number| number as u64),
            exchange: self.exchange.map(|number| number as u64),
            ..Entry::new(seq_of(self.id), self.at as u64, principal, content::unpack(columns, body)?)
        };
        if let Some(packed) = self.extra {
            extra::unpack(packed, &mut entry)?;
        }
        Ok(entry)
    }
}

/// Bodies that others refer to, the latest ones.
#[derive(Default, Debug)]
pub struct Bases(VecDeque<(i64, Option<Bytes>)>);

impl Bases {
    /// The body of the entry with this key made whole; none if nothing is kept, or what it refers to is gone.
    pub fn whole(
        &mut self,
        connection: &Connection,
        codec: &mut BodyCodec,
        id: i64,
        body: Body,
    ) -> Result<Option<Bytes>, Failure> {
        match body {
            Body::Left => Ok(None),
            Body::Whole(whole) => Ok(Some(whole)),
            Body::Like { seq, prefix, suffix, middle } => {
                let base = self.base(connection, codec, base_key(id, seq))?;
                Ok(base.and_then(|base| splice::join(base, prefix, suffix, &middle)))
            }
        }
    }

    fn base(&mut self, connection: &Connection, codec: &mut BodyCodec, id: i64) -> Result<Option<&Bytes>, Failure> {
        let place = match self.0.iter().position(|(known, _)| *known == id) {
            Some(place) => place,
            None => {
                if self.0.len() == MAX_BASES {
                    self.0.pop_front();
                }
                self.0.push_back((id, load(connection, codec, id)?));
                self.0.len() - 1
            }
        };
        Ok(self.0.get(place).and_then(|(_, base)| base.as_ref()))
    }
}

/// The key of another entry of the same tape.
fn base_key(id: i64, seq: u64) -> i64 {
    key(id >> crate::limits::SEQ_BITS, seq)
}

fn load(connection: &Connection, codec: &mut BodyCodec, id: i64) -> Result<Option<Bytes>, Failure> {
    let mut select = connection.prepare_cached("SELECT form, body FROM tape_entries WHERE id = ?1")?;
    let found: Option<(u8, Vec<u8>)> = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((form, packed)) = found else { return Ok(None) };
    match codec.unpack(form, &packed)? {
        Body::Whole(whole) => Ok(Some(whole)),
        // A base is whole. One that is not was not written by a recorder, and is not followed.
        _ => Ok(None),
    }
}

/// Entries are indexed together in groups of this many places, so that what they share is kept once.
const GROUP_BITS: u32 = 5;

/// The last place that a tape can have.
pub const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

/// The last tape that a store can have.
pub const MAX_TAPE: i64 = i64::MAX >> SEQ_BITS;

/// The key of an entry.
pub fn key(tape: i64, seq: u64) -> i64 {
    tape << SEQ_BITS | seq.min(MAX_SEQ) as i64
}

/// The place of a key.
pub fn seq_of(key: i64) -> u64 {
    key as u64 & MAX_SEQ
}

/// The group that a key belongs to.
pub fn group(key: i64) -> i64 {
    key >> GROUP_BITS
}

/// The first and last key of a group.
pub fn keys_of(group: i64) -> (i64, i64) {
    let first = group << GROUP_BITS;
    (first, first | ((1 << GROUP_BITS) - 1))
}

/// The last place up to which all groups are complete.
pub fn complete(last_seq: u64) -> u64 {
    ((last_seq + 1) >> GROUP_BITS << GROUP_BITS).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_is_what_the_code_says() {
        assert!(ASIDE.contains(&format!("what < {}", content::MESSAGE)));
    }

    #[test]
    fn a_base_lies_in_the_same_tape() {
        assert_eq!(base_key(key(3, 90), 7), key(3, 7));
    }

    #[test]
    fn keys_sort_by_tape_and_place_and_groups_stay_within_a_tape() {
        assert!(key(1, MAX_SEQ) < key(2, 0));
        assert_ne!(group(key(1, MAX_SEQ)), group(key(2, 0)));
        assert_eq!(seq_of(key(7, 12)), 12);
        assert_eq!(keys_of(group(key(7, 33))), (key(7, 32), key(7, 63)));
        assert_eq!([0, 30, 31, 32, 63].map(complete), [0, 0, 31, 31, 63]);
        assert!(key(MAX_TAPE, MAX_SEQ) > 0);
    }
}
