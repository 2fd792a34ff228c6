//! A list over several pages, and writes with ids from them.

use super::stage::{Ids, TITLES, any_ids, recorded, replay, sent, shuffle, text, token};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_replay::run::RunReport;
use std::ops::Range;
use std::sync::Arc;

/// An order. Only its title is shown.
#[derive(Clone, Debug)]
struct Order {
    hidden: usize,
    title: usize,
}

/// The way by which a client asks for the next page.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Cursor {
    /// A cursor that says how many orders come before.
    Offset,
    /// A token that is the same in each run.
    Token,
    /// A token that is another one in each run.
    FreshToken,
    /// The id of the last order of the page before.
    LastId,
    /// The number of the page, which the client counts.
    Number,
}

#[derive(Clone, Debug)]
struct Scene {
    ids: Ids,
    cursor: Cursor,
    /// True if a page is a text, not a structure.
    in_text: bool,
    /// Orders of a page.
    size: usize,
    /// True if the client cancels what a page has before it reads the next one.
    is_early: bool,
    then: Vec<Order>,
    now: Vec<Order>,
    /// Places of the orders that the recorded client cancels.
    targets: Vec<usize>,
}

impl Scene {
    fn id(&self, orders: &[Order], index: usize, run: u64) -> Value {
        self.ids.of(orders[index].hidden, index, run)
    }

    /// The argument that asks for the orders from a place on.
    fn cursor(&self, orders: &[Order], start: usize, run: u64) -> Value {
        match self.cursor {
            Cursor::Offset => json!({"cursor": start.to_string()}),
            Cursor::Token => json!({"cursor": token("cur", start, 0)}),
            Cursor::FreshToken => json!({"cursor": token("cur", start, run)}),
            Cursor::LastId => json!({"cursor": self.id(orders, start - 1, run)}),
            Cursor::Number => json!({"page": start / self.size + 1}),
        }
    }

    /// The places of the orders that are shown to a client with these arguments.
    fn range(&self, orders: &[Order], arguments: &Value, run: u64) -> Option<Range<usize>> {
        let is_first = arguments.get("cursor").is_none() && arguments.get("page").is_none_or(|page| page == 1);
        let number = arguments.get("page").and_then(Value::as_u64).and_then(|page| usize::try_from(page).ok());
        let start = match number {
            _ if is_first => Some(0),
            Some(page) => Some((page - 1) * self.size),
            None => (1..=orders.len()).find(|start| self.cursor(orders, *start, run) == *arguments),
        };
        start.map(|start| start.min(orders.len())..(start + self.size).min(orders.len()))
    }

    fn page(&self, orders: &[Order], arguments: &Value, run: u64) -> Value {
        let Some(range) = self.range(orders, arguments, run) else { return text("There is no such page.") };
        let item = |index| json!({"id": self.id(orders, index, run), "title": TITLES[orders[index].title]});
        let mut page = json!({"orders": range.clone().map(item).collect::<Vec<Value>>()});
        match self.cursor {
            Cursor::Number => page["has_more"] = (range.end < orders.len()).into(),
            _ if range.end < orders.len() => page["next"] = self.cursor(orders, range.end, run)["cursor"].clone(),
            _ => {}
        }
        if self.in_text { text(&page.to_string()) } else { json!({"content": [], "structuredContent": page}) }
    }

    /// The order that a write reaches now.
    fn reached(&self, arguments: &Value) -> Option<usize> {
        (0..self.now.len()).find(|index| self.id(&self.now, *index, 2) == arguments["order"])
    }

    /// True if a write to `hit` is what the tape meant by `target`, or nothing tells otherwise: neither the whole tape,
    /// nor the orders that were shown until then, when so many of those of the tape had been read.
    fn is_meant(&self, target: usize, hit: usize, shown: &[usize], read: usize) -> bool {
        let (meant, order) = (&self.then[target], &self.now[hit]);
        if meant.hidden == order.hidden {
            return true;
        }
        let then: Vec<Value> = (0..self.then.len()).map(|index| self.id(&self.then, index, 1)).collect();
        let now: Vec<Value> = shown.iter().map(|index| self.id(&self.now, *index, 2)).collect();
        let same_bytes = !self.ids.are_kept() && then[target] == self.id(&self.now, hit, 2);
        let titles = |orders: &mut dyn Iterator<Item = &Order>| -> Vec<usize> {
            let mut titles: Vec<usize> = orders.map(|order| order.title).collect();
            titles.sort_unstable();
            titles
        };
        let alone = |titles: &[usize]| titles.iter().filter(|title| **title == meant.title).count() == 1;
        let shown_titles = titles(&mut shown.iter().map(|index| &self.now[*index]));
        let all_new = alone(&titles(&mut self.then.iter())) && alone(&shown_titles);
        let all_new = all_new && !then.iter().any(|id| now.contains(id));
        // What is not shown yet may be what was meant, unless all that is shown is as it was.
        let is_whole = shown.len() == self.now.len() || shown_titles == titles(&mut self.then[..read].iter());
        meant.title == order.title && (same_bytes || all_new && is_whole)
    }

    /// True if the order is there, has an id that it keeps, and is on a page that is certainly read before the write.
    fn must_be_written(&self, target: usize) -> bool {
        let is_read = self.cursor == Cursor::Number && !self.is_early && self.now.len() <= self.then.len();
        self.ids.are_kept() && is_read && self.now.iter().any(|order| order.hidden == self.then[target].hidden)
    }
}

/// A write that reached the server.
struct Write {
    target: usize,
    arguments: Value,
    /// Orders that were shown before, now and on the tape.
    shown: Vec<usize>,
    read: usize,
}

/// Replays the scene. Returns each write that reached the server, and the report.
fn run(scene: &Scene) -> (Vec<Write>, RunReport) {
    let (mut calls, mut told) = (Vec::new(), Vec::<(usize, usize)>::new());
    // The places that a page has, or the order that a write means, with the orders that were read before.
    let mut push = |tool: &str, arguments: &Value, result: &Value, what: (usize, usize)| {
        calls.push(recorded(2 + told.len() as u64, tool, arguments, result));
        told.push(what);
    };
    let mut late: Vec<usize> = Vec::new();
    for start in (0..scene.then.len()).step_by(scene.size) {
        let arguments = if start == 0 { json!({}) } else { scene.cursor(&scene.then, start, 1) };
        push("list_orders", &arguments, &scene.page(&scene.then, &arguments, 1), (start, 0));
        let here = scene.targets.iter().filter(|target| (start..start + scene.size).contains(target));
        match scene.is_early {
            true => here.for_each(|target| {
                let arguments = json!({"order": scene.id(&scene.then, *target, 1)});
                push("cancel_order", &arguments, &text("Cancelled."), (*target, start + scene.size));
            }),
            false => late.extend(here),
        }
    }
    for target in late {
        let arguments = json!({"order": scene.id(&scene.then, target, 1)});
        push("cancel_order", &arguments, &text("Cancelled."), (target, scene.then.len()));
    }
    let world = Arc::new(scene.clone());
    let answer = move |tool: &str, arguments: &Value| match tool {
        "list_orders" => world.page(&world.now, arguments, 2),
        _ => text("Cancelled."),
    };
    let (reached, report) = replay(&calls, &["list_orders"], answer);
    let mut sent = sent(&report, "cancel_order").into_iter();
    let (mut shown, mut writes): (Vec<usize>, Vec<Write>) = (Vec::new(), Vec::new());
    for (tool, arguments) in reached {
        if tool == "list_orders" {
            shown.extend(scene.range(&scene.now, &arguments, 2).into_iter().flatten());
            shown.sort_unstable();
            shown.dedup();
            continue;
        }
        let (target, read) = told[usize::try_from(sent.next().unwrap()).unwrap() - 2];
        writes.push(Write { target, arguments, shown: shown.clone(), read: read.min(scene.then.len()) });
    }
    assert_eq!(sent.next(), None, "{}", report.to_text());
    (writes, report)
}

/// Holds one scene against the oracle.
fn judge(scene: &Scene) -> Result<(), String> {
    let (written, report) = run(scene);
    for Write { target, arguments, shown, read } in &written {
        if let Some(hit) = scene.reached(arguments)
            && !scene.is_meant(*target, hit, shown, *read)
        {
            let (meant, order) = (&scene.then[*target], &scene.now[hit]);
            return Err(format!("the write to {meant:?} went to {order:?}\n{}", report.explain()));
        }
    }
    let is_missing = |target: &&usize| !written.iter().any(|write| write.target == **target);
    match scene.targets.iter().find(|target| scene.must_be_written(**target) && is_missing(target)) {
        Some(target) => Err(format!("the write to {:?} was withheld: {}", scene.then[*target], report.to_text())),
        None => Ok(()),
    }
}

prop_compose! {
    fn scenes()(
        ids in any_ids(),
        cursor in prop_oneof![
            Just(Cursor::Offset),
            Just(Cursor::Token),
            Just(Cursor::FreshToken),
            Just(Cursor::LastId),
            Just(Cursor::Number)
        ],
        [in_text, is_early] in any::<[bool; 2]>(),
        size in 1..4usize,
        titles in prop::collection::vec(0..TITLES.len(), 2..8),
        added in prop::collection::vec(0..TITLES.len(), 0..5),
        gone in prop::collection::vec(prop::bool::weighted(0.3), 8),
        targets in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
        seed in any::<u64>(),
        is_shuffled in any::<bool>(),
    ) -> Scene {
        // Two pages at least, and three at most.
        let titles = &titles[..titles.len().min(3 * size)];
        let size = size.min(titles.len() - 1);
        let then: Vec<Order> = titles.iter().enumerate().map(|(hidden, &title)| Order { hidden, title }).collect();
        let added = added.iter().enumerate().map(|(at, &title)| Order { hidden: then.len() + at, title });
        // New orders come first, as in most lists, or anywhere.
        let mut now: Vec<Order> = added.collect();
        now.extend(then.iter().filter(|order| !gone[order.hidden]).cloned());
        if is_shuffled {
            shuffle(&mut now, seed, |order| order.hidden);
        }
        let mut targets: Vec<usize> = targets.iter().map(|target| target.index(then.len())).collect();
        targets.sort_unstable();
        targets.dedup();
        Scene { ids, cursor, in_text, size, is_early, then, now, targets }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    /// Writes to objects of a list over several pages reach those that the tape means, or are not sent.
    /// Proves S-45 and SO-12.
    #[test]
    fn no_write_goes_to_an_object_of_another_page(scene in scenes()) {
        let judged = judge(&scene);
        prop_assert!(judged.is_ok(), "{}\n{scene:#?}", judged.unwrap_err());
    }
}

fn two_pages(ids: Ids, then: &[(usize, usize)], now: &[(usize, usize)]) -> Scene {
    let orders = |all: &[(usize, usize)]| all.iter().map(|&(hidden, title)| Order { hidden, title }).collect();
    Scene {
        ids,
        cursor: Cursor::Number,
        in_text: false,
        size: 2,
        is_early: false,
        then: orders(then),
        now: orders(now),
        targets: vec![0],
    }
}

/// Two new orders like those of the first page come before them.
#[test]
fn an_order_that_moved_to_the_next_page_is_still_meant() {
    let (book, pen, lamp) = (0, 1, 2);
    let then = [(0, book), (1, pen), (2, lamp)];
    let now = [(5, book), (6, pen), (0, book), (1, pen)];
    for ids in [Ids::Token, Ids::Name, Ids::Serial] {
        let scene = two_pages(ids, &then, &now);
        let written: Vec<Value> = run(&scene).0.into_iter().map(|write| write.arguments).collect();
        assert_eq!(written, [json!({"order": scene.id(&scene.then, 0, 1)})], "{ids:?}");
    }
}

/// Numbers that the tape has on its second page are on the first page now: they name the same orders as then.
#[test]
fn an_order_that_is_gone_is_not_taken_for_one_of_the_next_page() {
    let (book, pen) = (0, 1);
    let then = [(0, book), (1, pen), (2, book), (3, pen)];
    let scene = two_pages(Ids::Serial, &then, &[(2, book), (3, pen), (4, book), (5, pen)]);
    let (written, report) = run(&scene);
    assert!(written.is_empty(), "{}", report.explain());
    assert!(report.to_text().contains("is gone from a list whose other ids are as recorded"), "{}", report.to_text());
}

/// New ids are paired over all pages.
#[test]
fn new_ids_of_a_list_over_pages_are_paired() {
    let then = [(0, 0), (1, 1), (2, 2), (3, 3)];
    let now = [(3, 3), (2, 2), (1, 1), (0, 0)];
    let scene = two_pages(Ids::FreshToken, &then, &now);
    let written: Vec<Value> = run(&scene).0.into_iter().map(|write| write.arguments).collect();
    assert_eq!(written, [json!({"order": scene.id(&scene.now, 3, 2)})]);
}
