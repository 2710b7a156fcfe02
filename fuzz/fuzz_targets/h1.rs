#![no_main]
//! Fuzz target `h1`; what it does is in `entries.rs`.

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| peaklane_fuzz::h1(bytes));
