#![no_main]
//! Fuzz target `reading`; what it does is in `entries.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| peaklane_fuzz::reading(bytes));
