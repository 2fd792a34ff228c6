//! Rules stand behind the permissions. A call that is denied is copied nowhere and never answered by a mock; what a
//! rule makes of a call is judged as the call that it has become. Where a copy goes is the operator's word: the verdict
//! on the call governs it.

use super::policies::{Rulebook, caller, catalog, roles_held, rulebook};
use super::world::{End, World, end_of};
use proptest::prelude::*;
use serde_json::json;
use signalbox_engine::Command;
use signalbox_engine::catalog::ListKind;
use signalbox_rules::{RuleInterceptor, RuleSet};
use signalbox_wire::{Era, Revision};
use std::sync::Arc;

/// What a rule does with each call.
#[derive(Copy, Clone, PartialEq, Debug)]
enum Rule {
    Fork,
    Mock,
    ForkAndMock,
    Rename,
    ForkAndRename,
    ForkAndChange,
    ForkAndBlock,
}

impl Rule {
    const ALL: [Self; 7] = [
        Self::Fork,
        Self::Mock,
        Self::ForkAndMock,
        Self::Rename,
        Self::ForkAndRename,
        Self::ForkAndChange,
        Self::ForkAndBlock,
    ];

    fn loaded(self) -> Arc<RuleInterceptor> {
        let fork = r#"{ fork = "mail" }"#;
        let mock = r#"{ mock = { result = { content = [{ type = "text", text = "made up" }] } } }"#;
        let rename = r#"{ set = { "/params/name" = "aqa" } }"#;
        let then = match self {
            Self::Fork => fork.to_owned(),
            Self::Mock => mock.to_owned(),
            Self::ForkAndMock => format!("[{fork}, {mock}]"),
            Self::Rename => rename.to_owned(),
            Self::ForkAndRename => format!("[{fork}, {rename}]"),
            Self::ForkAndChange => format!(r#"[{fork}, {{ set = {{ "/params/arguments" = {{ y = 1 }} }} }}]"#),
            Self::ForkAndBlock => format!(r#"[{fork}, {{ block = "no" }}]"#),
        };
        let text = format!("[[rules]]\nid = \"r\"\nwhen = {{ method = \"tools/call\" }}\nthen = {then}\n");
        Arc::new(RuleInterceptor::new(RuleSet::parse("rules.toml", &text).unwrap(), 1))
    }

    fn copies(self) -> bool {
        !matches!(self, Self::Mock | Self::Rename)
    }

    fn answers(self) -> bool {
        matches!(self, Self::Mock | Self::ForkAndMock)
    }
}

fn copied(commands: &[Command]) -> bool {
    commands.iter().any(|command| matches!(command, Command::Fork { .. }))
}

fn check(
    (rule, end, copied): (Rule, &End, bool),
    (name, listed): (&str, &std::collections::BTreeSet<String>),
    book: &Rulebook,
    place: &str,
) -> Result<(), TestCaseError> {
    if !listed.contains(name) {
        prop_assert!(!end.goes_on() && !copied, "used and not listed: {place}");
    }
    if let End::Leaves(_, reached) = end {
        prop_assert!(listed.contains(reached), "it became another call: {place}");
    }
    if copied {
        prop_assert!(rule.copies() && end.goes_on(), "a copy of a call that is denied left: {place}");
    }
    if listed.contains(name) && !book.asks && !book.looks_at_arguments {
        match rule {
            Rule::Fork => prop_assert!(copied && end.leaves(), "{}", place),
            _ if rule.answers() => prop_assert!(end.goes_on() && copied == rule.copies(), "{}", place),
            _ => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rules_do_nothing_with_a_call_that_is_denied(
        entries in catalog(),
        book in rulebook(),
        held in roles_held(),
        rule in prop::sample::select(Rule::ALL.to_vec()),
    ) {
        let ada = caller("ada", &held);
        let plain = World::new(&entries, book.set.clone(), Revision::LATEST_LEGACY, Vec::new());
        let world = World::new(&entries, book.set.clone(), Revision::LATEST_LEGACY, vec![rule.loaded()]);
        for era in [Era::Legacy, Era::Modern] {
            let listed = world.listed(&ada, era, ListKind::Tools);
            prop_assert_eq!(&listed, &plain.listed(&ada, era, ListKind::Tools));
            for entry in entries.iter().filter(|entry| entry.kind == ListKind::Tools) {
                let params = json!({"name": entry.name, "arguments": {"x": 1}});
                let mut client = world.client(&ada, era);
                let commands = world.request(&mut client, "tools/call", &params);
                let (end, copied) = (end_of(&commands).unwrap(), copied(&commands));
                let place = format!("{rule:?} {entry:?} in {era:?}, listed {listed:?}: {end:?} {copied}; {book}");
                check((rule, &end, copied), (&entry.name, &listed), &book, &place)?;
                if !listed.contains(&entry.name) {
                    prop_assert_eq!(&end, &plain.ask(&ada, era, "tools/call", &params), "{}", place);
                }
            }
        }
    }
}
