//! Finding entries, over one tape or all.

use super::failure::Failure;
use super::reader::{Reader, learn};
use super::tapes;
use crate::merge::{Merge, promising};
use crate::text::Needle;
use search::Search;
pub use search::place_of;
use signalbox_engine::record::{EntryPage, Query};

mod filter;
mod search;

/// Answers a query.
pub fn find(reader: &mut Reader, query: &Query) -> Result<EntryPage, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    // One transaction, so that everything is read as of one moment.
    let transaction = reader.connection.transaction()?;
    learn(&transaction, &mut reader.codec)?;
    let tapes = match &query.tape {
        Some(asked) => vec![tapes::meant(&transaction, asked)?],
        None => promising(tapes::all(&transaction)?, query)?,
    };
    let mut merge = Merge::new(query);
    for tape in tapes {
        if merge.is_enough(&tape) {
            break;
        }
        let search = Search::new(&transaction, &mut reader.codec, &tape, query, needle.as_ref(), merge.room())?;
        if let Some(search) = search {
            let (hits, cut) = search.run()?;
            merge.add(hits, cut);
        }
    }
    Ok(merge.page())
}
