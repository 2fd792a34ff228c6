//! Changes of the configuration: backends are added, removed or replaced, or offer fewer tools.

use super::{BackendEntry, Catalog, ListChanges, View, ViewKey};
use std::sync::Arc;

impl Catalog {
    /// Replaces the list of configured backends, and keeps the state of those that stay.
    pub fn reconfigure(&mut self, names: impl IntoIterator<Item = Arc<str>>) -> ListChanges {
        let mut before = std::mem::take(&mut self.backends);
        let order: Vec<Arc<str>> = before.iter().map(|entry| Arc::clone(&entry.name)).collect();
        self.backends = names
            .into_iter()
            .map(|name| match before.iter().position(|entry| entry.name == name) {
                Some(place) => before.remove(place),
                None => BackendEntry::new(name),
            })
            .collect();
        let configured = |name: &str| self.backends.iter().any(|entry| *entry.name == *name);
        self.claims.iter_mut().for_each(|claims| claims.keep(configured));
        // The names of removed backends become free for the others.
        self.claim_all();
        self.generation += 1;
        let stays = |name: &&Arc<str>| self.backends.iter().any(|entry| entry.name == **name);
        let kept = order.iter().filter(stays);
        let known = self.backends.iter().map(|entry| &entry.name).filter(|name| order.contains(name));
        // Lists follow the configured order.
        let moved = !kept.eq(known);
        let gone = before.iter().map(everything);
        let shuffled = self.backends.iter().filter(|_| moved).map(everything);
        gone.chain(shuffled).fold(ListChanges::default(), ListChanges::or)
    }

    /// Stores the first lists of a backend that replaced another, and drops all lists of its predecessor.
    pub fn replace_views(&mut self, backend: &str, key: ViewKey, view: View) -> ListChanges {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return ListChanges::default();
        };
        let dropped = std::mem::take(&mut entry.views);
        entry.ages.clear();
        let different = dropped.values().map(|known| view.differs(known)).fold(ListChanges::default(), ListChanges::or);
        let first = self.set_view(backend, key, view);
        if dropped.is_empty() { first } else { different }
    }

    /// Removes the tools that a backend may no longer offer from all of its lists.
    pub fn keep_tools(&mut self, backend: &str, keep: impl Fn(&str) -> bool) -> ListChanges {
        let Some(entry) = self.backends.iter_mut().find(|entry| &*entry.name == backend) else {
            return ListChanges::default();
        };
        let mut changed = ListChanges::default();
        for view in entry.views.values_mut().filter(|view| view.sent().tools.iter().any(|tool| !keep(&tool.key))) {
            Arc::make_mut(view).keep_tools(&keep);
            changed.tools = true;
        }
        self.generation += 1;
        changed
    }
}

fn everything(entry: &BackendEntry) -> ListChanges {
    let shown = entry.views.values().filter(|_| entry.listed);
    shown.map(|view| ListChanges::everything(view)).fold(ListChanges::default(), ListChanges::or)
}

#[cfg(test)]
mod tests {
    use super::super::ListKind;
    use super::super::tests::{bare, view};
    use super::*;
    use crate::capset::CapSet;
    use signalbox_wire::Era;

    const ECHO: &str = r#"{"name":"echo"}"#;
    const MORE: &str = r#"{"name":"more"}"#;

    fn catalog(names: &[&str]) -> Catalog {
        Catalog::new(names.iter().map(|name| Arc::from(*name)))
    }

    fn reconfigure(catalog: &mut Catalog, names: &[&str]) -> ListChanges {
        catalog.reconfigure(names.iter().map(|name| Arc::from(*name)))
    }

    fn tools(catalog: &Catalog) -> String {
        let page = catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, None).unwrap();
        String::from_utf8(page.array.to_vec()).unwrap()
    }

    #[test]
    fn names_follow_when_a_backend_goes_and_what_is_known_of_the_others_stays() {
        let mut catalog = catalog(&["a", "b"]);
        for name in ["a", "b"] {
            catalog.set_view(name, bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        }
        assert_eq!(tools(&catalog), r#"[{"name":"echo"},{"name":"b__echo"}]"#);
        let changed = reconfigure(&mut catalog, &["b"]);
        assert!(changed.tools && !changed.prompts && !changed.resources);
        assert_eq!(tools(&catalog), format!("[{ECHO}]"));
        assert_eq!(&*catalog.snapshot().tool("echo").unwrap().backend, "b");
        catalog.settle();
        // Who comes back finds the name taken.
        reconfigure(&mut catalog, &["a", "b"]);
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        assert_eq!(tools(&catalog), r#"[{"name":"a__echo"},{"name":"echo"}]"#);
    }

    #[test]
    fn a_backend_that_comes_changes_nothing_until_its_lists_are_known() {
        let mut catalog = catalog(&["b"]);
        catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        assert!(!reconfigure(&mut catalog, &["a", "b"]).any());
        catalog.settle();
        assert!(catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO])).tools);
        assert_eq!(tools(&catalog), r#"[{"name":"a__echo"},{"name":"echo"}]"#);
    }

    #[test]
    fn another_order_is_a_change_of_what_is_listed() {
        let mut catalog = catalog(&["a", "b"]);
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[MORE]));
        assert!(!reconfigure(&mut catalog, &["a", "b"]).any());
        assert!(reconfigure(&mut catalog, &["b", "a"]).tools);
        assert_eq!(tools(&catalog), format!("[{MORE},{ECHO}]"));
    }

    #[test]
    fn the_first_lists_of_a_successor_drop_all_of_its_predecessor() {
        let mut catalog = catalog(&["a"]);
        let rich = ViewKey::shared(Era::Modern, CapSet::read(br#"{"sampling":{}}"#));
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        catalog.set_view("a", rich, view(ListKind::Tools, &[ECHO, MORE]));
        let changed = catalog.replace_views("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        // Those who saw the other lists see these from now on.
        assert!(changed.tools);
        assert_eq!(catalog.backends()[0].views.len(), 1);
        assert!(catalog.snapshot().tool("more").is_none());
        let changed = catalog.replace_views("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO]));
        assert!(!changed.any());
    }

    #[test]
    fn a_tool_that_is_not_offered_any_more_is_gone_from_every_list() {
        let mut catalog = catalog(&["a"]);
        catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[ECHO, MORE]));
        catalog.set_view("a", bare(Era::Modern), view(ListKind::Tools, &[MORE]));
        assert!(catalog.keep_tools("a", |tool| tool != "more").tools);
        assert!(catalog.snapshot().tool("more").is_none() && catalog.snapshot().tool("echo").is_some());
        assert!(!catalog.keep_tools("a", |tool| tool != "more").any());
    }
}
