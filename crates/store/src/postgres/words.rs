//! The search index: for each run of entries, the words of its messages and marks of their other attributes.
//!
//! Matching runs are scanned entry by entry, so that a search is exact.

use super::copy::Copy;
use super::row::escape;
use crate::content;
use crate::text::{Needle, words_of};
use foldhash::HashSet;
use signalbox_engine::record::{Entry, Query};

/// Maximum number of positions in a run.
const MAX_SPAN: u64 = 64;

/// Maximum size of a run's words in bytes. A `tsvector` holds up to one mebibyte.
const MAX_WORD_BYTES: usize = 256 << 10;

/// Maximum number of characters of a name in its mark. Rows are compared with the whole name.
const MAX_MARK: usize = 200;

/// Number of recent marks that are checked before adding another.
const MAX_MARKED: usize = 16;

/// Kind of a mark. No word begins with its prefix.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Mark {
    Session,
    Principal,
    Method,
    Subject,
    Backend,
    Error,
}

impl Mark {
    fn of(self, name: &str) -> String {
        let letter = match self {
            Self::Session => 'n',
            Self::Principal => 'p',
            Self::Method => 'm',
            Self::Subject => 's',
            Self::Backend => 'b',
            Self::Error => 'e',
        };
        let mut mark = format!("§{letter}");
        mark.extend(escape(name).chars().take(MAX_MARK));
        mark
    }
}

/// SQL expression that creates the marks of version 1 runs.
pub const MARKS_SQL: &str =
    "array_remove(ARRAY['§n' || session, '§p' || left(principal, 200), '§m' || left(method, 200),
    '§s' || left(subject, 200), '§b' || left(backend, 200), '§e' || error_code], NULL)";

/// Runs of a batch.
pub struct Runs {
    tape: i64,
    first: u64,
    last: u64,
    words: HashSet<Box<str>>,
    /// Marks of the current run. Most entries of a run have the same few names.
    marked: Vec<(Mark, Box<str>)>,
    bytes: usize,
    copy: Copy,
}

impl Runs {
    /// Creates the runs of a batch for this tape.
    pub fn new(tape: i64) -> Self {
        Self { tape, first: 0, last: 0, words: HashSet::default(), marked: Vec::new(), bytes: 0, copy: Copy::new() }
    }

    /// Adds an entry, with the whole body of its message if that is searched.
    pub fn add(&mut self, entry: &Entry, searched: Option<&[u8]>) {
        if entry.seq - self.first >= MAX_SPAN || self.bytes >= MAX_WORD_BYTES {
            self.end();
        }
        if self.words.is_empty() {
            self.first = entry.seq;
        }
        self.last = entry.seq;
        let names = content::names(&entry.content);
        if let Some(session) = entry.session {
            self.number(Mark::Session, session as i64);
        }
        if let Some(code) = names.error_code {
            self.number(Mark::Error, code);
        }
        self.name(Mark::Principal, &entry.principal);
        for (mark, name) in
            [(Mark::Method, names.method), (Mark::Subject, names.subject), (Mark::Backend, names.backend)]
        {
            if let Some(name) = name {
                self.name(mark, name);
            }
        }
        words_of(searched.unwrap_or_default(), |word| word.with(|word| self.word(word)));
    }

    fn number(&mut self, mark: Mark, number: i64) {
        self.name(mark, &number.to_string());
    }

    fn name(&mut self, mark: Mark, name: &str) {
        // The latest marks are the likeliest to recur, and only a few are checked.
        if self.marked.iter().rev().take(MAX_MARKED).any(|(known, of)| *known == mark && **of == *name) {
            return;
        }
        self.marked.push((mark, name.into()));
        self.word(&mark.of(name));
    }

    fn word(&mut self, word: &str) {
        if !self.words.contains(word) {
            self.bytes += word.len();
            self.words.insert(word.into());
        }
    }

    fn end(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let mut words: Vec<&str> = self.words.iter().map(|word| &**word).collect();
        words.sort_unstable();
        self.copy.words(self.tape, self.first, self.last, &words);
        self.words.clear();
        self.marked.clear();
        self.bytes = 0;
    }

    /// Returns the size of the words in bytes.
    pub fn len(&self) -> usize {
        self.copy.len() + self.bytes
    }

    /// Returns all runs, ready to be sent.
    pub fn finish(mut self) -> Copy {
        self.end();
        self.copy
    }
}

/// Returns the `tsquery` that preselects runs for a query; `None` if runs do not help.
pub fn question(query: &Query, needle: Option<&Needle>) -> Option<String> {
    // The runs lack the words of a message that resembles an earlier one.
    let needle = needle.filter(|_| !query.client_side);
    let mut wanted: Vec<String> = needle.into_iter().flat_map(Needle::words).map(quoted).collect();
    let number = |number: Option<i64>| number.map(|number| number.to_string());
    let marks = [
        (Mark::Session, number(query.session.map(|number| number as i64))),
        (Mark::Principal, query.principal.clone()),
        (Mark::Subject, query.subject.clone()),
        (Mark::Backend, query.backend.clone()),
        (Mark::Error, number(query.error_code)),
    ];
    for (mark, name) in marks {
        wanted.extend(name.map(|name| quoted(&mark.of(&name))));
    }
    let methods = query.methods.iter().map(|method| match method.strip_suffix('*') {
        Some(beginning) => format!("{}:*", quoted(&Mark::Method.of(beginning))),
        None => quoted(&Mark::Method.of(method)),
    });
    let methods: Vec<String> = methods.collect();
    if !methods.is_empty() {
        wanted.push(format!("({})", methods.join(" | ")));
    }
    (!wanted.is_empty()).then(|| wanted.join(" & "))
}

/// Quotes a word for a `tsquery`.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\\', "\\\\").replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_asks_for_words_and_marks() {
        let query = Query {
            session: Some(7),
            methods: vec!["tools/*".into(), "it's".into()],
            subject: Some("a\\b".into()),
            error_code: Some(-1),
            ..Query::default()
        };
        let needle = Needle::read("red fox").unwrap();
        assert_eq!(
            question(&query, needle.as_ref()).unwrap(),
            r"'fox' & 'red' & '§n7' & '§sa\\\\b' & '§e-1' & ('§mtools/':* | '§mit''s')"
        );
        assert_eq!(question(&Query::default(), None), None);
    }

    #[test]
    fn marks_in_sql_are_as_long() {
        assert_eq!(MARKS_SQL.matches(&format!(", {MAX_MARK})")).count(), 4);
    }
}
