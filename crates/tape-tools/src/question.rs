//! Parsed calls of the tape tools.

use crate::ask_error::AskError;
use crate::diff::Diff;
use crate::own_tapes::OwnTapes;
use crate::search::Search;
use crate::show::Show;
use crate::stats::StatsQuery;
use serde_json::{Map, Value};
use signalbox_embedded::{Answer, Arguments, BadArguments};
use signalbox_tape::moment;
use signalbox_wire::timestamp;
use std::time::SystemTime;

/// Maximum length of a text argument.
pub(crate) const MAX_TEXT: usize = 500;

/// Call with valid arguments.
#[derive(Debug)]
pub(crate) enum Question {
    Search(Search),
    Show(Show),
    Stats(StatsQuery),
    Diff(Diff),
}

impl Question {
    /// Parses the arguments of a tool. Returns `None` if the tool does not exist.
    pub(crate) fn read(tool: &str, arguments: &Map<String, Value>) -> Option<Result<Self, AskError>> {
        let mut reader = Arguments::new(tool, arguments);
        let asked = match tool {
            "tapes_search" => Search::read(&mut reader).map(Self::Search),
            "tapes_show" => Show::read(&mut reader).map(Self::Show),
            "tapes_stats" => StatsQuery::read(&mut reader).map(Self::Stats),
            "tapes_diff" => Diff::read(&mut reader).map(Self::Diff),
            _ => return None,
        };
        let missing = || BadArguments(vec!["arguments are missing".to_owned()]);
        Some(reader.finish().and_then(|()| asked.ok_or_else(missing)).map_err(AskError::from))
    }

    /// Runs the query on the store.
    pub(crate) fn answer(&self, own: &OwnTapes<'_>) -> Result<Answer, AskError> {
        match self {
            Self::Search(asked) => asked.answer(own).map(structured),
            Self::Show(asked) => asked.answer(own),
            Self::Stats(asked) => asked.answer(own).map(structured),
            Self::Diff(asked) => asked.answer(own).map(structured),
        }
    }
}

/// Reads a text argument, ignoring blank ones.
pub(crate) fn text(reader: &mut Arguments<'_>, key: &str) -> Option<String> {
    reader.text(key, MAX_TEXT).filter(|text| !text.trim().is_empty())
}

/// Reads a time argument as nanoseconds since 1970.
pub(crate) fn when(reader: &mut Arguments<'_>, key: &str) -> Option<u64> {
    let text = text(reader, key)?;
    let now = timestamp::nanos_of(SystemTime::now());
    moment::read(&text, now).map_err(|error| reader.problem(format!("`{key}`: {error}"))).ok()
}

/// Builds an answer with structured content, and the same value as text for older clients.
fn structured(value: Value) -> Answer {
    Answer { structured: Some(value.clone()), ..Answer::text(value.to_string()) }
}
