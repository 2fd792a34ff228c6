//! Command-line flags: `--name value` and `--switch`.

use std::fmt::Display;
use std::io;
use std::str::FromStr;

/// Flags in the order given.
#[derive(Debug)]
pub struct Args {
    given: Vec<(String, String)>,
}

impl Args {
    /// Parses flags with a value (`valued`) and flags without (`switches`). Anything else is an error.
    pub fn parse(mut words: impl Iterator<Item = String>, valued: &[&str], switches: &[&str]) -> io::Result<Self> {
        let mut given = Vec::new();
        while let Some(word) = words.next() {
            let name = word.strip_prefix("--").unwrap_or_default();
            if switches.contains(&name) {
                given.push((name.to_owned(), String::new()));
            } else if valued.contains(&name) {
                let value = words.next().ok_or_else(|| usage(format!("--{name} needs a value")))?;
                given.push((name.to_owned(), value));
            } else {
                return Err(usage(format!("unknown argument '{word}'")));
            }
        }
        Ok(Self { given })
    }

    /// Returns true if a switch was given.
    pub fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(given, _)| given == name)
    }

    /// Returns every value of a flag that may be repeated.
    pub fn all<T: FromStr<Err: Display>>(&self, name: &str) -> io::Result<Vec<T>> {
        self.given
            .iter()
            .filter(|(given, _)| given == name)
            .map(|(_, value)| value.parse().map_err(|error| usage(format!("--{name} {value}: {error}"))))
            .collect()
    }

    /// Returns the last value of a flag, if it was given.
    pub fn optional<T: FromStr<Err: Display>>(&self, name: &str) -> io::Result<Option<T>> {
        Ok(self.all(name)?.pop())
    }

    /// Returns the last value of a flag, or a default.
    pub fn or<T: FromStr<Err: Display>>(&self, name: &str, default: T) -> io::Result<T> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    /// Returns the last value of a required flag.
    pub fn required<T: FromStr<Err: Display>>(&self, name: &str) -> io::Result<T> {
        self.optional(name)?.ok_or_else(|| usage(format!("--{name} is required")))
    }
}

/// Creates an error about the command line.
pub fn usage(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

#[cfg(test)]
mod tests {
    use super::Args;

    fn parse(line: &str) -> std::io::Result<Args> {
        Args::parse(line.split_whitespace().map(str::to_owned), &["pid", "seconds"], &["stdio"])
    }

    #[test]
    fn reads_values_repeats_and_switches() {
        let args = parse("--pid 3 --stdio --pid 4").unwrap();
        assert_eq!(args.all::<u32>("pid").unwrap(), [3, 4]);
        assert!(args.has("stdio"));
        assert_eq!(args.or("seconds", 2.0).unwrap(), 2.0);
        assert!(args.required::<f64>("seconds").is_err());
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        assert!(parse("--nope 1").is_err());
        assert!(parse("pid").is_err());
        assert!(parse("--pid").is_err());
        assert!(parse("--pid x").unwrap().all::<u32>("pid").is_err());
    }
}
