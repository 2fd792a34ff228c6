//! Finds constructs of Markdown and HTML that hide text, carry data out or run something.
//!
//! Code spans and fenced code are left alone, because they are shown as they are written.

use super::edit::{Edit, settle};
use super::html_tag::HtmlTag;
use super::link_target::{self, LinkUse};
use super::{CleaningRules, RemovalClass};

/// Maximum number of open square brackets that are remembered.
const MAX_OPEN: usize = 64;
/// Maximum length of what is between the parentheses of a link, in bytes.
const MAX_LINK: usize = 16 << 10;
/// Number of bytes that searches for the end of elements may examine, per byte of the text and as a minimum.
const WORK_PER_BYTE: usize = 8;
const WORK: usize = 64 << 10;

const IMAGE: &str = "[removed: image that sends data]";
const LINK: &str = "[removed: link that sends data]";
const SCRIPT: &str = "[removed: link that runs a script]";
const DATA_URL: &str = "[removed: data URL]";
const COMMENT: &str = "[removed: HTML comment]";
const HIDDEN: &str = "[removed: hidden HTML]";
const ACTIVE: &str = "[removed: active HTML]";

/// Every placeholder that may replace markup.
#[cfg(test)]
pub(super) const PLACEHOLDERS: &[&str] = &[IMAGE, LINK, SCRIPT, DATA_URL, COMMENT, HIDDEN, ACTIVE];

/// State of one pass.
struct MarkupScan<'a> {
    text: &'a str,
    rules: &'a CleaningRules,
    edits: Vec<Edit>,
    /// Positions of open square brackets, including the `!` of an image.
    open: Vec<usize>,
    /// Position from which no end of a comment follows.
    no_comment_end: usize,
    /// Lengths of runs of backticks of which no further one follows.
    no_code_end: [bool; 32],
    work: usize,
    has_image: bool,
}

/// Returns the replacements of one pass, in order and without overlaps.
pub(super) fn find_edits(text: &str, rules: &CleaningRules) -> Vec<Edit> {
    if !may_have_markup(text.as_bytes()) {
        return Vec::new();
    }
    let mut scan = MarkupScan {
        text,
        rules,
        edits: Vec::new(),
        open: Vec::new(),
        no_comment_end: usize::MAX,
        no_code_end: [false; 32],
        work: text.len().saturating_mul(WORK_PER_BYTE).saturating_add(WORK),
        has_image: memchr::memmem::find(text.as_bytes(), b"![").is_some(),
    };
    let mut at = 0;
    while at < text.len() {
        at = scan.examine(at).max(at + 1);
    }
    settle(scan.edits)
}

/// Returns true if a tag, a comment, a link or a definition may be in the text.
fn may_have_markup(bytes: &[u8]) -> bool {
    memchr::memchr2_iter(b'<', b']', bytes).any(|at| {
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        match bytes.get(at) {
            Some(b']') => matches!(next, b'(' | b':'),
            _ => next.is_ascii_alphabetic() || next == b'!',
        }
    })
}

impl MarkupScan<'_> {
    /// Examines the byte at `at` and returns the position at which the search continues.
    fn examine(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes().get(at..).unwrap_or_default();
        match bytes {
            [b'\\', _, ..] => at + 2,
            [b'`', ..] => self.skip_code(at),
            [b'~', b'~', b'~', ..] if self.begins_line(at) => self.skip_fence(at, b'~'),
            [b'[', ..] => {
                let image = at > 0 && self.text.as_bytes().get(at - 1) == Some(&b'!');
                if self.open.len() == MAX_OPEN {
                    self.open.remove(0);
                }
                self.open.push(if image { at - 1 } else { at });
                at + 1
            }
            [b']', ..] => self.examine_link(at),
            [b'<', b'!', b'-', b'-', ..] => self.examine_comment(at),
            [b'<', letter, ..] if letter.is_ascii_alphabetic() => self.examine_tag(at),
            [b'\n', b'\n', ..] => {
                self.open.clear();
                at + 1
            }
            _ => at + 1,
        }
    }

    fn replace(&mut self, start: usize, end: usize, class: RemovalClass, replacement: &'static str) -> bool {
        let allowed = self.rules.allows(class);
        if allowed {
            self.edits.push(Edit { start, end, class, replacement });
        }
        allowed
    }

    /// Returns true if only white space stands before `at` in its line.
    fn begins_line(&self, at: usize) -> bool {
        let before = self.text.as_bytes().get(..at).unwrap_or_default();
        let blank = before.iter().rev().take(64).take_while(|byte| matches!(byte, b' ' | b'\t' | b'>')).count();
        before.len().checked_sub(blank + 1).is_none_or(|at| before.get(at) == Some(&b'\n'))
    }

    /// Skips a code span or a fenced block that begins with backticks.
    fn skip_code(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let run = run_length(bytes, at);
        if run >= 3 && self.begins_line(at) {
            return self.skip_fence(at, b'`');
        }
        let slot = run.min(self.no_code_end.len() - 1);
        if self.no_code_end.get(slot) == Some(&true) {
            return at + run;
        }
        let mut next = at + run;
        while let Some(offset) = memchr::memchr(b'`', bytes.get(next..).unwrap_or_default()) {
            next += offset;
            let length = run_length(bytes, next);
            // A code span does not reach across paragraphs.
            if length == run {
                let inside = bytes.get(at..next).unwrap_or_default();
                return if memchr::memmem::find(inside, b"\n\n").is_some() { at + run } else { next + length };
            }
            next += length;
            let Some(work) = self.work.checked_sub(length + offset) else { return at + run };
            self.work = work;
        }
        if let Some(absent) = self.no_code_end.get_mut(slot) {
            *absent = true;
        }
        at + run
    }

    /// Skips a fenced block; without an end it reaches to the end of the text.
    fn skip_fence(&self, at: usize, mark: u8) -> usize {
        let bytes = self.text.as_bytes();
        let run = run_length(bytes, at);
        let mut line = at;
        while let Some(offset) = memchr::memchr(b'\n', bytes.get(line..).unwrap_or_default()) {
            line += offset + 1;
            let rest = bytes.get(line..).unwrap_or_default();
            let indent = rest.iter().take(64).take_while(|byte| matches!(byte, b' ' | b'\t' | b'>')).count();
            let closing = run_length(bytes, line + indent);
            let tail = bytes.get(line + indent + closing..).unwrap_or_default();
            let bare = tail.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).is_none_or(|byte| *byte == b'\n');
            if bytes.get(line + indent) == Some(&mark) && closing >= run && bare {
                return line + indent + closing;
            }
        }
        bytes.len()
    }

    /// Examines `](address)` and `]: address`.
    fn examine_link(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let open = self.open.pop();
        match (open, bytes.get(at + 1)) {
            (Some(open), Some(b'(')) => {
                let Some(end) = link_end(bytes, at + 2) else { return at + 1 };
                let inside = self.text.get(at + 2..end).unwrap_or_default();
                let image = bytes.get(open) == Some(&b'!');
                let usage = if image { LinkUse::Image } else { LinkUse::Link };
                if let Some(class) = link_target::class_of(destination(inside), usage) {
                    match image {
                        true => self.replace(open, end + 1, class, placeholder(class)),
                        // The text of a link stays in its brackets.
                        false => self.replace(at + 1, end + 1, class, placeholder(class)),
                    };
                }
                end + 1
            }
            (Some(open), Some(b':')) if self.begins_line(open) => self.examine_definition(open, at),
            _ => at + 1,
        }
    }

    /// Examines a definition of a reference, `[name]: address "title"`, which nothing shows.
    fn examine_definition(&mut self, open: usize, at: usize) -> usize {
        let rest = self.text.get(at + 2..).unwrap_or_default();
        let line = rest.get(..memchr::memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len())).unwrap_or_default();
        let line = line.trim_end_matches('\r');
        let end = at + 2 + line.len();
        let name = self.text.get(open + 1..at).unwrap_or_default();
        let target = destination(line);
        let marker = matches!(name, "//" | "comment" | "_" | "hidden") || matches!(target, "#" | "<>" | "");
        let title = line.trim().get(target.len()..).unwrap_or_default().trim();
        if marker && !title.is_empty() && title.starts_with(['(', '"', '\'']) {
            self.replace(open, end, RemovalClass::Comment, COMMENT);
            return end;
        }
        let usage = if self.has_image { LinkUse::Image } else { LinkUse::Link };
        match link_target::class_of(target, usage) {
            Some(class) if self.replace(open, end, class, placeholder(class)) => end,
            _ => at + 1,
        }
    }

    fn examine_comment(&mut self, at: usize) -> usize {
        let bytes = self.text.as_bytes();
        let end = match at >= self.no_comment_end {
            true => None,
            false => memchr::memmem::find(bytes.get(at + 4..).unwrap_or_default(), b"-->").map(|end| at + 7 + end),
        };
        if end.is_none() {
            self.no_comment_end = self.no_comment_end.min(at);
        }
        // An open comment hides the rest of a page: without its start the rest is seen.
        let end = end.unwrap_or(at + 4);
        if self.replace(at, end, RemovalClass::Comment, COMMENT) { end } else { at + 4 }
    }

    fn examine_tag(&mut self, at: usize) -> usize {
        let text = self.text;
        let Some(tag) = HtmlTag::read(text.get(at..).unwrap_or_default()) else { return at + 1 };
        let tag_end = at + tag.length;
        if tag.is_hidden() && self.rules.hidden_html {
            let end = self.element_end(&tag, at).unwrap_or(tag_end);
            self.replace(at, end, RemovalClass::HiddenHtml, HIDDEN);
            return end;
        }
        let content = (tag.is_active_with_content() && !tag.empty && self.rules.active_html)
            .then(|| self.element_end(&tag, at))
            .flatten()
            // Prose that names the element, and code further down that holds its end.
            .filter(|end| {
                !["\n```", "\n~~~"].iter().any(|fence| text.get(at..*end).unwrap_or_default().contains(fence))
            });
        if self.rules.active_html && (tag.is_active() || content.is_some()) {
            let end = content.unwrap_or(tag_end);
            self.replace(at, end, RemovalClass::ActiveHtml, ACTIVE);
            return end;
        }
        if let Some(class) = tag.target_class() {
            self.replace(at, tag_end, class, placeholder(class));
        }
        tag_end
    }

    /// Returns the end of the end tag that belongs to a start tag at `at`.
    fn element_end(&mut self, tag: &HtmlTag<'_>, at: usize) -> Option<usize> {
        if tag.empty {
            return None;
        }
        let bytes = self.text.as_bytes();
        let is_named = |from: usize| {
            let name = bytes.get(from..from + tag.name.len())?;
            let after = bytes.get(from + tag.name.len())?;
            (name.eq_ignore_ascii_case(tag.name.as_bytes()) && !after.is_ascii_alphanumeric()).then_some(())
        };
        let (mut depth, mut next) = (1_usize, at + tag.length);
        let mut last_end = None;
        while let Some(offset) = memchr::memchr(b'<', bytes.get(next..).unwrap_or_default()) {
            self.work = self.work.checked_sub(offset + 1)?;
            next += offset + 1;
            if bytes.get(next) == Some(&b'/') && is_named(next + 1).is_some() {
                depth -= 1;
                let end = memchr::memchr(b'>', bytes.get(next..).unwrap_or_default())?;
                last_end = Some(next + end + 1);
                if depth == 0 {
                    return last_end;
                }
            } else if is_named(next).is_some() {
                depth += 1;
            }
        }
        last_end
    }
}

const fn placeholder(class: RemovalClass) -> &'static str {
    match class {
        RemovalClass::DataImage => IMAGE,
        RemovalClass::ScriptLink => SCRIPT,
        RemovalClass::DataUrl => DATA_URL,
        _ => LINK,
    }
}

/// Returns the number of equal bytes from `at` on.
fn run_length(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take_while(|byte| Some(*byte) == rest.first()).count()
}

/// Returns the position of the parenthesis that closes a link.
fn link_end(bytes: &[u8], from: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (offset, byte) in bytes.get(from..)?.iter().take(MAX_LINK).enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(from + offset),
            b')' => depth -= 1,
            b'\n' => return None,
            // Another link begins: this one has no end.
            b']' if bytes.get(from + offset + 1) == Some(&b'(') => return None,
            _ => {}
        }
    }
    None
}

/// Returns the address at the start of what a link holds, without the title.
fn destination(inside: &str) -> &str {
    let inside = inside.trim();
    if let Some(rest) = inside.strip_prefix('<')
        && let Some((target, _)) = rest.split_once('>')
    {
        return if target.is_empty() { "<>" } else { target };
    }
    let title = [" \"", " '", " (", "\t\""].iter().filter_map(|mark| inside.find(mark)).min();
    inside.get(..title.unwrap_or(inside.len())).unwrap_or(inside).trim()
}
