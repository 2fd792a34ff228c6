//! A deterministic source of broken messages: valid ones, changed the way bugs and attackers change them.

/// Messages to begin with; `@ID@` becomes a new number every time.
pub const LEGACY: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"tools/list","params":{}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"},"_meta":{"progressToken":"p"}}}"#,
    r#"{"jsonrpc":"2.0","id":"s@ID@","method":"tools/call","params":{"name":"test_simple_text"}}"#,
    "{ \"jsonrpc\" : \"2.0\" , \"id\" : @ID@ , \"method\" : \"prompts/list\" , \"params\" : { \"cursor\" : \"bm8=\" } }",
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"resources/read","params":{"uri":"test://static-text"}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"logging/setLevel","params":{"level":"error"}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"m","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"never","reason":"\u00e9\ud83d\ude00"}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"result":{"roots":[]}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"error":{"code":-1,"message":"no"}}"#,
];

/// The same of the new era.
pub const MODERN: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":"s@ID@","method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"m","version":"1"}}}}"#,
    r#"{"jsonrpc":"2.0","id":@ID@,"method":"resources/read","params":{"uri":"test://static-text","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
];

/// Pieces that matter to some parser, to be put anywhere.
const PIECES: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\\u",
    b"\\ud800",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"01",
    b"123456789012345678901234567890",
    b"0.1e-400",
    b"\"id\":2,",
    b"\"method\":\"ping\",",
    b"\"params\":[],",
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\0",
    b"\x01",
    b"\x1b[2J",
    b"\x7f",
    b"\r",
    b"\t",
    b"//",
    b"/*",
    b"\"jsonrpc\":\"2.0\",",
    b"\"\\u0069d\":3,",
    b"\"_meta\":{},",
    b"\"name\":\"greet\",",
    b"data: ",
    b"\n",
    b"\r\n",
];

/// Tokens to stand where an id or any other value stood.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "-1",
    "1.0",
    "1e2",
    "1E400",
    "\"\"",
    "\"1\"",
    "18446744073709551616",
    "-0.0",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "[[]]",
    "{\"a\":1,\"a\":2}",
    "9007199254740993",
];

/// Numbers that are always the same for the same seed, so that a failure can be run again.
pub struct Mutator {
    state: u64,
    made: u64,
}

impl Mutator {
    /// A source of its own.
    pub fn new(seed: u64) -> Self {
        Self { state: seed | 1, made: 0 }
    }

    /// A number below the bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % bound.max(1) as u64) as usize
    }

    /// The next broken message; one in sixteen is whole.
    pub fn next(&mut self, seeds: &[&str]) -> Vec<u8> {
        self.made += 1;
        let id = (1000 + self.made).to_string();
        let picked = self.below(seeds.len());
        let mut message = seeds[picked].replace("@ID@", &id).into_bytes();
        if self.below(16) == 0 {
            return message;
        }
        for _ in 0..=self.below(3) {
            match self.below(12) {
                0..=5 => self.small(&mut message),
                6 => self.replace_value(&mut message),
                7 => {
                    let at = self.below(message.len() + 1);
                    let other = seeds[self.below(seeds.len())].replace("@ID@", &id).into_bytes();
                    let from = self.below(other.len());
                    message.truncate(at);
                    message.extend_from_slice(&other[from..]);
                }
                8 => self.deepen(&mut message),
                9 => self.lengthen(&mut message),
                10 => message = [b"[", &message[..], b",", &message[..], b"]"].concat(),
                _ => self.double_a_member(&mut message),
            }
        }
        message
    }

    fn small(&mut self, message: &mut Vec<u8>) {
        let at = self.below(message.len() + 1);
        match self.below(5) {
            0 => message.truncate(at),
            1 if at < message.len() => message[at] ^= 1 << self.below(8),
            2 if at < message.len() => {
                let end = at + self.below(message.len() - at).min(8);
                message.drain(at..end);
            }
            3 => {
                let end = at + self.below(message.len() - at).min(60);
                let copy = message[at..end].to_vec();
                message.splice(at..at, copy);
            }
            _ => {
                let piece = PIECES[self.below(PIECES.len())];
                message.splice(at..at, piece.iter().copied());
            }
        }
    }

    /// What stands after some colon, up to the next comma or bracket, becomes something else.
    fn replace_value(&mut self, message: &mut Vec<u8>) {
        let colons: Vec<usize> = (0..message.len()).filter(|&at| message[at] == b':').collect();
        let Some(&colon) = colons.get(self.below(colons.len())) else { return };
        let end =
            message[colon..].iter().position(|byte| matches!(byte, b',' | b'}')).map_or(message.len(), |n| colon + n);
        let value = VALUES[self.below(VALUES.len())];
        message.splice(colon + 1..end, value.bytes());
    }

    fn deepen(&mut self, message: &mut Vec<u8>) {
        let depth = [10, 126, 127, 128, 129, 1000, 20_000][self.below(7)];
        let (open, close) = if self.below(2) == 0 { ("[", "]") } else { ("{\"a\":", "}") };
        let deep = format!("{}1{}", open.repeat(depth), close.repeat(depth));
        let params = format!(r#""params":{{"deep":{deep}}},"#);
        let at = message.iter().position(|&byte| byte == b'{').map_or(0, |at| at + 1);
        message.splice(at..at, params.into_bytes());
    }

    fn lengthen(&mut self, message: &mut Vec<u8>) {
        let size = [100, 4096, 65_536, 200_000][self.below(4)];
        let quotes: Vec<usize> = (0..message.len()).filter(|&at| message[at] == b'"').collect();
        let at = quotes.get(self.below(quotes.len())).map_or(message.len(), |at| at + 1);
        let filler = [&b"x"[..], b"\\n", "é".as_bytes(), b"9", b" "][self.below(5)];
        message.splice(at..at, filler.repeat(size / filler.len()));
    }

    fn double_a_member(&mut self, message: &mut Vec<u8>) {
        let commas: Vec<usize> = (0..message.len()).filter(|&at| message[at] == b',').collect();
        let Some(&from) = commas.get(self.below(commas.len())) else { return };
        let to = commas.iter().copied().find(|&at| at > from).unwrap_or(message.len().saturating_sub(1));
        let copy = message[from..to.max(from)].to_vec();
        message.splice(from..from, copy);
    }
}
