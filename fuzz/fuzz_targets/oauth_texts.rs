#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| signalbox_oauth_client::fuzzing::oauth_texts(data));
