//! Configurations for a single backend named on the command line. `wrap --rules`, `proxy --rules` and `replay` run on
//! them.

use crate::failure::Failure;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Name of the single backend.
const NAME: &str = "server";
/// File mode of the configuration. The address in it may carry a credential.
const PRIVATE: u32 = 0o600;

/// Returns the configuration of a server to start. It inherits our whole environment, as it would without Signalbox in
/// between.
///
/// # Errors
/// If an argument of the command is not UTF-8.
pub fn wrapped(command: &[OsString], names: &[OsString], rules: &Path) -> Result<String, Failure> {
    Ok(head(rules)? + &Server::Command(command, names).lines()?)
}

/// Returns the configuration of a server at an address.
///
/// # Errors
/// If the path of the rules is not UTF-8.
pub fn proxied(url: &str, rules: &Path) -> Result<String, Failure> {
    Ok(head(rules)? + &Server::Url(url).lines()?)
}

/// A server that answers in place of a tape, or beside it.
#[derive(Debug, Clone, Copy)]
pub enum Server<'a> {
    /// Program to start, with the names of the environment variables it inherits.
    Command(&'a [OsString], &'a [OsString]),
    /// URL of a running server.
    Url(&'a str),
}

impl Server<'_> {
    fn lines(self) -> Result<String, Failure> {
        match self {
            Self::Url(url) => Ok(format!("url = {}\n", quoted(url))),
            Self::Command(command, names) => {
                let words: Vec<&str> = command
                    .iter()
                    .map(|word| word.to_str().ok_or_else(|| unwritable(word)))
                    .collect::<Result<_, _>>()?;
                let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (*program, args));
                let passed = names.iter().filter_map(|name| name.to_str()).filter(|name| !name.is_empty());
                let passed: Vec<&str> = passed.collect();
                Ok(format!("command = {}\nargs = {}\nenv_pass = {}\n", quoted(program), list(args), list(&passed)))
            }
        }
    }
}

/// Configuration of a gateway with one backend: a tape, a server, or both.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReplayConfig<'a> {
    /// Name of the backend. Rules that name the recorded backend then apply to this one; `tape` if absent.
    pub name: Option<&'a str>,
    /// Tape id or path, as a configuration names it.
    pub tape: Option<&'a str>,
    /// Server to call, beside the tape or alone.
    pub server: Option<Server<'a>>,
    /// Playback settings: further lines of the backend's table.
    pub play: &'a [(&'static str, String)],
    /// File of rules that apply to its messages.
    pub rules: Option<&'a Path>,
    /// Seed of the rules' random numbers.
    pub seed: Option<u64>,
}

impl ReplayConfig<'_> {
    /// Formats the configuration as TOML.
    ///
    /// # Errors
    /// If a path or an argument of the command is not UTF-8.
    pub fn text(self) -> Result<String, Failure> {
        let mut text = self.rules.map_or_else(|| Ok("[gateway]\n".to_owned()), rule_files)?;
        // Writing to a string cannot fail.
        self.seed.iter().for_each(|seed| _ = writeln!(text, "rule_seed = {seed}"));
        let _ = writeln!(text, "[backends.{}]", self.name.filter(|name| is_plain(name)).unwrap_or("tape"));
        if let Some(tape) = self.tape {
            let _ = writeln!(text, "tape = {}", quoted(tape));
            self.play.iter().for_each(|(key, value)| _ = writeln!(text, "play.{key} = {value}"));
        }
        text.push_str(&self.server.map(Server::lines).transpose()?.unwrap_or_default());
        Ok(text)
    }
}

/// Returns `true` if a configuration can hold the name as a bare TOML key. Names on tapes can be anything.
fn is_plain(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    !name.is_empty() && name.bytes().all(allowed)
}

fn head(rules: &Path) -> Result<String, Failure> {
    Ok(format!("{}\n[backends.{NAME}]\n", rule_files(rules)?))
}

fn rule_files(rules: &Path) -> Result<String, Failure> {
    let rules = std::path::absolute(rules).map_err(|error| Failure::File { path: rules.to_owned(), error })?;
    let rules = rules.to_str().ok_or_else(|| unwritable(rules.as_os_str()))?;
    Ok(format!("[gateway]\nrule_files = [{}]\n", quoted(rules)))
}

fn unwritable(word: &std::ffi::OsStr) -> Failure {
    Failure::Usage(format!("every argument must be UTF-8 here, but `{}` is not", word.to_string_lossy()))
}

fn list(words: &[&str]) -> String {
    format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}

/// Quotes a text as a TOML value, with dollar signs escaped: they would begin a reference otherwise.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.replace('$', "$$")).to_string()
}

/// Temporary configuration file. Removed on drop.
#[derive(Debug)]
pub struct AdHocFile(PathBuf);

impl AdHocFile {
    /// Writes the configuration into `folder`, readable by the current user only.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(folder: &Path, text: &str) -> Result<Self, Failure> {
        let path = folder.join(format!("ad-hoc-{}.toml", std::process::id()));
        let write = || -> io::Result<()> {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(PRIVATE).open(&path)?;
            file.write_all(text.as_bytes())
        };
        match write() {
            Ok(()) => Ok(Self(path)),
            Err(error) => Err(Failure::File { path, error }),
        }
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for AdHocFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_config::{BackendTarget, Config, Overrides};

    /// The configuration without its rules, which are read elsewhere.
    fn read(text: &str) -> Config {
        let (rules, rest) = text.split_once("\n\n").unwrap();
        assert_eq!(rules, "[gateway]\nrule_files = [\"/etc/rules.toml\"]");
        let overrides = Overrides { data_dir: Some("/nowhere".into()), ..Overrides::default() };
        Config::parse(Path::new("ad-hoc.toml"), rest, &|_| None, &overrides).unwrap().config
    }

    #[test]
    fn a_command_comes_through_as_it_was_written() {
        let command = ["npx", "-y", "a b", "${HOME}", "\"q\"\n", "$5"].map(OsString::from);
        let text = wrapped(&command, &["PATH".into(), "TOKEN".into()], Path::new("/etc/rules.toml")).unwrap();
        let config = read(&text);
        let BackendTarget::Command { program, args, env_pass, .. } = &config.backends[0].target else {
            panic!("{config:?}")
        };
        assert_eq!(program, "npx");
        assert_eq!(args, &["-y", "a b", "${HOME}", "\"q\"\n", "$5"]);
        assert_eq!(env_pass, &["PATH", "TOKEN"]);
    }

    #[test]
    fn an_address_comes_through_as_it_was_written() {
        let config = read(&proxied("http://127.0.0.1:1/mcp?k=$x", Path::new("/etc/rules.toml")).unwrap());
        let BackendTarget::Url { url, .. } = &config.backends[0].target else { panic!("{config:?}") };
        assert_eq!(url.to_string(), "http://127.0.0.1:1/mcp?k=$x");
    }

    #[test]
    fn a_replay_has_its_seed_and_the_name_of_the_recorded_backend_where_it_can_be_one() {
        let rules = Some(Path::new("/etc/rules.toml"));
        let named = |name| ReplayConfig { name: Some(name), tape: Some("x.tape"), rules, ..ReplayConfig::default() };
        let text = ReplayConfig { seed: Some(7), ..named("my_files-2") }.text().unwrap();
        assert_eq!(
            text,
            "[gateway]\nrule_files = [\"/etc/rules.toml\"]\nrule_seed = 7\n[backends.my_files-2]\ntape = \"x.tape\"\n"
        );
        for name in ["", "a.b", "a]\n[gateway", "ä"] {
            assert!(named(name).text().unwrap().contains("\n[backends.tape]\n"), "{name}");
        }
    }

    #[test]
    fn the_file_is_private_and_goes_with_its_owner() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = AdHocFile::write(folder.path(), "x = 1\n").unwrap();
        let path = file.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        drop(file);
        assert!(!path.exists());
    }
}
