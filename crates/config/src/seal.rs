//! Reads the table `seal`: the sealing of tapes, and signed requests and answers.

use super::error::ConfigError;
use super::read::{Table, Text};
use super::values::{address, bad};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Members that are committed to by default, as the file spells them.
const COMMIT: [&str; 2] = ["params.arguments", "result"];

/// Canonical forms of signed requests. The first one is accepted by default.
const PROFILES: [&str; 2] = ["mcp-cbor/2", "mcp-cbor/1"];

/// Maximum number of places at which heads are anchored.
const MAX_ANCHORS: usize = 8;

/// Place outside of this machine that keeps signed heads of tapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnchorPlace {
    /// File to which lines are appended.
    File(PathBuf),
    /// Address to which heads are posted.
    Web(String),
}

impl fmt::Display for AnchorPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Web(url) => f.write_str(url),
        }
    }
}

/// Settings of sealing and signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// `true` if recorded tapes are sealed.
    pub tapes: bool,
    /// Members of messages whose leaves are committed to one by one, each as the names that lead to it.
    pub commit: Vec<Vec<String>>,
    /// Number of entries after which the head of a tape is signed.
    pub head_every: u64,
    /// Maximum time between two signed heads while entries arrive.
    pub head_interval: Duration,
    /// Further places that keep signed heads.
    pub anchor: Vec<AnchorPlace>,
    /// Patterns of backends, or of backends and names, whose requests must be signed.
    pub require: Vec<String>,
    /// Canonical forms that signed requests may be in.
    pub profiles: Vec<String>,
    /// `true` if signed requests must also name a purpose and permissions that fit.
    pub validate_fully: bool,
    /// `true` if all answers are signed, and not only those to signed requests.
    pub sign_answers: bool,
    /// Maximum time by which a signed request may seem to be made in the future.
    pub time_window: Duration,
    /// Maximum age of a signed request.
    pub max_age: Duration,
    /// Number of recent requests that are remembered per key.
    pub nonces_per_key: usize,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Checks the table `seal`.
pub(super) fn check(table: &Table<'_>) -> Result<Seal, ConfigError> {
    let mut commit: Vec<Vec<String>> = COMMIT.iter().filter_map(|path| names(path)).collect();
    if table.has("commit") {
        commit.clear();
        for text in table.texts("commit")? {
            let path = names(&text.value).ok_or_else(|| bad(table, &text, "a path like `params.arguments`"))?;
            commit.push(path);
        }
    }
    let anchor = table.texts("anchor")?.iter().map(|text| anchor(table, text)).collect::<Result<Vec<_>, _>>()?;
    if anchor.len() > MAX_ANCHORS {
        return Err(table.key_error("anchor", super::error::Problem::BadHiddenValue("at most 8 places")));
    }
    Ok(Seal {
        anchor,
        tapes: table.flag("tapes")?,
        commit,
        head_every: table.count("head_every")?,
        head_interval: table.duration("head_interval")?,
        profiles: profiles(table)?,
        require: table.texts("require")?.into_iter().map(|text| text.value).collect(),
        validate_fully: table.choice("validate")? == "full",
        sign_answers: table.flag("sign_answers")?,
        time_window: table.duration("time_window")?,
        max_age: match (table.has("max_age"), table.choice("validate")? == "full") {
            (true, _) => table.duration("max_age")?,
            // PO-15: 24 h back and 5 min ahead.
            (false, true) => DAY,
            (false, false) => table.duration("time_window")?,
        },
        nonces_per_key: table.count("nonces_per_key")?,
    })
}

/// Returns the accepted profiles. An empty list is an error, because it would refuse every signature.
fn profiles(table: &Table<'_>) -> Result<Vec<String>, ConfigError> {
    if !table.has("profiles") {
        return Ok(vec![PROFILES[0].to_owned()]);
    }
    let texts = table.texts("profiles")?;
    if texts.is_empty() {
        return Err(table.key_error("profiles", super::error::Problem::BadHiddenValue("at least one profile")));
    }
    let known = |text: &Text<'_>| match PROFILES.contains(&text.value.as_str()) {
        true => Ok(text.value.clone()),
        false => Err(bad(table, text, "`mcp-cbor/2` or `mcp-cbor/1`")),
    };
    texts.iter().map(known).collect()
}

/// Reads an anchor: a file relative to the configuration file, or an address.
fn anchor(table: &Table<'_>, text: &Text<'_>) -> Result<AnchorPlace, ConfigError> {
    let expected = "a file, or an address like `https://box.example/anchors`";
    if let Some((scheme, _)) = text.value.split_once("://") {
        if !["http", "https"].contains(&scheme) {
            return Err(bad(table, text, expected));
        }
        return address(table, text).map(|url| AnchorPlace::Web(url.to_string()));
    }
    if text.value.is_empty() || text.value.contains('\0') || text.value.starts_with('~') {
        return Err(bad(table, text, expected));
    }
    let base = table.document.file.and_then(Path::parent);
    Ok(AnchorPlace::File(base.map_or_else(|| PathBuf::from(&text.value), |base| base.join(&text.value))))
}

/// Splits a path at its dots into names.
fn names(path: &str) -> Option<Vec<String>> {
    let names: Vec<String> = path.split('.').map(str::to_owned).collect();
    names.iter().all(|name| !name.is_empty() && !name.contains(['/', '*'])).then_some(names)
}

#[cfg(test)]
mod tests {
    use crate::{Config, ConfigError, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<super::Seal, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        let loaded = Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default());
        loaded.map(|loaded| loaded.config.seal)
    }

    #[test]
    fn tapes_are_sealed_unless_the_file_says_otherwise() {
        let seal = load("").unwrap();
        assert!(seal.tapes);
        assert_eq!(seal.commit, [vec!["params".to_owned(), "arguments".to_owned()], vec!["result".to_owned()]]);
        let seal = load("[seal]\ntapes = false\ncommit = []\nhead_every = 5\nhead_interval = \"1s\"").unwrap();
        assert_eq!((seal.tapes, seal.commit.len(), seal.head_every, seal.head_interval.as_secs()), (false, 0, 5, 1));
    }

    #[test]
    fn heads_are_anchored_in_files_and_at_addresses() {
        use super::AnchorPlace::{File, Web};
        assert!(load("").unwrap().anchor.is_empty());
        let seal = load("[seal]\nanchor = [\"/mnt/a.jsonl\", \"https://box.example/anchors\"]").unwrap();
        assert_eq!(seal.anchor, [File("/mnt/a.jsonl".into()), Web("https://box.example/anchors".to_owned())]);
        for place in ["", "~/a", "ftp://box/a", "http://", "http://u:p@box/a"] {
            let error = load(&format!("[seal]\nanchor = [\"{place}\"]")).unwrap_err().to_string();
            assert!(error.contains("seal.anchor"), "{error}");
        }
        assert!(load(&format!("[seal]\nanchor = [{}]", "\"a\",".repeat(9))).is_err());
    }

    #[test]
    fn only_the_second_profile_is_accepted_unless_configured_otherwise() {
        assert_eq!(load("").unwrap().profiles, ["mcp-cbor/2"]);
        assert_eq!(
            load("[seal]\nprofiles = [\"mcp-cbor/2\", \"mcp-cbor/1\"]").unwrap().profiles,
            ["mcp-cbor/2", "mcp-cbor/1"]
        );
        for wrong in ["[]", "[\"mcp-cbor/3\"]", "[\"\"]"] {
            let error = load(&format!("[seal]\nprofiles = {wrong}")).unwrap_err().to_string();
            assert!(error.contains("seal.profiles"), "{error}");
        }
    }

    #[test]
    fn a_path_that_is_none_is_refused_by_name() {
        for path in ["", "params..x", "/params", "params.*"] {
            let error = load(&format!("[seal]\ncommit = [\"{path}\"]")).unwrap_err().to_string();
            assert!(error.contains("seal.commit") && error.contains("a path like `params.arguments`"), "{error}");
        }
    }
}
