//! The tape of a data folder, as far as it is held against the wire.

use std::path::Path;

use signalbox_engine::fact;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, Query, TapeStore as _};
use signalbox_store::SqliteStore;
use signalbox_tape::Bodies;
use signalbox_testkit::wire_tape::{Decided, Point, ReadTape, Taped};

/// Reads the one tape of a data folder.
///
/// # Errors
/// When there is none.
pub fn read(data_dir: &Path) -> anyhow::Result<ReadTape> {
    let store = SqliteStore::open(data_dir.join("tapes.db"))?;
    let info = store.tape("last")?;
    let (mut tape, mut bodies, mut after) = (ReadTape::default(), Bodies::default(), None);
    if info.ended.is_none() {
        tape.gaps.push("the tape has no end, although the gateway was ended in good order".to_owned());
    }
    loop {
        let query = Query { tape: Some(info.id.clone()), after, limit: Some(500), ..Query::default() };
        let page = store.find(&query)?;
        let more = page.more;
        for hit in page.hits {
            after = Some(hit.entry.seq);
            take(bodies.whole(hit.entry), &mut tape);
        }
        if !more {
            tape.messages.sort_by_key(|message| message.seq);
            return Ok(tape);
        }
    }
}

fn take(entry: Entry, tape: &mut ReadTape) {
    let Entry { seq, at, session, exchange, content, .. } = entry;
    match content {
        Content::Message(MessageEntry { point, method, body, number, again, lost, .. }) => {
            let text = match body {
                Body::Whole(bytes) => String::from_utf8(bytes.to_vec()).ok(),
                _ => None,
            };
            let method = method.map(|method| method.to_string());
            // What came was on the wire, whatever became of it.
            let came = matches!(point, fact::Point::ClientIn | fact::Point::BackendIn);
            let (point, again, delivered) = (of(point), again.map(u64::from), came || lost.is_none());
            // Messages of several sessions on one connection are written in runs; their numbers have the order of the
            // wire.
            let seq = if number == 0 { seq } else { number };
            tape.messages.push(Taped { seq, at, session, exchange, point, method, text, again, delivered });
        }
        Content::Decisions(decisions) => tape.decisions.extend(decisions.iter().map(|one| Decided {
            seq,
            exchange,
            phase: one.phase.to_string(),
            rule: one.rule.as_deref().map(str::to_owned),
            verdict: one.verdict.to_string(),
        })),
        Content::Gap(gap) => tape.gaps.push(format!("{gap:?}")),
        Content::Lost(lost) => {
            let same = |one: &&mut Taped| one.seq == lost.number;
            if let Some(message) = tape.messages.iter_mut().find(same) {
                message.delivered = false;
            }
        }
        Content::Session(_)
        | Content::SessionEnded
        | Content::Finished(_)
        | Content::Client(_)
        | Content::Backend(_)
        | Content::Rules(_)
        | Content::Refused(_) => {}
    }
}

fn of(point: fact::Point) -> Point {
    match point {
        fact::Point::ClientIn => Point::ClientIn,
        fact::Point::BackendOut => Point::BackendOut,
        fact::Point::BackendIn => Point::BackendIn,
        fact::Point::ClientOut => Point::ClientOut,
    }
}
