//! The files that are served below `/relay/`, built into the program. They lie in `assets/`; a file that is added there is added
//! to the list here, and a test compares the two.

use crate::random::hex;
use aws_lc_rs::digest::{SHA256, digest};

/// A file.
#[derive(Debug)]
pub struct Asset {
    /// Its path below `/relay/`.
    pub path: &'static str,
    /// What is in it.
    pub content: &'static [u8],
}

macro_rules! assets {
    ($($path:literal),* $(,)?) => {
        &[$(Asset { path: $path, content: include_bytes!(concat!("../assets/", $path)) }),*]
    };
}

/// All files.
pub const ASSETS: &[Asset] = assets!["migrate/index.html", "tools-document.json", "tools-later.json"];

impl Asset {
    /// The type of its content, by its name.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.path.rsplit_once('.').map(|(_, end)| end) {
            Some("html") => "text/html; charset=utf-8",
            Some("js" | "mjs") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("json" | "map") => "application/json",
            Some("svg") => "image/svg+xml",
            Some("png") => "image/png",
            Some("woff2") => "font/woff2",
            Some("ts" | "txt" | "md") => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }

    /// A mark of its content.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("\"{}\"", hex(&digest(&SHA256, self.content).as_ref()[..12]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn files(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => files(&path, found),
                path => found.push(path),
            }
        }
    }

    #[test]
    fn every_file_of_the_folder_is_served() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets");
        let mut found = Vec::new();
        files(&root, &mut found);
        let mut found: Vec<String> =
            found.iter().map(|path| path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()).collect();
        found.sort();
        let mut listed: Vec<&str> = ASSETS.iter().map(|asset| asset.path).collect();
        listed.sort_unstable();
        assert_eq!(found, listed);
    }
}
