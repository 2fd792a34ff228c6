//! Finds and reads the configuration file.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use super::error::{ConfigError, ConfigPlace, Position, Problem};
use super::expand::Env;

/// Name of the configuration file.
pub const FILE_NAME: &str = "signalbox.toml";

/// Maximum size of a file, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;

/// Location of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfigLocation {
    File(PathBuf),
    /// No file was found, so the defaults apply.
    Defaults,
}

impl ConfigLocation {
    /// Finds the configuration: `-c FILE`, else `SIGNALBOX_CONFIG`, else `signalbox.toml` in `current`, else in the
    /// user's config folder, else the defaults.
    ///
    /// A file that was asked for is taken even if it does not exist, so that loading it reports the error.
    pub fn find(flag: Option<&Path>, variable: Option<&Path>, current: &Path, env: &Env<'_>) -> Self {
        if let Some(asked) = flag.or(variable) {
            return Self::File(asked.to_owned());
        }
        // In the current folder, messages name the file as the user would.
        let here = if current == Path::new(".") { PathBuf::new() } else { current.to_owned() };
        let user = user_folder(env, "XDG_CONFIG_HOME", ".config");
        let candidates = [Some(here), user.map(|folder| folder.join("signalbox"))];
        candidates
            .into_iter()
            .flatten()
            .map(|folder| folder.join(FILE_NAME))
            .find(|file| file.symlink_metadata().is_ok())
            .map_or(Self::Defaults, Self::File)
    }
}

/// Returns a folder of the user by the XDG rules, which ignore relative paths.
pub(super) fn user_folder(env: &Env<'_>, variable: &str, below_home: &str) -> Option<PathBuf> {
    let absolute = |path: String| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    let home = || env("HOME").and_then(absolute).map(|home| home.join(below_home));
    env(variable).and_then(absolute).or_else(home)
}

/// Reads the text of a file, without a byte order mark.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    let fail = |problem| ConfigError::new(ConfigPlace::file(path), problem);
    let unreadable = |error: std::io::Error| {
        fail(match error.kind() {
            ErrorKind::NotFound => Problem::FileMissing,
            kind => Problem::Unreadable(kind),
        })
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(fail(Problem::TooLarge { limit: MAX_FILE }));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let bytes = error.into_bytes();
        let before = String::from_utf8_lossy(&bytes[..valid]);
        let mut place = ConfigPlace::file(path);
        place.position = Some(Position::of(&before, valid));
        ConfigError::new(place, Problem::NotUtf8)
    })
}
