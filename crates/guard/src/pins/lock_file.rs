//! The file `signalbox.lock`: definitions and instructions that were approved, by whom and when.
//!
//! The file is made to be committed and reviewed. It holds the text of what was approved beside its hash, and is
//! rejected if the two do not agree: a reviewer who reads one text must not approve another.

use super::canonical_value::CanonicalValue;
use super::lock_error::{LockError, LockFault};
use super::tool_definition::{DefinitionHash, ToolDefinition, hash_instructions};
use serde::Deserialize;
use signalbox_wire::timestamp;
use std::collections::{BTreeMap, BTreeSet};
use toml::Spanned;

/// Maximum size of a lock file in bytes.
pub const MAX_LOCK_FILE: usize = 16 * 1024 * 1024;
/// Longest definition or instructions, in bytes as printed, that the lock file keeps whole.
pub const MAX_KEPT_TEXT: usize = 16 * 1024;
/// Number of characters of a description, or of instructions, in an excerpt.
const EXCERPT: usize = 200;
/// Maximum number of parameters in an excerpt.
const EXCERPT_PARAMETERS: usize = 100;
/// Maximum number of characters of a user's name.
const MAX_BY: usize = 200;
/// Latest time of an approval: the last second whose nanoseconds fit 64 bits.
const MAX_SECONDS: i64 = 18_446_744_072;
/// Version of the file's format.
pub(super) const VERSION: u32 = 1;

/// When and by whom something was approved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    seconds: i64,
    by: String,
}

impl Approval {
    /// Creates an approval at `seconds` since 1970. Long user names are shortened.
    #[must_use]
    pub fn new(seconds: i64, by: &str) -> Self {
        Self { seconds: seconds.clamp(0, MAX_SECONDS), by: by.chars().take(MAX_BY).collect() }
    }

    /// Returns the time in seconds since 1970.
    #[must_use]
    pub fn seconds(&self) -> i64 {
        self.seconds
    }

    /// Returns the name of the user who approved.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }
}

/// Text of something approved, as far as the lock file keeps it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoredText {
    /// Everything that the hash covers.
    Whole(String),
    /// Beginning of a text that is longer than [`MAX_KEPT_TEXT`].
    Excerpt(String),
}

/// Definition that was approved for a tool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovedDefinition {
    /// Identifies everything but the name.
    pub hash: DefinitionHash,
    /// Identifies the schemas without their descriptions.
    pub shape: DefinitionHash,
    /// When and by whom the definition was approved.
    pub approval: Approval,
    /// Definition without its name, as JSON.
    pub text: StoredText,
}

/// Instructions that were approved for a server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApprovedInstructions {
    /// Result of [`hash_instructions`] for the text that was approved.
    pub hash: DefinitionHash,
    /// When and by whom the text was approved.
    pub approval: Approval,
    /// Instructions as the server gave them.
    pub text: StoredText,
}

/// Definitions and instructions that a reviewer approved for one backend.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BackendPins {
    /// Approved instructions, the latest last.
    pub instructions: Vec<ApprovedInstructions>,
    /// Approved definitions by the tool's own name, the latest last.
    pub tools: BTreeMap<String, Vec<ApprovedDefinition>>,
}

/// Content of a lock file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LockFile {
    /// Approvals by the name of the backend.
    pub backends: BTreeMap<String, BackendPins>,
}

impl BackendPins {
    /// Returns `true` if this definition was approved under this name.
    #[must_use]
    pub fn approves(&self, definition: &ToolDefinition) -> bool {
        let approved = self.tools.get(&definition.name);
        approved.is_some_and(|approved| approved.iter().any(|one| one.hash == definition.hash))
    }

    /// Approves a definition. Definitions approved earlier stay approved.
    pub fn approve_tool(&mut self, definition: &ToolDefinition, approval: Approval) {
        let approved = self.tools.entry(definition.name.clone()).or_default();
        approved.retain(|one| one.hash != definition.hash);
        approved.push(ApprovedDefinition {
            hash: definition.hash,
            shape: definition.shape,
            approval,
            text: stored_definition(&definition.content),
        });
    }

    /// Keeps the latest definitions of each tool, and the latest instructions.
    pub fn keep_latest(&mut self, count: usize) {
        let excess = |length: usize| length.saturating_sub(count);
        for approved in self.tools.values_mut() {
            approved.drain(..excess(approved.len()));
        }
        self.instructions.drain(..excess(self.instructions.len()));
    }

    /// Approves instructions. Instructions approved earlier stay approved.
    pub fn approve_instructions(&mut self, text: &str, approval: Approval) {
        let hash = hash_instructions(text);
        self.instructions.retain(|one| one.hash != hash);
        let text = match text.len() <= MAX_KEPT_TEXT {
            true => StoredText::Whole(text.to_owned()),
            false => StoredText::Excerpt(text.chars().take(EXCERPT).collect()),
        };
        self.instructions.push(ApprovedInstructions { hash, approval, text });
    }
}

fn stored_definition(content: &CanonicalValue) -> StoredText {
    let text = content.pretty();
    if text.len() <= MAX_KEPT_TEXT { StoredText::Whole(text) } else { StoredText::Excerpt(excerpt(content).pretty()) }
}

/// Returns the beginning of the description and the names of the parameters, for definitions too long to keep.
pub(super) fn excerpt(content: &CanonicalValue) -> CanonicalValue {
    let member = |key: &str| content.object().and_then(|members| members.get(key));
    let short = |text: &str| CanonicalValue::Text(text.chars().take(EXCERPT).collect());
    let mut members = BTreeMap::new();
    for key in ["title", "description"] {
        members.extend(member(key).and_then(CanonicalValue::text).map(|text| (key.to_owned(), short(text))));
    }
    let properties = member("inputSchema").and_then(|schema| schema.object()?.get("properties")?.object());
    let names = properties.into_iter().flat_map(BTreeMap::keys).take(EXCERPT_PARAMETERS).map(|name| short(name));
    members.insert("parameters".to_owned(), CanonicalValue::Array(names.collect()));
    CanonicalValue::Object(members)
}

impl LockFile {
    /// Parses the text of a lock file.
    ///
    /// # Errors
    /// If the text is not TOML, has an unknown key, or keeps a text that does not have the approved hash.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        if text.len() > MAX_LOCK_FILE {
            return Err(LockError { line: 1, fault: LockFault::TooLarge(MAX_LOCK_FILE) });
        }
        let raw: RawLockFile = toml::from_str(text).map_err(|error| LockError::syntax(text, &error))?;
        let at = |at: usize, fault: LockFault| LockError::at(text, at, fault);
        if *raw.version.get_ref() != VERSION {
            return Err(at(raw.version.span().start, LockFault::Version(*raw.version.get_ref())));
        }
        let mut backends = BTreeMap::new();
        for (name, raw) in raw.backends {
            let mut pins = BackendPins::default();
            let mut hashes = ApprovedHashes { text, seen: BTreeSet::new() };
            for entry in raw.instructions {
                hashes.add(&entry.hash)?;
                let position = entry.hash.span().start;
                pins.instructions.push(entry.check().map_err(|fault| at(position, fault))?);
            }
            for (tool, entries) in raw.tools {
                let mut hashes = ApprovedHashes { text, seen: BTreeSet::new() };
                let mut approved = Vec::with_capacity(entries.len());
                for entry in entries {
                    hashes.add(&entry.hash)?;
                    let position = entry.hash.span().start;
                    approved.push(entry.check().map_err(|fault| at(position, fault))?);
                }
                pins.tools.insert(tool, approved);
            }
            backends.insert(name, pins);
        }
        Ok(Self { backends })
    }
}

/// Hashes of the entries of one list so far.
struct ApprovedHashes<'a> {
    text: &'a str,
    seen: BTreeSet<String>,
}

impl ApprovedHashes<'_> {
    /// Adds a hash, which must not be in the list already.
    fn add(&mut self, hash: &Spanned<String>) -> Result<(), LockError> {
        match self.seen.insert(hash.get_ref().to_ascii_lowercase()) {
            true => Ok(()),
            false => Err(LockError::at(self.text, hash.span().start, LockFault::Duplicate)),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLockFile {
    version: Spanned<u32>,
    #[serde(default)]
    backends: BTreeMap<String, RawBackend>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBackend {
    #[serde(default)]
    instructions: Vec<RawInstructions>,
    #[serde(default)]
    tools: BTreeMap<String, Vec<RawDefinition>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInstructions {
    hash: Spanned<String>,
    approved_at: String,
    approved_by: String,
    text: Option<String>,
    excerpt: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDefinition {
    hash: Spanned<String>,
    shape: String,
    approved_at: String,
    approved_by: String,
    definition: Option<String>,
    excerpt: Option<String>,
}

impl RawInstructions {
    fn check(self) -> Result<ApprovedInstructions, LockFault> {
        let hash = parse_hash(self.hash.get_ref())?;
        let text = stored(self.text, self.excerpt)?;
        match &text {
            StoredText::Whole(text) if hash_instructions(text) != hash => Err(LockFault::Mismatch),
            _ => {
                Ok(ApprovedInstructions { hash, approval: parse_approval(&self.approved_at, &self.approved_by)?, text })
            }
        }
    }
}

impl RawDefinition {
    fn check(self) -> Result<ApprovedDefinition, LockFault> {
        let (hash, shape) = (parse_hash(self.hash.get_ref())?, parse_hash(&self.shape)?);
        let approval = parse_approval(&self.approved_at, &self.approved_by)?;
        // The printed form ends in a line break, which is no part of the definition.
        let trim = |text: Option<String>| text.map(|text| text.trim_end_matches('\n').to_owned());
        let text = stored(trim(self.definition), trim(self.excerpt))?;
        let (StoredText::Whole(json) | StoredText::Excerpt(json)) = &text;
        let content = CanonicalValue::parse(json.as_bytes(), MAX_LOCK_FILE).map_err(|_| LockFault::Definition)?;
        if let StoredText::Whole(_) = &text {
            let definition = ToolDefinition::of(String::new(), content);
            if definition.hash != hash || definition.shape != shape {
                return Err(LockFault::Mismatch);
            }
        }
        Ok(ApprovedDefinition { hash, shape, approval, text })
    }
}

fn stored(whole: Option<String>, excerpt: Option<String>) -> Result<StoredText, LockFault> {
    match (whole, excerpt) {
        (Some(whole), None) => Ok(StoredText::Whole(whole)),
        (None, Some(excerpt)) => Ok(StoredText::Excerpt(excerpt)),
        _ => Err(LockFault::Text),
    }
}

fn parse_hash(text: &str) -> Result<DefinitionHash, LockFault> {
    text.parse().map_err(|_| LockFault::Hash)
}

fn parse_approval(at: &str, by: &str) -> Result<Approval, LockFault> {
    let nanos = timestamp::parse_rfc3339(at).ok_or(LockFault::Time)?;
    Ok(Approval::new(i64::try_from(nanos / 1_000_000_000).map_err(|_| LockFault::Time)?, by))
}

#[cfg(test)]
mod tests;
