//! Every request by which a client can use an entry.

use super::policies::{BACKENDS, Entry, Rulebook, all_allowed, caller, catalog, roles_held, rulebook};
use super::world::{End, World};
use proptest::prelude::*;
use serde_json::{Value, json};
use signalbox_engine::catalog::ListKind;
use signalbox_wire::{Era, Revision};

/// No backend has it, and no pattern names it.
const NOTHING: &str = "zzz";

/// The ways in which a client can use an entry.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Way {
    Call,
    CallAsTask,
    Invoke,
    GetPrompt,
    CompletePrompt,
    Read,
    Subscribe,
    Listen,
    CompleteResource,
    CompleteTemplate,
}

impl Way {
    const ALL: [Self; 10] = [
        Self::Call,
        Self::CallAsTask,
        Self::Invoke,
        Self::GetPrompt,
        Self::CompletePrompt,
        Self::Read,
        Self::Subscribe,
        Self::Listen,
        Self::CompleteResource,
        Self::CompleteTemplate,
    ];

    fn kind(self) -> ListKind {
        match self {
            Self::Call | Self::CallAsTask | Self::Invoke => ListKind::Tools,
            Self::GetPrompt | Self::CompletePrompt => ListKind::Prompts,
            Self::Read | Self::Subscribe | Self::Listen | Self::CompleteResource => ListKind::Resources,
            Self::CompleteTemplate => ListKind::Templates,
        }
    }

    /// True if clients of this era have it.
    pub fn exists_in(self, era: Era) -> bool {
        match self {
            Self::CallAsTask | Self::Invoke | Self::Subscribe => era == Era::Legacy,
            Self::Listen => era == Era::Modern,
            _ => true,
        }
    }

    pub fn request(self, name: &str) -> (&'static str, Value) {
        let argument = json!({"name": "a", "value": "b"});
        match self {
            Self::Call => ("tools/call", json!({"name": name, "arguments": {"x": 1}})),
            Self::CallAsTask => ("tools/call", json!({"name": name, "arguments": {"x": 1}, "task": {"ttl": 1000}})),
            Self::Invoke => ("tools/invoke", json!({"tool_id": name, "parameters": {"x": 1}})),
            Self::GetPrompt => ("prompts/get", json!({"name": name})),
            Self::CompletePrompt => {
                ("completion/complete", json!({"ref": {"type": "ref/prompt", "name": name}, "argument": argument}))
            }
            Self::Read => ("resources/read", json!({"uri": name})),
            Self::Subscribe => ("resources/subscribe", json!({"uri": name})),
            Self::Listen => ("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": [name]}})),
            Self::CompleteResource | Self::CompleteTemplate => {
                ("completion/complete", json!({"ref": {"type": "ref/resource", "uri": name}, "argument": argument}))
            }
        }
    }
}

/// A server may read a reference by its type, or by the members that it has.
#[test]
fn a_reference_with_two_readings_is_refused() {
    let entry = |kind, name: &str| Entry { kind, backend: BACKENDS[0], name: name.to_owned(), read_only: true };
    let entries = [entry(ListKind::Prompts, "p"), entry(ListKind::Resources, "note://r")];
    let world = World::new(&entries, all_allowed(), Revision::LATEST_LEGACY, Vec::new());
    let ada = caller("ada", &[]);
    for era in [Era::Legacy, Era::Modern] {
        let ask = |reference: Value| {
            let params = json!({"ref": reference, "argument": {"name": "a", "value": "b"}});
            world.ask(&ada, era, "completion/complete", &params)
        };
        assert!(ask(json!({"type": "ref/prompt", "name": "p"})).leaves());
        assert!(ask(json!({"type": "ref/resource", "uri": "note://r"})).leaves());
        for reference in [
            json!({"type": "ref/resource", "uri": "note://r", "name": "p"}),
            json!({"type": "ref/prompt", "uri": "note://r", "name": "p"}),
            json!({"type": "ref/prompt", "uri": "note://r"}),
            json!({"type": "ref/resource", "name": "p"}),
            json!({"type": "ref/other", "name": "p"}),
            json!({"name": "p"}),
        ] {
            let End::Answered(answer) = ask(reference.clone()) else { panic!("{reference} leaves") };
            assert_eq!(answer["error"]["code"], -32602, "{reference}: {answer}");
        }
    }
}

/// The end of a request without the name that it asked for.
fn unnamed(end: &End, name: &str) -> String {
    format!("{end:?}").replace(name, "NAME")
}

/// Holds what came of the use of one entry against whether it is listed.
fn check(
    end: &End,
    listed: bool,
    book: &Rulebook,
    nothing: &End,
    name: &str,
    place: &str,
) -> Result<(), TestCaseError> {
    if matches!(end, End::Leaves(..) | End::Asked) {
        prop_assert!(listed, "used and not listed: {place}");
    } else if listed {
        prop_assert!(book.looks_at_arguments, "listed and not usable: {place}");
    } else if !book.reveals {
        prop_assert_eq!(unnamed(end, name), unnamed(nothing, NOTHING), "{}", place);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Proves G-46.
    #[test]
    fn called_implies_listed_by_every_way_in(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
    ) {
        let (world, ada) =
            (World::new(&entries, book.set.clone(), Revision::LATEST_LEGACY, Vec::new()), caller("ada", &held));
        for era in [Era::Legacy, Era::Modern] {
            let lists = ListKind::ALL.map(|kind| (kind, world.listed(&ada, era, kind)));
            for way in Way::ALL.into_iter().filter(|way| way.exists_in(era)) {
                let (_, listed) = lists.iter().find(|(kind, _)| *kind == way.kind()).unwrap();
                let ask = |way: Way, name: &str| {
                    let (method, params) = way.request(name);
                    world.ask(&ada, era, method, &params)
                };
                let nothing = ask(way, NOTHING);
                for entry in entries.iter().filter(|entry| entry.kind == way.kind()) {
                    let end = ask(way, &entry.name);
                    let place = format!("{way:?} of {entry:?} in {era:?}, listed {listed:?}: {end:?}; {book}");
                    if way == Way::Listen {
                        // Nobody can be asked about a part of a request, so only what needs no asking is followed.
                        let read = ask(Way::Read, &entry.name);
                        prop_assert_eq!(end.leaves(), read.leaves(), "{}", place);
                        prop_assert!(!end.leaves() || listed.contains(&entry.name), "{}", place);
                    } else {
                        check(&end, listed.contains(&entry.name), &book, &nothing, &entry.name, &place)?;
                    }
                }
            }
        }
    }

    /// A URI of a template is in no list. It can be read if and only if its caller would see it in the backend's list.
    #[test]
    fn a_template_reaches_what_a_list_would_show(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
    ) {
        let templates: Vec<_> = entries.iter().filter(|entry| entry.kind == ListKind::Templates).cloned().collect();
        let filled: Vec<_> = templates.iter().map(|entry| entry.filled_in()).collect();
        let ada = caller("ada", &held);
        let with = |entries: &[_]| World::new(entries, book.set.clone(), Revision::LATEST_LEGACY, Vec::new());
        let (world, expanded) = (with(&templates), with(&filled));
        for era in [Era::Legacy, Era::Modern] {
            let listed = expanded.listed(&ada, era, ListKind::Resources);
            for way in [Way::Read, Way::Subscribe, Way::Listen].into_iter().filter(|way| way.exists_in(era)) {
                let ask = |name: &str| {
                    let (method, params) = way.request(name);
                    world.ask(&ada, era, method, &params)
                };
                let nothing = ask(NOTHING);
                for entry in &filled {
                    let end = ask(&entry.name);
                    let place = format!("{way:?} of {entry:?} in {era:?}, would list {listed:?}: {end:?}; {book}");
                    if way != Way::Listen || !book.asks {
                        check(&end, listed.contains(&entry.name), &book, &nothing, &entry.name, &place)?;
                    }
                }
            }
        }
    }
}
