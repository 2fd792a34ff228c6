//! A list, and writes with ids from it.

use super::stage::{Ids, TITLES, any_ids, recorded, replay, sent, shuffle, text, word};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_replay::run::RunReport;

/// An order. Only its title and its state are shown.
#[derive(Clone, Debug)]
struct Order {
    hidden: usize,
    title: usize,
    open: bool,
}

impl Order {
    fn looks_like(&self, other: &Self) -> bool {
        (self.title, self.open) == (other.title, other.open)
    }
}

/// The form of the list.
#[derive(Clone, Copy, Debug)]
enum Form {
    Structured,
    Counted,
    JsonText,
    Lines,
    /// Properties of an order on lines of their own, and a blank line between two orders.
    Records,
    /// A heading for each order.
    Sections,
    Grouped,
}

/// The argument that names an order in a write.
#[derive(Clone, Copy, Debug)]
enum Argument {
    Whole,
    InPath,
    InList,
}

#[derive(Clone, Debug)]
struct Scene {
    ids: Ids,
    form: Form,
    argument: Argument,
    then: Vec<Order>,
    now: Vec<Order>,
    /// Places of the orders that the recorded client cancels.
    targets: Vec<usize>,
}

impl Scene {
    fn list(&self, orders: &[Order], run: u64) -> Value {
        let item = |index: usize| {
            let order = &orders[index];
            let state = if order.open { "open" } else { "shipped" };
            (self.ids.of(order.hidden, index, run), TITLES[order.title], state)
        };
        let items: Vec<_> = (0..orders.len()).map(item).collect();
        let objects: Vec<Value> =
            items.iter().map(|(id, title, state)| json!({"id": id, "title": title, "state": state})).collect();
        match self.form {
            Form::Structured => json!({"content": [], "structuredContent": {"orders": objects}}),
            Form::Counted => json!({"content": [], "structuredContent": {"count": items.len(), "orders": objects}}),
            Form::JsonText => text(&json!({"orders": objects}).to_string()),
            Form::Lines => {
                let line = |(id, title, state): &(Value, &str, &str)| format!("- {} {title}, {state}", word(id));
                text(&items.iter().map(line).collect::<Vec<_>>().join("\n"))
            }
            Form::Records => {
                let record = |(id, title, state): &(Value, &str, &str)| {
                    format!("ID: {}\nTitle: {title}\nState: {state}", word(id))
                };
                text(&items.iter().map(record).collect::<Vec<_>>().join("\n\n"))
            }
            Form::Sections => {
                let section = |(id, title, state): &(Value, &str, &str)| {
                    format!("## Order {}\n\n- **Title**: {title}\n- **State**: {state}\n", word(id))
                };
                text(&items.iter().map(section).collect::<Vec<_>>().join("\n"))
            }
            Form::Grouped => {
                let group = |wanted: &str| {
                    let inside = items.iter().filter(|(_, _, state)| *state == wanted);
                    let inside: Vec<Value> = inside.map(|(id, title, _)| json!({"id": id, "title": title})).collect();
                    (!inside.is_empty()).then(|| json!({"state": wanted, "orders": inside}))
                };
                let groups: Vec<Value> = ["open", "shipped"].into_iter().filter_map(group).collect();
                json!({"content": [], "structuredContent": {"groups": groups}})
            }
        }
    }

    fn id(&self, orders: &[Order], index: usize, run: u64) -> Value {
        self.ids.of(orders[index].hidden, index, run)
    }

    fn arguments(&self, id: &Value) -> Value {
        match self.argument {
            Argument::Whole => json!({"order": id}),
            Argument::InPath => json!({"path": format!("orders/{}", word(id))}),
            Argument::InList => json!({"orders": [id]}),
        }
    }

    /// The order that a write reaches now.
    fn reached(&self, arguments: &Value) -> Option<usize> {
        (0..self.now.len()).find(|index| self.arguments(&self.id(&self.now, *index, 2)) == *arguments)
    }

    /// True if a write to `hit` is what the tape meant by `target`, or nothing that either run shows tells otherwise.
    fn is_meant(&self, target: usize, hit: usize) -> bool {
        let (meant, order) = (&self.then[target], &self.now[hit]);
        if meant.hidden == order.hidden {
            return true;
        }
        let ids = |orders: &[Order], run| -> Vec<Value> {
            (0..orders.len()).map(|index| self.id(orders, index, run)).collect()
        };
        let (then, now) = (ids(&self.then, 1), ids(&self.now, 2));
        // The same id at an order that looks the same: right for every server that keeps its ids.
        let same_bytes = !self.ids.are_kept() && then[target] == now[hit];
        // The only order that looks so, in either run, and no id of before: right for every server with new ids.
        let alone = |orders: &[Order]| orders.iter().filter(|other| other.looks_like(meant)).count() == 1;
        let all_new = alone(&self.then) && alone(&self.now) && !then.iter().any(|id| now.contains(id));
        meant.looks_like(order) && (same_bytes || all_new)
    }

    /// True if the order is there as it was, and can be told from all others, so that its write must be sent.
    fn must_be_written(&self, target: usize) -> bool {
        let meant = &self.then[target];
        let Some(now) = self.now.iter().find(|order| order.hidden == meant.hidden) else { return false };
        let alone = |orders: &[Order]| orders.iter().filter(|other| other.looks_like(meant)).count() == 1;
        let unique = alone(&self.then) && alone(&self.now);
        now.looks_like(meant) && (self.ids.are_kept() || self.ids == Ids::FreshToken && unique)
    }
}

/// Replays the scene and returns what was written, by the place of the recorded write.
fn run(scene: &Scene) -> (Vec<Value>, RunReport) {
    let mut calls = vec![recorded(2, "list_orders", &json!({}), &scene.list(&scene.then, 1))];
    for (place, target) in scene.targets.iter().enumerate() {
        let id = scene.id(&scene.then, *target, 1);
        calls.push(recorded(3 + place as u64, "cancel_order", &scene.arguments(&id), &text("Cancelled.")));
    }
    let list = scene.list(&scene.now, 2);
    let answer = move |tool: &str, _: &Value| if tool == "list_orders" { list.clone() } else { text("Cancelled.") };
    let (mut reached, report) = replay(&calls, &["list_orders"], answer);
    reached.retain(|(tool, _)| tool == "cancel_order");
    (reached.into_iter().map(|(_, arguments)| arguments).collect(), report)
}

/// Holds one scene against the oracle.
fn judge(scene: &Scene) -> Result<(), String> {
    let (written, report) = run(scene);
    let sent: Vec<usize> = sent(&report, "cancel_order")
        .into_iter()
        .map(|number| scene.targets[usize::try_from(number).unwrap() - 3])
        .collect();
    if sent.len() != written.len() {
        return Err(format!("{} writes are reported, and {} arrived", sent.len(), written.len()));
    }
    for (target, arguments) in sent.iter().zip(&written) {
        if let Some(hit) = scene.reached(arguments)
            && !scene.is_meant(*target, hit)
        {
            return Err(format!("the write to {:?} went to {:?}", scene.then[*target], scene.now[hit]));
        }
    }
    match scene.targets.iter().find(|target| scene.must_be_written(**target) && !sent.contains(target)) {
        Some(target) => Err(format!("the write to {:?} was withheld: {}", scene.then[*target], report.to_text())),
        None => Ok(()),
    }
}

fn scenes() -> impl Strategy<Value = Scene> {
    let form = prop_oneof![
        Just(Form::Structured),
        Just(Form::Counted),
        Just(Form::JsonText),
        Just(Form::Lines),
        Just(Form::Records),
        Just(Form::Sections),
        Just(Form::Grouped)
    ];
    let argument = prop_oneof![Just(Argument::Whole), Just(Argument::InPath), Just(Argument::InList)];
    let looks = || prop::collection::vec((0..TITLES.len(), any::<bool>()), 1..6);
    let added = prop::collection::vec((0..TITLES.len(), any::<bool>()), 0..4);
    // What becomes of each order of the recording: it stays, is gone, or is in the other state.
    let fates = prop::collection::vec(prop_oneof![6 => Just(0u8), 2 => Just(1u8), 1 => Just(2u8)], 6);
    let targets = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    (any_ids(), form, argument, looks(), added, fates, targets, any::<u64>()).prop_map(
        |(ids, form, argument, looks, added, fates, targets, seed)| {
            let order = |hidden, (title, open)| Order { hidden, title, open };
            let then: Vec<Order> = looks.into_iter().enumerate().map(|(hidden, look)| order(hidden, look)).collect();
            let mut now: Vec<Order> = then.iter().filter(|order| fates[order.hidden] != 1).cloned().collect();
            now.iter_mut().filter(|order| fates[order.hidden] == 2).for_each(|order| order.open = !order.open);
            now.extend(added.into_iter().enumerate().map(|(index, look)| order(then.len() + index, look)));
            shuffle(&mut now, seed, |order| order.hidden);
            let mut targets: Vec<usize> = targets.iter().map(|target| target.index(then.len())).collect();
            targets.sort_unstable();
            targets.dedup();
            Scene { ids, form, argument, then, now, targets }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Writes of a tape reach the objects that it means, or are not sent.
    /// Proves S-45 and SO-12.
    #[test]
    fn no_write_goes_to_an_object_that_the_tape_did_not_mean(scene in scenes()) {
        let judged = judge(&scene);
        prop_assert!(judged.is_ok(), "{}\nthen {}\nnow  {}", judged.unwrap_err(), scene.list(&scene.then, 1), scene.list(&scene.now, 2));
    }
}

/// The case that was first seen: three named orders in another order.
#[test]
fn a_reordered_list_keeps_the_names_that_it_still_has() {
    let order = |hidden, title| Order { hidden, title, open: true };
    let then = vec![order(0, 0), order(1, 1), order(2, 2)];
    let now = vec![then[2].clone(), then[0].clone(), then[1].clone()];
    for form in [Form::Structured, Form::JsonText, Form::Lines, Form::Records, Form::Sections] {
        let scene = Scene {
            ids: Ids::Name,
            form,
            argument: Argument::Whole,
            then: then.clone(),
            now: now.clone(),
            targets: vec![0],
        };
        judge(&scene).unwrap();
        assert_eq!(run(&scene).0, [json!({"order": "order-alpha"})], "{form:?}");
    }
}
