//! The fuzz entries on a stable toolchain: seeds, the stream cases, and mutations of both drawn from a fixed seed.

#[path = "../../../fuzz/entries.rs"]
#[expect(unreachable_pub, reason = "it is the library of the fuzz workspace")]
mod entries;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use entries::{ENTRIES, Entry};
use peaklane_testkit::case::{CaseApi, Framing, stream_cases};
use peaklane_testkit::data::project_root;

/// Mutations of each entry: a second or two in a debug build.
const MUTATIONS: usize = 2_000;
/// Longest mutated input, bytes.
const LONGEST: usize = 8 << 10;

/// A small generator of our own (xorshift64*, Vigna 2016), so that a finding can be made again from its number.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n.max(1)
    }
}

/// Pieces that readers give a meaning to.
const TOKENS: [&[u8]; 26] = [
    b"data: ",
    b"\n\n",
    b"\r\n",
    b"\r",
    b"event: error\n",
    b": ",
    b"[DONE]",
    b"{\"error\":",
    b"null",
    b"{",
    b"}",
    b"[",
    b"\"",
    b"\\u0000",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"-1",
    b"18446744073709551616",
    b"1e999",
    b"0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: 5\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n",
    b"Location: /x\r\n",
    b"\"choices\":[{\"delta\":{\"content\":\"x\"}}]",
    entries::KEY.as_bytes(),
];

fn mutate(dice: &mut Dice, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[dice.below(seeds.len())].clone();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        match dice.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = dice.below(256) as u8,
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..at, TOKENS[dice.below(TOKENS.len())].iter().copied())),
            4 => {
                let end = (at + dice.below(40)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                let to = dice.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            _ => {
                let end = (at + dice.below(40)).min(bytes.len());
                bytes.drain(at..end);
            }
        }
        bytes.truncate(LONGEST);
    }
    bytes
}

/// The seeds of an entry by name. They belong to the project, whatever set of cases the tests run on.
fn seeds(entry: &str) -> Vec<(String, Vec<u8>)> {
    let folder = project_root().join("testdata/fuzz").join(entry);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|file| file.expect("a folder that can be listed").path())
        .collect();
    files.sort();
    assert!(files.len() >= 4, "{} has too few seeds to prove anything", folder.display());
    files
        .into_iter()
        .map(|path| (path.display().to_string(), fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))))
        .collect()
}

/// The stream cases as inputs of the entries that read responses.
fn case_inputs() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut inputs = Vec::new();
    for case in stream_cases() {
        let api = match case.api {
            CaseApi::Chat => 0,
            CaseApi::Completions => 1,
            CaseApi::Messages => 2,
            CaseApi::Responses => 3,
        };
        for (n, answer) in case.answers().iter().enumerate() {
            let name = format!("{}-{n}", case.id);
            let body = answer.body();
            if body.len() > LONGEST {
                continue;
            }
            let value = |name: &str| answer.headers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v);
            let events = value("content-type").is_some_and(|v| v.contains("event-stream"));
            let codings = ["", "gzip", "deflate", "br", "zstd"];
            let coding = codings.iter().position(|c| value("content-encoding").is_some_and(|v| v == c)).unwrap_or(0);
            inputs.push(("sse", name.clone(), [&[7], &body[..]].concat()));
            let kind = if answer.status.is_some_and(|s| s >= 300) { 7 << 2 } else { u8::from(events) };
            inputs.push(("reading", name.clone(), [&[api, kind, coding as u8, 7], &body[..]].concat()));
            inputs.push(("classify", name.clone(), [&[100], &body[..]].concat()));
            let mut head = format!("HTTP/1.1 {} X\r\n", answer.status.unwrap_or(200));
            answer.headers.iter().for_each(|(n, v)| head.push_str(&format!("{n}: {v}\r\n")));
            if answer.framing == Framing::Length {
                head.push_str(&format!("Content-Length: {}\r\n", body.len()));
            }
            inputs.push(("h1", name, [&[1, 7], head.as_bytes(), b"\r\n", &body[..]].concat()));
        }
    }
    inputs
}

/// Feeds an entry; a panic is told with the bytes that made it.
fn feed(entry: Entry, name: &str, bytes: &[u8]) {
    // What broke was printed by the panic itself.
    let fed = catch_unwind(AssertUnwindSafe(|| entry(bytes)));
    assert!(fed.is_ok(), "{name}: {:?}", String::from_utf8_lossy(bytes));
}

#[test]
fn every_seed_is_read_without_a_broken_law() {
    for (name, entry) in ENTRIES {
        for (file, bytes) in seeds(name) {
            feed(entry, &file, &bytes);
        }
    }
}

/// With `PEAKLANE_FUZZ_CORPUS`, the inputs are also written there, for `fuzz/run.sh`.
#[test]
fn every_stream_case_is_read_without_a_broken_law_wherever_its_packets_end() {
    let corpus = std::env::var_os("PEAKLANE_FUZZ_CORPUS");
    for (target, name, mut bytes) in case_inputs() {
        if let Some(corpus) = &corpus {
            let folder = Path::new(corpus).join(target);
            fs::create_dir_all(&folder).expect("a folder for the corpus");
            fs::write(folder.join(&name), &bytes).expect("a file of the corpus");
        }
        let (_, entry) = ENTRIES[ENTRIES.iter().position(|(n, _)| *n == target).expect("an entry")];
        let place = match target {
            "sse" => 0,
            "h1" => 1,
            "reading" => 3,
            _ => continue,
        };
        for seed in [0, 1, 2, 3, 5, 8, 13, 21] {
            bytes[place] = seed;
            feed(entry, &format!("{target} of {name}"), &bytes);
        }
    }
}

#[test]
fn thousands_of_mutated_inputs_break_no_law() {
    for (number, (name, entry)) in (1..).zip(ENTRIES) {
        let mut inputs: Vec<Vec<u8>> = seeds(name).into_iter().map(|(_, bytes)| bytes).collect();
        inputs.extend(case_inputs().into_iter().filter(|(target, _, _)| *target == name).map(|(_, _, bytes)| bytes));
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ number);
        for n in 0..MUTATIONS {
            let bytes = mutate(&mut dice, &inputs);
            feed(entry, &format!("mutation {n} of {name}"), &bytes);
        }
    }
}
