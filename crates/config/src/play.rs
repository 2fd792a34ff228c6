//! Backends that are replaced by a tape.

use super::error::{ConfigError, Problem};
use super::read::{Table, Text};
use super::values::bad;
use signalbox_replay::edited_answers::EditedAnswersError;
use signalbox_replay::{EditedAnswers, Paths, PlayerSettings, Repeat};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Factors by which a tape may be played faster or slower than recorded.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.01..=1000.0;
/// Keys that only make sense with `tape`.
const KEYS: [&str; 8] = ["backend", "session", "until", "answers", "repeat", "speed", "ignore", "live"];

/// Tape that answers as a backend.
#[derive(Debug, Clone, PartialEq)]
pub struct TapeConfig {
    /// File, or name of a recorded tape.
    pub tape: TapeName,
    /// Settings of the player.
    pub settings: PlayerSettings,
    /// Calls that go to the server itself.
    pub live: LiveCalls,
}

/// Location of a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TapeName {
    File(PathBuf),
    /// Tape with this name in the gateway's store.
    Stored(String),
}

/// Calls that go to a live server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveCalls {
    None,
    /// Calls that are not on the tape.
    New,
    All,
}

/// Reads the tape of a backend, if it has one.
pub(super) fn tape(table: &Table<'_>) -> Result<Option<TapeConfig>, ConfigError> {
    let play = table.table("play")?;
    let Some(name) = table.text("tape")?.filter(|text| !text.value.is_empty()) else {
        return match KEYS.iter().find(|key| play.has(key)) {
            Some(key) => Err(play.key_error(key, Problem::Misplaced("tape"))),
            None => Ok(None),
        };
    };
    let has_server = ["command", "url", "urls"].iter().any(|key| table.has(key));
    let live = match play.choice("live")?.as_str() {
        "new" => LiveCalls::New,
        "all" => LiveCalls::All,
        _ => LiveCalls::None,
    };
    if live != LiveCalls::None && !has_server {
        return Err(play.key_error("live", Problem::Needs("a `command` or `url` beside the `tape`")));
    }
    Ok(Some(TapeConfig { tape: tape_name(table, &name), settings: settings(&play)?, live }))
}

/// Resolves the name of a tape. A relative file is taken from the folder of the configuration.
pub(super) fn tape_name(table: &Table<'_>, text: &Text<'_>) -> TapeName {
    let base = table.document.file.and_then(Path::parent);
    let path = base.map_or_else(|| PathBuf::from(&text.value), |base| base.join(&text.value));
    let is_file = signalbox_tape::source::is_file(&text.value) || path.is_file();
    if is_file { TapeName::File(path) } else { TapeName::Stored(text.value.clone()) }
}

fn settings(play: &Table<'_>) -> Result<PlayerSettings, ConfigError> {
    let mut ignored = Paths::default();
    for text in play.texts("ignore")? {
        ignored.add(&text.value).map_err(|_| bad(play, &text, "a path such as `/params/arguments/id`"))?;
    }
    let backend = play.text("backend")?.map(|text| text.value).filter(|name| !name.is_empty());
    Ok(PlayerSettings {
        backend: backend.map(Into::into),
        session: Some(play.count("session")?).filter(|session| *session > 0),
        ignored,
        until: Some(play.count("until")?).filter(|last| *last > 0),
        answers: answers(play)?,
        repeat: match play.choice("repeat")?.as_str() {
            "last" => Repeat::Last,
            "cycle" => Repeat::Cycle,
            _ => Repeat::Refuse,
        },
        speed: speed(play)?,
    })
}

/// Reads the edited answers. A relative file is taken from the folder of the configuration.
fn answers(play: &Table<'_>) -> Result<Arc<EditedAnswers>, ConfigError> {
    let Some(text) = play.text("answers")?.filter(|text| !text.value.is_empty()) else { return Ok(Arc::default()) };
    let path = play.document.file.and_then(Path::parent).map_or_else(PathBuf::new, Path::to_path_buf).join(&text.value);
    let wrong =
        |error: EditedAnswersError| play.document.error(&text.path, text.at, Problem::BadFile(error.to_string()));
    EditedAnswers::read(&path).map(Arc::new).map_err(wrong)
}

fn speed(play: &Table<'_>) -> Result<Option<f64>, ConfigError> {
    let Some(text) = play.text("speed")?.filter(|text| text.value != "max") else { return Ok(None) };
    match text.value.parse::<f64>().ok().filter(|speed| SPEEDS.contains(speed)) {
        Some(speed) => Ok(Some(speed)),
        None => Err(bad(play, &text, "`max`, or a number from 0.01 to 1000 in quotes")),
    }
}
