#![no_main]
//! Fuzz target `retry_after`; what it does is in `entries.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| peaklane_fuzz::retry_after(bytes));
