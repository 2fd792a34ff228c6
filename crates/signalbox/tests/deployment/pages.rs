//! README.md and the pages in `docs`: links lead to a file and a heading that exist, and command lines are ours.

use crate::{assert_command_line, read, root};
use signalbox_config::{Config, Overrides};
use std::path::Path;

/// Every page, with its place in the repository.
fn pages() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(root().join("docs")).unwrap();
    let names = entries.map(|entry| format!("docs/{}", entry.unwrap().file_name().to_string_lossy()));
    let names = names.filter(|name| name.ends_with(".md")).chain(["README.md".to_owned()]);
    names.map(|name| (name.clone(), read(&name))).collect()
}

/// Returns true if a link reaches a heading of the page by this name: in lower case, with `-` for spaces.
fn has_heading(text: &str, name: &str) -> bool {
    let mut fenced = false;
    text.lines().any(|line| {
        fenced ^= line.starts_with("```");
        let heading: String = line.trim_start_matches('#').trim().chars().filter_map(reaches).collect();
        !fenced && line.starts_with('#') && heading == name
    })
}

/// What becomes of a character of a heading in links.
fn reaches(letter: char) -> Option<char> {
    match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ => letter.is_alphanumeric().then_some(letter.to_ascii_lowercase()),
    }
}

#[test]
fn links_between_pages_lead_somewhere() {
    let mut followed = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let folder = root().join(&page).parent().unwrap().to_owned();
            let target = if file.is_empty() { root().join(&page) } else { folder.join(file) };
            assert!(target.exists(), "{page}: {link}");
            let reached = heading.is_empty() || has_heading(&std::fs::read_to_string(&target).unwrap(), heading);
            assert!(reached, "{page}: {link} names no heading");
            followed += 1;
        }
    }
    assert!(followed > 0);
}

/// Lines of code that run our program: indented or in a fence, perhaps after a prompt of their own.
#[test]
fn command_lines_on_pages_are_ours() {
    let mut seen = 0;
    for (page, text) in pages() {
        for line in text.lines().filter(|line| line.starts_with("    ")).map(str::trim) {
            let line = line.split(" #").next().unwrap_or_default().trim();
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first() != Some(&"signalbox") || line.contains(['|', '>', '…', '&', '\'', '"']) {
                continue;
            }
            assert_command_line(words, &page);
            seen += 1;
        }
    }
    assert!(seen > 0);
}

/// Blocks in a fence marked `toml` are whole configurations, but for those of the page about rules, which its own crate
/// reads.
#[test]
fn configurations_on_pages_can_be_loaded() {
    let mut seen = 0;
    for (page, text) in pages().into_iter().filter(|(page, _)| !page.ends_with("rules.md")) {
        for block in text.split("```toml").skip(1).filter_map(|rest| rest.split("```").next()) {
            let of_feature = block.contains("[gateway.otel]") && !cfg!(feature = "otel");
            let key = "0123456789abcdef".repeat(4);
            let env = |name: &str| match name {
                "HOME" => Some("/home/ann".to_owned()),
                "TAPE_KEY" => Some(key.clone()),
                _ => Some("secret".to_owned()),
            };
            let loaded = Config::parse(Path::new("signalbox.toml"), block, &env, &Overrides::default());
            match loaded {
                Err(error) if of_feature => assert!(error.to_string().contains("not in this build"), "{page}: {error}"),
                Err(error) => panic!("{page}: {error}"),
                Ok(_) => {}
            }
            seen += 1;
        }
    }
    assert!(seen > 0);
}
