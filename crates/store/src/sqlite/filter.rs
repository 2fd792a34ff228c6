//! Translates a query into SQL conditions and words of the index.

use super::SqliteFailure;
use super::index::{error_mark, name_mark, session_mark};
use super::names::{self, NameRole};
use super::row::SqliteRow;
use crate::content::{FINISHED, MESSAGE, client_side_codes};
use crate::tape_row::TapeRow;
use crate::text::Needle;
use rusqlite::Connection;
use signalbox_engine::record::Query;

/// Maximum number of methods that a `*` expands to.
const MAX_METHODS: usize = 500;

/// SQL conditions on the rows of entries.
#[derive(Default, Debug)]
pub struct SqliteFilter {
    conditions: Vec<String>,
    index: Vec<String>,
}

impl SqliteFilter {
    /// Translates a query for one tape; `None` if nothing on the tape can match. All names become numbers first, so
    /// that no text of the query gets into SQL.
    pub fn read(
        connection: &Connection,
        tape: &TapeRow,
        query: &Query,
        needle: Option<&Needle>,
    ) -> Result<Option<Self>, SqliteFailure> {
        let mut filter = Self::default();
        let named = [
            (NameRole::Subject, "subject", &query.subject),
            (NameRole::Backend, "backend", &query.backend),
            (NameRole::Principal, "principal", &query.principal),
        ];
        for (role, column, wanted) in named {
            let Some(wanted) = wanted else { continue };
            let Some(id) = names::find(connection, tape.number, role, wanted)? else { return Ok(None) };
            filter.number(column, id, name_mark(role, id));
        }
        if !query.methods.is_empty() && !filter.methods(connection, tape.number, &query.methods)? {
            return Ok(None);
        }
        if let Some(session) = query.session {
            filter.number("session", session as i64, session_mark(session as i64));
        }
        if let Some(code) = query.error_code {
            filter.number("error_code", code, error_mark(code));
        }
        if let Some(exchange) = query.exchange {
            filter.conditions.push(format!("exchange = {}", exchange as i64));
        }
        if query.only_ends {
            filter.conditions.push(format!("what = {FINISHED}"));
        }
        if query.client_side {
            filter.conditions.push(format!("what IN ({})", client_side_codes()));
        }
        filter.times(tape, query);
        if let Some(needle) = needle {
            filter.conditions.push(format!("what >= {MESSAGE} AND form <> 0"));
            // The index lacks the words of a message that resembles an earlier one.
            if !query.client_side {
                filter.index.extend(needle.words().into_iter().map(|word| format!("\"{word}\"")));
            }
        }
        Ok(Some(filter))
    }

    fn number(&mut self, column: &str, number: i64, mark: String) {
        self.conditions.push(format!("{column} = {number}"));
        self.index.push(format!("\"{mark}\""));
    }

    fn methods(&mut self, connection: &Connection, tape: i64, wanted: &[String]) -> rusqlite::Result<bool> {
        let mut ids = Vec::new();
        for method in wanted {
            match method.strip_suffix('*') {
                Some(beginning) => {
                    ids.extend(names::beginning(connection, tape, NameRole::Method, beginning, MAX_METHODS)?);
                }
                None => ids.extend(names::find(connection, tape, NameRole::Method, method)?),
            }
        }
        let list: Vec<String> = ids.iter().map(i64::to_string).collect();
        let marks: Vec<String> = ids.iter().map(|id| format!("\"{}\"", name_mark(NameRole::Method, *id))).collect();
        self.conditions.push(format!("method IN ({})", list.join(", ")));
        self.index.push(format!("({})", marks.join(" OR ")));
        Ok(!ids.is_empty())
    }

    /// If the clock of the tape went backwards, the time of each row is compared.
    fn times(&mut self, tape: &TapeRow, query: &Query) {
        if !tape.disordered {
            return;
        }
        if let Some(since) = query.since {
            self.conditions.push(format!("at >= {}", since as i64));
        }
        if let Some(until) = query.until {
            self.conditions.push(format!("at < {}", until as i64));
        }
    }

    /// Returns the query for rows between two keys.
    pub fn sql(&self, newest_first: bool) -> String {
        let mut sql = format!("SELECT {} FROM tape_entries WHERE id BETWEEN ?1 AND ?2", SqliteRow::COLUMNS);
        for condition in &self.conditions {
            sql += " AND ";
            sql += condition;
        }
        sql + if newest_first { " ORDER BY id DESC" } else { " ORDER BY id" }
    }

    /// Returns the query for the index; `None` if the index does not help.
    pub fn index(&self) -> Option<String> {
        (!self.index.is_empty()).then(|| self.index.join(" AND "))
    }
}
