//! Printed form of a lock file: always the same for the same approvals, and readable in a review.

use super::lock_file::{Approval, LockFile, StoredText, VERSION};
use crate::invisible::is_invisible;
use signalbox_wire::timestamp;
use std::fmt::{self, Display, Formatter, Write};

const HEADER: &str = "# Tool definitions and instructions that were approved for use through Signalbox.\n\
                      # Review a change of this file like a change of code: models follow these texts.\n";

impl Display for LockFile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(HEADER)?;
        writeln!(f, "version = {VERSION}")?;
        for (backend, pins) in &self.backends {
            let backend = Key(backend);
            for entry in &pins.instructions {
                writeln!(f, "\n[[backends.{backend}.instructions]]\nhash = \"{}\"", entry.hash)?;
                write_approval(f, &entry.approval)?;
                let (key, text) = match &entry.text {
                    StoredText::Whole(text) => ("text", text),
                    StoredText::Excerpt(text) => ("excerpt", text),
                };
                writeln!(f, "{key} = {}", LongString(text))?;
            }
            for (tool, approved) in &pins.tools {
                for entry in approved {
                    writeln!(f, "\n[[backends.{backend}.tools.{}]]\nhash = \"{}\"", Key(tool), entry.hash)?;
                    writeln!(f, "shape = \"{}\"", entry.shape)?;
                    write_approval(f, &entry.approval)?;
                    let (key, json) = match &entry.text {
                        StoredText::Whole(json) => ("definition", json),
                        StoredText::Excerpt(json) => ("excerpt", json),
                    };
                    writeln!(f, "{key} = {}", LiteralJson(json))?;
                }
            }
        }
        Ok(())
    }
}

fn write_approval(f: &mut Formatter<'_>, approval: &Approval) -> fmt::Result {
    writeln!(f, "approved_at = \"{}\"", timestamp::rfc3339(approval.seconds()))?;
    writeln!(f, "approved_by = {}", ShortString(approval.by()))
}

/// Key of a table, with quotes where TOML needs them.
struct Key<'a>(&'a str);

impl Display for Key<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        match !self.0.is_empty() && self.0.bytes().all(is_bare) {
            true => f.write_str(self.0),
            false => ShortString(self.0).fmt(f),
        }
    }
}

/// String on one line. Invisible characters become escapes.
struct ShortString<'a>(&'a str);

impl Display for ShortString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        self.0.chars().try_for_each(|char| write_char(f, char))?;
        f.write_char('"')
    }
}

/// String with a line of the file per line of the text.
struct LongString<'a>(&'a str);

impl Display for LongString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // A line break after the opening quotes is no part of the string.
        f.write_str("\"\"\"\n")?;
        for char in self.0.chars() {
            if char == '\n' { f.write_char('\n')? } else { write_char(f, char)? }
        }
        f.write_str("\"\"\"")
    }
}

fn write_char(f: &mut Formatter<'_>, char: char) -> fmt::Result {
    match char {
        '"' | '\\' => write!(f, "\\{char}"),
        '\n' => f.write_str("\\n"),
        '\t' => f.write_str("\\t"),
        _ if is_invisible(char) => match u32::from(char) {
            code @ 0..=0xffff => write!(f, "\\u{code:04X}"),
            code => write!(f, "\\U{code:08X}"),
        },
        _ => f.write_char(char),
    }
}

/// JSON in a literal string, in which backslashes need no escapes.
struct LiteralJson<'a>(&'a str);

impl Display for LiteralJson<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // Apostrophes occur only within the strings of JSON, where an escape means the same.
        write!(f, "'''\n{}\n'''", self.0.replace("''", "'\\u0027"))
    }
}
