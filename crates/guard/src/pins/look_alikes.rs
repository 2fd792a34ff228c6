//! Names that a person or a model may take for another name.

use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_security::confusable_detection::skeleton;

/// Kind of resemblance between two different names.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Resemblance {
    /// They differ in case, or in the way in which words are separated.
    Case,
    /// They look alike: Cyrillic `а` and Latin `a`, `l` and `1`, or an invisible character.
    Look,
}

/// Name in the list that another one resembles.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct LookAlike<'a> {
    pub name: &'a str,
    pub resemblance: Resemblance,
}

/// Names by their forms for comparison.
#[derive(Debug, Default)]
pub(super) struct NameIndex<'a> {
    by_case: HashMap<String, &'a str>,
    by_look: HashMap<String, &'a str>,
}

impl<'a> NameIndex<'a> {
    /// Adds a name. Of names that resemble each other, the first one is found.
    pub(super) fn add(&mut self, name: &'a str) {
        self.by_case.entry(case_form(name)).or_insert(name);
        for form in look_forms(name) {
            self.by_look.entry(form).or_insert(name);
        }
    }

    /// Returns a name that is, or looks like, the given one.
    pub(super) fn find(&self, name: &str) -> Option<LookAlike<'a>> {
        if let Some(found) = self.by_case.get(&case_form(name)) {
            return Some(LookAlike { name: found, resemblance: Resemblance::Case });
        }
        let found = look_forms(name).into_iter().find_map(|form| self.by_look.get(&form).copied());
        found.map(|name| LookAlike { name, resemblance: Resemblance::Look })
    }
}

/// Returns a name in lower case and without separators, so that `get_user`, `get-user` and `getUser` agree.
pub(super) fn case_form(name: &str) -> String {
    name.to_lowercase().chars().filter(|char| !matches!(char, '_' | '-' | '.' | '/' | ' ')).collect()
}

/// Returns the skeletons (UTS 39) of a name as written and in lower case: `I` resembles `l`, and `i` as its lower case
/// does not.
pub(super) fn look_forms(name: &str) -> [String; 2] {
    let normal: String = name.nfkc().collect();
    [skeleton(&normal).collect(), skeleton(&case_form(&normal)).collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(known: &str, name: &str) -> Option<Resemblance> {
        let mut index = NameIndex::default();
        index.add(known);
        index.find(name).map(|found| found.resemblance)
    }

    #[test]
    fn names_that_look_alike_are_found() {
        for (known, name, expected) in [
            ("read_file", "Read_File", Some(Resemblance::Case)),
            ("read_file", "readFile", Some(Resemblance::Case)),
            ("read_file", "read-file", Some(Resemblance::Case)),
            ("read_file", "re\u{430}d_file", Some(Resemblance::Look)),
            ("read_file", "RE\u{410}D_FILE", Some(Resemblance::Look)),
            ("read_file", "read_fi1e", Some(Resemblance::Look)),
            ("read_file", "read_fiIe", Some(Resemblance::Look)),
            ("read_file", "read_\u{fb01}le", Some(Resemblance::Look)),
            ("read_file", "read\u{200b}_file", Some(Resemblance::Look)),
            ("read_file", "\u{ff52}ead_file", Some(Resemblance::Look)),
            ("read_file", "𝐫ead_file", Some(Resemblance::Look)),
            ("warn", "wam", Some(Resemblance::Look)),
            ("read_file", "read_files", None),
            ("read_file", "write_file", None),
            ("list", "lists", None),
        ] {
            assert_eq!(find(known, name), expected, "{known} and {name}");
        }
    }
}
