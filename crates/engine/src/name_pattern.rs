//! A pattern of names and URIs, read in the same ways as the URIs it is held against.

use signalbox_wire::glob::{Wildcards, fits};
use signalbox_wire::uri_readings::{Omission, UriReading, UriReadings};

/// How URIs of app pages begin, whose qualified form has the backend behind it.
const APP: &str = "ui://";

/// A pattern of names or URIs with `*` and `?`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamePattern {
    text: Box<str>,
    /// The ways in which servers read a URI that is written so.
    readings: Box<[UriReading]>,
}

impl NamePattern {
    /// Reads a pattern. It may be of qualified names.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self { text: text.into(), readings: readings(text).into() }
    }

    /// A pattern of tools and prompts, whose names have no readings.
    #[must_use]
    pub fn of_names(text: &str) -> Self {
        Self { text: text.into(), readings: Box::default() }
    }

    /// The pattern as it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True if it takes in everything.
    #[must_use]
    pub fn is_all(&self) -> bool {
        !self.text.is_empty() && self.text.bytes().all(|byte| byte == b'*')
    }

    /// True if this name fits the pattern as it is written.
    #[must_use]
    pub fn fits(&self, name: &str) -> bool {
        fits(&self.text, name, Wildcards::StarAndQuestion)
    }

    /// True if this URI fits a reading of the pattern that leaves nothing out.
    pub(crate) fn fits_read(&self, uri: &str) -> bool {
        self.fits_reading(uri, Omission::default())
    }

    /// True if this reading of a URI fits the pattern, read so as to leave out no more than the URI was.
    pub(crate) fn fits_reading(&self, uri: &str, omits: Omission) -> bool {
        let read = self.readings.iter().filter(|reading| reading.omits.is_within(omits));
        self.fits(uri) || read.into_iter().any(|reading| fits(&reading.text, uri, Wildcards::StarAndQuestion))
    }
}

/// The readings of a pattern besides its own text. One that cannot be read is held against URIs as it is written.
fn readings(text: &str) -> Vec<UriReading> {
    let known = |text: &str| match UriReadings::of_pattern(text) {
        UriReadings::Known(readings) => readings,
        UriReadings::Unreadable => Vec::new(),
    };
    let mut all = known(text);
    // Of a qualified name only the URI is read.
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
