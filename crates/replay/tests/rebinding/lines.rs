//! A list, the details of some of its orders, and writes with ids of lines that only the details have.

use super::stage::{Ids, TITLES, any_ids, recorded, replay, sent, shuffle, text, token, word};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_replay::run::RunReport;
use std::sync::Arc;

const CUSTOMERS: [&str; 3] = ["ann", "bob", "eve"];
const PRODUCTS: [&str; 3] = ["ink", "paper", "glue"];

/// A line of an order. Only its product is shown.
#[derive(Clone, Debug)]
struct Line {
    hidden: usize,
    product: usize,
}

/// An order. The list shows its title and its state, and the details show its customer and its lines.
#[derive(Clone, Debug)]
struct Order {
    hidden: usize,
    title: usize,
    open: bool,
    customer: usize,
    lines: Vec<Line>,
}

impl Order {
    fn is_listed_like(&self, other: &Self) -> bool {
        (self.title, self.open) == (other.title, other.open)
    }

    fn looks_like(&self, other: &Self) -> bool {
        self.is_listed_like(other) && self.customer == other.customer
    }
}

/// The ids that a server shows for lines.
#[derive(Clone, Copy, PartialEq, Debug)]
enum LineIds {
    /// A token that each line keeps.
    Token,
    /// A number that each line keeps.
    Serial,
    /// A token that is another one in each run.
    FreshToken,
    /// The place among the lines of all orders.
    Counter,
    /// The place in the order.
    Position,
    /// The place in the order, counted from another number in each run.
    FreshPosition,
}

impl LineIds {
    fn are_kept(self) -> bool {
        matches!(self, Self::Token | Self::Serial)
    }

    /// True if two orders may have a line with the same id.
    fn are_of_order(self) -> bool {
        matches!(self, Self::Position | Self::FreshPosition)
    }

    fn of(self, orders: &[Order], (order, line): Place, run: u64) -> Value {
        let hidden = orders[order].lines[line].hidden;
        match self {
            Self::Token => json!(token("line", hidden, 0)),
            Self::Serial => json!(hidden + 5001),
            Self::FreshToken => json!(token("line", hidden, run)),
            Self::Counter => json!(orders[..order].iter().map(|order| order.lines.len()).sum::<usize>() + line + 1),
            Self::Position => json!(line + 1),
            Self::FreshPosition => json!(line as u64 + 1 + 10 * (run - 1)),
        }
    }
}

/// The place of an order, and of a line in it.
type Place = (usize, usize);

#[derive(Clone, Debug)]
struct Scene {
    ids: Ids,
    line_ids: LineIds,
    /// True if details are a text, not a structure.
    in_text: bool,
    /// True if details repeat the id of the order.
    repeats_id: bool,
    /// True if a write names the order of its line, too.
    names_order: bool,
    /// True if all details are read before the first write.
    reads_first: bool,
    then: Vec<Order>,
    now: Vec<Order>,
    /// The lines that the recorded client cancels.
    targets: Vec<Place>,
}

impl Scene {
    fn id(&self, orders: &[Order], order: usize, run: u64) -> Value {
        self.ids.of(orders[order].hidden, order, run)
    }

    fn list(&self, orders: &[Order], run: u64) -> Value {
        let item = |index: usize| {
            let order = &orders[index];
            let state = if order.open { "open" } else { "shipped" };
            json!({"id": self.id(orders, index, run), "title": TITLES[order.title], "state": state})
        };
        let items: Vec<Value> = (0..orders.len()).map(item).collect();
        json!({"content": [], "structuredContent": {"orders": items}})
    }

    fn details(&self, orders: &[Order], order: usize, run: u64) -> Value {
        let (id, customer) = (self.id(orders, order, run), CUSTOMERS[orders[order].customer]);
        let lines = orders[order].lines.iter().enumerate();
        let lines = lines.map(|(at, line)| (self.line_ids.of(orders, (order, at), run), PRODUCTS[line.product]));
        if self.in_text {
            let head = if self.repeats_id { format!("Order {} of {customer}", word(&id)) } else { customer.to_owned() };
            let lines: String = lines.map(|(id, product)| format!("\n- {} {product}", word(&id))).collect();
            return text(&format!("{head}:{lines}"));
        }
        let lines: Vec<Value> = lines.map(|(id, product)| json!({"id": id, "product": product})).collect();
        let mut details = json!({"customer": customer, "lines": lines});
        if self.repeats_id {
            details["order"] = id;
        }
        json!({"content": [], "structuredContent": details})
    }

    fn arguments(&self, orders: &[Order], (order, line): Place, run: u64) -> Value {
        let id = self.line_ids.of(orders, (order, line), run);
        match self.names_order {
            true => json!({"order": self.id(orders, order, run), "line": id}),
            false => json!({"line": id}),
        }
    }

    /// The line that a write reaches now.
    fn reached(&self, arguments: &Value) -> Option<Place> {
        let lines =
            (0..self.now.len()).flat_map(|order| (0..self.now[order].lines.len()).map(move |line| (order, line)));
        lines.into_iter().find(|place| self.arguments(&self.now, *place, 2) == *arguments)
    }

    /// True if an order is the one that the tape meant, or nothing that either run shows tells otherwise.
    fn is_meant_order(&self, target: usize, hit: usize) -> bool {
        let (meant, order) = (&self.then[target], &self.now[hit]);
        if meant.hidden == order.hidden {
            return true;
        }
        let ids = |orders: &[Order], run| (0..orders.len()).map(|at| self.id(orders, at, run)).collect::<Vec<_>>();
        let (then, now) = (ids(&self.then, 1), ids(&self.now, 2));
        let same_bytes = !self.ids.are_kept() && then[target] == now[hit];
        let alone = |orders: &[Order]| orders.iter().filter(|other| other.is_listed_like(meant)).count() == 1;
        let all_new = alone(&self.then) && alone(&self.now) && !then.iter().any(|id| now.contains(id));
        meant.looks_like(order) && (same_bytes || all_new)
    }

    /// The same for a line.
    fn is_meant(&self, target: Place, hit: Place) -> bool {
        let (meant, line) = (&self.then[target.0].lines[target.1], &self.now[hit.0].lines[hit.1]);
        if meant.hidden == line.hidden {
            return true;
        }
        let ids = |orders: &[Order], order: usize, run| {
            let lines = 0..orders[order].lines.len();
            lines.map(|line| self.line_ids.of(orders, (order, line), run)).collect::<Vec<_>>()
        };
        let (then, now) = (ids(&self.then, target.0, 1), ids(&self.now, hit.0, 2));
        let same_bytes = !self.line_ids.are_kept() && then[target.1] == now[hit.1];
        let alone = |order: &Order| order.lines.iter().filter(|other| other.product == meant.product).count() == 1;
        let are_alone = alone(&self.then[target.0]) && alone(&self.now[hit.0]);
        let all_new = are_alone && !then.iter().any(|id| now.contains(id));
        self.is_meant_order(target.0, hit.0) && meant.product == line.product && (same_bytes || all_new)
    }

    /// True if order and line are there as they were, and can be told from all others, so that the write must be sent.
    fn must_be_written(&self, target: Place) -> bool {
        let meant = &self.then[target.0];
        let Some(order) = self.now.iter().find(|order| order.hidden == meant.hidden) else { return false };
        let (line, product) = (&meant.lines[target.1], meant.lines[target.1].product);
        let is_there = order.looks_like(meant) && order.lines.iter().any(|other| other.hidden == line.hidden);
        let is_alone = |orders: &[Order]| orders.iter().filter(|other| other.is_listed_like(meant)).count() == 1;
        let are_told = self.ids == Ids::FreshToken && is_alone(&self.then) && is_alone(&self.now);
        let is_line_alone = |order: &Order| order.lines.iter().filter(|line| line.product == product).count() == 1;
        let is_line_told = self.line_ids == LineIds::FreshToken && is_line_alone(meant) && is_line_alone(order);
        is_there && (self.ids.are_kept() || are_told) && (self.line_ids.are_kept() || is_line_told)
    }
}

/// The number of the first call after the list.
const FIRST: u64 = 3;

/// Replays the scene. Returns each write that reached the server with the line that the tape meant, and the report.
fn run(scene: &Scene) -> (Vec<(Place, Value)>, RunReport) {
    let mut calls = vec![recorded(2, "list_orders", &json!({}), &scene.list(&scene.then, 1))];
    let mut targets = Vec::new();
    let mut push = |target: Option<Place>, tool: &str, arguments: &Value, result: &Value| {
        calls.push(recorded(FIRST + targets.len() as u64, tool, arguments, result));
        targets.push(target);
    };
    let reads: Vec<bool> = if scene.reads_first { vec![true, false] } else { vec![true] };
    for is_read in reads {
        for target in &scene.targets {
            if is_read {
                let arguments = json!({"order": scene.id(&scene.then, target.0, 1)});
                push(None, "get_order", &arguments, &scene.details(&scene.then, target.0, 1));
            }
            if !is_read || !scene.reads_first {
                push(Some(*target), "cancel_line", &scene.arguments(&scene.then, *target, 1), &text("Cancelled."));
            }
        }
    }
    let world = Arc::new(scene.clone());
    let answer = move |tool: &str, arguments: &Value| match tool {
        "list_orders" => world.list(&world.now, 2),
        "get_order" => {
            let order = (0..world.now.len()).find(|order| world.id(&world.now, *order, 2) == arguments["order"]);
            order.map_or_else(|| text("There is no such order."), |order| world.details(&world.now, order, 2))
        }
        _ => text("Cancelled."),
    };
    let (mut reached, report) = replay(&calls, &["list_orders", "get_order"], answer);
    reached.retain(|(tool, _)| tool == "cancel_line");
    let sent = sent(&report, "cancel_line");
    assert_eq!(sent.len(), reached.len(), "{}", report.to_text());
    let meant = sent.into_iter().map(|number| targets[usize::try_from(number - FIRST).unwrap()].unwrap());
    (meant.zip(reached.into_iter().map(|(_, arguments)| arguments)).collect(), report)
}

/// Holds one scene against the oracle.
fn judge(scene: &Scene) -> Result<(), String> {
    let (written, report) = run(scene);
    for (target, arguments) in &written {
        if let Some(hit) = scene.reached(arguments)
            && !scene.is_meant(*target, hit)
        {
            let (meant, line) = (&scene.then[target.0].lines[target.1], &scene.now[hit.0].lines[hit.1]);
            return Err(format!("the write to {meant:?} went to {line:?}, by {arguments}\n{}", report.explain()));
        }
    }
    let is_missing = |target: &&Place| !written.iter().any(|(sent, _)| sent == *target);
    match scene.targets.iter().find(|target| scene.must_be_written(**target) && is_missing(target)) {
        Some(target) => Err(format!("the write to {target:?} was withheld: {}", report.to_text())),
        None => Ok(()),
    }
}

fn line_ids() -> impl Strategy<Value = LineIds> {
    prop_oneof![
        Just(LineIds::Token),
        Just(LineIds::Serial),
        Just(LineIds::FreshToken),
        Just(LineIds::Counter),
        Just(LineIds::Position),
        Just(LineIds::FreshPosition)
    ]
}

prop_compose! {
    fn any_order()(
        look in (0..TITLES.len(), any::<bool>(), 0..CUSTOMERS.len()),
        products in prop::collection::vec(0..PRODUCTS.len(), 1..4),
    ) -> (usize, bool, usize, Vec<usize>) {
        (look.0, look.1, look.2, products)
    }
}

prop_compose! {
    /// Changes of an order between the runs: its own fate, which of its lines are gone, and what is added.
    fn any_fate()(
        order in prop_oneof![6 => Just(0u8), 2 => Just(1u8), 1 => Just(2u8), 1 => Just(3u8)],
        gone in prop::collection::vec(prop::bool::weighted(0.25), 3),
        added in prop::collection::vec(0..PRODUCTS.len(), 0..3),
        seed in any::<u64>(),
    ) -> (u8, Vec<bool>, Vec<usize>, u64) {
        (order, gone, added, seed)
    }
}

prop_compose! {
    fn scenes()(
        ids in any_ids(),
        line_ids in line_ids(),
        [in_text, repeats_id, names_order, reads_first] in any::<[bool; 4]>(),
        looks in prop::collection::vec(any_order(), 1..4),
        added in prop::collection::vec(any_order(), 0..3),
        fates in prop::collection::vec(any_fate(), 3),
        targets in prop::collection::vec(any::<[prop::sample::Index; 2]>(), 1..4),
        seed in any::<u64>(),
    ) -> Scene {
        let mut last = 0;
        let mut lines = |products: &[usize]| -> Vec<Line> {
            products.iter().map(|&product| { last += 1; Line { hidden: last, product } }).collect()
        };
        let mut order = |hidden, (title, open, customer, products): (usize, bool, usize, Vec<usize>)| {
            Order { hidden, title, open, customer, lines: lines(&products) }
        };
        let then: Vec<Order> = looks.into_iter().enumerate().map(|(hidden, look)| order(hidden, look)).collect();
        let mut now: Vec<Order> = then.iter().filter(|order| fates[order.hidden].0 != 1).cloned().collect();
        let new: Vec<Order> = added.into_iter().enumerate().map(|(at, look)| order(then.len() + at, look)).collect();
        for order in &mut now {
            let (fate, gone, added, seed) = &fates[order.hidden];
            order.open ^= *fate == 2;
            order.customer = (order.customer + usize::from(*fate == 3)) % CUSTOMERS.len();
            let mut index = 0;
            order.lines.retain(|_| { index += 1; !gone[index - 1] });
            // Beyond the numbers that `lines` gives.
            let hidden = 100 + 10 * order.hidden;
            let new = added.iter().enumerate().map(|(at, &product)| Line { hidden: hidden + at, product });
            order.lines.extend(new);
            shuffle(&mut order.lines, *seed, |line| line.hidden);
        }
        now.extend(new);
        shuffle(&mut now, seed, |order| order.hidden);
        let place = |[order, line]: &[prop::sample::Index; 2]| {
            let order = order.index(then.len());
            (order, line.index(then[order].lines.len()))
        };
        let mut targets: Vec<Place> = targets.iter().map(place).collect();
        targets.sort_unstable();
        targets.dedup();
        let names_order = names_order || line_ids.are_of_order();
        Scene { ids, line_ids, in_text, repeats_id, names_order, reads_first, then, now, targets }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Writes to parts of objects reach the parts that the tape means, or are not sent.
    /// Proves S-45 and SO-12.
    #[test]
    fn no_write_goes_to_a_part_that_the_tape_did_not_mean(scene in scenes()) {
        let judged = judge(&scene);
        prop_assert!(judged.is_ok(), "{}\n{scene:#?}", judged.unwrap_err());
    }
}

/// Three orders in another order, each with its lines in another order.
#[test]
fn reordered_orders_with_reordered_lines_keep_the_ids_that_they_still_have() {
    let order = |hidden: usize| Order {
        hidden,
        title: hidden,
        open: true,
        customer: hidden,
        lines: (0..3).map(|at| Line { hidden: 3 * hidden + at, product: at }).collect(),
    };
    let then: Vec<Order> = (0..3).map(order).collect();
    let mut now: Vec<Order> = then.iter().rev().cloned().collect();
    now.iter_mut().for_each(|order| order.lines.rotate_left(1));
    for (line_ids, in_text) in [(LineIds::Token, false), (LineIds::Serial, false), (LineIds::Token, true)] {
        let scene = Scene {
            ids: Ids::Name,
            line_ids,
            in_text,
            repeats_id: true,
            names_order: true,
            reads_first: true,
            then: then.clone(),
            now: now.clone(),
            targets: vec![(0, 0), (2, 1)],
        };
        judge(&scene).unwrap();
        let written: Vec<Value> = run(&scene).0.into_iter().map(|(_, arguments)| arguments).collect();
        let wanted = scene.targets.iter().map(|target| scene.arguments(&then, *target, 1));
        assert_eq!(written, wanted.collect::<Vec<_>>(), "{line_ids:?}");
    }
}
