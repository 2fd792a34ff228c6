//! Finding entries, over one tape or all.

use super::failure::Failure;
use super::reader::{Reader, learn};
use super::tapes;
use crate::limits::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::tape_row::TapeRow;
use crate::text::Needle;
use rusqlite::Connection;
use search::Search;
pub use search::place_of;
use signalbox_engine::record::{Hit, Page, Query, StoreError};
use std::cmp::Ordering;

mod filter;
mod search;

/// Answers a query.
pub fn find(reader: &mut Reader, query: &Query) -> Result<Page, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    // One transaction, so that everything is read as of one moment.
    let transaction = reader.connection.transaction()?;
    learn(&transaction, &mut reader.squeezer)?;
    let tapes = tapes_for(&transaction, query)?;
    let several = tapes.len() > 1;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let mut hits: Vec<Hit> = Vec::new();
    let mut cut = false;
    for tape in tapes {
        if is_enough(&hits, limit, &tape, query.newest_first) {
            break;
        }
        let search = Search::new(&transaction, &mut reader.squeezer, &tape, query, needle.as_ref(), limit + 1)?;
        let found = search.map_or(Ok((Vec::new(), false)), Search::run)?;
        hits.extend(found.0);
        cut = found.1;
        if several {
            hits.sort_by(|a, b| order(a, b, query.newest_first));
        }
        if cut {
            break;
        }
        hits.truncate(limit + 1);
    }
    let more = hits.len() > limit || cut;
    hits.truncate(limit);
    Ok(Page { hits, more })
}

/// The tapes to look through, the most promising first.
fn tapes_for(connection: &Connection, query: &Query) -> Result<Vec<TapeRow>, Failure> {
    if let Some(asked) = &query.tape {
        return Ok(vec![tapes::meant(connection, asked)?]);
    }
    let mut tapes = tapes::all(connection)?;
    if query.after.is_some() && tapes.len() > 1 {
        return Err(StoreError::Query("say of which tape: a place counts within one tape".into()).into());
    }
    tapes.retain(|tape| {
        query.since.is_none_or(|since| tape.last_at >= since) && query.until.is_none_or(|until| tape.first_at < until)
    });
    if query.newest_first {
        tapes.sort_by_key(|tape| std::cmp::Reverse((tape.last_at, tape.number)));
    } else {
        tapes.sort_by_key(|tape| (tape.first_at, tape.number));
    }
    Ok(tapes)
}

/// True where no entry of this tape, or of one behind it, could come before those that were found.
fn is_enough(hits: &[Hit], limit: usize, tape: &TapeRow, newest_first: bool) -> bool {
    hits.get(limit).is_some_and(
        |last| {
            if newest_first { last.entry.at > tape.last_at } else { last.entry.at < tape.first_at }
        },
    )
}

fn order(a: &Hit, b: &Hit, newest_first: bool) -> Ordering {
    // Within a tape its own order counts, whatever its clock did.
    let order = if a.tape == b.tape {
        a.entry.seq.cmp(&b.entry.seq)
    } else {
        (a.entry.at, &a.tape).cmp(&(b.entry.at, &b.tape))
    };
    if newest_first { order.reverse() } else { order }
}
