//! Real text for calls: the pages of a folder, a different piece of them for each call.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Distance between the pieces of two calls; a prime, so that pieces rarely start at the same place.
const STRIDE: usize = 7_919;

/// All pages of a folder as one text that is valid in a JSON string wherever it is cut.
#[derive(Clone, Debug)]
pub struct PageText(Arc<str>);

impl PageText {
    /// Reads the Markdown files of a folder, in the order of their names.
    pub fn read(folder: &str) -> io::Result<Self> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(Path::new(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut text = String::new();
        for path in paths {
            text.extend(fs::read_to_string(path)?.chars().map(plain));
        }
        if text.is_empty() {
            return Err(io::Error::other(format!("{folder} has no page with text")));
        }
        Ok(Self(text.into()))
    }

    /// Fills `place` with the piece for call `number`.
    pub fn fill(&self, number: u64, place: &mut [u8]) {
        let pages = self.0.as_bytes();
        let mut from = (number as usize).wrapping_mul(STRIDE) % pages.len();
        let mut at = 0;
        while at < place.len() {
            let count = (place.len() - at).min(pages.len() - from);
            place[at..at + count].copy_from_slice(&pages[from..from + count]);
            (at, from) = (at + count, 0);
        }
    }
}

/// Replaces a character that needs an escape or more than one byte.
fn plain(character: char) -> char {
    match character {
        '"' => '\'',
        '\\' => '/',
        ' '..='~' => character,
        _ => ' ',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_get_different_text_that_needs_no_escape() {
        let folder = std::env::temp_dir().join(format!("signalbox-pages-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("a.md"), "# \"One\" \\ two\n– three").unwrap();
        fs::write(folder.join("b.txt"), "not this").unwrap();
        let pages = PageText::read(folder.to_str().unwrap());
        fs::remove_dir_all(&folder).unwrap();
        let pages = pages.unwrap();
        assert_eq!(&*pages.0, "# 'One' / two   three");
        let (mut one, mut other) = ([0; 50], [0; 50]);
        pages.fill(0, &mut one);
        pages.fill(1, &mut other);
        assert!(one.starts_with(b"# 'One' / two   three# 'One'"));
        assert_ne!(one, other);
    }
}
