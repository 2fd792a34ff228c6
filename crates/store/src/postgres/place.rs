//! Where the database is, told without its password.

use super::Failure;
use ::postgres::config::{Host, SslMode};
use ::postgres::error::SqlState;
use ::postgres::{Client, Config, NoTls};
use signalbox_engine::record::StoreError;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take where the URL does not say.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What every connection begins with. Another process may hold a table for so long before it counts as locked.
const SETTINGS: &str = "SET lock_timeout = '5s'; SET search_path = signalbox; SET client_min_messages = warning";

/// Where the database is.
#[derive(Clone)]
pub struct Place {
    config: Config,
    shown: Arc<str>,
}

impl Place {
    /// Reads a URL.
    pub fn read(url: &str) -> Result<Self, StoreError> {
        // What is wrong with it is not told in its own words: they may hold the password.
        let mut config: Config = url.parse().map_err(|_| StoreError::Open {
            place: "the database".into(),
            why: "its URL is not of the form postgres://user:password@host:port/database".into(),
        })?;
        let shown: Arc<str> = shown(&config).into();
        if config.get_ssl_mode() == SslMode::Require {
            let why = "sslmode=require is not supported; use a local socket, or a tunnel, and leave it out".into();
            return Err(StoreError::Open { place: shown.to_string(), why });
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.ssl_mode(SslMode::Disable).application_name("signalbox");
        Ok(Self { config, shown })
    }

    /// One more connection.
    pub fn connect(&self) -> Result<Client, StoreError> {
        let connected = self.config.connect(NoTls).and_then(|mut client| {
            client.batch_execute(SETTINGS)?;
            Ok(client)
        });
        connected.map_err(|error| StoreError::Open { place: self.shown.to_string(), why: why(&error) })
    }

    /// Where it is, for a person.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// A result in the words of the port.
    pub fn told<T>(&self, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| match failure {
            Failure::Said(error) => error,
            Failure::Torn(torn) => StoreError::Damaged { place: self.shown.to_string(), why: torn.to_string() },
            Failure::Postgres(error) => self.say(&error),
            Failure::Copy(error) => StoreError::Other(format!("{}: {error}", self.shown)),
        })
    }

    fn say(&self, error: &::postgres::Error) -> StoreError {
        let place = self.shown.to_string();
        match error.code() {
            Some(&SqlState::LOCK_NOT_AVAILABLE | &SqlState::T_R_DEADLOCK_DETECTED) => StoreError::Locked(place),
            Some(&SqlState::DISK_FULL) => StoreError::Full(place),
            Some(&SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED) => {
                StoreError::Damaged { place, why: why(error) }
            }
            Some(_) => StoreError::Other(format!("{place}: {}", why(error))),
            None if error.is_closed() => StoreError::Open { place, why: "the connection was lost".into() },
            None => StoreError::Other(format!("{place}: {}", why(error))),
        }
    }
}

/// What the database said, without the place in our own SQL.
fn why(error: &::postgres::Error) -> String {
    match error.as_db_error() {
        Some(said) => said.message().to_owned(),
        None => error.source().map_or_else(|| error.to_string(), |source| format!("{error}: {source}")),
    }
}

fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".into(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let user = config.get_user().unwrap_or_default();
    let name = config.get_dbname().unwrap_or(user);
    format!("postgres://{user}@{host}:{port}/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_shown_without_its_password() {
        let place = Place::read("postgres://ann:s3cret@db.example:5433/tapes").unwrap();
        assert_eq!(place.shown(), "postgres://ann@db.example:5433/tapes");
    }

    #[test]
    fn tls_is_refused_by_name_and_a_torn_url_without_its_words() {
        let error = Place::read("postgres://ann:s3cret@db/t?sslmode=require").map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("sslmode=require is not supported") && !error.contains("s3cret"), "{error}");
        for torn in ["postgres://ann:s3cret@db:port/t", "s3cret", "postgres://ann:s3cret@db/t?s3cret=1"] {
            let error = Place::read(torn).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains("is not of the form") && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told_without_its_password() {
        let place = Place::read("postgres://ann:s3cret@127.0.0.1:1/t").unwrap();
        let error = place.connect().map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot open postgres://ann@127.0.0.1:1/t: ") && !error.contains("s3cret"),
            "{error}"
        );
    }
}
