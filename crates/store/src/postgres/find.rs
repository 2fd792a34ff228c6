//! Finding entries, over one tape or all.

use super::{Failure, tapes};
use crate::limits::{DEFAULT_LIMIT, MAX_LIMIT};
use crate::squeeze::Squeezer;
use crate::tape_row::TapeRow;
use crate::text::Needle;
use ::postgres::Client;
use search::Search;
pub use search::place_of;
use signalbox_engine::record::{Hit, Page, Query, StoreError};
use std::cmp::Ordering;

mod filter;
mod search;

/// Answers a query.
pub fn find(client: &mut Client, query: &Query) -> Result<Page, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let tapes = tapes_for(client, query)?;
    let several = tapes.len() > 1;
    let mut squeezer = Squeezer::new();
    let mut hits: Vec<Hit> = Vec::new();
    let mut cut = false;
    for tape in tapes {
        if is_enough(&hits, limit, &tape, query.newest_first) {
            break;
        }
        // Where its clock went backwards, any entry may be among the first by time.
        let room = if several && tape.disordered { MAX_LIMIT } else { limit } + 1;
        let search = Search::new(client, &mut squeezer, &tape, query, needle.as_ref(), room)?;
        let found = match search {
            Some(search) => search.run()?,
            None => continue,
        };
        hits.extend(found.hits);
        cut = found.cut;
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
fn tapes_for(client: &mut Client, query: &Query) -> Result<Vec<TapeRow>, Failure> {
    if let Some(asked) = &query.tape {
        return Ok(vec![tapes::meant(client, asked)?]);
    }
    let mut tapes = tapes::all(client)?;
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

/// The order of several tapes: by time.
fn order(a: &Hit, b: &Hit, newest_first: bool) -> Ordering {
    let order = (a.entry.at, &a.tape, a.entry.seq).cmp(&(b.entry.at, &b.tape, b.entry.seq));
    if newest_first { order.reverse() } else { order }
}
