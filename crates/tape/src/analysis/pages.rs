//! Walks over the matches of a query in one stored tape, page by page.

use signalbox_engine::record::{Entry, Query, StoreError, TapeStore};

/// Number of entries requested from the store at a time.
const PAGE: usize = 1000;

/// Entries of one tape that match a query, oldest first.
pub struct Pages<'a> {
    store: &'a dyn TapeStore,
    query: Query,
    page: std::vec::IntoIter<Entry>,
    done: bool,
}

impl<'a> Pages<'a> {
    /// Creates a walk over the matches of `query`, which names one tape. Its limit and its order are ignored.
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
                    // An empty page that claims to have a successor would make this loop endless.
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
