//! Everything that is wrong with a file, gathered while it is read.

use super::error::ConfigError;

/// What is wrong so far.
#[derive(Default)]
pub(super) struct Faults(Vec<ConfigError>);

impl Faults {
    /// What was read, or nothing where it was wrong.
    pub fn take<T>(&mut self, read: Result<T, ConfigError>) -> Option<T> {
        match read {
            Ok(read) => Some(read),
            Err(mut error) => {
                let more = std::mem::take(&mut error.more);
                for one in std::iter::once(error).chain(more) {
                    // A section is read after its keys were looked at, and finds some of the same.
                    if !self.0.contains(&one) {
                        self.0.push(one);
                    }
                }
                None
            }
        }
    }

    /// True if something in this table, or in the file as a whole, is wrong: what else is read of it may be wrong for
    /// that reason only.
    pub fn within(&self, table: &[&str]) -> bool {
        self.0.iter().any(|error| {
            let segments = error.place.key.as_ref().map_or(&[][..], |key| key.segments());
            segments.iter().zip(table).all(|(segment, wanted)| segment == wanted)
        })
    }

    /// Nothing, or all that is wrong in the order of the file.
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
