//! The address of the database, which is never shown with its password.

use super::Failure;
use super::ssl::{self, PostgresAddressError, Ssl, TlsMode};
use super::tls::{PgTlsConnector, PgTlsError};
use ::postgres::config::{Host, SslMode};
use ::postgres::error::SqlState;
use ::postgres::{Client, Config, NoTls};
use signalbox_engine::record::StoreError;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of connecting if the URL does not set one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings of every connection. The lock timeout limits how long another process may hold a table.
const SETTINGS: &str = "SET lock_timeout = '5s'; SET search_path = signalbox; SET client_min_messages = warning";

/// Error of connecting to the database.
#[derive(Debug, thiserror::Error)]
enum NoConnection {
    /// The TLS settings cannot be used.
    #[error(transparent)]
    Tls(#[from] PgTlsError),
    /// The database does not answer, or rejected the connection.
    #[error("{}", why(.0))]
    Database(#[from] ::postgres::Error),
}

/// Address of the database and its TLS settings.
#[derive(Clone)]
pub struct PostgresAddress {
    config: Config,
    ssl: Ssl,
    shown: Arc<str>,
}

impl PostgresAddress {
    /// Parses an address: a URL, or pairs of keys and values.
    pub fn read(address: &str) -> Result<Self, PostgresAddressError> {
        let (ssl, rest) = ssl::split(address)?;
        // The parser's error may quote the password. Do not pass it on.
        let mut config: Config = rest.parse().map_err(|_| PostgresAddressError::Form)?;
        let shown: Arc<str> = shown(&config).into();
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        config.application_name("signalbox");
        Ok(Self { config, ssl, shown })
    }

    /// Opens another connection to the database.
    pub fn connect(&self) -> Result<Client, StoreError> {
        self.greet().map_err(|error| StoreError::Open { place: self.shown.to_string(), why: error.to_string() })
    }

    fn greet(&self) -> Result<Client, NoConnection> {
        let all_local = self.config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)));
        let mut client = match self.ssl.mode {
            // There is no TLS on a local socket.
            _ if all_local && !self.config.get_hosts().is_empty() => self.plain(),
            TlsMode::Disable => self.plain(),
            TlsMode::Prefer => match self.secure(SslMode::Prefer)? {
                // The server's TLS may be broken, or it may accept this user only without TLS.
                Err(error) if is_about_tls(&error) => self.plain().map_err(|_| error),
                connected => connected,
            },
            TlsMode::Require | TlsMode::VerifyCa | TlsMode::VerifyFull => self.secure(SslMode::Require)?,
        }?;
        client.batch_execute(SETTINGS)?;
        Ok(client)
    }

    fn plain(&self) -> Result<Client, ::postgres::Error> {
        self.config.clone().ssl_mode(SslMode::Disable).connect(NoTls)
    }

    /// Reads the certificates each time, so that new ones are used without a restart.
    fn secure(&self, mode: SslMode) -> Result<Result<Client, ::postgres::Error>, PgTlsError> {
        let connector = PgTlsConnector::read(&self.ssl)?;
        Ok(self.config.clone().ssl_mode(mode).connect(connector))
    }

    /// Returns the address in a form to show to a user.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Returns the address without user and password, so that it is the same for every user of the database.
    pub fn database(&self) -> String {
        let user = self.config.get_user().unwrap_or_default();
        self.shown.replacen(&format!("//{user}@"), "//", 1)
    }

    /// Converts a failure to an error of the store, with the address.
    pub fn with_place<T>(&self, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| match failure {
            Failure::Store(error) => error,
            Failure::DecodeError(torn) => StoreError::Damaged { place: self.shown.to_string(), why: torn.to_string() },
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

/// Returns true if a retry without TLS may succeed.
fn is_about_tls(error: &::postgres::Error) -> bool {
    error.code() == Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
        || error.source().is_some_and(|source| source.is::<PgTlsError>())
}

/// Returns the database's message, without the position in our own SQL.
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
        let place = PostgresAddress::read("postgres://ann:s3cret@db.example:5433/tapes").unwrap();
        assert_eq!(place.shown(), "postgres://ann@db.example:5433/tapes");
    }

    #[test]
    fn a_torn_url_is_told_without_its_words() {
        for torn in ["postgres://ann:s3cret@db:port/t", "s3cret", "postgres://ann:s3cret@db/t?s3cret=1"] {
            assert_eq!(PostgresAddress::read(torn).map(|_| ()), Err(PostgresAddressError::Form), "{torn}");
        }
    }

    #[test]
    fn a_server_that_is_not_there_is_told_without_its_password() {
        let place = PostgresAddress::read("postgres://ann:s3cret@127.0.0.1:1/t").unwrap();
        let error = place.connect().map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot open postgres://ann@127.0.0.1:1/t: ") && !error.contains("s3cret"),
            "{error}"
        );
    }
}
