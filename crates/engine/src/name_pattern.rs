//! Patterns of names and URIs, which are interpreted in the same ways as the URIs matched against them.

use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::uri_readings::{Omission, UriReading, UriReadings};

/// Prefix of app page URIs. In their qualified form the backend follows it.
const APP: &str = "ui://";

/// Pattern of names or URIs with `*` and `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamePattern {
    text: Box<str>,
    /// Readings of a URI written like the pattern.
    readings: Box<[UriReading]>,
}

impl NamePattern {
    /// Parses a pattern, which may be of qualified names.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), readings: readings(text).into() }
    }

    /// Parses a pattern of tools and prompts, whose names have no other readings.
    #[must_use]
    pub fn of_names(text: &str) -> Self {
        Self { text: text.into(), readings: Box::default() }
    }

    /// Returns the pattern as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the pattern matches everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        !self.text.is_empty() && self.text.bytes().all(|byte| byte == b'*')
    }

    /// Returns true if this name fits the pattern as it is written.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        fits(&self.text, name, Wildcards::StarAndQuestion)
    }

    /// Returns true if this URI fits a reading of the pattern that omits nothing.
    pub(crate) fn fits_read(&self, uri: &str) -> bool {
        self.fits_reading(uri, Omission::default())
    }

    /// Returns true if this reading of a URI fits the pattern in a reading that omits no more than the URI's.
    pub(crate) fn fits_reading(&self, uri: &str, omits: Omission) -> bool {
        let read = self.readings.iter().filter(|reading| reading.omits.is_within(omits));
        self.fits(uri) || read.into_iter().any(|reading| fits(&reading.text, uri, Wildcards::StarAndQuestion))
    }
}

/// Returns the readings of a pattern besides its own text. A pattern that cannot be read is matched as it is written.
fn readings(text: &str) -> Vec<UriReading> {
    let known = |text: &str| match UriReadings::of_pattern(text) {
        UriReadings::Known(readings) => readings,
        UriReadings::Unreadable => Vec::new(),
    };
    let mut all = known(text);
    // Of a qualified name, only the URI part has readings.
    let divided = match text.strip_prefix(APP) {
        Some(rest) => rest.split_once('+').map(|(backend, rest)| (backend, format!("{APP}{rest}"))),
        None => text.split_once('+').map(|(backend, uri)| (backend, uri.to_owned())),
    };
    if let Some((backend, uri)) = divided.filter(|(backend, _)| !backend.contains([':', '/'])) {
        all.extend(known(&uri).into_iter().map(|reading| {
            let text = match reading.text.strip_prefix(APP) {
                Some(rest) => format!("{APP}{backend}+{rest}"),
                None => format!("{backend}+{}", reading.text),
            };
            UriReading { text, ..reading }
        }));
    }
    all
}
