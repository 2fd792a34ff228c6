//! Files are written, cut, damaged and read again.

use super::*;
use crate::sample;
use bytes::Bytes;
use frame::{FrameKind, MAGIC, PREAMBLE};
use prost::Message;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, MessageKind, SessionInfo, StoreError};
use std::io::Cursor;

/// The sample as a file, with so many entries in each frame.
fn file(each: usize) -> Vec<u8> {
    let mut writer = TapeFileWriter::new(vec![], &sample::sealed_info(), &sample::sessions()).unwrap();
    for (index, entry) in sample::all_entries().iter().enumerate() {
        writer.push(entry).unwrap();
        if (index + 1) % each == 0 {
            writer.flush().unwrap();
        }
    }
    writer.finish(Some(7)).unwrap()
}

fn open(bytes: &[u8]) -> Result<TapeFile<Cursor<&[u8]>>, TapeFileError> {
    TapeFile::open(Cursor::new(bytes))
}

fn read(bytes: &[u8], select: Select) -> Vec<Entry> {
    open(bytes).unwrap().entries(select).map(Result::unwrap).collect()
}

/// Proves SO-7.
#[test]
fn what_is_written_is_read_again() {
    for each in [1, 5, 1_000] {
        let bytes = file(each);
        let mut tape = open(&bytes).unwrap();
        assert_eq!(tape.info().ended, Some(7));
        assert_eq!(*tape.info(), signalbox_engine::record::TapeInfo { ended: Some(7), ..sample::sealed_info() });
        assert_eq!(tape.sessions(), sample::sessions());
        assert_eq!((tape.version(), tape.missing()), (3, None));
        assert_eq!(tape.frames(), sample::all_entries().len().div_ceil(each));
        let entries: Vec<Entry> = tape.entries(Select::default()).map(Result::unwrap).collect();
        assert_eq!(entries, sample::all_entries());
    }
}

#[test]
fn parts_are_read_without_the_rest() {
    let bytes = file(1);
    let all = sample::all_entries();
    let of_session = read(&bytes, Select { session: Some(1), ..Select::default() });
    let gap = |entry: &&Entry| matches!(entry.content, Content::Gap(_));
    let expected = all.iter().filter(|entry| entry.session == Some(1) || gap(entry));
    assert!(of_session.iter().eq(expected));
    assert_eq!(read(&bytes, Select { after: Some(20), ..Select::default() }), all[20..]);
    let (since, until) = (Some(all[3].at), Some(all[6].at));
    assert_eq!(read(&bytes, Select { since, until, ..Select::default() }), all[3..6]);
    // The first frame of entries is damaged, and whoever does not want it does not notice.
    let mut damaged = bytes.clone();
    let first = open(&bytes).unwrap().frames[0].offset as usize;
    damaged[first + 20] ^= 1;
    assert_eq!(read(&damaged, Select { after: Some(1), ..Select::default() }), all[1..]);
}

#[test]
fn a_file_cut_anywhere_is_read_up_to_its_last_whole_frame() {
    let bytes = file(3);
    let all = sample::all_entries();
    let whole = open(&bytes).unwrap();
    let ends: Vec<usize> = whole.frames.iter().skip(1).map(|frame| frame.offset as usize).collect();
    let first = whole.frames[0].offset as usize;
    for length in 0..bytes.len() {
        let cut = match open(&bytes[..length]) {
            Ok(mut tape) => {
                assert!(tape.missing().is_some_and(|text| text.contains("file is")), "{length}: {:?}", tape.missing());
                tape.entries(Select::default()).map(Result::unwrap).collect::<Vec<_>>()
            }
            Err(error) => {
                assert!(length < first, "{length}: {error}");
                continue;
            }
        };
        assert!(length >= first);
        let frames = ends.iter().filter(|end| **end <= length).count();
        assert!(cut.len() >= frames * 3 && all.starts_with(&cut), "{length}");
    }
}

/// Proves SO-7.
#[test]
fn no_byte_can_be_changed_unnoticed() {
    let bytes = file(8);
    let all = sample::all_entries();
    for place in 0..bytes.len() {
        for flip in [1, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[place] ^= flip;
            let Ok(mut tape) = open(&damaged) else { continue };
            assert_eq!((tape.info().id.clone(), tape.sessions().to_vec()), (sample::info().id, sample::sessions()));
            let whole = tape.missing().is_none();
            let read: Result<Vec<Entry>, _> = tape.entries(Select::default()).collect();
            if let Ok(entries) = read {
                // Only the index can be damaged then, and that is said.
                assert!(!whole && all.starts_with(&entries), "byte {place}");
            }
        }
    }
}

/// A file of a head and copies of one frame, which holds copies of one entry.
fn bomb(entry: &Entry, in_frame: usize, frames: usize) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &frame::VERSION.to_le_bytes()].concat();
    let head = record::of_head(&sample::info(), &[]).encode_to_vec();
    frame::write(&mut bytes, FrameKind::Head, &head).unwrap();
    let (told, body) = record::of_entry(entry);
    let content = [&told.encode_length_delimited_to_vec()[..], &body].concat().repeat(in_frame);
    let mut one = Vec::new();
    frame::write(&mut one, FrameKind::Entries, &content).unwrap();
    bytes.extend(one.repeat(frames));
    bytes
}

/// A tape of 15 KB cost 30 s to read.
#[test]
fn a_small_file_does_not_unpack_to_hours_of_work() {
    let nothing = Entry::new(1, 0, "".into(), Content::SessionEnded);
    let zeros = MessageEntry::new(Point::ClientIn, MessageKind::Raw, 0, Body::Whole(vec![0; 40 << 20].into()));
    let large = Entry::new(1, 0, "".into(), Content::Message(zeros));
    for (bytes, most) in [(bomb(&nothing, 1_000_000, 60), 500_000), (bomb(&large, 1, 60), 20)] {
        assert!(bytes.len() < 300 << 10, "{}", bytes.len());
        let mut tape = open(&bytes).unwrap();
        let mut read = 0;
        let error = tape.entries(Select::default()).inspect(|_| read += 1).find_map(Result::err).unwrap();
        assert!(error.to_string().contains("unpacks to more than a recording of its size holds"), "{error}");
        assert!(read < most, "{read}");
        let mut audited = 0;
        let audit = tape.audit(&mut |_| {
            audited += 1;
            true
        });
        assert!(audit.is_err() && audited < most, "{audited}");
    }
}

/// An empty member takes two bytes of a frame, which pack to nothing, and hundreds of bytes of memory.
#[test]
fn empty_members_are_weighed_before_they_are_decoded() {
    let (preamble, too_much) = ([&MAGIC[..], &VERSION.to_le_bytes()].concat(), "unpacks to more than a recording");
    let head = record::of_head(&sample::info(), &[]).encode_to_vec();
    let nested = |key: u8, content: Vec<u8>| {
        let mut length = Vec::new();
        prost::encode_length_delimiter(content.len(), &mut length).unwrap();
        [vec![key], length, content].concat()
    };
    let (millions, claims) = ([0x4A, 0].repeat(4_000_000), [0x3A, 0].repeat(4_000_000));
    // Sessions, what was taken out, and claims of one session.
    for members in [millions, claims.clone(), nested(0x4A, nested(0x12, claims.clone()))] {
        let mut bytes = preamble.clone();
        frame::write(&mut bytes, FrameKind::Head, &[&head[..], &members].concat()).unwrap();
        assert!(bytes.len() < 4_000, "{}", bytes.len());
        let error = open(&bytes).err().unwrap().to_string();
        assert!(error.contains(too_much), "{error}");
    }
    // Sessions of one frame in the index, in both forms that protobuf has for numbers.
    for numbers in [nested(0x3A, vec![1; 8_000_000]), [0x38, 1].repeat(4_000_000)] {
        let mut bytes = hostile(&[]);
        let place = bytes.len() as u64;
        frame::write(&mut bytes, FrameKind::Index, &nested(0x0A, numbers)).unwrap();
        bytes.extend(frame::trailer(place));
        let mut tape = open(&bytes).unwrap();
        assert_eq!(tape.missing(), Some("the index at the end of the file is damaged"));
        assert!(tape.audit(&mut |_| true).is_err());
    }
    // Decisions, conditions of one, headers, and parts of what a backend offers.
    let decision = nested(0x4A, [0x32, 0].repeat(1_000_000));
    // The key of field 19 has two bytes.
    let headers = nested(0x42, [vec![0x9A], nested(0x01, [0x22, 0].repeat(1_000_000))].concat());
    let [decisions, parts] = [(0x62, 0x0A), (0x72, 0x2A)].map(|(key, inner)| nested(key, [inner, 0].repeat(1_000_000)));
    for entry in [decisions, decision, headers, parts] {
        let record = nested(0, entry);
        let error = open(&hostile(&[&record[1..]])).unwrap().entries(Select::default()).find_map(Result::err);
        assert!(error.unwrap().to_string().contains(too_much));
    }
}

#[test]
fn other_files_and_later_versions_are_refused_in_words() {
    let refused = |bytes: &[u8]| open(bytes).unwrap_err().to_string();
    assert_eq!(refused(b"{\"log\":{}}       "), "this is not a tape file");
    assert_eq!(refused(b""), "this is not a tape file");
    let mut later = file(9);
    later[8] = 9;
    assert_eq!(refused(&later), "the tape file has format version 9; this program reads versions up to 3");
    let told = StoreError::from(open(&later).unwrap_err());
    assert_eq!(told, StoreError::Future { place: "the tape file".into(), found: 9, known: 3 });
    later[8] = 0;
    assert_eq!(refused(&later), "the tape file is damaged at byte 8: there is no format version 0");
}

/// The first lines of a file, and then frames with these contents.
fn hostile(contents: &[&[u8]]) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &VERSION.to_le_bytes()].concat();
    let head = prost::Message::encode_to_vec(&record::of_head(&sample::info(), &[]));
    frame::write(&mut bytes, FrameKind::Head, &head).unwrap();
    for content in contents {
        frame::write(&mut bytes, FrameKind::Entries, content).unwrap();
    }
    bytes
}

#[test]
fn hostile_files_take_no_more_memory_than_they_may() {
    // Small when packed, large when unpacked, and every record of it empty.
    let zeros = vec![0; 4 << 20];
    let bomb = hostile(&[&zeros]);
    assert!(bomb.len() < 2_000);
    let read: Result<Vec<Entry>, _> = open(&bomb).unwrap().entries(Select::default()).collect();
    assert!(read.unwrap_err().to_string().contains("an entry of an unknown kind"));

    let mut promised = hostile(&[b"x"]);
    let frame = open(&promised).unwrap().frames[0].offset as usize;
    promised[frame + 1..frame + 5].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut tape = open(&promised).unwrap();
    assert!(tape.missing().is_some() && tape.frames() == 0);
    assert_eq!(tape.entries(Select::default()).count(), 0);

    for content in [&[0xFF; 11][..], &[0x80], &[200, 1], &[0x7F, 1, 2]] {
        let read: Result<Vec<Entry>, _> = open(&hostile(&[content])).unwrap().entries(Select::default()).collect();
        assert!(matches!(read, Err(TapeFileError::Damaged { .. })), "{content:?}");
    }
}

#[test]
fn what_is_too_large_for_a_file_is_told_to_be() {
    let mut entry = sample::entries().remove(1);
    let Content::Message(message) = &mut entry.content else { unreachable!() };
    message.body = Body::Whole(Bytes::from(vec![b'x'; 46 << 20]));
    let mut writer = TapeFileWriter::new(vec![], &sample::info(), &[]).unwrap();
    writer.push(&entry).unwrap();
    let read = read(&writer.finish(None).unwrap(), Select::default());
    let Content::Message(message) = &read[0].content else { panic!("{read:?}") };
    assert_eq!(message.body, Body::Left);
}

/// The file that the first version wrote, which no later one can write again.
/// Proves SO-7.
#[test]
fn a_file_of_version_1_stays_readable() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-1.tape");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 4096, "{}", bytes.len());
    assert_eq!(bytes[8..PREAMBLE as usize], 1u32.to_le_bytes());
    assert_eq!(read(&bytes, Select::default()), sample::entries());
    assert_eq!(open(&bytes).unwrap().sessions(), sample::sessions());
}

/// The file that the second version wrote, which no later one can write again.
#[test]
fn a_file_of_version_2_stays_readable() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/version-2.tape");
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() < 8192, "{}", bytes.len());
    assert_eq!(bytes[8..PREAMBLE as usize], 2u32.to_le_bytes());
    assert_eq!(read(&bytes, Select::default()), sample::all_entries());
    let tape = open(&bytes).unwrap();
    assert_eq!((tape.info().parent.clone(), tape.sessions()), (sample::sealed_info().parent, &sample::sessions()[..]));
}

#[test]
fn bodies_are_made_whole_again() {
    let mut bodies = crate::Bodies::default();
    let entries: Vec<Entry> = sample::entries().into_iter().map(|entry| bodies.whole(entry)).collect();
    for entry in &entries {
        if let Content::Message(message) = &entry.content {
            assert!(!matches!(message.body, Body::Like { .. }));
            if let Body::Whole(bytes) = &message.body {
                assert_eq!(bytes.len() as u64, message.length, "{}", String::from_utf8_lossy(bytes));
            }
        }
    }
}

/// A file that `wrap` writes has a head from before its first session.
/// Proves S-31.
#[test]
fn sessions_that_the_head_does_not_list_are_gathered_from_the_entries() {
    let told = |number: u64, seq: u64, client: Option<&str>| {
        let (client, transport) = (client.map(str::to_owned), "stdio".to_owned());
        let content = Content::Session(SessionInfo { client, transport, ..SessionInfo::default() });
        Entry { session: Some(number), ..Entry::new(seq, seq, "ann".into(), content) }
    };
    let mut writer = TapeFileWriter::new(vec![], &sample::info(), &[]).unwrap();
    for entry in [told(2, 1, Some("second")), told(1, 2, None), told(1, 3, Some("first"))] {
        writer.push(&entry).unwrap();
        writer.flush().unwrap();
    }
    let bytes = writer.finish(None).unwrap();
    let names = |bytes: &[u8]| -> Vec<(u64, Option<String>)> {
        let sessions = open(bytes).unwrap().all_sessions().unwrap();
        sessions.into_iter().map(|(number, session)| (number, session.client)).collect()
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(names(&bytes), [(1, some("first")), (2, some("second"))], "the later word counts");
    assert!(open(&bytes).unwrap().sessions().is_empty());
    // Of a file that breaks off, as far as it goes; and of one whose head lists them, as it lists them.
    let last = open(&bytes).unwrap().frames[2].offset as usize;
    assert_eq!(names(&bytes[..last + 3]), [(1, None), (2, some("second"))]);
    assert_eq!(open(&file(5)).unwrap().all_sessions().unwrap(), sample::sessions());
}
