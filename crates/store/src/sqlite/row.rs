//! Rows of the table of entries, and their conversion to entries.

use super::SqliteFailure;
use super::names::{NameRef, NameRole, NamesById};
use crate::body_codec::BodyCodec;
use crate::content::{self, Columns};
use crate::limits::SEQ_BITS;
use crate::pack::DecodeError;
use crate::{extra, splice};
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Row};
use signalbox_engine::record::{Body, Entry};
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of base bodies cached while one query runs.
const MAX_BASES: usize = 16;

/// SQL expression for the stored size of an entry.
pub const BYTES: &str = "(length(body) + coalesce(length(extra), 0))";

/// SQL expression for the stored size of entries besides the bodies of messages.
pub const ASIDE: &str =
    "coalesce(sum(coalesce(length(extra), 0) + CASE WHEN what < 16 THEN length(body) ELSE 0 END), 0)";

/// Row of an entry, as stored.
#[derive(Debug)]
pub struct SqliteRow<'a> {
    /// Key of the entry.
    pub id: i64,
    /// Time in nanoseconds since 1970.
    pub at: i64,
    pub session: Option<i64>,
    pub exchange: Option<i64>,
    /// Number of the principal's name.
    pub principal: i64,
    /// Content code of the entry.
    pub what: u8,
    /// Number of the method's name.
    pub method: Option<i64>,
    /// Number of the name of the tool, prompt or URI.
    pub subject: Option<i64>,
    /// Number of the backend's name.
    pub backend: Option<i64>,
    /// Code of a JSON-RPC error.
    pub error_code: Option<i64>,
    length: Option<i64>,
    form: u8,
    packed: &'a [u8],
    extra: Option<&'a [u8]>,
}

impl<'a> SqliteRow<'a> {
    /// Columns in the order in which [`Self::read`] expects them.
    pub const COLUMNS: &'static str =
        "id, at, session, exchange, principal, what, method, subject, backend, error_code, length, form, body, extra";

    /// Reads the columns of a row.
    pub fn read(row: &'a Row<'_>) -> Result<Self, SqliteFailure> {
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
            packed: row.get_ref(12)?.as_blob().map_err(|_| DecodeError("a body is missing"))?,
            extra: row
                .get_ref(13)?
                .as_blob_or_null()
                .map_err(|_| DecodeError("the extra data of a message is not a blob"))?,
        })
    }

    /// Returns true if the entry is a message.
    pub fn is_message(&self) -> bool {
        content::is_message(self.what)
    }

    /// Returns its body in stored form.
    pub fn body(&self, codec: &mut BodyCodec) -> Result<Body, DecodeError> {
        codec.unpack(self.form, self.packed)
    }

    /// Converts the row to an entry with this body.
    pub fn entry(&self, connection: &Connection, names: &mut NamesById, body: Body) -> Result<Entry, SqliteFailure> {
        let tape = self.id >> SEQ_BITS;
        let mut name = |role, id: Option<i64>| -> Result<Option<Arc<str>>, SqliteFailure> {
            let Some(id) = id else { return Ok(None) };
            let name = names.name(connection, NameRef { tape, role, id })?.ok_or(DecodeError("a name is missing"))?;
            Ok(Some(Arc::clone(name)))
        };
        let columns = Columns {
            what: self.what,
            method: name(NameRole::Method, self.method)?,
            subject: name(NameRole::Subject, self.subject)?,
            backend: name(NameRole::Backend, self.backend)?,
            error_code: self.error_code,
            length: self.length.map(|length| length as u64),
        };
        let principal = name(NameRole::Principal, Some(self.principal))?.unwrap_or_default();
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

/// Cache of recent bodies that others refer to.
#[derive(Default, Debug)]
pub struct Bases(VecDeque<(i64, Option<Bytes>)>);

impl Bases {
    /// Returns the whole body of the entry with this key; `None` if none is stored, or its base is gone.
    pub fn whole(
        &mut self,
        connection: &Connection,
        codec: &mut BodyCodec,
        id: i64,
        body: Body,
    ) -> Result<Option<Bytes>, SqliteFailure> {
        match body {
            Body::Left => Ok(None),
            Body::Whole(whole) => Ok(Some(whole)),
            Body::Like { seq, prefix, suffix, middle } => {
                let base = self.base(connection, codec, base_key(id, seq))?;
                Ok(base.and_then(|base| splice::join(base, prefix, suffix, &middle)))
            }
        }
    }

    fn base(
        &mut self,
        connection: &Connection,
        codec: &mut BodyCodec,
        id: i64,
    ) -> Result<Option<&Bytes>, SqliteFailure> {
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

/// Returns the key of another entry of the same tape.
fn base_key(id: i64, seq: u64) -> i64 {
    key(id >> crate::limits::SEQ_BITS, seq)
}

fn load(connection: &Connection, codec: &mut BodyCodec, id: i64) -> Result<Option<Bytes>, SqliteFailure> {
    let mut select = connection.prepare_cached("SELECT form, body FROM tape_entries WHERE id = ?1")?;
    let found: Option<(u8, Vec<u8>)> = select.query_row([id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    let Some((form, packed)) = found else { return Ok(None) };
    match codec.unpack(form, &packed)? {
        Body::Whole(whole) => Ok(Some(whole)),
        // The recorder writes only whole bases. Do not follow any other.
        _ => Ok(None),
    }
}

/// Number of bits of the positions in a group. Entries of a group are indexed together, so that shared words are stored
/// once.
const GROUP_BITS: u32 = 5;

/// Maximum position in a tape.
pub const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

/// Maximum number of a tape.
pub const MAX_TAPE: i64 = i64::MAX >> SEQ_BITS;

/// Returns the key of an entry.
pub fn key(tape: i64, seq: u64) -> i64 {
    tape << SEQ_BITS | seq.min(MAX_SEQ) as i64
}

/// Returns the position in a key.
pub fn seq_of(key: i64) -> u64 {
    key as u64 & MAX_SEQ
}

/// Returns the group of a key.
pub fn group(key: i64) -> i64 {
    key >> GROUP_BITS
}

/// Returns the first and last key of a group.
pub fn keys_of(group: i64) -> (i64, i64) {
    let first = group << GROUP_BITS;
    (first, first | ((1 << GROUP_BITS) - 1))
}

/// Returns the last position up to which all groups are complete.
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
