//! The recipes of README.md, carried out as they are written, in their order, in an empty home: each
//! works the first time.
//!
//! Commands, files and expected output are read from the page. Only names that the reader is told
//! to replace are replaced.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

mod home;
mod page;

use home::Home;
use page::{Part, Recipe, commands, is_command, recipes};
use signalbox_testkit::protected_server::{Demands, ProtectedServer};

/// The beginning of each heading, so that none is left out or added without its surroundings.
const HEADINGS: [&str; 9] = [
    "Put Signalbox in front of",
    "See what an agent did",
    "Hold a call",
    "Write a rule",
    "Replay what was recorded",
    "Give every caller a key",
    "Say who may use what",
    "Guard what tools say",
    "Serve a team over TLS",
];

#[tokio::test(flavor = "multi_thread")]
async fn every_recipe_works_the_first_time() {
    for program in ["curl", "openssl"] {
        if std::process::Command::new(program).arg("version").output().is_err() {
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{program} is not installed");
            return eprintln!("SKIP {program}: it is not installed");
        }
    }
    let recipes = recipes();
    let headings: Vec<&str> = recipes.iter().map(|recipe| recipe.heading.as_str()).collect();
    assert_eq!(headings.len(), HEADINGS.len(), "{headings:?}");
    for (heading, expected) in headings.iter().zip(HEADINGS) {
        assert!(heading.starts_with(expected), "{heading}");
    }
    let mut home = Home::new().await;
    client_file(&mut home, &recipes[0]).await;
    let called = recipes[2].inline("signalbox tools call").remove(0);
    recorded(&mut home, &recipes[1], &called).await;
    held(&mut home, &recipes[2], &called).await;
    rule(&mut home, &recipes[3]).await;
    replayed(&mut home, &recipes[4], &called).await;
    let server = ProtectedServer::start(Demands::Token, None).await.unwrap();
    keys_and_login(&mut home, &recipes[5], &server).await;
    permissions(&mut home, &recipes[6]).await;
    guarded(&mut home, &recipes[7]).await;
    certificates(&mut home, &recipes[8]).await;
}

/// Carries a recipe out: files are written, commands run, output compared.
async fn carry_out(home: &mut Home, recipe: &Recipe) {
    let mut file = "signalbox.toml".to_owned();
    let mut told = String::new();
    for part in &recipe.parts {
        match part {
            Part::Prose(text) => {
                let named = text.split('`').skip(1).step_by(2).filter(|span| span.ends_with(".toml"));
                if let Some(last) = named.last() {
                    file = last.rsplit([' ', '/']).next().unwrap_or(last).to_owned();
                }
            }
            Part::Code(lines) if is_command(&lines[0]) => {
                for command in commands(lines) {
                    told = home.run(&command).await;
                }
            }
            Part::Code(lines) if lines[0].starts_with('[') => home.append(&file, &lines.join("\n")),
            Part::Code(lines) if lines[0].starts_with('{') => home.client_entry(&lines.join("\n")).await,
            Part::Code(lines) => assert!(told.contains(&lines.join("\n")), "expected {lines:?}, got {told}"),
        }
    }
}

async fn client_file(home: &mut Home, recipe: &Recipe) {
    home.in_folder("work");
    home.write_home(".cursor/mcp.json", r#"{"mcpServers": {"files": {"command": "my-server"}}}"#);
    carry_out(home, recipe).await;
    home.run(&recipe.inline("signalbox serve").remove(0)).await;
    assert!(home.run("signalbox tools list").await.contains("echo"));
    home.stop().await;
}

async fn recorded(home: &mut Home, recipe: &Recipe, call: &str) {
    home.run("signalbox serve").await;
    home.run(call).await;
    home.until("signalbox tape show last", "echo").await;
    carry_out(home, recipe).await;
    assert!(home.read("calls.html").contains("hello"));
    home.stop().await;
}

async fn held(home: &mut Home, recipe: &Recipe, call: &str) {
    let Some(Part::Code(lines)) = recipe.parts.first() else { panic!("the recipe begins with commands") };
    let [next, list, edit, refuse] = &commands(lines)[..] else { panic!("{lines:?}") };
    // Each of the last two is for a call of its own, the first that is held.
    for (decide, succeeds, told) in [(edit, true, "edited"), (refuse, false, "ask me first")] {
        home.run("signalbox serve").await;
        home.run(next).await;
        let calling = home.begin(call);
        home.until(list, "echo").await;
        home.run(decide).await;
        let (succeeded, text) = calling.await.unwrap();
        assert_eq!(succeeded, succeeds, "{decide}: {text}");
        assert!(text.contains(told), "{decide}: {text}");
        home.stop().await;
    }
}

async fn rule(home: &mut Home, recipe: &Recipe) {
    let call = "signalbox tools call directory_list path=/etc";
    home.run("signalbox serve").await;
    assert!(!home.begin(call).await.unwrap().1.contains("tools do not read /etc"));
    carry_out(home, recipe).await;
    // The gateway that runs meanwhile takes the rules over.
    home.until(call, "tools do not read /etc").await;
    assert!(!home.begin(call).await.unwrap().0, "the call is refused");
    home.stop().await;
}

async fn replayed(home: &mut Home, recipe: &Recipe, call: &str) {
    home.run("signalbox serve").await;
    home.run(call).await;
    home.until("signalbox tape show last", "echo").await;
    home.run("signalbox tape export last -o old.tape && cp old.tape new.tape").await;
    carry_out(home, recipe).await;
    home.stop().await;
}

async fn keys_and_login(home: &mut Home, recipe: &Recipe, server: &ProtectedServer) {
    home.in_folder("team");
    home.replace("https://tracker.example/mcp", &server.url());
    // A server on this machine may be asked without TLS only if it is allowed by name.
    home.append("signalbox.toml", "[auth.outbound]\nallow = [\"127.0.0.1\"]");
    carry_out(home, recipe).await;
    home.until("signalbox tools list", "work").await;
}

async fn permissions(home: &mut Home, recipe: &Recipe) {
    home.run(&recipe.inline("signalbox keys new").remove(0)).await;
    let (files, rest) = divided(recipe, "signalbox ");
    carry_out(home, &files).await;
    home.stop().await;
    home.run("signalbox serve").await;
    carry_out(home, &rest).await;
    let verified = home.run("signalbox audit verify").await;
    assert!(!verified.contains(" 0 records"), "{verified}");
    home.stop().await;
}

async fn guarded(home: &mut Home, recipe: &Recipe) {
    home.in_folder("guarded");
    let parts: Vec<&Vec<String>> =
        recipe.parts.iter().filter_map(|part| if let Part::Code(lines) = part { Some(lines) } else { None }).collect();
    let [calls, record, settings, pins] = parts[..] else { panic!("{parts:?}") };
    let [misfit, order] = &commands(calls)[..] else { panic!("{calls:?}") };
    home.run("signalbox serve").await;
    let (succeeded, told) = home.begin(misfit).await.unwrap();
    assert!(!succeeded && told.contains("/text: expected a string") && told.contains("found 5"), "{told}");
    let (succeeded, told) = home.begin(order).await.unwrap();
    assert!(succeeded && told.contains("[Signalbox: the text below comes from a tool"), "{told}");
    let [calls, one] = &commands(record)[..] else { panic!("{record:?}") };
    home.until(calls, "decided").await;
    home.until(one, "guard arguments").await;
    for command in commands(pins) {
        home.run(&command).await;
    }
    home.append("signalbox.toml", &settings.join("\n"));
    home.until(order, "Signalbox withheld this").await;
    home.stop().await;
}

async fn certificates(home: &mut Home, recipe: &Recipe) {
    home.in_folder("tls");
    home.replace("gateway.example", "localhost");
    home.serve_with_own_address(&["8443"]);
    let (files, rest) = divided(recipe, "curl ");
    carry_out(home, &files).await;
    home.run(&recipe.inline("signalbox serve").remove(0)).await;
    carry_out(home, &rest).await;
    let listed = home.run("signalbox tools list -c team.toml --fresh").await;
    assert!(listed.contains("echo"), "{listed}");
    home.stop().await;
}

/// The parts before the first command that begins so, and those from there on.
fn divided(recipe: &Recipe, command: &str) -> (Recipe, Recipe) {
    let begins = |part: &Part| matches!(part, Part::Code(lines) if lines[0].starts_with(command));
    let at = recipe.parts.iter().position(begins).expect("the recipe has such a command");
    let part = |parts: &[Part]| Recipe { heading: recipe.heading.clone(), parts: parts.to_vec() };
    (part(&recipe.parts[..at]), part(&recipe.parts[at..]))
}
