//! Files served below `/relay/`, compiled into the program. They lie in `assets/`. A file added there must be added to
//! the list here; a test compares the two.

use crate::random::hex;
use aws_lc_rs::digest::{SHA256, digest};

/// File that is embedded in the program.
#[derive(Debug)]
pub struct Asset {
    pub path: &'static str,
    pub content: &'static [u8],
}

macro_rules! assets {
    ($($path:literal),* $(,)?) => {
        &[$(Asset { path: $path, content: include_bytes!(concat!("../assets/", $path)) }),*]
    };
}

pub const ASSETS: &[Asset] = assets![
    "codap/LICENSES.txt",
    "codap/codap.css",
    "codap/codap.js",
    "codap/index.html",
    "demo/LICENSES.txt",
    "demo/demo.css",
    "demo/demo.js",
    "demo/icon.svg",
    "demo/index.html",
    "migrate/index.html",
    "tools-document.json",
    "tools-later.json",
    "worker.d.ts",
    "worker.js",
];

impl Asset {
    /// Returns the content type, by file extension.
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

    /// Returns the entity tag of the content.
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
