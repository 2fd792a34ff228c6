//! The layers around the file: where it is found, what cannot be read, and what wins over it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::{FULL, env, good};
use crate::*;

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("signalbox-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, content).expect("a file");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn load(path: &Path) -> Result<CheckedConfig, ConfigError> {
    Config::load(&ConfigLocation::File(path.to_owned()), &env, &Overrides::default())
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new("unreadable");
    let large = folder.file("large.toml", &vec![b'\n'; 1024 * 1024 + 1]);
    let full = folder.file("full.toml", &vec![b'\n'; 1024 * 1024]);
    let latin = folder.file("latin.toml", b"# a\n# caf\xe9\n");
    let missing = folder.0.join("missing.toml");
    assert!(load(&full).is_ok());
    for (path, expected) in [
        (&missing, ": no such file; check the path, or leave out `-c` to use the defaults"),
        (&large, ": the file is larger than 1048576 bytes; name a configuration file, or shorten it"),
        (&latin, ":2:6: not valid UTF-8; save the file as UTF-8"),
        (&folder.0, ": the file cannot be read (is a directory); it must be a regular file that this user may read"),
    ] {
        let message = load(path).expect_err("unreadable").to_string();
        assert_eq!(message, format!("{}{expected}", path.display()));
    }
}

#[test]
fn the_file_is_searched_for() {
    let folder = Folder::new("search");
    let here = folder.0.join("here");
    fs::create_dir_all(&here).expect("a folder");
    let home = folder.0.display().to_string();
    let vars = |name: &str| (name == "HOME").then(|| home.clone());
    let find = |flag: Option<&str>, variable: Option<&str>| {
        ConfigLocation::find(flag.map(Path::new), variable.map(Path::new), &here, &vars)
    };
    assert_eq!(find(None, None), ConfigLocation::Defaults);
    let user = folder.file(".config/signalbox/signalbox.toml", b"");
    assert_eq!(find(None, None), ConfigLocation::File(user));
    let local = folder.file("here/signalbox.toml", b"");
    assert_eq!(find(None, None), ConfigLocation::File(local));
    assert_eq!(find(None, Some("v")), ConfigLocation::File("v".into()));
    assert_eq!(find(Some("f"), Some("v")), ConfigLocation::File("f".into()));
    let xdg = folder.file("xdg/signalbox/signalbox.toml", b"");
    let vars = |name: &str| (name == "XDG_CONFIG_HOME").then(|| format!("{home}/xdg"));
    assert_eq!(ConfigLocation::find(None, None, &folder.0, &vars), ConfigLocation::File(xdg));
}

fn environment(variables: &[(&str, &str)]) -> Result<Environment, ConfigError> {
    let pairs = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Environment::read(pairs)
}

/// Proves SO-17.
#[test]
fn flags_win_over_the_environment_and_that_over_the_file() {
    let environment = environment(&[
        ("PATH", "/bin"),
        ("SIGNALBOX_LISTEN", "[::1]:7000"),
        ("SIGNALBOX_LOG_LEVEL", "trace"),
        ("SIGNALBOX_DATA_DIR", "/var/box"),
        ("SIGNALBOX_CONFIG", "other.toml"),
    ])
    .expect("good variables");
    assert_eq!(environment.config, Some("other.toml".into()));
    let flags = Overrides { listen: Some("localhost:1".parse().expect("an address")), ..Overrides::default() };
    let file = Path::new("signalbox.toml");
    let of_file = Config::parse(file, FULL, &env, &Overrides::default()).expect("good").config;
    let of_env = Config::parse(file, FULL, &env, &environment.overrides).expect("good").config;
    assert_eq!((of_env.listen.host.to_string().as_str(), of_env.listen.port), ("::1", 7000));
    assert_eq!(of_env.listen.path, of_file.listen.path);
    assert_eq!((of_env.log_level, of_file.log_level), (LogVerbosity::Trace, LogVerbosity::Debug));
    let both = flags.over(environment.overrides);
    let of_flags = Config::parse(file, FULL, &env, &both).expect("good").config;
    assert_eq!((of_flags.listen.port, of_flags.log_level), (1, LogVerbosity::Trace));
    assert_eq!(of_flags.data_dir, Path::new("/var/box"));
}

#[test]
fn a_command_with_a_server_of_its_own_is_not_compared_with_the_baseline() {
    let text = "[record]\nbaseline = 'x.tape'\nbaseline_ignore = ['/result/at']\nbaseline_tolerance = 0.5\n";
    let record = good(text).record;
    let baseline = record.baseline.as_ref().expect("a baseline");
    assert_eq!(baseline.tape, TapeName::File("x.tape".into()));
    assert_eq!((baseline.settings.tolerance, &*baseline.settings.ignored.to_string()), (0.5, "/result/at\n"));
    let named = good("[record]\nbaseline = '68a-1'\n").record.baseline.expect("a baseline");
    assert_eq!(named.tape, TapeName::Stored("68a-1".to_owned()));
    assert_eq!(good("").record.baseline, None);
    let flags = Overrides { record: Some(record), ..Overrides::default() };
    let own = Config::parse(Path::new("signalbox.toml"), "", &env, &flags).expect("good").config;
    assert_eq!(own.record.baseline, None);
}

#[test]
fn an_address_that_others_reach_is_not_listened_on_without_authentication() {
    let overrides = environment(&[("SIGNALBOX_LISTEN", "0.0.0.0:80")]).expect("an address").overrides;
    let open =
        |text: &str| Config::parse(Path::new("a.toml"), text, &env, &overrides).map(|loaded| loaded.config.listen.host);
    let message = open("").expect_err("nobody has to say who they are").to_string();
    assert!(message.starts_with("command line or environment: listen: listening beyond loopback needs"), "{message}");
    let tls = "[mcp.protocol.transport.tls]\nenabled = true\nself_signed = true\nca_file = 'ca.pem'\n";
    assert!(open(&format!("{tls}client_auth = 'optional'\n")).is_err());
    assert_eq!(open(tls), Ok("0.0.0.0".parse().expect("an address")));
}

#[test]
fn bad_variables() {
    for (name, value, expected) in [
        ("SIGNALBOX_LISTEN", "8080", "expected HOST:PORT, like 127.0.0.1:8080, found `8080`"),
        ("SIGNALBOX_LOG_LEVEL", "loud", "expected `error`, `warn`, `info`, `debug` or `trace`, found `loud`"),
    ] {
        let message = environment(&[(name, value)]).expect_err("bad").to_string();
        assert_eq!(message, format!("environment: {name}: {expected}"));
    }
    assert_eq!(environment(&[("SIGNALBOX_LISTEN", "")]), Ok(Environment::default()));
}

#[test]
fn without_a_home_the_data_folder_has_to_be_named() {
    let nothing = |_: &str| None;
    let error = Config::load(&ConfigLocation::Defaults, &nothing, &Overrides::default()).expect_err("no home");
    assert_eq!(
        error.to_string(),
        "environment: HOME: no home folder is known; set HOME, SIGNALBOX_DATA_DIR or `--data-dir`"
    );
    let named = Overrides { data_dir: Some("/d".into()), ..Overrides::default() };
    assert!(Config::load(&ConfigLocation::Defaults, &nothing, &named).is_ok());
    let xdg = |name: &str| (name == "XDG_STATE_HOME").then(|| "/state".to_owned());
    let config = Config::load(&ConfigLocation::Defaults, &xdg, &Overrides::default()).expect("good").config;
    assert_eq!(config.data_dir, Path::new("/state/signalbox"));
}
