//! Recognizes lists that the recorded client read page by page.
//!
//! The pages of a list are evaluated as one answer, because an object may have moved to another page. Two calls of one
//! tool read pages of the same list if their arguments differ only in the page they request. A call for the first page,
//! or for a page already read, starts the list anew.

use super::lineage::ValueStanding;
use super::rebinding::is_argument;
use crate::recorded_call::RecordedCall;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Maximum number of pages evaluated together. Each page is compared with all earlier ones.
const MAX_PAGES: usize = 100;
/// Arguments that select a page, in lower case and without `_` and `-`.
const PAGE_ARGUMENTS: [&str; 16] = [
    "after",
    "continuation",
    "continuationtoken",
    "cursor",
    "marker",
    "next",
    "nextcursor",
    "nextpage",
    "nextpagetoken",
    "nexttoken",
    "offset",
    "page",
    "pagenumber",
    "pagetoken",
    "skip",
    "startingafter",
];
/// Members of an answer that announce a further page.
const FURTHER: [&str; 14] = [
    "continuation",
    "continuationtoken",
    "cursor",
    "hasmore",
    "hasnext",
    "hasnextpage",
    "istruncated",
    "marker",
    "more",
    "next",
    "nextcursor",
    "nextpage",
    "nextpagetoken",
    "nexttoken",
];

/// Paged lists of a recording.
#[derive(Debug, Default)]
pub(super) struct PagedLists {
    lists: Vec<PagedList>,
    /// List index of each page, by the position of its call.
    of_call: HashMap<u64, usize>,
    /// List whose pages hold the latest evidence for a value.
    of_value: HashMap<String, usize>,
}

#[derive(Debug, Default)]
pub(super) struct PagedList {
    /// Pages by the position of their calls on the tape.
    pub pages: BTreeMap<u64, Page>,
    /// Evidence from the pages read in this run, by value.
    pub evidence: HashMap<String, Evidence>,
}

/// Standing of a value before and after the pages of a list were read.
#[derive(Debug)]
pub(super) struct Evidence {
    pub before: Option<ValueStanding>,
    pub after: ValueStanding,
}

#[derive(Debug)]
pub(super) struct Page {
    /// Number of its call.
    pub number: u64,
    pub recorded: Value,
    /// Result in this run, once received.
    pub new: Option<Value>,
}

/// Pages of an unfinished list, in reading order.
#[derive(Default)]
struct PageSequence<'a> {
    wanted: HashSet<String>,
    pages: Vec<&'a RecordedCall>,
}

impl PagedLists {
    /// Detects the lists among these calls.
    pub(super) fn expect<'a>(&mut self, calls: impl IntoIterator<Item = &'a RecordedCall>) {
        let mut calls: Vec<_> = calls.into_iter().filter(|call| !self.of_call.contains_key(&call.seq)).collect();
        calls.sort_by_key(|call| call.seq);
        let mut readings: HashMap<(Option<u64>, &str, String), PageSequence<'_>> = HashMap::new();
        for call in calls {
            let Some((list, page)) = parts(call) else { continue };
            let subject = call.subject.as_deref().unwrap_or(&call.method);
            let reading = readings.entry((call.session, subject, list)).or_default();
            if page.is_empty() || reading.wanted.contains(&page) || reading.pages.len() >= MAX_PAGES {
                self.add(std::mem::take(reading));
            }
            reading.wanted.insert(page);
            reading.pages.push(call);
        }
        readings.into_values().for_each(|reading| self.add(reading));
    }

    fn add(&mut self, reading: PageSequence<'_>) {
        if reading.pages.len() < 2 {
            return;
        }
        let page =
            |call: &RecordedCall| Some((call.seq, Page { number: call.number, recorded: call.result()?, new: None }));
        let pages: BTreeMap<u64, Page> = reading.pages.into_iter().filter_map(page).collect();
        self.of_call.extend(pages.keys().map(|seq| (*seq, self.lists.len())));
        self.lists.push(PagedList { pages, ..PagedList::default() });
    }

    /// Returns the list that a call reads a page of.
    pub(super) fn of(&self, call: &RecordedCall) -> Option<&PagedList> {
        self.lists.get(*self.of_call.get(&call.seq)?)
    }

    /// Stores a page read in this run.
    pub(super) fn read(&mut self, call: &RecordedCall, new: &Value) {
        let list = self.of_call.get(&call.seq).and_then(|list| self.lists.get_mut(*list));
        if let Some(page) = list.and_then(|list| list.pages.get_mut(&call.seq)) {
            page.new = Some(new.clone());
        }
    }

    /// Records what the pages of a list imply for a value.
    pub(super) fn note(&mut self, call: &RecordedCall, value: &str, evidence: Evidence) {
        let Some(list) = self.of_call.get(&call.seq) else { return };
        self.of_value.insert(value.to_owned(), *list);
        if let Some(list) = self.lists.get_mut(*list) {
            list.evidence.insert(value.to_owned(), evidence);
        }
    }

    /// Returns the number of an earlier call for a page of the value's list that has no answer in this run.
    pub(super) fn missing(&self, value: &str, call: &RecordedCall) -> Option<u64> {
        let list = self.lists.get(*self.of_value.get(value)?)?;
        list.pages.range(..call.seq).find(|(_, page)| page.new.is_none()).map(|(_, page)| page.number)
    }
}

/// Splits the arguments of a request into those that identify the list and those that select the page, as texts.
fn parts(call: &RecordedCall) -> Option<(String, String)> {
    let mut request = serde_json::from_slice::<Value>(call.request.as_ref()?).ok()?;
    let params = request.get_mut("params").map(Value::take).unwrap_or_default();
    let arguments = match params.get("arguments") {
        Some(arguments) => arguments.clone(),
        None => params,
    };
    let (mut list, mut page) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in arguments.as_object()?.iter().filter(|(name, _)| is_argument(name)) {
        // Treat a null or empty page argument as absent.
        match is_page_argument(name) {
            true if value.is_null() || value == "" => None,
            true => page.insert(name, value),
            false => list.insert(name, value),
        };
    }
    let text = |members: &BTreeMap<&String, &Value>| match members.is_empty() {
        true => String::new(),
        false => serde_json::to_string(members).unwrap_or_default(),
    };
    Some((text(&list), text(&page)))
}

/// Returns `true` for an argument that selects a page.
pub(super) fn is_page_argument(name: &str) -> bool {
    PAGE_ARGUMENTS.contains(&&*normalize_name(name))
}

/// Returns `true` for a member that announces a further page.
pub(super) fn tells_of_further_page(member: &str) -> bool {
    FURTHER.contains(&&*normalize_name(member))
}

fn normalize_name(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::recorded;
    use super::*;
    use serde_json::json;

    /// The numbers of the calls of each list, if a tool is called with these arguments.
    fn lists(all: &[Value]) -> Vec<Vec<u64>> {
        let calls: Vec<_> =
            (1..).zip(all).map(|(at, arguments)| recorded(at, "list", arguments, &json!({}), at)).collect();
        let mut lists = PagedLists::default();
        for _ in 0..2 {
            lists.expect(calls.iter().map(|call| &**call));
        }
        let mut found: Vec<Vec<u64>> =
            lists.lists.iter().map(|list| list.pages.keys().map(|seq| seq / 10).collect()).collect();
        found.sort();
        found
    }

    #[test]
    fn pages_of_a_list_belong_together_until_it_begins_anew() {
        let pages = [json!({}), json!({"cursor": "b"}), json!({"cursor": "c"}), json!({}), json!({"cursor": "b"})];
        assert_eq!(lists(&pages), [vec![1, 2, 3], vec![4, 5]]);
        let numbers = [json!({"page": 1}), json!({"page": 2}), json!({"page": 1}), json!({"page": 2})];
        assert_eq!(lists(&numbers), [vec![1, 2], vec![3, 4]]);
        let two = [
            json!({"q": "a"}),
            json!({"q": "b"}),
            json!({"q": "a", "offset": 10}),
            json!({"q": "b", "next_page": "x"}),
        ];
        assert_eq!(lists(&two), [vec![1, 3], vec![2, 4]]);
        let none = [json!({"q": "a"}), json!({"q": "a"}), json!({"q": "b", "cursor": null})];
        assert_eq!(lists(&none), Vec::<Vec<u64>>::new(), "equal calls are no pages");
    }
}
