//! A call as an OpenTelemetry span, in the names of the semantic conventions for generative AI.
//!
//! All names stand here and nowhere else, because the conventions are in development and change: these are those of
//! version 1.41 (`gen_ai.provider.name` where older ones have `gen_ai.system`). What they have no name for is below
//! `peaklane.`. Texts are never sent.

use peaklane_core::call::{CallRecord, Delivery};
use peaklane_core::lane::Api;
use peaklane_core::prefix::chain::hash_of;
use serde_json::{Value, json};

/// Name of the instrumentation scope.
const SCOPE: &str = "peaklane.proxy";
/// OTLP's number for a client's span, and for a failed one (opentelemetry-proto, `trace.proto`).
const KIND_CLIENT: u8 = 3;
const STATUS_ERROR: u8 = 2;

/// The body of an export request (OTLP/HTTP, JSON encoding): ids in hexadecimal, 64-bit numbers as strings.
pub fn export(calls: &[CallRecord], version: &str) -> Value {
    json!({
        "resourceSpans": [{
            "resource": { "attributes": [text("service.name", "peaklane-proxy"), text("service.version", version)] },
            "scopeSpans": [{
                "scope": { "name": SCOPE, "version": version },
                "spans": calls.iter().map(span).collect::<Vec<_>>(),
            }],
        }],
    })
}

/// One call. Calls of one session share a trace.
fn span(call: &CallRecord) -> Value {
    let record = &call.record;
    let operation = match call.api {
        Some(Api::Completions) => "text_completion",
        _ => "chat",
    };
    // The API that is spoken is what is known of the provider.
    let provider = if call.api == Some(Api::Messages) { "anthropic" } else { "openai" };
    let model = call.model.as_deref().or(record.model.as_deref());
    let begin = u64::try_from(call.started_unix_us).unwrap_or(0) * 1_000;
    let usage = &record.usage;
    let mut attributes = vec![
        text("gen_ai.operation.name", operation),
        text("gen_ai.provider.name", provider),
        text("gen_ai.conversation.id", &call.session),
        text("peaklane.call.id", &call.id),
        text("peaklane.delivery", call.delivery.name()),
        number("peaklane.retry", u64::from(call.retry)),
    ];
    let texts = [
        ("gen_ai.request.model", call.model.as_deref()),
        ("gen_ai.response.model", record.model.as_deref()),
        ("gen_ai.response.id", record.request_id.as_deref()),
        ("user_agent.original", call.harness.as_deref()),
        ("peaklane.lane", call.lane.as_deref()),
        ("url.path", Some(call.path.as_str())),
    ];
    attributes.extend(texts.iter().filter_map(|(name, value)| value.map(|value| text(name, value))));
    let prefix = call.prefix.as_ref();
    let numbers = [
        ("gen_ai.usage.input_tokens", usage.prompt),
        ("gen_ai.usage.output_tokens", usage.completion),
        ("gen_ai.usage.cache_read.input_tokens", usage.cached),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
        ("http.response.status_code", record.http_status.map(u64::from)),
        ("peaklane.ttft_us", record.ttft_us),
        ("peaklane.prefix.prompt_bytes", prefix.map(|p| p.prompt_bytes)),
        ("peaklane.prefix.former_bytes", prefix.and_then(|p| p.former_bytes)),
        ("peaklane.prefix.common_bytes", prefix.and_then(|p| p.common_bytes)),
    ];
    attributes.extend(numbers.iter().filter_map(|(name, value)| value.map(|value| number(name, value))));
    if let Some(reason) = &record.finish_reason {
        let value = json!({ "arrayValue": { "values": [{ "stringValue": reason }] } });
        attributes.push(json!({ "key": "gen_ai.response.finish_reasons", "value": value }));
    }
    if let Some(found) = prefix.and_then(|p| p.divergence.as_ref()) {
        attributes.push(text("peaklane.prefix.break.kind", found.kind.name()));
        attributes.push(text("peaklane.prefix.break.path", &found.path));
    }
    let failed = !record.outcome.is_ok() && call.delivery != Delivery::ClientLeft;
    if failed {
        attributes.push(text("error.type", record.outcome.name()));
    }
    json!({
        "traceId": format!("{:016x}{:016x}", hash_of(call.session.as_bytes()), hash_of(&[b"trace ", call.session.as_bytes()].concat())),
        "spanId": format!("{:016x}", hash_of(call.id.as_bytes())),
        "name": model.map_or_else(|| operation.to_owned(), |model| format!("{operation} {model}")),
        "kind": KIND_CLIENT,
        "startTimeUnixNano": begin.to_string(),
        "endTimeUnixNano": (begin + call.total_us * 1_000).to_string(),
        "attributes": attributes,
        "status": if failed { json!({ "code": STATUS_ERROR }) } else { json!({}) },
    })
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use peaklane_core::outcome::Outcome;
    use peaklane_core::record::{TryRecord, Usage};

    use super::*;

    fn call(outcome: Outcome) -> CallRecord {
        let mut record = TryRecord::new(outcome);
        record.http_status = Some(200);
        record.finish_reason = Some("stop".into());
        record.usage = Usage { prompt: Some(100), completion: Some(7), cached: Some(64), ..Usage::default() };
        CallRecord {
            harness: Some("pi/1".into()),
            started_unix_us: 1_796_054_400_000_001,
            model: Some("small-coder".into()),
            request_bytes: 10,
            sent_us: 1,
            total_us: 2_500_000,
            ..CallRecord::new("run-1", 1, record)
        }
    }

    fn attribute(span: &Value, key: &str) -> Value {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|a| a["key"] == key).map(|a| a["value"].clone()).unwrap_or_default()
    }

    #[test]
    fn a_call_is_a_client_span_under_the_names_of_the_conventions() {
        let export = export(&[call(Outcome::Ok), call(Outcome::RateLimited)], "0.1.0");
        let spans = &export["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let span = &spans[0];
        assert_eq!((span["name"].as_str(), span["kind"].as_u64()), (Some("chat small-coder"), Some(3)));
        assert_eq!(span["startTimeUnixNano"], "1796054400000001000");
        assert_eq!(span["endTimeUnixNano"], "1796054402500001000");
        assert_eq!(attribute(span, "gen_ai.usage.input_tokens"), json!({ "intValue": "100" }));
        assert_eq!(attribute(span, "gen_ai.usage.cache_read.input_tokens"), json!({ "intValue": "64" }));
        assert_eq!(attribute(span, "gen_ai.conversation.id"), json!({ "stringValue": "run-1" }));
        assert_eq!(attribute(span, "error.type"), Value::Null);
        assert_eq!((span["traceId"].as_str().unwrap().len(), span["spanId"].as_str().unwrap().len()), (32, 16));
        // What was not reported has no attribute: it is not 0.
        assert_eq!(attribute(span, "gen_ai.usage.reasoning.output_tokens"), Value::Null);
        assert_eq!(attribute(&spans[1], "error.type"), json!({ "stringValue": "rate_limited" }));
        assert_eq!(spans[1]["status"]["code"], 2);
        assert_eq!(spans[1]["traceId"], span["traceId"], "calls of one session share a trace");
    }
}
