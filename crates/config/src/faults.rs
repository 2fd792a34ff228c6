//! Collects the errors of a configuration, so that a user sees all of them at once.

use super::error::ConfigError;

/// Errors found so far.
#[derive(Default)]
pub(super) struct Faults(Vec<ConfigError>);

impl Faults {
    /// Returns the value, or records the error and returns `None`.
    pub fn take<T>(&mut self, read: Result<T, ConfigError>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(mut error) => {
                let more = std::mem::take(&mut error.more);
                for one in std::iter::once(error).chain(more) {
                    // A section is read after its keys were checked, and finds some of the same errors.
                    if !self.0.contains(&one) {
                        self.0.push(one);
                    }
                }
                None
            }
        }
    }

    /// Returns `true` if this table or the file as a whole has an error. Further errors in the table may then be
    /// consequences of that one.
    pub fn within(&self, table: &[&str]) -> bool {
        self.0.iter().any(|error| {
            let segments = error.place.key.as_ref().map_or(&[][..], |key| key.segments());
            segments.iter().zip(table).all(|(segment, wanted)| segment == wanted)
        })
    }

    /// Returns `Ok` if there are no errors, else all of them in the order of the file.
    pub fn none(mut self) -> Result<(), ConfigError> {
        self.0.sort_by_key(|error| error.place.position.map(|position| (position.line, position.column)));
        let mut all = self.0.into_iter();
        match all.next() {
            None => Ok(()),
            Some(mut first) => {
                first.more.extend(all);
                Err(first)
            }
        }
    }
}
