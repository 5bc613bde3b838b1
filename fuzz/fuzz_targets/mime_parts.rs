#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_fuzz::mime_parts(data));
