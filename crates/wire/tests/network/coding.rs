//! Compressed bodies that are bombs, that are cut, that come in crumbs.

use std::io::Write;

use peaklane_core::outcome::Outcome;

use crate::lane::{chunk, ending, event, request, response, say, try_answered, try_served, whole_json};
use crate::support::generous;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn stream_in(coding: &str, body: &[u8]) -> Vec<u8> {
    response("200 OK", &format!("Content-Type: text/event-stream\r\nContent-Encoding: {coding}\r\n"), body)
}

#[tokio::test(start_paused = true)]
async fn a_bomb_of_comments_is_refused_once_it_unfolds_beyond_all_answers() {
    let line = [b": ", &[b'x'; (1 << 20) - 3][..], b"\n"].concat();
    // Members of gzip follow each other: 257 of 1 MiB each are one more than is unfolded.
    let record = try_answered(stream_in("gzip", &gzip(&line).repeat(257))).await.record;
    assert_eq!(record.outcome, Outcome::BadBody);
    assert!(record.message.as_deref().is_some_and(|m| m.contains("more than 256 MiB")), "{:?}", record.message);
}

#[tokio::test(start_paused = true)]
async fn a_bomb_in_one_packet_is_refused_in_every_coding() {
    let zeros = vec![b'0'; 64 << 20];
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 1 << 16, 1, 24);
    brotli.write_all(&zeros).unwrap();
    let bombs = [
        ("gzip", gzip(&zeros[..1 << 20]).repeat(40)),
        ("zstd", zstd::encode_all(&zeros[..], 1).unwrap()),
        ("br", brotli.into_inner()),
    ];
    for (coding, bomb) in bombs {
        let packed = bomb.len();
        for kind in ["text/event-stream", "application/json"] {
            let headers = format!("Content-Type: {kind}\r\nContent-Encoding: {coding}\r\n");
            let record = try_answered(response("200 OK", &headers, &bomb)).await.record;
            assert_eq!(record.outcome, Outcome::BadBody, "{coding} {kind}: {packed} bytes");
            assert!(record.message.is_some_and(|m| m.contains("MiB")), "{coding} {kind}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_compressed_answer_that_is_cut_in_the_middle_is_no_answer() {
    // Random enough not to fold into a few bytes.
    let text: String = (0..2_000u32).map(|n| format!("{:x} ", n.wrapping_mul(2_654_435_761))).collect();
    let packed = gzip(whole_json(&text).as_bytes());
    let record =
        try_answered(response("200 OK", "Content-Encoding: gzip\r\n", &packed[..packed.len() / 2])).await.record;
    assert_eq!(record.outcome, Outcome::BadBody);
    assert_eq!(record.message.as_deref(), Some("JSON that stops in the middle"));
}

#[tokio::test(start_paused = true)]
async fn a_compressed_stream_that_is_cut_in_the_middle_keeps_what_came() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(event("half").as_bytes()).unwrap();
    encoder.flush().unwrap();
    let half = encoder.get_ref().clone();
    let record = try_answered(stream_in("gzip", &half)).await.record;
    assert_eq!((record.outcome, record.content.as_str()), (Outcome::Truncated, "half"));
}

#[tokio::test(start_paused = true)]
async fn broken_bytes_behind_a_good_event_are_told_wherever_the_packets_end() {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(event("good").as_bytes()).unwrap();
    encoder.flush().unwrap();
    let broken = [encoder.get_ref().as_slice(), &[0xff; 64]].concat();
    let at_once = try_answered(stream_in("gzip", &broken)).await.record;
    assert_eq!(at_once.outcome, Outcome::BadBody);
    let crumbs = try_served(&generous(), move |mut io, _| {
        let bytes = stream_in("gzip", &broken);
        async move {
            request(&mut io).await;
            for byte in bytes {
                say(&mut io, [byte]).await;
                tokio::task::yield_now().await;
            }
        }
    })
    .await
    .record;
    assert_eq!((crumbs.outcome, crumbs.content.as_str()), (Outcome::BadBody, "good"));
}

#[tokio::test(start_paused = true)]
async fn every_coding_in_crumbs_and_chunks_gives_the_answer() {
    let plain = [event("one "), event("two"), ending()].concat();
    let mut br = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    br.write_all(plain.as_bytes()).unwrap();
    let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    deflate.write_all(plain.as_bytes()).unwrap();
    let bodies = [
        ("gzip", gzip(plain.as_bytes())),
        ("deflate", deflate.finish().unwrap()),
        ("br", br.into_inner()),
        ("zstd", zstd::encode_all(plain.as_bytes(), 1).unwrap()),
    ];
    for (coding, body) in bodies {
        let record = try_served(&generous(), move |mut io, _| {
            let body = body.clone();
            async move {
                request(&mut io).await;
                say(
                    &mut io,
                    crate::lane::STREAM.replace("\r\n\r\n", &format!("\r\nContent-Encoding: {coding}\r\n\r\n")),
                )
                .await;
                for byte in body {
                    say(&mut io, chunk([byte])).await;
                    tokio::task::yield_now().await;
                }
                say(&mut io, "0\r\n\r\n").await;
                request(&mut io).await;
            }
        })
        .await
        .record;
        assert_eq!((record.outcome, record.content.as_str()), (Outcome::Ok, "one two"), "{coding}");
        assert_eq!(record.usage.completion, Some(3), "{coding}");
    }
}
