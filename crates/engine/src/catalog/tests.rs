//! The catalog as clients see it.

use super::*;
use crate::Principal;
use crate::capset::CapSet;
use bytes::Bytes;
use signalbox_wire::{Era, Revision};

pub(crate) fn profile(revision: Revision, capabilities: &'static str) -> Arc<ServerProfile> {
    Arc::new(ServerProfile {
        revision,
        capabilities: Bytes::from_static(capabilities.as_bytes()),
        info: Bytes::from_static(br#"{"name":"t","version":"1"}"#),
        instructions: None,
    })
}

pub(crate) fn bare(era: Era) -> ViewKey {
    ViewKey::shared(era, CapSet::bare())
}

pub(crate) fn view(kind: ListKind, items: &[&str]) -> View {
    let capabilities = r#"{"tools":{},"prompts":{},"resources":{"subscribe":true},"completions":{},"logging":{}}"#;
    let mut view = View::empty(profile(Revision::LATEST_LEGACY, capabilities));
    let read = |raw: &&str| Item::read(kind, Bytes::copy_from_slice(raw.as_bytes())).unwrap();
    view.set(kind, items.iter().map(read).collect());
    view
}

fn catalog(names: &[&str]) -> Catalog {
    Catalog::new(names.iter().map(|name| Arc::from(*name)))
}

fn text(catalog: &Catalog, kind: ListKind) -> String {
    let page = catalog.snapshot().page(kind, &bare(Era::Legacy), None, None).unwrap();
    String::from_utf8(page.array.to_vec()).unwrap()
}

/// Proves N-2 and N-31.
#[test]
fn one_list_in_a_stable_order_with_every_field_kept() {
    let mut catalog = catalog(&["b", "a"]);
    let odd = r#"{"z":1,"name":"two","x-unknown":[1.0,1e5],"execution":{"taskSupport":"optional"}}"#;
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[odd, r#"{"name":"one"}"#]));
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"zed"}"#]));
    // Backends in configured order, entries in the order in which they were first seen.
    let one = r#"{"name":"one"}"#;
    assert_eq!(text(&catalog, ListKind::Tools), format!(r#"[{{"name":"zed"}},{odd},{one}]"#));
    // Another order is no change, and what is new comes last.
    assert!(!catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[one, odd])).any());
    assert!(catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"new"}"#, one, odd])).tools);
    assert_eq!(text(&catalog, ListKind::Tools), format!(r#"[{{"name":"zed"}},{odd},{one},{{"name":"new"}}]"#));
}

/// Proves N-20.
#[test]
fn collided_names_are_renamed_in_place_and_stay_when_a_backend_goes_down() {
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name" : "echo" ,"d":"A"}"#]));
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"d":"B","name":"echo"}"#]));
    let both = r#"[{"name" : "echo" ,"d":"A"},{"d":"B","name":"b__echo"}]"#;
    assert_eq!(text(&catalog, ListKind::Tools), both);
    let changed = catalog.set_listed("a", false);
    assert!(changed.tools && !changed.prompts);
    assert_eq!(text(&catalog, ListKind::Tools), r#"[{"d":"B","name":"b__echo"}]"#);
    let route = catalog.snapshot().tool("b__echo").unwrap();
    assert_eq!((&*route.backend, &*route.name, route.renamed), ("b", "echo", true));
    catalog.set_listed("a", true);
    assert_eq!(text(&catalog, ListKind::Tools), both);
}

#[test]
fn a_capability_set_has_lists_of_its_own_and_collisions_count_over_the_union() {
    let mut catalog = catalog(&["a", "b"]);
    let rich = ViewKey::shared(Era::Legacy, CapSet::read(br#"{"sampling":{}}"#));
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"plain"}"#]));
    catalog.set_view("a", rich.clone(), view(ListKind::Tools, &[r#"{"name":"ask"}"#, r#"{"name":"plain"}"#]));
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"ask"}"#]));
    assert_eq!(text(&catalog, ListKind::Tools), r#"[{"name":"plain"},{"name":"b__ask"}]"#);
    let page = catalog.snapshot().page(ListKind::Tools, &rich, None, None).unwrap();
    assert_eq!(page.array, r#"[{"name":"plain"},{"name":"ask"},{"name":"b__ask"}]"#);
}

/// Servers name the page of a tool in two members, of which older clients read the second.
#[test]
fn both_ui_links_of_a_tool_follow_a_renamed_resource() {
    let mut catalog = catalog(&["a", "b"]);
    for name in ["a", "b"] {
        let tool = r#"{"name":"show","_meta":{"ui/resourceUri":"ui://x","ui":{"resourceUri":"ui://x"}}}"#;
        let mut lists = view(ListKind::Tools, &[tool]);
        lists.resources = view(ListKind::Resources, &[r#"{"uri":"ui://x","name":"x"}"#]).resources;
        catalog.set_view(name, bare(Era::Legacy), lists);
    }
    let second = r#"{"name":"b__show","_meta":{"ui/resourceUri":"ui://b+x","ui":{"resourceUri":"ui://b+x"}}}"#;
    assert!(text(&catalog, ListKind::Tools).contains(second));
}

/// A client asks for lists only if `initialize` declared them, and a backend that is down comes back.
#[test]
fn a_backend_that_is_down_counts_for_what_is_offered() {
    let mut catalog = catalog(&["a"]);
    catalog.set_listed("a", false);
    assert_eq!(catalog.snapshot().offer(&bare(Era::Legacy), None), Offer::full());
    catalog.set_listed("a", true);
    let tools = View::empty(profile(Revision::LATEST_LEGACY, r#"{"tools":{}}"#));
    catalog.set_view("a", bare(Era::Legacy), tools);
    catalog.set_listed("a", false);
    let known = catalog.snapshot().offer(&bare(Era::Legacy), None);
    assert_eq!(known, Offer { tools: true, ..Offer::default() });
}

#[test]
fn ui_links_follow_a_resource_that_is_exposed_under_another_uri() {
    let mut catalog = catalog(&["a", "b"]);
    for name in ["a", "b"] {
        let mut lists = view(ListKind::Tools, &[r#"{"name":"show","_meta":{"ui":{"resourceUri":"ui://x"}}}"#]);
        lists.resources = view(ListKind::Resources, &[r#"{"uri":"ui://x","name":"x"}"#]).resources;
        catalog.set_view(name, bare(Era::Legacy), lists);
    }
    assert_eq!(
        text(&catalog, ListKind::Tools),
        r#"[{"name":"show","_meta":{"ui":{"resourceUri":"ui://x"}}},{"name":"b__show","_meta":{"ui":{"resourceUri":"ui://b+x"}}}]"#
    );
    assert_eq!(text(&catalog, ListKind::Resources), r#"[{"uri":"ui://x","name":"x"},{"uri":"ui://b+x","name":"x"}]"#);
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.resource("ui://x").unwrap().backend, "a".into());
    let second = snapshot.resource("ui://b+x").unwrap();
    assert_eq!((&*second.backend, &*second.name), ("b", "ui://x"));
}

#[test]
fn an_unlisted_resource_goes_by_template_scheme_or_the_only_backend() {
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Resources, &[r#"{"uri":"file:///one"}"#]));
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Templates, &[r#"{"uriTemplate":"db://t/{id}"}"#]));
    let snapshot = catalog.snapshot();
    let of = |uri: &str| snapshot.resource(uri).map(|route| route.backend.to_string());
    assert_eq!(of("db://t/7").as_deref(), Some("b"));
    assert_eq!(of("file:///two").as_deref(), Some("a"));
    assert_eq!(of("a+odd://z").as_deref(), Some("a"));
    assert_eq!(of("odd://z"), None);
}

/// Proves N-32.
#[test]
fn one_page_up_to_a_thousand_entries_then_cursors_that_survive_changes() {
    let names: Vec<String> = (0..2500).map(|n| format!(r#"{{"name":"t{n:04}"}}"#)).collect();
    let items: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &items[..1000]));
    assert_eq!(catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, None).unwrap().next, None);
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &items[1000..]));
    let mut seen = Vec::new();
    let mut cursor = None;
    loop {
        let page = catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, cursor.as_deref()).unwrap();
        let list: Vec<serde_json::Value> = serde_json::from_slice(&page.array).unwrap();
        assert!(list.len() <= 1000);
        seen.extend(list.into_iter().map(|tool| tool["name"].as_str().unwrap().to_owned()));
        // A change between two pages neither repeats nor loses what was there all the time.
        catalog.set_view("b", ViewKey::shared(Era::Modern, CapSet::bare()), view(ListKind::Tools, &[]));
        match page.next {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(seen.len(), 2500);
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, Some("bogus")), None);
}

#[test]
fn a_tool_whose_header_marks_break_the_rules_is_left_out() {
    for schema in [
        r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"X\r\nY"}}}"#,
        r#"{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
    ] {
        let raw = format!(r#"{{"name":"t","inputSchema":{schema}}}"#);
        assert!(matches!(Item::read(ListKind::Tools, raw.into()), Err(ItemError::BadHeaders(..))), "{schema}");
    }
}

#[test]
fn what_is_saved_reads_back_and_damage_is_said() {
    let mut one = catalog(&["a", "b"]);
    one.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"echo","n":1.0}"#]));
    let saved = write_saved(&one);
    let mut two = catalog(&["b", "a"]);
    read_saved(&mut two, &saved).unwrap();
    assert_eq!(text(&two, ListKind::Tools), r#"[{"name":"echo","n":1.0}]"#);
    assert!(matches!(read_saved(&mut two, b"{"), Err(PersistError::Damaged(_))));
    assert_eq!(read_saved(&mut two, br#"{"version":9,"x":1}"#), Err(PersistError::Version(9)));
}

/// A backend that lists another's name later does not get it, wherever it stands in the configuration.
#[test]
fn a_name_that_was_given_does_not_change_hands() {
    let echo = || view(ListKind::Tools, &[r#"{"name":"echo"}"#]);
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("b", bare(Era::Legacy), echo());
    catalog.settle();
    catalog.set_view("a", bare(Era::Legacy), echo());
    assert_eq!(text(&catalog, ListKind::Tools), r#"[{"name":"a__echo"},{"name":"echo"}]"#);
    let saved = write_saved(&catalog);
    // Not when its owner is down, nor when it stops listing it.
    catalog.set_listed("b", false);
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[]));
    assert_eq!(text(&catalog, ListKind::Tools), r#"[{"name":"a__echo"}]"#);
    assert!(catalog.snapshot().tool("echo").is_none());
    assert_eq!(catalog.snapshot().qualified_tools("echo"), ["a__echo"]);
    // Nor in the next run of the program.
    let mut next = self::catalog(&["a", "b"]);
    read_saved(&mut next, &saved).unwrap();
    assert_eq!(text(&next, ListKind::Tools), r#"[{"name":"a__echo"},{"name":"echo"}]"#);
}

#[test]
fn before_anybody_saw_a_name_it_goes_to_the_first_backend_of_the_configuration() {
    let mut catalog = catalog(&["a", "b"]);
    for name in ["b", "a"] {
        catalog.set_view(name, bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"echo"}"#]));
    }
    assert_eq!(text(&catalog, ListKind::Tools), r#"[{"name":"echo"},{"name":"b__echo"}]"#);
}

/// Warnings of collisions are looked for while backends still start, and the one that is configured first may be slow.
#[test]
fn names_are_not_shown_by_asking_who_has_them() {
    let mut catalog = catalog(&["a", "b"]);
    for name in ["a", "b"] {
        catalog.set_view(name, bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"echo"}"#]));
    }
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.owner_of(ListKind::Tools, "echo").map(|owner| &**owner), Some("a"));
    assert_eq!(snapshot.collisions().count(), 1);
    assert!(!snapshot.was_shown());
}

/// MCP Apps whose page is in no list.
#[test]
fn a_page_that_only_a_tool_names_goes_to_the_backend_of_that_tool() {
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Resources, &[r#"{"uri":"ui://other"}"#]));
    let tool = r#"{"name":"show","_meta":{"ui":{"resourceUri":"ui://page"}}}"#;
    catalog.set_view("b", bare(Era::Legacy), view(ListKind::Tools, &[tool]));
    assert_eq!(&*catalog.snapshot().resource("ui://page").unwrap().backend, "b");
}

/// A page goes on where the last one ended although its last entry is gone.
#[test]
fn a_cursor_survives_the_removal_of_its_entry() {
    let tool = |n: usize| format!(r#"{{"name":"t{}"}}"#, (n * 7919) % 3000);
    let names: Vec<String> = (0..2000).map(tool).collect();
    let items: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut catalog = catalog(&["a"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &items));
    let page = catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, None).unwrap();
    let left = [&items[..990], &items[1000..]].concat();
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &left));
    let next = catalog.snapshot().page(ListKind::Tools, &bare(Era::Legacy), None, page.next.as_deref()).unwrap();
    assert_eq!(next.array, format!("[{}]", items[1000..].join(",")));
}

/// Shows backend `b` to the local user only.
struct Closed;

impl Visibility for Closed {
    fn audience(&self, caller: &crate::Caller) -> Audience {
        Audience(if caller.principal().as_str() == "local:me" { "me" } else { "" }.into())
    }

    fn shows_backend(&self, caller: &crate::Caller, backend: &str) -> bool {
        backend != "b" || caller.principal().as_str() == "local:me"
    }
}

/// Lists take a filter by caller, and what one caller was shown is not shown to another.
/// Proves G-19.
#[test]
fn each_caller_is_shown_what_it_may_see() {
    let mut catalog = catalog(&["a", "b"]);
    catalog.set_view("a", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"echo"}"#]));
    let mut second = view(ListKind::Tools, &[r#"{"name":"more"}"#]);
    second.profile = profile(Revision::LATEST_LEGACY, r#"{"tools":{},"prompts":{}}"#);
    catalog.set_view("b", bare(Era::Legacy), second);
    let snapshot = catalog.snapshot();
    let me = crate::Caller::local("me", "stdio");
    let you = crate::Caller::anonymous("http");
    for _ in 0..2 {
        for (caller, tools, backends) in
            [(&me, r#"[{"name":"echo"},{"name":"more"}]"#, 2), (&you, r#"[{"name":"echo"}]"#, 1)]
        {
            let sight = CallerView::of(&Closed, caller);
            let page = snapshot.page(ListKind::Tools, &bare(Era::Legacy), Some(&sight), None).unwrap();
            assert_eq!(page.array, tools);
            assert_eq!(snapshot.profiles(&bare(Era::Legacy), Some(&sight)).count(), backends);
        }
    }
}

/// How long a list may be kept follows the strictest of the backends behind it.
#[test]
fn a_list_may_be_kept_as_the_strictest_backend_says() {
    use std::time::{Duration, Instant};
    let now = Instant::now();
    let seconds = Duration::from_secs;
    let of = |until: Option<(u64, bool)>| {
        let mut view = view(ListKind::Tools, &[r#"{"name":"echo"}"#]);
        view.set_terms(ListKind::Tools, until.map(|(until, public)| ListTerms { until: now + seconds(until), public }));
        view
    };
    let key = bare(Era::Legacy);
    let told = |catalog: &Catalog, sight: Option<&CallerView<'_>>, age: u64| {
        let terms = catalog.snapshot().terms(ListKind::Tools, &key, sight, now + seconds(age));
        (terms.ttl.as_secs(), terms.scope())
    };
    let mut catalog = catalog(&["a", "b"]);
    assert_eq!(told(&catalog, None, 0), (0, "private"), "nothing is known yet");
    catalog.set_view("a", key.clone(), of(Some((60, true))));
    assert_eq!(told(&catalog, None, 0), (0, "private"), "one of them is not known");
    catalog.set_view("b", key.clone(), of(Some((90, true))));
    assert_eq!(told(&catalog, None, 0), (60, "public"));
    assert_eq!(told(&catalog, None, 45), (15, "public"), "its age is taken off");
    assert_eq!(told(&catalog, None, 61), (0, "public"));
    catalog.set_view("b", key.clone(), of(Some((30, false))));
    assert_eq!(told(&catalog, None, 0), (30, "private"));
    let you = crate::Caller::anonymous("http");
    assert_eq!(told(&catalog, Some(&CallerView::of(&Closed, &you)), 0), (60, "private"), "what depends on the caller");
    catalog.set_view("b", key.clone(), of(None));
    assert_eq!(told(&catalog, None, 0), (0, "private"), "one of them does not say");
    let mut without = of(None);
    without.profile = profile(Revision::LATEST_LEGACY, r#"{"prompts":{}}"#);
    catalog.set_view("b", key.clone(), without);
    assert_eq!(told(&catalog, None, 0), (60, "public"), "one that has no such list has no say");
    catalog.set_listed("a", false);
    assert_eq!(told(&catalog, None, 0), (0, "private"), "one that is down may come back any time");
}

/// A backend with credentials per user shows each principal its own lists, saves none, and every name has one owner
/// over all.
#[test]
fn private_lists_are_for_one_principal_each_and_collide_with_all_others() {
    let of = |whose: &str| ViewKey { whose: Some(Principal::named(whose).into()), ..bare(Era::Legacy) };
    let mut catalog = catalog(&["safe", "open"]);
    catalog.set_private("safe", true);
    catalog.set_view("open", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"plan"}"#]));
    catalog.set_view("safe", of("ada"), view(ListKind::Tools, &[r#"{"name":"mine"}"#, r#"{"name":"plan"}"#]));
    catalog.set_view("safe", of("eve"), view(ListKind::Tools, &[r#"{"name":"hers"}"#]));
    let snapshot = catalog.snapshot();
    let tools = |whose: &str| {
        let page = snapshot.page(ListKind::Tools, &of(whose), None, None).unwrap();
        String::from_utf8(page.array.to_vec()).unwrap()
    };
    assert_eq!(tools("ada"), r#"[{"name":"mine"},{"name":"plan"},{"name":"open__plan"}]"#);
    assert_eq!(tools("eve"), r#"[{"name":"hers"},{"name":"open__plan"}]"#, "a name means the same for everybody");
    assert_eq!(tools("bob"), r#"[{"name":"open__plan"}]"#);
    assert!(snapshot.knows("safe", &of("ada")) && !snapshot.knows("safe", &of("bob")));
    assert!(snapshot.knows("open", &of("bob")), "what is not private is known for everybody");
    assert!(snapshot.offer(&of("bob"), None).completions, "everything is offered while nothing is known");
    let route = snapshot.tool("hers").unwrap();
    let sees = |whose: &str| snapshot.is_listed_for(ListKind::Tools, &route, &Principal::named(whose).into());
    assert!(sees("eve") && !sees("ada") && !sees("bob"));
    assert!(snapshot.definition("hers", "safe", &Principal::named("ada").into()).is_none());
    let saved = String::from_utf8(write_saved(&catalog)).unwrap();
    assert!(!saved.contains("mine") && !saved.contains("hers") && !saved.contains("ada"), "{saved}");
    let mut old = Catalog::new(["safe".into()]);
    old.set_view("safe", bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"before"}"#]));
    let mut now = Catalog::new(["safe".into()]);
    now.set_private("safe", true);
    read_saved(&mut now, &write_saved(&old)).unwrap();
    assert!(now.backends()[0].views.is_empty(), "what was saved before it was private is not for anybody");
}

#[test]
fn private_lists_are_bounded() {
    let mut catalog = catalog(&["safe"]);
    catalog.set_private("safe", true);
    for number in 0..MAX_PRIVATE_VIEWS + 10 {
        let whose = Some(Principal::named(&format!("user:{number}")).into());
        catalog.set_view("safe", ViewKey { whose, ..bare(Era::Legacy) }, view(ListKind::Tools, &[]));
    }
    assert_eq!(catalog.backends()[0].views.len(), MAX_PRIVATE_VIEWS);
}

/// Who sees one backend alone.
struct Alone(&'static str);

impl Visibility for Alone {
    fn audience(&self, _: &crate::Caller) -> Audience {
        Audience("alone".into())
    }

    fn sole_backend(&self, _: &crate::Caller) -> Option<&str> {
        Some(self.0)
    }

    fn shows_backend(&self, _: &crate::Caller, backend: &str) -> bool {
        backend == self.0
    }
}

#[test]
fn a_backend_that_stands_apart_takes_no_names_and_is_called_by_its_own() {
    let mut catalog = catalog(&["apart", "open"]);
    catalog.set_apart("apart", true);
    for name in ["apart", "open"] {
        catalog.set_view(name, bare(Era::Legacy), view(ListKind::Tools, &[r#"{"name":"plan"}"#]));
    }
    let snapshot = catalog.snapshot();
    assert_eq!(snapshot.tool("plan").unwrap().backend, "open".into(), "though it is configured later");
    assert_eq!(snapshot.collisions().count(), 0, "nobody sees both");
    let caller = crate::Caller::anonymous("relay");
    let sight = CallerView::of(&Alone("apart"), &caller);
    let page = snapshot.page(ListKind::Tools, &bare(Era::Legacy), Some(&sight), None).unwrap();
    assert_eq!(page.array, r#"[{"name":"plan"}]"#);
    let route = snapshot.own_tool("apart", "plan").unwrap();
    assert_eq!((&*route.backend, &*route.name, route.renamed), ("apart", "plan", false));
    assert_eq!(snapshot.own_tool("apart", "other"), None);
}

/// Everybody but ada is shown what the many are.
#[derive(Debug)]
struct TheMany;

impl ListOwners for TheMany {
    fn owner(&self, principal: &Principal) -> Option<Principal> {
        (principal.as_str() != "ada").then(|| Principal::named("the many"))
    }
}

#[test]
fn principals_that_are_shown_the_same_share_their_lists() {
    let mut catalog = catalog(&["safe"]);
    catalog.set_private("safe", true);
    catalog.set_owners("safe", Some(Arc::new(TheMany)));
    let of = |whose: &str| ViewKey { whose: Some(Principal::named(whose).into()), ..bare(Era::Legacy) };
    catalog.set_view("safe", of("ada"), view(ListKind::Tools, &[r#"{"name":"mine"}"#]));
    catalog.set_view("safe", of("the many"), view(ListKind::Tools, &[r#"{"name":"ours"}"#]));
    let snapshot = catalog.snapshot();
    let tools = |whose: &str| snapshot.page(ListKind::Tools, &of(whose), None, None).unwrap().array;
    assert_eq!(tools("ada"), r#"[{"name":"mine"}]"#);
    assert_eq!((tools("eve"), tools("bob")), (r#"[{"name":"ours"}]"#.into(), r#"[{"name":"ours"}]"#.into()));
    assert!(snapshot.knows("safe", &of("eve")));
    let route = snapshot.tool("mine").unwrap();
    let sees = |whose: &str| snapshot.is_listed_for(ListKind::Tools, &route, &Principal::named(whose).into());
    assert!(sees("ada") && !sees("eve"));
}
