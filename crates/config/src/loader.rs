//! Reads the configuration again, in the same way as at the start.

use super::{CheckedConfig, Config, ConfigError, ConfigLocation, Environment, PolicyFolder, locate};
use signalbox_engine::lock::LockResultExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::SystemTime;

/// Lookup of environment variables, as the process sees them.
type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Sources of a process's configuration, and the contents read last. Flags and variables stay as they were at the
/// start.
pub struct Loader {
    flag: Option<PathBuf>,
    environment: Environment,
    env: Box<Variables>,
    last: Mutex<Last>,
}

#[derive(Default)]
struct Last {
    /// A file that was found once is the only one from then on: if it is lost, no other one may take its place.
    found: Option<PathBuf>,
    /// Content of that file, or the error from reading it.
    text: Option<Result<String, ConfigError>>,
    /// Files of rules and policies that it names, each with its stamp when read.
    rules: Vec<(PathBuf, Option<Stamp>)>,
}

/// Modification time and length of a file.
type Stamp = (SystemTime, u64);

fn stamp(file: &Path) -> Option<Stamp> {
    let data = std::fs::metadata(file).ok()?;
    Some((data.modified().ok()?, data.len()))
}

impl Loader {
    /// Reads `flag`, else the file of `environment`, else the first that is found, and lays the overrides over it.
    pub fn new(
        flag: Option<PathBuf>,
        environment: Environment,
        env: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        Self { flag, environment, env: Box::new(env), last: Mutex::default() }
    }

    /// Returns the configuration file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<PathBuf> {
        if let Some(found) = &self.lock().found {
            return Some(found.clone());
        }
        match ConfigLocation::find(self.flag.as_deref(), self.environment.config.as_deref(), Path::new("."), &*self.env)
        {
            ConfigLocation::File(file) => Some(file),
            ConfigLocation::Defaults => None,
        }
    }

    /// Returns every file that the configuration was read from: its own, and those of rules and policies.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let rules: Vec<PathBuf> = self.lock().rules.iter().map(|(file, _)| file.clone()).collect();
        self.file().into_iter().chain(rules).collect()
    }

    /// Reads the configuration and remembers the contents.
    ///
    /// # Errors
    /// Returns everything that is wrong with the configuration.
    pub fn load(&self) -> Result<CheckedConfig, ConfigError> {
        let file = self.file();
        let text = file.as_deref().map(locate::read);
        {
            let mut last = self.lock();
            (last.found, last.text) = (file.clone(), text.clone());
            // Files read below may be newer than these stamps. They are then read once more.
            last.rules.iter_mut().for_each(|(file, seen)| *seen = stamp(file));
        }
        let text = text.transpose()?.unwrap_or_default();
        let mut loaded = match file {
            Some(file) => Config::parse(&file, &text, &*self.env, &self.environment.overrides),
            None => Config::load(&ConfigLocation::Defaults, &*self.env, &self.environment.overrides),
        }?;
        loaded.warnings.extend(self.environment.warnings(&text));
        let policies = loaded.config.permissions.policies.iter().flat_map(PolicyFolder::watched);
        let files: Vec<PathBuf> = loaded.config.rules.files.iter().cloned().chain(policies).collect();
        let mut last = self.lock();
        if !last.rules.iter().map(|(file, _)| file).eq(&files) {
            last.rules = files.iter().map(|file| (file.clone(), stamp(file))).collect();
        }
        drop(last);
        Ok(loaded)
    }

    /// Returns the data folder, as far as even a bad file tells it, and the error of that file. Commands that ask a
    /// process for its state, or make it reload, must find the folder all the same.
    ///
    /// # Errors
    /// Returns an error if there is no folder in which to keep state.
    pub fn data_dir(&self) -> Result<(PathBuf, Option<ConfigError>), ConfigError> {
        let error = match self.load() {
            Ok(loaded) => return Ok((loaded.config.data_dir, None)),
            Err(error) => error,
        };
        let defaults =
            Config::load(&ConfigLocation::Defaults, &*self.env, &self.environment.overrides)?.config.data_dir;
        if self.environment.overrides.data_dir.is_some() {
            return Ok((defaults, Some(error)));
        }
        let said = match &*self.lock() {
            Last { found: Some(file), text: Some(Ok(text)), .. } => said_data_dir(file, text),
            _ => None,
        };
        Ok((said.unwrap_or(defaults), Some(error)))
    }

    /// Compares the file with what was read last.
    #[must_use]
    pub fn look(&self) -> News {
        let text = self.file().as_deref().map(locate::read);
        match &text {
            same if *same == self.lock().text => match self.rules_changed() {
                true => News::Other,
                false => News::None,
            },
            Some(Ok(text)) if text.trim().is_empty() => News::Empty,
            _ => News::Other,
        }
    }

    fn rules_changed(&self) -> bool {
        self.lock().rules.iter().any(|(file, seen)| stamp(file) != *seen)
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unpoisoned()
    }
}

/// Returns the data folder that a TOML file names, if it does so without a variable.
fn said_data_dir(file: &Path, text: &str) -> Option<PathBuf> {
    let table: toml::Table = text.parse().ok()?;
    let said = table.get("gateway")?.get("data_dir")?.as_str().filter(|said| !said.contains("${"))?;
    Some(file.parent().unwrap_or(Path::new("")).join(said))
}

/// Change of a configuration file since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The content is unchanged.
    None,
    /// The file is empty, as it is while an editor writes it.
    Empty,
    /// The content differs, or the file cannot be read.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Overrides, Problem};

    fn loader(file: &Path) -> Loader {
        let overrides = Overrides { data_dir: Some("/nowhere".into()), ..Overrides::default() };
        Loader::new(Some(file.to_owned()), Environment { overrides, ..Environment::default() }, |_| None)
    }

    #[test]
    fn a_file_is_news_only_while_it_says_something_else_than_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        std::fs::write(&file, "[gateway]\ndrain = 3\n").unwrap();
        let loader = loader(&file);
        assert_eq!(loader.look(), News::Other);
        assert_eq!(loader.load().unwrap().config.gateway.drain.as_secs(), 3);
        assert_eq!(loader.look(), News::None);
        std::fs::write(&file, "").unwrap();
        assert_eq!(loader.look(), News::Empty);
        std::fs::write(&file, "[gateway]\ndrain = 4\n").unwrap();
        assert_eq!(loader.look(), News::Other);
        std::fs::write(&file, "[gateway]\ndrain = 3\n").unwrap();
        assert_eq!(loader.look(), News::None);
    }

    #[test]
    fn a_file_of_made_up_results_is_news_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        let results = folder.path().join("rules/answers.json");
        std::fs::create_dir(folder.path().join("rules")).unwrap();
        std::fs::write(&file, "[gateway]\nrule_files = ['rules/mine.toml']\n").unwrap();
        let rule = "[[rules]]\nid = 'r'\nthen = { mock = { file = 'answers.json' } }\n";
        std::fs::write(folder.path().join("rules/mine.toml"), rule).unwrap();
        let loader = loader(&file);
        let told = loader.load().unwrap_err().to_string();
        assert!(told.contains("mine.toml:3:26: rules[0].then.mock.file: `answers.json`: cannot be read: "), "{told}");
        std::fs::write(&results, "{}").unwrap();
        let before = loader.load().unwrap().config.rules;
        assert!(loader.files().contains(&results), "{:?}", loader.files());
        assert_eq!(loader.look(), News::None);
        std::fs::write(&results, r#"{"content":[]}"#).unwrap();
        assert_eq!(loader.look(), News::Other);
        assert_ne!(loader.load().unwrap().config.rules, before);
        assert_eq!(loader.look(), News::None);
        std::fs::write(&results, vec![b' '; 5 * 1024 * 1024]).unwrap();
        let told = loader.load().unwrap_err().to_string();
        assert!(told.contains("larger than 4194304 bytes"), "{told}");
    }

    #[test]
    fn the_data_folder_of_a_bad_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        let env = |name: &str| (name == "HOME").then(|| "/home/ann".to_owned());
        let told = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let loader = Loader::new(Some(file.clone()), Environment::default(), env);
            let (data_dir, error) = loader.data_dir().unwrap();
            (data_dir, error.is_some())
        };
        let default = Path::new("/home/ann/.local/state/signalbox").to_owned();
        assert_eq!(told("[gateway]\ndata_dir = 'data'\n"), (folder.path().join("data"), false));
        assert_eq!(told("[gateway]\ndata_dir = 'data'\ncolour = 1\n"), (folder.path().join("data"), true));
        assert_eq!(told("[gateway\ndata_dir = 'data'\n"), (default.clone(), true));
        assert_eq!(told("colour = 1\n"), (default, true));
        std::fs::write(&file, "colour = 1\n").unwrap();
        assert_eq!(loader(&file).data_dir().unwrap().0, Path::new("/nowhere"));
    }

    /// Kubernetes sets such variables for a service called `signalbox`, and a file may read one of its own.
    #[test]
    fn unknown_variables_that_the_file_does_not_read_are_warnings() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        std::fs::write(&file, "[gateway]\ndata_dir = '${SIGNALBOX_TOKEN}'\n").unwrap();
        let names = ["SIGNALBOX_PORT", "SIGNALBOX_LISTN", "SIGNALBOX_TOKEN", "SIGNALBOX_URL", "SIGNALBOX_KEY"];
        let environment = Environment::read(names.map(|name| (name.into(), "tcp://10.0.0.1:80".into()))).unwrap();
        let loader = Loader::new(Some(file), environment, |_| Some("/tmp".to_owned()));
        let warnings = loader.load().unwrap().warnings;
        let told: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(
            told[0],
            "environment: SIGNALBOX_LISTN: ignored: unknown variable; did you mean `SIGNALBOX_LISTEN`?"
        );
        assert!(told[1].starts_with("environment: SIGNALBOX_PORT: ignored: unknown variable; "), "{told:?}");
    }

    #[test]
    fn a_bad_file_is_news_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("signalbox.toml");
        std::fs::write(&file, "x").unwrap();
        let loader = loader(&file);
        assert!(loader.load().is_err());
        assert_eq!(loader.look(), News::None);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(loader.look(), News::Other);
        assert_eq!(*loader.load().unwrap_err().problem, Problem::FileMissing);
        assert_eq!(loader.look(), News::None);
    }

    #[test]
    fn a_file_that_was_found_is_not_given_up_for_the_defaults() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("signalbox");
        std::fs::create_dir(&folder).unwrap();
        let config_home = home.path().to_str().unwrap().to_owned();
        let overrides = Overrides { data_dir: Some("/nowhere".into()), ..Overrides::default() };
        let env = move |name: &str| (name == "XDG_CONFIG_HOME").then(|| config_home.clone());
        let loader = Loader::new(None, Environment { overrides, ..Environment::default() }, env);
        // Nothing is there yet: the defaults apply, and a file that appears is news.
        assert_eq!(loader.load().unwrap().config.source, None);
        assert_eq!(loader.look(), News::None);
        let file = folder.join("signalbox.toml");
        std::fs::write(&file, "[gateway]\ndrain = 3\n").unwrap();
        assert_eq!(loader.look(), News::Other);
        assert_eq!(loader.load().unwrap().config.source.as_deref(), Some(&*file));
        std::fs::remove_file(&file).unwrap();
        assert!(loader.load().is_err());
    }
}
