//! Real processes between real pipes.

use super::*;
use std::io::{PipeReader, PipeWriter, pipe};
use std::thread::JoinHandle;

struct Wrapped {
    input: Option<PipeWriter>,
    output: PipeReader,
    signals: mpsc::Sender<Signal>,
    running: JoinHandle<Result<ServerEnd, WrapError>>,
}

impl Wrapped {
    fn start(script: &str, grace: Duration) -> Self {
        let spec = WrapSpec { program: "sh".into(), args: vec!["-c".into(), script.into()], grace };
        let ((from_client, input), (output, to_client)) = (pipe().unwrap(), pipe().unwrap());
        let (signals, passed_on) = mpsc::channel(4);
        let running = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(run(&spec, from_client, to_client, None, passed_on))
        });
        Self { input: Some(input), output, signals, running }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn hear(&mut self, expected: &[u8]) {
        let mut heard = vec![0; expected.len()];
        self.output.read_exact(&mut heard).unwrap();
        assert_eq!(heard, expected);
    }

    fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        rest
    }

    fn ended(self) -> ServerEnd {
        self.running.join().unwrap().unwrap()
    }
}

const LONG: Duration = Duration::from_secs(600);

/// Proves S-51.
#[test]
fn bytes_pass_both_ways_before_their_line_has_ended() {
    let mut server = Wrapped::start("cat", LONG);
    for part in [&b"{\"half\""[..], b": 1}\r\n", b"\n\n", b"\x00\xff\xfe no json", b"\n"] {
        server.say(part);
        server.hear(part);
    }
    server.say(b"no end");
    server.input = None;
    assert_eq!(server.rest(), b"no end");
    assert_eq!(server.ended(), ServerEnd::Code(0));
}

#[test]
fn a_code_is_passed_on_after_all_output() {
    let mut server = Wrapped::start("head -c 3000000 /dev/zero; exit 7", LONG);
    // Nobody reads while the server ends; a pipe holds far less than this.
    assert_eq!(server.rest().len(), 3_000_000);
    assert_eq!(server.ended(), ServerEnd::Code(7));
}

#[test]
fn a_signal_is_passed_on_and_so_is_an_end_by_one() {
    let mut server = Wrapped::start("trap 'echo asked; exit 5' TERM; echo up; while :; do sleep 0.05; done", LONG);
    server.hear(b"up\n");
    server.signals.blocking_send(Signal::TERM).unwrap();
    assert_eq!(server.rest(), b"asked\n");
    assert_eq!(server.ended(), ServerEnd::Code(5));
    let server = Wrapped::start("kill -9 $$", LONG);
    let ended = server.ended();
    assert_eq!((ended, ended.exit_code()), (ServerEnd::Signal(9), 137));
}

#[test]
fn a_server_that_outlives_its_client_is_asked_to_end_and_then_killed() {
    let mut server = Wrapped::start("echo up; exec sleep 600", Duration::from_millis(50));
    server.hear(b"up\n");
    server.input = None;
    assert_eq!(server.ended(), ServerEnd::Signal(15));
    let mut server = Wrapped::start("trap '' TERM; echo up; sleep 600", Duration::from_millis(50));
    server.hear(b"up\n");
    server.input = None;
    assert_eq!(server.ended(), ServerEnd::Signal(9));
}

#[test]
fn an_end_that_one_side_closes_is_closed_for_the_other() {
    // The server closes its output and lives on: the client reads the end.
    let mut server = Wrapped::start("echo last; exec >&-; read line; exit 3", LONG);
    assert_eq!(server.rest(), b"last\n");
    server.say(b"go\n");
    assert_eq!(server.ended(), ServerEnd::Code(3));
    // The server closes its input: the client cannot write any more.
    let mut server = Wrapped::start("exec <&-; echo closed; sleep 600", LONG);
    server.hear(b"closed\n");
    let input = server.input.as_mut().unwrap();
    while input.write_all(b"more\n").is_ok() {}
    server.signals.blocking_send(Signal::TERM).unwrap();
    assert_eq!(server.ended(), ServerEnd::Signal(15));
}

#[test]
fn a_descendant_that_keeps_the_output_open_is_not_waited_for() {
    let mut server = Wrapped::start("sleep 600 & echo $!; exit 4", LONG);
    let mut number = Vec::new();
    while number.last() != Some(&b'\n') {
        let mut byte = [0];
        server.output.read_exact(&mut byte).unwrap();
        number.push(byte[0]);
    }
    assert_eq!(server.ended(), ServerEnd::Code(4));
    let number: i32 = String::from_utf8(number).unwrap().trim().parse().unwrap();
    rustix::process::kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_program_that_cannot_be_run_is_told_with_the_codes_of_a_shell() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let try_it = |program: &str| {
        let spec = WrapSpec { program: program.into(), args: vec![], grace: LONG };
        let (input, output, (_, signals)) = (pipe().unwrap().0, pipe().unwrap().1, mpsc::channel(1));
        runtime.block_on(run(&spec, input, output, None, signals)).unwrap_err().exit_code()
    };
    assert_eq!(try_it("/nowhere/at/all"), 127);
    assert_eq!(try_it("/etc/hostname"), 126);
}
