//! The TLS settings of a connection string, named as in libpq.

use std::path::PathBuf;

/// Error of an invalid database address. It never quotes the address, which may contain the password.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PostgresAddressError {
    /// The address cannot be parsed.
    #[error("its URL is not of the form postgres://user:password@host:port/database")]
    Form,
    /// The mode is unknown.
    #[error("sslmode is one of `disable`, `prefer`, `require`, `verify-ca` and `verify-full`")]
    Mode,
    /// The mode checks certificates, but no authority is trusted.
    #[error(
        "sslmode=verify-ca and sslmode=verify-full need sslrootcert, a file with the authorities that sign servers' certificates"
    )]
    NoRoot,
    /// The system's authorities issue certificates to any applicant, so the host has to be checked too.
    #[error("sslrootcert=system needs sslmode=verify-full: anybody can get a certificate that the system trusts")]
    WeakSystem,
    /// One of certificate and key is missing.
    #[error("sslcert and sslkey only work together")]
    HalfPair,
    /// The settings have no effect without TLS.
    #[error("sslrootcert, sslcert and sslkey have no effect with sslmode=disable; remove them")]
    Disabled,
    /// The setting is known to libpq, but not supported here.
    #[error("{0} is not supported")]
    Unsupported(&'static str),
}

/// Settings of libpq that would change the trusted certificates, so that ignoring them would be unsafe.
const UNSUPPORTED: [&str; 9] = [
    "sslcompression",
    "sslcertmode",
    "sslcrl",
    "sslcrldir",
    "sslpassword",
    "sslsni",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "requiressl",
];

/// Level of TLS, as in the parameter `sslmode`.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum TlsMode {
    /// TLS is never used.
    Disable,
    /// TLS if the server supports it. The server's certificate is not checked.
    #[default]
    Prefer,
    /// TLS is required. The server's certificate is not checked, unless authorities are configured.
    Require,
    /// The server's certificate must be signed by a trusted authority.
    VerifyCa,
    /// The certificate must also match the host.
    VerifyFull,
}

/// Source of the trusted authorities.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Roots {
    /// Authorities in a file.
    File(PathBuf),
    /// Authorities that the system trusts.
    System,
}

/// TLS settings of an address.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ssl {
    pub mode: TlsMode,
    /// Authorities to trust, if configured.
    pub roots: Option<Roots>,
    /// Client certificate and its key, for a server that asks for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Splits an address into its TLS settings and the rest.
pub fn split(address: &str) -> Result<(Ssl, String), PostgresAddressError> {
    let mut options = TlsOptions::default();
    let rest = match address.starts_with("postgres://") || address.starts_with("postgresql://") {
        true => options.url(address)?,
        false => options.pairs(address)?,
    };
    Ok((options.ssl()?, rest))
}

#[derive(Default)]
struct TlsOptions {
    mode: Option<String>,
    root: Option<String>,
    cert: Option<String>,
    key: Option<String>,
}

impl TlsOptions {
    /// Stores a TLS setting. Returns false if the key is not one.
    fn take(&mut self, key: &str, value: String) -> Result<bool, PostgresAddressError> {
        match key {
            "sslmode" => self.mode = Some(value),
            "sslrootcert" => self.root = Some(value),
            "sslcert" => self.cert = Some(value),
            "sslkey" => self.key = Some(value),
            _ => {
                let unsupported = UNSUPPORTED.into_iter().find(|name| *name == key);
                return unsupported.map_or(Ok(false), |name| Err(PostgresAddressError::Unsupported(name)));
            }
        }
        Ok(true)
    }

    fn url(&mut self, url: &str) -> Result<String, PostgresAddressError> {
        // The password may contain a question mark.
        let behind = url.find('@').unwrap_or(0);
        let Some(mark) = url[behind..].find('?').map(|place| behind + place) else { return Ok(url.to_owned()) };
        let mut rest = Vec::new();
        for pair in url[mark + 1..].split('&') {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !self.take(key, decoded(value).ok_or(PostgresAddressError::Form)?)? {
                rest.push(pair);
            }
        }
        let before = &url[..mark];
        Ok(if rest.is_empty() { before.to_owned() } else { format!("{before}?{}", rest.join("&")) })
    }

    fn pairs(&mut self, text: &str) -> Result<String, PostgresAddressError> {
        let mut rest = String::new();
        let mut left = text.trim_start();
        while !left.is_empty() {
            let (key, behind) = left.split_once('=').ok_or(PostgresAddressError::Form)?;
            let (value, behind) = value(behind.trim_start())?;
            if !self.take(key.trim(), value)? {
                rest.push_str(&left[..left.len() - behind.len()]);
                rest.push(' ');
            }
            left = behind.trim_start();
        }
        Ok(rest)
    }

    fn ssl(self) -> Result<Ssl, PostgresAddressError> {
        let mode = match self.mode.as_deref() {
            None => TlsMode::default(),
            Some("disable") => TlsMode::Disable,
            Some("prefer") => TlsMode::Prefer,
            Some("require") => TlsMode::Require,
            Some("verify-ca") => TlsMode::VerifyCa,
            Some("verify-full") => TlsMode::VerifyFull,
            Some(_) => return Err(PostgresAddressError::Mode),
        };
        let roots = self.root.map(|root| if root == "system" { Roots::System } else { Roots::File(root.into()) });
        let identity = match (self.cert, self.key) {
            (Some(cert), Some(key)) => Some((cert.into(), key.into())),
            (None, None) => None,
            _ => return Err(PostgresAddressError::HalfPair),
        };
        match (mode, &roots) {
            (TlsMode::Disable, _) if roots.is_some() || identity.is_some() => Err(PostgresAddressError::Disabled),
            (TlsMode::VerifyCa | TlsMode::VerifyFull, None) => Err(PostgresAddressError::NoRoot),
            (TlsMode::Prefer | TlsMode::Require | TlsMode::VerifyCa, Some(Roots::System)) => {
                Err(PostgresAddressError::WeakSystem)
            }
            // As in libpq: configured authorities are meant to be used.
            (TlsMode::Require, Some(Roots::File(_))) => Ok(Ssl { mode: TlsMode::VerifyCa, roots, identity }),
            _ => Ok(Ssl { mode, roots, identity }),
        }
    }
}

/// Reads a value at the beginning of a text. Returns it with the rest.
fn value(text: &str) -> Result<(String, &str), PostgresAddressError> {
    let (quoted, text) = text.strip_prefix('\'').map_or((false, text), |rest| (true, rest));
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, next)| next)),
            '\'' if quoted => return Ok((value, &text[place + 1..])),
            space if !quoted && space.is_whitespace() => return Ok((value, &text[place..])),
            other => value.push(other),
        }
    }
    if quoted { Err(PostgresAddressError::Form) } else { Ok((value, "")) }
}

/// Decodes the percent-encoding of a text.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.as_bytes();
    while let [first, rest @ ..] = left {
        left = rest;
        if *first == b'%' {
            let (digits, rest) = left.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            left = rest;
        } else {
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_about_tls_is_taken_out_of_both_forms() {
        let expected = Ssl {
            mode: TlsMode::VerifyFull,
            roots: Some(Roots::File("/etc/my ca.pem".into())),
            identity: Some(("a.pem".into(), "a.key".into())),
        };
        let url = "postgres://ann:s?c@db:5433/t?sslmode=verify-full&connect_timeout=3&sslrootcert=/etc/my%20ca.pem&sslcert=a.pem&sslkey=a.key";
        assert_eq!(split(url), Ok((expected.clone(), "postgres://ann:s?c@db:5433/t?connect_timeout=3".into())));
        let pairs = r"host=db sslmode = verify-full sslrootcert='/etc/my ca.pem' password='a\'b c' sslcert=a.pem sslkey=a.key dbname=t";
        assert_eq!(split(pairs), Ok((expected, r"host=db password='a\'b c' dbname=t ".into())));
        for plain in ["postgres://ann@db/t", "postgresql:///t"] {
            assert_eq!(split(plain), Ok((Ssl::default(), plain.into())));
        }
        assert_eq!(split("postgres://db/t?sslmode=disable").unwrap().1, "postgres://db/t");
    }

    #[test]
    fn every_mode_is_known_and_others_are_refused() {
        let said = |said: &str| split(&format!("postgres://db/t?{said}")).map(|(ssl, _)| ssl.mode);
        assert_eq!(said("sslmode=disable"), Ok(TlsMode::Disable));
        assert_eq!(said("sslmode=prefer"), Ok(TlsMode::Prefer));
        assert_eq!(said("sslmode=require"), Ok(TlsMode::Require));
        assert_eq!(said("sslmode=require&sslrootcert=ca.pem"), Ok(TlsMode::VerifyCa));
        assert_eq!(said("sslmode=verify-ca&sslrootcert=ca.pem"), Ok(TlsMode::VerifyCa));
        assert_eq!(said("sslmode=verify-full&sslrootcert=system"), Ok(TlsMode::VerifyFull));
        for wrong in ["sslmode=allow", "sslmode=", "sslmode=Require", "sslmode=verify_full"] {
            assert_eq!(said(wrong), Err(PostgresAddressError::Mode), "{wrong}");
        }
        assert_eq!(said("sslmode=verify-full"), Err(PostgresAddressError::NoRoot));
        assert_eq!(said("sslmode=verify-ca&sslrootcert=system"), Err(PostgresAddressError::WeakSystem));
        assert_eq!(said("sslcert=a.pem"), Err(PostgresAddressError::HalfPair));
        assert_eq!(said("sslmode=disable&sslrootcert=ca.pem"), Err(PostgresAddressError::Disabled));
        assert_eq!(said("sslcrl=x"), Err(PostgresAddressError::Unsupported("sslcrl")));
        assert_eq!(said("sslmode=%zz"), Err(PostgresAddressError::Form));
    }
}
