//! Reads the table `record`: the recording of tapes.

use super::error::{ConfigError, Problem};
use super::play::{TapeName, tape_name};
use super::priority::priorities;
use super::read::Table;
use super::redact_key;
use super::secret::Secret;
use super::values::bad;
use signalbox_engine::record::Retention;
use signalbox_replay::BaselineSettings;
use signalbox_store::PostgresStore;
use signalbox_tape::glob::Glob;
use signalbox_tape::recorder::{
    Choice, Filter, OnFull, Priorities, RecorderSettings, Sampling, SamplingTrigger, TapeBounds,
};
use signalbox_tape::redact::{Action, KeyRule, PathRule, PatternRule, RedactionSettings, Redactor};
use std::path::PathBuf;
use std::time::Duration;

const MAX_TAPE_AGE: &str = "max_tape_age";
/// Each tape costs a flush and repeats what its readers need, so shorter ones would cost more than they save.
const LEAST_TAPE_AGE: Duration = Duration::from_secs(60);
const DAY: u64 = 24 * 3600;
/// Time for which facts are gathered for one append. A crash may lose these facts and those that wait in the queue.
const GATHER: Duration = Duration::from_millis(100);

/// Settings of the recorder, its store and its retention.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordConfig {
    /// `true` if anything is recorded.
    pub enabled: bool,
    /// Address of a PostgreSQL database. Without one, SQLite in the data folder is used.
    pub postgres: Option<Secret>,
    /// Tape file in place of a store, set by `--tape` of `wrap` and `proxy`. No key sets it.
    pub file: Option<PathBuf>,
    /// Tape that this one continues, set by `replay serve --record`. No key sets it.
    pub parent: Option<String>,
    /// Rule that picks the exchanges to keep.
    pub sampling: Sampling,
    /// Exchanges that have a share of their own.
    pub priorities: Priorities,
    /// Filter applied before the sampling.
    pub filter: Filter,
    /// `true` if messages are kept, and not only their outlines.
    pub bodies: bool,
    /// Maximum size of a message that is kept.
    pub max_body: usize,
    /// Behaviour when facts arrive faster than they are written.
    pub on_full: OnFull,
    /// Maximum number of facts that wait.
    pub queue_facts: usize,
    /// Maximum number of bytes in waiting facts.
    pub queue_bytes: usize,
    /// `true` if an answer leaves only after it is on disk.
    pub strict: bool,
    /// `true` if the gateway reports not ready while nothing can be written.
    pub readiness: bool,
    /// Age and size at which tapes are deleted.
    pub retention: Retention,
    /// Bounds at which the next tape begins.
    pub tape_bounds: TapeBounds,
    /// Redaction applied before anything is stored.
    pub redaction: RedactionSettings,
    /// Tape with which live calls are compared as they pass.
    pub baseline: Option<BaselineConfig>,
}

/// Tape with which live calls are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct BaselineConfig {
    /// File, or name of a recorded tape.
    pub tape: TapeName,
    /// Rules for what counts as a difference.
    pub settings: BaselineSettings,
}

impl RecordConfig {
    /// Returns the settings of the recorder.
    #[must_use]
    pub fn recorder(&self) -> RecorderSettings {
        RecorderSettings {
            queue_facts: self.queue_facts,
            queue_bytes: self.queue_bytes,
            on_full: self.on_full,
            strict: self.strict,
            // Few large batches cost much less than many small ones. In strict mode an answer waits for its record, so
            // the wait must be short.
            gather: if self.strict { Duration::from_millis(1) } else { GATHER },
            batch: 4_000,
            sampling: self.sampling.clone(),
            priorities: self.priorities.clone(),
            filter: self.filter.clone(),
            bodies: self.bodies,
            max_body: self.max_body,
            ..RecorderSettings::default()
        }
    }
}

/// Checks the table `record`.
pub(super) fn check(table: &Table<'_>) -> Result<RecordConfig, ConfigError> {
    let on_full = match table.choice("on_full")?.as_str() {
        "wait" => OnFull::Wait(table.duration("wait")?),
        _ => OnFull::Gap,
    };
    let postgres = table.text("postgres")?;
    if let Some(url) = postgres.as_ref().filter(|url| !is_postgres(&url.value)) {
        return Err(bad(table, url, "an address like `postgres://user@host/database`"));
    }
    if let Some(url) = &postgres {
        let checked = PostgresStore::check(&url.value);
        checked.map_err(|error| table.document.error(&url.path, url.at, Problem::BadDatabase(error)))?;
    }
    Ok(RecordConfig {
        enabled: table.flag("enabled")?,
        postgres: postgres.map(|url| Secret::new(url.value)),
        file: None,
        parent: None,
        sampling: sampling(table)?,
        priorities: priorities(table, table.count("seed")?, always(table)?)?,
        filter: filter(table)?,
        bodies: table.flag("bodies")?,
        max_body: table.count("max_body")?,
        on_full,
        queue_facts: table.count("queue")?,
        queue_bytes: table.count("queue_bytes")?,
        strict: table.choice("durability")? == "strict",
        readiness: table.flag("readiness")?,
        retention: Retention {
            max_age: Some(Duration::from_secs(DAY * table.count::<u64>("max_age_days")?)),
            max_bytes: Some(table.count("max_size")?),
            dry_run: false,
        },
        tape_bounds: tape_bounds(table)?,
        redaction: redaction(&table.table("redact")?)?,
        baseline: baseline(table)?,
    })
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

/// Reads the bounds at which the next tape begins.
fn tape_bounds(table: &Table<'_>) -> Result<TapeBounds, ConfigError> {
    let max_age = table.seconds(MAX_TAPE_AGE)?;
    if let Some(age) = max_age.filter(|age| *age < LEAST_TAPE_AGE) {
        let expected = "a time of at least \"1m\"".to_owned();
        return Err(table.key_error(MAX_TAPE_AGE, Problem::BadValue { expected, found: format!("{age:?}") }));
    }
    Ok(TapeBounds { max_bytes: table.bound("max_tape_size")?, max_age })
}

fn baseline(table: &Table<'_>) -> Result<Option<BaselineConfig>, ConfigError> {
    let Some(name) = table.text("baseline")?.filter(|text| !text.value.is_empty()) else {
        return match ["baseline_ignore", "baseline_tolerance"].iter().find(|key| table.has(key)) {
            Some(key) => Err(table.key_error(key, Problem::Misplaced("baseline"))),
            None => Ok(None),
        };
    };
    let mut settings =
        BaselineSettings { tolerance: table.fraction("baseline_tolerance")?, ..BaselineSettings::default() };
    for text in table.texts("baseline_ignore")? {
        settings.ignored.add(&text.value).map_err(|_| bad(table, &text, "a path such as `/result/content/*/text`"))?;
    }
    Ok(Some(BaselineConfig { tape: tape_name(table, &name), settings }))
}

fn sampling(table: &Table<'_>) -> Result<Sampling, ConfigError> {
    let slower_than = table.seconds("slower_than")?;
    let (before, after) = (table.count("before")?, table.count("after")?);
    let always = always(table)?;
    Ok(match table.choice("sampling")?.as_str() {
        "share" => Sampling::Share { share: table.fraction("share")?, seed: table.count("seed")?, always },
        "adaptive" => {
            let target = f64::from(table.count::<u32>("target")?);
            Sampling::Adaptive { target, seed: table.count("seed")?, always }
        }
        "every_nth" => Sampling::EveryNth { n: table.count("nth")?, always },
        "errors" => Sampling::Errors { before, after },
        "slow" => Sampling::Slow { took: slower_than.unwrap_or(Duration::from_secs(1)) },
        "ring" => Sampling::Ring {
            exchanges: table.count("ring")?,
            within: table.seconds("ring_time")?,
            after,
            on: SamplingTrigger { verdicts: texts(table, "ring_verdicts")?, ..always },
        },
        _ => Sampling::All,
    })
}

/// Returns the trigger for exchanges that are kept whatever share applies.
fn always(table: &Table<'_>) -> Result<SamplingTrigger, ConfigError> {
    let slower_than = table.seconds("slower_than")?;
    Ok(SamplingTrigger { errors: table.flag("always_errors")?, slower_than, verdicts: vec![] })
}

fn filter(table: &Table<'_>) -> Result<Filter, ConfigError> {
    let globs = |key: &str| -> Result<Vec<Glob>, ConfigError> {
        Ok(texts(table, key)?.iter().map(|pattern| Glob::new(pattern)).collect())
    };
    let choice = |key: &str| -> Result<Choice, ConfigError> {
        Ok(Choice { include: globs(key)?, exclude: globs(&format!("exclude_{key}"))? })
    };
    Ok(Filter {
        methods: choice("methods")?,
        tools: choice("tools")?,
        backends: choice("backends")?,
        principals: choice("principals")?,
    })
}

fn texts(table: &Table<'_>, key: &str) -> Result<Vec<String>, ConfigError> {
    Ok(table.texts(key)?.into_iter().map(|text| text.value).collect())
}

fn redaction(table: &Table<'_>) -> Result<RedactionSettings, ConfigError> {
    let action = match table.choice("action")?.as_str() {
        "remove" => Action::Remove,
        "hash" => Action::Hash,
        "encrypt" => Action::Encrypt(redact_key::key(table)?),
        "mask" => Action::Mask { visible: table.count("visible")? },
        _ => Action::default(),
    };
    if !table.flag("enabled")? {
        return Ok(RedactionSettings::none());
    }
    let mut settings = if table.flag("defaults")? { RedactionSettings::default() } else { RedactionSettings::none() };
    settings.keys.iter_mut().for_each(|rule| rule.action = action.clone());
    settings.credentials = settings.credentials.map(|_| action.clone());
    for name in texts(table, "keys")? {
        settings.keys.push(KeyRule { name, action: action.clone() });
    }
    // Each path is compiled alone, so that an error can name it.
    for text in table.texts("paths")? {
        let rule = PathRule { method: None, path: text.value.clone(), action: action.clone() };
        let alone = RedactionSettings { paths: vec![rule.clone()], ..RedactionSettings::none() };
        Redactor::new(&alone, [0; 32])
            .map_err(|_| bad(table, &text, "a JSON pointer like `/params/arguments/card`"))?;
        settings.paths.push(rule);
    }
    for text in table.texts("patterns")? {
        let rule = PatternRule { pattern: text.value.clone(), action: action.clone() };
        let alone = RedactionSettings { patterns: vec![rule.clone()], ..RedactionSettings::none() };
        Redactor::new(&alone, [0; 32]).map_err(|_| bad(table, &text, "a regular expression of a reasonable size"))?;
        settings.patterns.push(rule);
    }
    Ok(settings)
}
