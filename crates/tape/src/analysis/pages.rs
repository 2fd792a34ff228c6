//! A walk over what a query matches in one stored tape, page by page.

use signalbox_engine::record::{Entry, Query, StoreError, TapeStore};

/// How many entries are asked of a store at a time.
const PAGE: usize = 1000;

/// The entries of one tape that a query matches, the oldest first.
pub struct Pages<'a> {
    store: &'a dyn TapeStore,
    query: Query,
    page: std::vec::IntoIter<Entry>,
    done: bool,
}

impl<'a> Pages<'a> {
    /// What this query matches. It names one tape; its limit and its order do not matter.
    #[must_use]
    pub fn new(store: &'a dyn TapeStore, query: Query) -> Self {
        let query = Query { limit: Some(PAGE), newest_first: false, ..query };
        Self { store, query, page: Vec::new().into_iter(), done: false }
    }
}

impl Iterator for Pages<'_> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                self.query.after = Some(entry.seq);
                return Some(Ok(entry));
            }
            if self.done {
                return None;
            }
            match self.store.find(&self.query) {
                Ok(page) => {
                    // A page that is empty and claims that there is more would never end.
                    self.done = !page.more || page.hits.is_empty();
                    self.page = page.hits.into_iter().map(|hit| hit.entry).collect::<Vec<_>>().into_iter();
                }
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
