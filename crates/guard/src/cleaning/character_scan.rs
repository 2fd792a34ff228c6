//! Finds characters that have no glyph, act on a terminal or pile up.

use super::character_tables as tables;
use super::edit::{Edit, push};
use super::terminal_sequence::TerminalSequence;
use super::{CleaningRules, RemovalClass};

/// Number of bytes that are examined at once for one that needs a closer look.
const BLOCK: usize = 64;
/// Maximum number of combining marks on one base. Vietnamese and transliterations need three.
const MAX_MARKS: usize = 4;
/// Maximum length of a run of private-use characters. Icon fonts put one or two side by side.
const MAX_PRIVATE: usize = 4;

/// State of one pass over a text.
struct CharacterScan<'a> {
    text: &'a str,
    rules: &'a CleaningRules,
    /// Removes everything that could be needed by a script, too: the last resort for a text that changes in each pass.
    strict: bool,
    edits: Vec<Edit>,
    /// Bounds of the deletions that end at the current position.
    gap: std::ops::Range<usize>,
    /// End of the last combining mark, and the number of marks on its base.
    marks: MarkRun,
    line: LineDirection,
}

/// Combining marks on one base.
#[derive(Default)]
struct MarkRun {
    end: usize,
    count: usize,
}

/// Writing directions within one line, computed when a control of direction is met.
#[derive(Default)]
struct LineDirection {
    end: usize,
    right_to_left: bool,
    balanced: bool,
}

/// One character that needs a closer look.
#[derive(Copy, Clone)]
struct Suspect {
    start: usize,
    end: usize,
    character: char,
}

/// Returns the removals of one pass, in order.
pub(super) fn find_edits(text: &str, rules: &CleaningRules, strict: bool) -> Vec<Edit> {
    if !(rules.terminal || rules.invisible || rules.bidi) {
        return Vec::new();
    }
    let mut scan = CharacterScan {
        text,
        rules,
        strict,
        edits: Vec::new(),
        gap: 0..0,
        marks: MarkRun::default(),
        line: LineDirection::default(),
    };
    let mut at = 0;
    while let Some(next) = next_suspect(text.as_bytes(), at) {
        at = scan.examine(next);
    }
    scan.edits
}

/// Returns the position of the next byte that may begin a removal.
fn next_suspect(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = bytes.get(at..)?;
        let block = rest.get(..BLOCK).unwrap_or(rest);
        // Without a branch per byte, so that the compiler compares many at once.
        let found = block.iter().fold(false, |found, byte| found | may_begin(*byte));
        if found
            && let Some(offset) = block.iter().enumerate().position(|(offset, byte)| {
                may_begin(*byte) && begins(*byte, rest.get(offset + 1).copied().unwrap_or_default())
            })
        {
            return Some(at + offset);
        }
        if block.len() < BLOCK {
            return None;
        }
        at += BLOCK;
    }
}

/// Returns true for bytes outside plain ASCII text.
const fn may_begin(byte: u8) -> bool {
    (byte < 0x20) & (byte != b'\n') & (byte != b'\t') | (byte >= 0x7f)
}

/// Returns true if a character that begins with these bytes may have to go.
const fn begins(first: u8, second: u8) -> bool {
    match first {
        b'\r' => second != b'\n',
        0x0c => false,
        0..=0x1f | 0x7f => true,
        0xc2 => second < 0xa0 || second == 0xad,
        0xcc | 0xcd | 0xd2 => true,
        0xd8 => second == 0x9c,
        0xe1 => matches!(second, 0x85 | 0x86 | 0x9e | 0xa0 | 0xaa | 0xab | 0xb7),
        0xe2 => matches!(second, 0x80 | 0x81 | 0x83),
        0xe3 => second == 0x85,
        0xee => true,
        0xef => second < 0xa4 || matches!(second, 0xb8 | 0xbb | 0xbe | 0xbf),
        0xf0 => second == 0x9d,
        0xf3 | 0xf4 => true,
        _ => false,
    }
}

impl CharacterScan<'_> {
    /// Examines the character at `start` and returns the position at which the search continues.
    fn examine(&mut self, start: usize) -> usize {
        let Some(character) = self.text.get(start..).and_then(|rest| rest.chars().next()) else {
            return start + 1;
        };
        let suspect = Suspect { start, end: start + character.len_utf8(), character };
        match character {
            '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => self.examine_control(suspect),
            _ if tables::is_private_use(character) => self.examine_private_use(suspect),
            _ if tables::is_combining(character) => self.examine_mark(suspect),
            _ => {
                if let Some(class) = self.class_of(suspect) {
                    self.remove(start, suspect.end, class, "");
                }
                suspect.end
            }
        }
    }

    fn remove(&mut self, start: usize, end: usize, class: RemovalClass, replacement: &'static str) {
        if self.rules.allows(class) {
            let joins = self.gap.end == start && replacement.is_empty();
            self.gap = match (joins, replacement.is_empty()) {
                (true, _) => self.gap.start..end,
                (false, true) => start..end,
                (false, false) => end..end,
            };
            push(&mut self.edits, Edit { start, end, class, replacement });
        }
    }

    fn examine_control(&mut self, suspect: Suspect) -> usize {
        let Suspect { start, end, character } = suspect;
        let bytes = self.text.as_bytes().get(start..).unwrap_or_default();
        if let Some(sequence) = TerminalSequence::read(bytes) {
            let end = start + sequence.length;
            self.remove(start, end, sequence.class, "");
            return end;
        }
        match (character, bytes) {
            ('\u{c}' | '\u{85}', _) => {}
            // A bare CR moves the cursor back, and the text behind it overwrites the line.
            ('\r', [_, b'\r', ..] | [_]) => self.remove(start, end, RemovalClass::Control, ""),
            ('\r', _) => self.remove(start, end, RemovalClass::Control, "\n"),
            ('\u{8}', _) => self.remove_backspace(suspect),
            _ => self.remove(start, end, RemovalClass::Control, ""),
        }
        end
    }

    /// Removes a backspace, and the overstruck character where typewriters make bold or underlined text of it.
    fn remove_backspace(&mut self, suspect: Suspect) {
        let (before, after) = (self.previous(suspect.start), self.next(suspect.end));
        let overstruck = before.is_some_and(|before| before == '_' || Some(before) == after);
        let untouched = self.edits.last().is_none_or(|edit| edit.end < suspect.start);
        let from = match (before, overstruck && untouched && self.rules.terminal) {
            (Some(before), true) => suspect.start - before.len_utf8(),
            _ => suspect.start,
        };
        self.remove(from, suspect.end, RemovalClass::Control, "");
    }

    fn examine_private_use(&mut self, suspect: Suspect) -> usize {
        let rest = self.text.get(suspect.start..).unwrap_or_default();
        let run = rest.find(|character| !tables::is_private_use(character)).unwrap_or(rest.len());
        let end = suspect.start + run;
        if rest.get(..run).unwrap_or_default().chars().nth(MAX_PRIVATE).is_some() {
            self.remove(suspect.start, end, RemovalClass::PrivateUse, "");
        }
        end
    }

    fn examine_mark(&mut self, suspect: Suspect) -> usize {
        let count = if self.marks.end == suspect.start { self.marks.count + 1 } else { 1 };
        self.marks = MarkRun { end: suspect.end, count };
        if count > MAX_MARKS {
            self.remove(suspect.start, suspect.end, RemovalClass::CombiningFlood, "");
        }
        suspect.end
    }

    /// Returns the class of a character that has to go.
    fn class_of(&mut self, suspect: Suspect) -> Option<RemovalClass> {
        use RemovalClass as C;
        let class = match suspect.character {
            '\u{ad}' => C::SoftHyphen,
            '\u{e0000}'..='\u{e007f}' => C::Tag,
            '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' | '\u{180b}'..='\u{180d}' | '\u{180f}' => {
                C::VariationSelector
            }
            '\u{feff}' if suspect.start == 0 => return None,
            '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{180e}' => C::ZeroWidth,
            '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => C::Bidi,
            '\u{fff9}'..='\u{fffb}' => C::Annotation,
            '\u{2061}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{034f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{3164}'
            | '\u{ffa0}'
            | '\u{e0080}'..='\u{e00ff}'
            | '\u{e01f0}'..='\u{e0fff}' => C::Invisible,
            _ => return None,
        };
        (self.strict || !self.is_needed(suspect, class)).then_some(class)
    }

    /// Returns true if the script around an invisible character needs it.
    fn is_needed(&mut self, suspect: Suspect, class: RemovalClass) -> bool {
        let before = self.previous(suspect.start);
        let is_before = |test: fn(char) -> bool| before.is_some_and(test);
        let next = self.next(suspect.end);
        let is_next = |test: fn(char) -> bool| next.is_some_and(test);
        match suspect.character {
            '\u{fe0e}' | '\u{fe0f}' => is_before(tables::takes_presentation),
            '\u{fe00}'..='\u{fe0d}' => is_before(tables::takes_standard_variant),
            '\u{e0100}'..='\u{e01ef}' => is_before(tables::is_han),
            '\u{180b}'..='\u{180f}' => is_before(tables::is_mongolian),
            '\u{200b}' => is_before(tables::is_spaceless) && is_next(tables::is_spaceless),
            '\u{200d}' if self.joins_emoji(suspect) => true,
            '\u{200c}' | '\u{200d}' => {
                !is_before(is_joiner) && (is_before(tables::is_joining) || is_next(tables::is_joining))
            }
            '\u{034f}' => is_before(tables::is_hebrew) && is_next(tables::is_hebrew),
            '\u{115f}' | '\u{1160}' => is_before(tables::is_jamo) || is_next(tables::is_jamo),
            '\u{202d}' | '\u{202e}' => false,
            _ if class == RemovalClass::Bidi => {
                let mark = tables::is_direction_mark(suspect.character);
                let line = self.line_at(suspect.start);
                line.right_to_left && (mark && before != Some(suspect.character) || !mark && line.balanced)
            }
            _ => false,
        }
    }

    /// Returns true if a joiner stands between two emoji.
    fn joins_emoji(&self, suspect: Suspect) -> bool {
        let is_emoji = |character: Option<char>| character.is_some_and(tables::is_emoji);
        let kept = self.text.get(..self.kept_end(suspect.start)).unwrap_or_default();
        let base = kept.strip_suffix('\u{fe0f}').unwrap_or(kept).chars().next_back();
        is_emoji(base) && is_emoji(self.next(suspect.end))
    }

    /// Returns the end of the kept text before `at`.
    fn kept_end(&self, at: usize) -> usize {
        if self.gap.end == at { self.gap.start } else { at }
    }

    /// Returns the kept character before `at`.
    fn previous(&self, at: usize) -> Option<char> {
        self.text.get(..self.kept_end(at))?.chars().next_back()
    }

    fn next(&self, at: usize) -> Option<char> {
        self.text.get(at..)?.chars().next()
    }

    /// Returns the directions of the line at `at`.
    fn line_at(&mut self, at: usize) -> &LineDirection {
        if at >= self.line.end {
            let begin =
                memchr::memrchr(b'\n', self.text.as_bytes().get(..at).unwrap_or_default()).map_or(0, |at| at + 1);
            let rest = self.text.get(begin..).unwrap_or_default();
            let line = memchr::memchr(b'\n', rest.as_bytes()).map_or(rest, |end| rest.get(..=end).unwrap_or(rest));
            self.line = LineDirection {
                end: begin + line.len(),
                right_to_left: line.chars().any(tables::is_right_to_left),
                balanced: is_balanced(line),
            };
        }
        &self.line
    }
}

fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}

/// Returns true if every embedding and isolate of a line is closed, and nothing else is.
fn is_balanced(line: &str) -> bool {
    let (mut embeddings, mut isolates) = (0_i32, 0_i32);
    for character in line.chars() {
        match character {
            '\u{202a}' | '\u{202b}' => embeddings += 1,
            '\u{202c}' => embeddings -= 1,
            '\u{2066}'..='\u{2068}' => isolates += 1,
            '\u{2069}' => isolates -= 1,
            '\u{202d}' | '\u{202e}' => return false,
            _ => {}
        }
        if embeddings < 0 || isolates < 0 {
            return false;
        }
    }
    embeddings == 0 && isolates == 0
}
