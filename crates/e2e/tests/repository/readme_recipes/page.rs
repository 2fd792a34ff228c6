//! The recipes of README.md as they are written: prose, and blocks of code.

use std::path::Path;

/// One recipe.
pub struct Recipe {
    /// Its heading.
    pub heading: String,
    /// Its parts, in their order.
    pub parts: Vec<Part>,
}

/// A part of a recipe.
#[derive(Clone)]
pub enum Part {
    /// A paragraph, on one line.
    Prose(String),
    /// Lines of code, without their indentation.
    Code(Vec<String>),
}

impl Recipe {
    /// Commands in the running text that begin with these words.
    pub fn inline(&self, begin: &str) -> Vec<String> {
        let prose = self.parts.iter().filter_map(|part| match part {
            Part::Prose(text) => Some(text),
            Part::Code(_) => None,
        });
        let spans = prose.flat_map(|text| text.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
        spans.filter(|span| span.starts_with(begin)).collect()
    }
}

/// All recipes of the page.
pub fn recipes() -> Vec<Recipe> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = std::fs::read_to_string(page).unwrap();
    let (_, text) = text.split_once("\n## Recipes\n").unwrap();
    let (text, _) = text.split_once("\n## ").unwrap();
    text.split("\n### ").skip(1).map(recipe).collect()
}

fn recipe(text: &str) -> Recipe {
    let (heading, text) = text.split_once('\n').unwrap();
    let mut parts: Vec<Part> = Vec::new();
    let mut fresh = true;
    for line in text.lines() {
        match (line.strip_prefix("    "), parts.last_mut()) {
            (Some(code), Some(Part::Code(lines))) => {
                // A block may have blank lines in it, and another one may follow without prose:
                // output, after a command.
                if fresh && code.starts_with(|first: char| first.is_alphanumeric()) && !is_command(code) {
                    parts.push(Part::Code(vec![code.to_owned()]));
                } else {
                    lines.push(code.to_owned());
                }
            }
            (Some(code), _) => parts.push(Part::Code(vec![code.to_owned()])),
            (None, Some(Part::Prose(prose))) if !fresh && !line.is_empty() => {
                prose.push(' ');
                prose.push_str(line);
            }
            (None, _) if !line.is_empty() => parts.push(Part::Prose(line.to_owned())),
            _ => {}
        }
        fresh = line.is_empty();
    }
    Recipe { heading: heading.to_owned(), parts }
}

/// True for a line that a shell is given.
pub fn is_command(line: &str) -> bool {
    ["signalbox ", "openssl ", "curl ", "for "].iter().any(|begin| line.starts_with(begin))
}

/// The commands of a block: a loop and lines that go on are one.
pub fn commands(lines: &[String]) -> Vec<String> {
    let (mut all, mut open) = (Vec::<String>::new(), false);
    for line in lines.iter().filter(|line| !line.is_empty()) {
        match all.last_mut().filter(|_| open) {
            Some(last) => {
                last.push('\n');
                last.push_str(line);
                open = line.trim() != "done";
            }
            None => {
                open = line.starts_with("for ");
                all.push(line.clone());
            }
        }
    }
    all
}
