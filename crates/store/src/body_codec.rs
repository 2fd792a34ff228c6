//! Compression of bodies: zstd, with a dictionary for small ones.
//!
//! Dictionary 0 is built in. A store may add others, trained on its own first bodies. Each has a number that is stored
//! with the bodies it compressed, so that every body stays readable.

use crate::compression_ahead::CompressionAhead;
use crate::limits::MAX_BODY_BYTES;
use crate::pack::{DecodeError, Unpack, put_number};
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{Body, Entry};
use std::borrow::Cow;
use std::collections::BTreeMap;
use zstd::bulk::{Compressor, Decompressor};

/// Size below which a body is stored uncompressed.
const MIN_COMPRESSED: usize = 48;

/// Maximum size of a body for which a dictionary helps.
pub const MAX_SMALL: usize = 16 << 10;

/// Number of bodies to train a dictionary on, their maximum size, and the size of the dictionary.
const SAMPLES: usize = 400;
const MAX_SAMPLE: usize = 4 << 10;
const DICTIONARY_BYTES: usize = 16 << 10;

const LEVEL: i32 = 1;

/// Maximum number of cached forms of recurring bytes, and the maximum size of each. A full cache is cleared.
const MAX_AGAIN: usize = 256;
const MAX_AGAIN_BYTES: usize = 8 << 10;

const FORM_LEFT: u8 = 0;
const FORM_RAW: u8 = 1;
const FORM_ZSTD: u8 = 2;
const FORM_DICTIONARY: u8 = 3;
const FORM_LIKE: u8 = 4;

/// Stored form of a body.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedBody {
    /// Code of the form, one of the `FORM_` constants.
    pub form: u8,
    /// Encoded bytes in that form.
    pub bytes: Bytes,
}

impl EncodedBody {
    /// Returns the form of a body that was left out.
    pub fn left() -> Self {
        Self { form: FORM_LEFT, bytes: Bytes::new() }
    }
}

/// Encoder and decoder of stored bodies.
pub struct BodyCodec {
    plain: Contexts,
    dictionaries: BTreeMap<u64, Contexts>,
    samples: Option<Vec<Bytes>>,
    again: HashMap<Vec<u8>, EncodedBody>,
    ahead: CompressionAhead,
}

/// Compressor and decompressor with one dictionary, made when they are first needed.
pub struct Contexts {
    dictionary: Cow<'static, [u8]>,
    compress: Option<Compressor<'static>>,
    decompress: Option<Decompressor<'static>>,
}

impl BodyCodec {
    /// Creates a codec with the built-in dictionary. It collects samples to train another one.
    pub fn new() -> Self {
        let plain = Contexts::plain();
        let dictionaries = BTreeMap::from([(0, Contexts::new(Cow::Borrowed(BUILT_IN.as_bytes())))]);
        Self {
            plain,
            dictionaries,
            samples: Some(Vec::new()),
            again: HashMap::default(),
            ahead: CompressionAhead::default(),
        }
    }

    /// Returns the number of its latest dictionary, which it compresses with.
    pub fn latest(&self) -> u64 {
        self.dictionaries.keys().next_back().copied().unwrap_or(0)
    }

    /// Adds a dictionary of the store.
    pub fn learn(&mut self, number: u64, dictionary: Vec<u8>) {
        self.dictionaries.insert(number, Contexts::new(Cow::Owned(dictionary)));
        self.samples = None;
        self.again.clear();
    }

    /// Trains a dictionary on the collected samples, once there are enough. Returns it only if it is better than the
    /// built-in one.
    pub fn train(&mut self) -> Option<Vec<u8>> {
        let samples = self.samples.take_if(|samples| samples.len() >= SAMPLES)?;
        let trained = zstd::dict::from_samples(&samples, DICTIONARY_BYTES).ok()?;
        let size = |contexts: &mut Contexts| -> usize {
            samples.iter().map(|body| contexts.compress(body).map_or(body.len(), |small| small.len())).sum()
        };
        let built_in = self.dictionaries.get_mut(&0).map_or(usize::MAX, size);
        let own = size(&mut Contexts::new(Cow::Owned(trained.clone())));
        (own < built_in / 10 * 9).then_some(trained)
    }

    /// Compresses the large bodies of a batch on several threads.
    pub fn compress_ahead(&mut self, entries: &[Entry]) {
        self.ahead.run(entries, &mut self.plain);
    }

    /// Forgets the bodies that were compressed ahead for a batch. These may be freed only after this call.
    pub fn end_batch(&mut self) {
        self.ahead.clear();
    }

    /// Encodes a body, and collects it as a sample for training.
    pub fn pack(&mut self, body: &Body) -> EncodedBody {
        match body {
            Body::Left => EncodedBody::left(),
            Body::Whole(whole) => {
                if let Some(samples) = &mut self.samples
                    && samples.len() < SAMPLES
                    && (MIN_COMPRESSED..MAX_SAMPLE).contains(&whole.len())
                {
                    samples.push(whole.clone());
                }
                self.compress(whole)
            }
            Body::Like { seq, prefix, suffix, middle } => {
                let middle = self.compress(middle);
                let mut bytes = Vec::with_capacity(16 + middle.bytes.len());
                for number in [*seq, *prefix, *suffix] {
                    put_number(&mut bytes, number);
                }
                bytes.push(middle.form);
                bytes.extend_from_slice(&middle.bytes);
                EncodedBody { form: FORM_LIKE, bytes: bytes.into() }
            }
        }
    }

    /// Compresses bytes that are likely to recur, and caches the result.
    pub fn compress_again(&mut self, whole: Vec<u8>) -> EncodedBody {
        if let Some(packed) = self.again.get(&whole) {
            return packed.clone();
        }
        let packed = self.compress(&Bytes::copy_from_slice(&whole));
        if whole.len() <= MAX_AGAIN_BYTES {
            if self.again.len() >= MAX_AGAIN {
                self.again.clear();
            }
            self.again.insert(whole, packed.clone());
        }
        packed
    }

    /// Compresses bytes: small ones with the latest dictionary, larger ones without.
    pub fn compress(&mut self, whole: &Bytes) -> EncodedBody {
        if whole.len() > MAX_SMALL {
            return self.ahead.take(whole).unwrap_or_else(|| self.plain.encode_large(whole));
        }
        let mut bytes = Vec::new();
        let small = match self.dictionaries.last_entry() {
            Some(mut latest) if whole.len() >= MIN_COMPRESSED => {
                put_number(&mut bytes, *latest.key());
                latest.get_mut().compress(whole)
            }
            _ => None,
        };
        encoded(whole, FORM_DICTIONARY, bytes, small)
    }

    /// Decodes a stored body.
    pub fn unpack(&mut self, form: u8, bytes: &[u8]) -> Result<Body, DecodeError> {
        match form {
            FORM_LEFT => Ok(Body::Left),
            FORM_LIKE => {
                let mut unpack = Unpack(bytes);
                let (seq, prefix, suffix) = (unpack.number()?, unpack.number()?, unpack.number()?);
                let form = unpack.byte()?;
                Ok(Body::Like { seq, prefix, suffix, middle: self.decompress(form, unpack.0)? })
            }
            _ => self.decompress(form, bytes).map(Body::Whole),
        }
    }

    fn decompress(&mut self, form: u8, bytes: &[u8]) -> Result<Bytes, DecodeError> {
        let mut unpack = Unpack(bytes);
        let contexts = match form {
            FORM_RAW => return Ok(Bytes::copy_from_slice(bytes)),
            FORM_ZSTD => &mut self.plain,
            FORM_DICTIONARY => {
                let number = unpack.number()?;
                self.dictionaries.get_mut(&number).ok_or(DecodeError("the dictionary of a body is missing"))?
            }
            _ => return Err(DecodeError("a body is of an unknown form")),
        };
        let length = unpack.number()?;
        if length > MAX_BODY_BYTES {
            return Err(DecodeError("a body claims to be larger than allowed"));
        }
        contexts.decompress(unpack.0, length as usize)
    }
}

/// Returns the entry that a stored body refers to, without decoding the rest.
pub fn refers_to(form: u8, bytes: &[u8]) -> Option<u64> {
    if form == FORM_LIKE { Unpack(bytes).number().ok() } else { None }
}

/// Returns the encoded form of a body after these first bytes, or the body itself if that is not larger.
fn encoded(whole: &Bytes, form: u8, mut bytes: Vec<u8>, small: Option<Vec<u8>>) -> EncodedBody {
    let raw = || EncodedBody { form: FORM_RAW, bytes: whole.clone() };
    let Some(small) = small else { return raw() };
    put_number(&mut bytes, whole.len() as u64);
    bytes.extend_from_slice(&small);
    if bytes.len() >= whole.len() { raw() } else { EncodedBody { form, bytes: bytes.into() } }
}

impl Contexts {
    /// Creates contexts without a dictionary.
    pub fn plain() -> Self {
        Self::new(Cow::Borrowed(&[]))
    }

    /// Encodes a body that is too large for a dictionary to help.
    pub fn encode_large(&mut self, whole: &Bytes) -> EncodedBody {
        let small = self.compress(whole);
        encoded(whole, FORM_ZSTD, Vec::new(), small)
    }

    fn new(dictionary: Cow<'static, [u8]>) -> Self {
        Self { dictionary, compress: None, decompress: None }
    }

    /// Returns `None` if compression failed. The body is then stored as it is.
    fn compress(&mut self, whole: &[u8]) -> Option<Vec<u8>> {
        if self.compress.is_none() {
            let mut made = Compressor::with_dictionary(LEVEL, &self.dictionary).ok()?;
            // The length is stored beside the body, and a wrong length reveals damage.
            made.set_parameter(zstd::zstd_safe::CParameter::ContentSizeFlag(false)).ok()?;
            made.set_parameter(zstd::zstd_safe::CParameter::DictIdFlag(false)).ok()?;
            self.compress = Some(made);
        }
        self.compress.as_mut()?.compress(whole).ok()
    }

    fn decompress(&mut self, small: &[u8], length: usize) -> Result<Bytes, DecodeError> {
        let torn = DecodeError("a body cannot be unpacked");
        if self.decompress.is_none() {
            self.decompress = Some(Decompressor::with_dictionary(&self.dictionary).map_err(|_| torn)?);
        }
        let context = self.decompress.as_mut().ok_or(torn)?;
        let whole = context.decompress(small, length).map_err(|_| torn)?;
        if whole.len() == length { Ok(whole.into()) } else { Err(torn) }
    }
}

/// Text that messages have in common, the most common last. It must never change, because bodies are compressed with
/// it.
const BUILT_IN: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{"#,
    r#""listChanged":true},"sampling":{},"elicitation":{}},"clientInfo":{"name":"client","title":"Client","version":"1.0.0"}}}"#,
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{},"completions":{},"#,
    r#""prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"tools":{"listChanged":true}},"#,
    r#""serverInfo":{"name":"server","version":"0.1.0"},"instructions":""}}"#,
    r#"{"method":"notifications/initialized","jsonrpc":"2.0"}{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{}}{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"#,
    r#""reason":""}}{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"total":100,"#,
    r#""message":""}}{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":"","data":""}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}{"jsonrpc":"2.0","id":2,"method":"resources/list"}"#,
    r#"{"resources":[{"uri":"file:///","name":"","description":"","mimeType":"application/json"}],"resourceTemplates":[]}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"https://"}}{"contents":[{"uri":"","#,
    r#""mimeType":"text/plain","text":""}]}{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"","#,
    r#""arguments":{}}}{"description":"","messages":[{"role":"user","content":{"type":"text","text":""}},{"role":"assistant"}]}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":""}}{"jsonrpc":"2.0","id":3,"result":{"tools":[{"#,
    r#""name":"","title":"","description":"","inputSchema":{"type":"object","properties":{"path":{"type":"string","#,
    r#""description":""},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},"query":{"type":"string"},"#,
    r#""flag":{"type":"boolean"},"items":{"type":"array","items":{"type":"number"}},"kind":{"enum":[""]}},"#,
    r#""required":[""],"additionalProperties":false,"$schema":"http://json-schema.org/draft-07/schema#"},"#,
    r#""outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"#,
    r#""openWorldHint":false}}],"nextCursor":""}}"#,
    r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"Invalid params","data":{"reason":""}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found"}}{"code":-32603,"message":"Internal error"}"#,
    r#"{"type":"image","data":"","mimeType":"image/png"},{"type":"resource","resource":{"uri":""}},{"type":"resource_link"}"#,
    r#"{"result":{"content":[{"type":"text","text":"Error: "}],"isError":true},"jsonrpc":"2.0","id":5}"#,
    r#"{"method":"tools/call","params":{"name":"","arguments":{"path":"/home/user/src/main.rs","query":"select","message":""},"#,
    r#""_meta":{"progressToken":5}},"jsonrpc":"2.0","id":5}"#,
    r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"#,
    r#""2026-07-28","progressToken":"","traceparent":"00-"},"name":"","arguments":{"id":"","name":"","text":"","url":"https://"}}}"#,
    r#"{"jsonrpc":"2.0","id":6,"result":{"content":[{"type":"text","text":"{\"id\":1,\"name\":\"\",\"status\":\"ok\"}"}],"#,
    r#""structuredContent":{"id":1,"name":"","status":"ok","count":0,"items":[]},"isError":false}}"#,
);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: usize) -> Bytes {
        Bytes::from(format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{{"name":"weather","arguments":{{"city":"c{number}"}}}}}}"#
        ))
    }

    #[test]
    fn every_body_comes_out_as_it_went_in() {
        let mut codec = BodyCodec::new();
        let large: Vec<u8> = (0..1_000_000u32).flat_map(|n| (n / 7).to_le_bytes()).collect();
        for body in [
            Body::Left,
            Body::Whole(Bytes::new()),
            Body::Whole(call(1)),
            Body::Whole(Bytes::from(large)),
            Body::Whole((0..=255u8).collect::<Vec<_>>().into()),
            Body::Like { seq: 9, prefix: 3, suffix: 4, middle: Bytes::from_static(b"x") },
            Body::Like { seq: 9, prefix: 3, suffix: 4, middle: call(2) },
        ] {
            let packed = codec.pack(&body);
            assert_eq!(codec.unpack(packed.form, &packed.bytes), Ok(body));
        }
    }

    #[test]
    fn a_small_message_becomes_less_than_half() {
        let packed = BodyCodec::new().compress(&call(1));
        assert!(packed.bytes.len() * 2 < call(1).len(), "{}", packed.bytes.len());
    }

    #[test]
    fn a_store_may_have_a_dictionary_of_its_own() {
        let mut codec = BodyCodec::new();
        let old = codec.pack(&Body::Whole(call(0)));
        let rest = "the quick brown fox sees many lazy dogs in the long grass behind the old mill ".repeat(3);
        let body = |n: usize| Body::Whole(Bytes::from(format!("{rest} {n} {}", n * 7919)));
        for number in 0..SAMPLES {
            codec.pack(&body(number));
        }
        let trained = codec.train().expect("these bodies are alike");
        assert!(codec.train().is_none(), "once is enough");
        codec.learn(1, trained);
        let packed = codec.pack(&body(7));
        assert!(packed.bytes.len() < 60, "{}", packed.bytes.len());
        assert_eq!(codec.unpack(packed.form, &packed.bytes), Ok(body(7)));
        assert_eq!(codec.unpack(old.form, &old.bytes), Ok(Body::Whole(call(0))));
        assert!(BodyCodec::new().unpack(packed.form, &packed.bytes).is_err(), "without it it cannot be read");
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let mut codec = BodyCodec::new();
        let packed = codec.compress(&call(3));
        for cut in 0..packed.bytes.len() {
            assert!(codec.unpack(packed.form, &packed.bytes[..cut]).is_err(), "{cut}");
        }
        for form in 5..=255 {
            assert!(codec.unpack(form, &packed.bytes).is_err());
        }
        let mut huge = vec![0];
        put_number(&mut huge, u64::MAX);
        assert!(codec.unpack(FORM_DICTIONARY, &huge).is_err());
    }
}
