//! Names that occur in many entries, stored once for each tape.

use foldhash::HashMap;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::sync::Arc;

/// Maximum number of cached names. Beyond it, names are looked up again.
const MAX_REMEMBERED: usize = 10_000;

/// Role of a name.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum NameRole {
    /// Method of a request or notification.
    Method,
    /// Name of a tool or prompt, or a URI.
    Subject,
    /// Backend of an exchange.
    Backend,
    /// Principal of a caller.
    Principal,
    /// Outcome of an exchange.
    Outcome,
}

impl NameRole {
    /// Returns its letter in the table and in the index.
    pub fn letter(self) -> &'static str {
        match self {
            Self::Method => "m",
            Self::Subject => "s",
            Self::Backend => "b",
            Self::Principal => "p",
            Self::Outcome => "o",
        }
    }
}

/// Cached name numbers of one tape, for its writer.
#[derive(Default, Debug)]
pub struct NameIds {
    known: [HashMap<String, i64>; 5],
}

impl NameIds {
    /// Returns the number of a name, and creates one if there is none.
    pub fn id(&mut self, connection: &Connection, tape: i64, role: NameRole, name: &str) -> rusqlite::Result<i64> {
        let known = &mut self.known[role as usize];
        if let Some(id) = known.get(name) {
            return Ok(*id);
        }
        let id = match find(connection, tape, role, name)? {
            Some(id) => id,
            None => connection
                .prepare_cached("INSERT INTO names (tape, role, name) VALUES (?1, ?2, ?3)")?
                .insert(params![tape, role.letter(), name])?,
        };
        if known.len() >= MAX_REMEMBERED {
            known.clear();
        }
        known.insert(name.to_owned(), id);
        Ok(id)
    }

    /// Clears the cache, because a rollback may have removed new names.
    pub fn forget(&mut self) {
        *self = Self::default();
    }
}

/// Returns the number of a name, if it has one.
pub fn find(connection: &Connection, tape: i64, role: NameRole, name: &str) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM names WHERE tape = ?1 AND role = ?2 AND name = ?3")?
        .query_row(params![tape, role.letter(), name], |row| row.get(0))
        .optional()
}

/// Returns the numbers of the names with this prefix, up to a limit.
pub fn beginning(
    connection: &Connection,
    tape: i64,
    role: NameRole,
    beginning: &str,
    most: usize,
) -> rusqlite::Result<Vec<i64>> {
    let sql = "SELECT id FROM names WHERE tape = ?1 AND role = ?2 AND substr(name, 1, length(?3)) = ?3 LIMIT ?4";
    connection
        .prepare_cached(sql)?
        .query_map(params![tape, role.letter(), beginning, most as i64], |row| row.get(0))?
        .collect()
}

/// Reference of a row to a name.
#[derive(Copy, Clone, Debug)]
pub struct NameRef {
    /// Number of the tape that the row is of.
    pub tape: i64,
    /// Role in which the row names it.
    pub role: NameRole,
    /// Number of the name.
    pub id: i64,
}

/// Name as it is stored, with its tape and the letter of its role.
#[derive(Debug)]
struct StoredName {
    tape: i64,
    role: String,
    name: Arc<str>,
}

/// Names by number, cached while one query runs.
#[derive(Default, Debug)]
pub struct NamesById(HashMap<i64, Option<StoredName>>);

impl NamesById {
    /// Returns the name that a row refers to. It must be one of its tape and its role: filters find it by these.
    pub fn name(&mut self, connection: &Connection, of: NameRef) -> rusqlite::Result<Option<&Arc<str>>> {
        let NameRef { tape, role, id } = of;
        if self.0.len() >= MAX_REMEMBERED && !self.0.contains_key(&id) {
            self.0.clear();
        }
        let name = match self.0.entry(id) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(unknown) => {
                let mut select = connection.prepare_cached("SELECT tape, role, name FROM names WHERE id = ?1")?;
                let read = |row: &Row<'_>| {
                    let name = Arc::from(row.get::<_, String>(2)?);
                    Ok(StoredName { tape: row.get(0)?, role: row.get(1)?, name })
                };
                unknown.insert(select.query_row([id], read).optional()?)
            }
        };
        let name = name.as_ref().filter(|name| name.tape == tape && name.role == role.letter());
        Ok(name.map(|name| &name.name))
    }
}
