//! Finding entries, over one tape or all.

use super::{Failure, tapes};
use crate::body_codec::BodyCodec;
use crate::merge::{Merge, promising};
use crate::text::Needle;
use ::postgres::Client;
use search::Search;
pub use search::place_of;
use signalbox_engine::record::{EntryPage, Query};

mod filter;
mod search;

/// Answers a query.
pub fn find(client: &mut Client, query: &Query) -> Result<EntryPage, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    let tapes = match &query.tape {
        Some(asked) => vec![tapes::meant(client, asked)?],
        None => promising(tapes::all(client)?, query)?,
    };
    let mut codec = BodyCodec::new();
    let mut merge = Merge::new(query);
    for tape in tapes {
        if merge.is_enough(&tape) {
            break;
        }
        let search = Search::new(client, &mut codec, &tape, query, needle.as_ref(), merge.room())?;
        if let Some(search) = search {
            let found = search.run()?;
            merge.add(found.hits, found.cut);
        }
    }
    Ok(merge.page())
}
