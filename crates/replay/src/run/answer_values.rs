//! Extracts the values of an answer, each with a digest of its context.
//!
//! An answer is split into words and numbers. Items of arrays, and of lists in texts, are levels of their own, because
//! another answer may have more of them, fewer, or a different order. The signature of a value is the digest of its
//! level without the value itself, and of the words of the levels above. Two values with the same signature are in
//! items that nothing else distinguishes, regardless of the position of those items.

use super::paged_lists::tells_of_further_page;
use super::references::{is_moment_name, is_of_word, is_quantity, is_serial, is_token, moment_length};
use super::text_lines::{Role, TextLine, TextLines};
use crate::diff::{IN_TEXT, json_in};
use crate::paths::{Paths, escaped};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

/// Maximum depth. Anything below counts as one word.
const MAX_DEPTH: usize = 64;

/// Place of a result's content list.
const CONTENT: &str = "/content";

/// Path segments that lead to the lines of a text.
pub(super) const IN_LINE: &str = "/@line/*";

/// Place in an answer, with `*` for the index of an item or a line.
pub(super) type Place = String;

/// Value in an answer.
#[derive(Debug)]
pub(super) struct AnswerValue {
    pub value: String,
    pub place: Place,
    /// Name of the member that holds it.
    pub member: String,
    /// Set for a JSON number.
    pub is_number: bool,
    /// Set if it is the whole value of its member rather than a word of a longer text.
    pub is_whole: bool,
    /// Set if it is in an item of a list or in a text of several lines.
    pub is_in_list: bool,
    /// Index of its page, if several pages are evaluated together.
    pub page: usize,
    /// Range of its words.
    words: Range<usize>,
}

#[derive(Debug)]
struct Word {
    text: String,
    place: Place,
    level: usize,
    /// Set for words that differ in every run, such as timestamps.
    is_moment: bool,
    /// Set for the number of items, which describes no single item.
    is_count: bool,
    /// Not set for separators between words.
    is_content: bool,
    /// Set for words that announce a further page, which describe no item of this one.
    is_of_page: bool,
}

#[derive(Debug, Default)]
struct Level {
    parent: Option<usize>,
    /// Wrapping sum of the digests of its words, so that a word can be subtracted.
    sum: u64,
    /// Same sum, but without counts.
    outer_sum: u64,
    content: usize,
}

/// Values extracted from an answer.
#[derive(Debug, Default)]
pub(super) struct AnswerValues {
    pub values: Vec<AnswerValue>,
    /// Set if the answer announces a further page.
    pub goes_on: bool,
    words: Vec<Word>,
    levels: Vec<Level>,
    is_joined: bool,
}

impl AnswerValues {
    /// Extracts the values of a result, except at ignored places.
    pub(super) fn of(result: &Value, ignored: &Paths) -> Self {
        let mut reader = Reader {
            found: Self { levels: vec![Level::default()], ..Self::default() },
            ignored,
            path: vec!["result".to_owned()],
            lists: 0,
        };
        reader.value(result, &mut Place::new(), "", 0);
        reader.found
    }

    /// Extracts the values of several numbered pages as one answer.
    pub(super) fn of_pages<'a>(pages: impl IntoIterator<Item = (usize, &'a Value)>, ignored: &Paths) -> Self {
        let mut all = Self { is_joined: true, ..Self::default() };
        for (number, page) in pages {
            let page = Self::of(page, ignored);
            let (words, levels) = (all.words.len(), all.levels.len());
            all.values.extend(page.values.into_iter().map(|value| AnswerValue {
                page: number,
                words: value.words.start + words..value.words.end + words,
                ..value
            }));
            all.words.extend(page.words.into_iter().map(|word| Word { level: word.level + levels, ..word }));
            let parent = |level: &Level| level.parent.map(|parent| parent + levels);
            all.levels.extend(page.levels.into_iter().map(|level| Level { parent: parent(&level), ..level }));
            all.goes_on = page.goes_on;
        }
        all
    }

    /// Groups words and values by place.
    pub(super) fn by_place(&self) -> HashMap<&str, HashSet<&str>> {
        let mut places: HashMap<&str, HashSet<&str>> = HashMap::new();
        for word in &self.words {
            places.entry(&word.place).or_default().insert(&word.text);
        }
        for value in &self.values {
            places.entry(&value.place).or_default().insert(&value.value);
        }
        places
    }

    /// Returns places that hold long tokens, which servers often generate anew.
    pub(super) fn token_places(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter(|word| is_token(&word.text)).map(|word| &*word.place)
    }

    /// Returns the places of a value's words.
    pub(super) fn word_places<'a>(&'a self, value: &AnswerValue) -> impl Iterator<Item = &'a str> {
        self.words.get(value.words.clone()).into_iter().flatten().map(|word| &*word.place)
    }

    /// Replaces words by their present counterparts. Short numbers stay, because they may name something else here.
    pub(super) fn translate(&mut self, current: impl Fn(&str) -> String) {
        self.words.iter_mut().filter(|word| !is_serial(&word.text)).for_each(|word| word.text = current(&word.text));
    }

    /// Computes the sums of all levels, leaving out words at volatile places.
    pub(super) fn sum_up(&mut self, volatile: &HashSet<String>) {
        for word in &mut self.words {
            word.is_moment |= volatile.contains(&word.place) || self.is_joined && word.is_of_page;
            let Some(level) = self.levels.get_mut(word.level) else { continue };
            let digest = word.digest();
            level.sum = level.sum.wrapping_add(digest);
            level.outer_sum = level.outer_sum.wrapping_add(if word.is_count { 0 } else { digest });
            level.content += usize::from(word.has_content());
        }
    }

    /// Returns the digest of a value's context.
    pub(super) fn signature(&self, value: &AnswerValue) -> u64 {
        let own = self.words.get(value.words.clone()).unwrap_or_default();
        let mut at = own.first().map(|word| word.level);
        let mut hasher = DefaultHasher::new();
        let (mut is_own, mut is_inner) = (true, true);
        while let Some(level) = at.and_then(|at| self.levels.get(at)) {
            let mut sum = if is_inner { level.sum } else { level.outer_sum };
            let mut content = level.content;
            if is_own {
                own.iter().for_each(|word| sum = sum.wrapping_sub(word.digest()));
                content -= own.iter().filter(|word| word.has_content()).count();
            }
            sum.hash(&mut hasher);
            is_inner &= content == 0;
            is_own = false;
            at = level.parent;
        }
        hasher.finish()
    }
}

impl Word {
    fn digest(&self) -> u64 {
        if self.is_moment {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (&self.place, &self.text).hash(&mut hasher);
        hasher.finish()
    }

    fn has_content(&self) -> bool {
        self.is_content && !self.is_moment
    }
}

struct Reader<'a> {
    found: AnswerValues,
    ignored: &'a Paths,
    /// Path to the current value, with indices.
    path: Vec<String>,
    /// Number of enclosing lists.
    lists: usize,
}

impl Reader<'_> {
    fn value(&mut self, value: &Value, place: &mut Place, member: &str, level: usize) {
        if self.path.len() > MAX_DEPTH {
            return self.atom(&value.to_string(), place, member, level);
        }
        self.found.goes_on |= tells_of_further_page(member)
            && match value {
                Value::String(text) => !text.is_empty(),
                Value::Number(_) => true,
                Value::Bool(is_true) => *is_true,
                _ => false,
            };
        match value {
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| *name != "_meta") {
                    self.below(name, &escaped(name), place, |reader, place| reader.value(value, place, name, level));
                }
            }
            Value::Array(items) => {
                // The content list is part of every result, so its items do not count as list items.
                let is_list = usize::from(&**place != CONTENT);
                self.lists += is_list;
                for (index, item) in items.iter().enumerate() {
                    let level = self.level(level);
                    self.below(&index.to_string(), "*", place, |reader, place| {
                        reader.value(item, place, member, level)
                    });
                }
                self.lists -= is_list;
            }
            Value::String(text) => match json_in(text) {
                Some(json) => {
                    self.below(IN_TEXT, IN_TEXT, place, |reader, place| reader.value(&json, place, member, level))
                }
                None => self.text(text, place, member, level),
            },
            Value::Number(number) => self.atom(&number.to_string(), place, member, level),
            Value::Bool(is_true) => self.word(&is_true.to_string(), place.clone(), level, member),
            Value::Null => self.word("null", place.clone(), level, member),
        }
    }

    fn level(&mut self, parent: usize) -> usize {
        self.found.levels.push(Level { parent: Some(parent), ..Level::default() });
        self.found.levels.len() - 1
    }

    /// Descends by one segment, unless the place is ignored.
    fn below(&mut self, segment: &str, general: &str, place: &mut Place, then: impl FnOnce(&mut Self, &mut Place)) {
        let length = place.len();
        place.push('/');
        place.push_str(general);
        self.path.push(segment.to_owned());
        if self.ignored.is_empty() || !self.ignored.covers(&self.path) {
            then(self, place);
        }
        self.path.pop();
        place.truncate(length);
    }

    /// Adds a number as one word and one value.
    fn atom(&mut self, text: &str, place: &Place, member: &str, level: usize) {
        let start = self.found.words.len();
        self.word(text, place.clone(), level, member);
        self.found.values.push(AnswerValue {
            value: text.to_owned(),
            place: place.clone(),
            member: member.to_owned(),
            is_number: true,
            is_whole: true,
            is_in_list: self.lists > 0,
            page: 0,
            words: start..start + 1,
        });
    }

    fn text(&mut self, text: &str, place: &Place, member: &str, level: usize) {
        // A text with spaces is prose, whose lines may be added, removed or moved. Any other text is a name.
        if !text.trim().contains(char::is_whitespace) {
            return self.line(text, place, member, level, true);
        }
        let lines = TextLines::of(text);
        let mut levels = Vec::with_capacity(lines.parents.len());
        for parent in &lines.parents {
            let parent = parent.and_then(|parent| levels.get(parent)).copied().unwrap_or(level);
            levels.push(self.level(parent));
        }
        let is_list = usize::from(lines.is_list());
        let are_heads_items = usize::from(lines.lines.iter().filter(|line| line.role == Role::Head).count() > 1);
        for TextLine { text, group, role } in lines.lines {
            let Some(level) = levels.get(group).copied() else { continue };
            let start = self.found.words.len();
            let in_list = if role == Role::Head { are_heads_items } else { is_list };
            self.lists += in_list;
            match role {
                Role::Head => self.line(text, &format!("{place}/@head"), member, level, false),
                Role::Item => self.line(text, &format!("{place}{IN_LINE}"), member, level, false),
                Role::Property(name) => {
                    let place = format!("{place}{IN_LINE}/{}", escaped(name));
                    self.line(text, &place, member, level, false);
                }
            }
            if role == Role::Head {
                // A head often states the number of its items.
                let words = self.found.words.get_mut(start..).unwrap_or_default();
                words.iter_mut().for_each(|word| word.is_count |= word.text.parse::<f64>().is_ok());
            }
            self.lists -= in_list;
        }
    }

    /// Adds the words of a line, its separators, and the line itself if it is a name.
    fn line(&mut self, line: &str, place: &Place, member: &str, level: usize, is_name: bool) {
        let start = self.found.words.len();
        let (mut between, mut rest, mut index) = (String::new(), line, 0);
        while let Some(from) = rest.find(is_of_word) {
            let (before, tail) = rest.split_at(from);
            between.push_str(before);
            between.push('\0');
            let moment = moment_length(tail);
            let end = moment.unwrap_or_else(|| tail.find(|c| !is_of_word(c)).unwrap_or(tail.len()));
            let (word, after) = tail.split_at(end);
            let own = self.found.words.len();
            self.word(word, format!("{place}#{index}"), level, member);
            if let Some(pushed) = self.found.words.last_mut() {
                pushed.is_moment |= moment.is_some();
            }
            let is_whole = is_name && word.len() == line.len();
            self.found.values.push(AnswerValue {
                value: word.to_owned(),
                place: format!("{place}#{index}"),
                member: member.to_owned(),
                is_number: false,
                is_whole,
                is_in_list: self.lists > 0,
                page: 0,
                words: own..own + 1,
            });
            index += 1;
            rest = after;
        }
        between.push_str(rest);
        if between.len() > 1 {
            self.word(&between, format!("{place}#"), level, member);
            if let Some(pushed) = self.found.words.last_mut() {
                pushed.is_content = false;
            }
        }
        let words = start..self.found.words.len();
        if is_name && words.len() > 1 {
            self.found.values.push(AnswerValue {
                value: line.to_owned(),
                place: place.clone(),
                member: member.to_owned(),
                is_number: false,
                is_whole: true,
                is_in_list: self.lists > 0,
                page: 0,
                words,
            });
        }
    }

    fn word(&mut self, text: &str, place: Place, level: usize, member: &str) {
        let is_number = text.parse::<f64>().is_ok();
        self.found.words.push(Word {
            text: text.to_owned(),
            place,
            level,
            is_moment: is_number && text.len() >= 10 && is_moment_name(member),
            is_count: is_number && is_quantity(member),
            is_content: true,
            is_of_page: tells_of_further_page(member),
        });
    }
}
