#!/usr/bin/env python3
"""Scripted model server (stdlib only): scripted_model.py [PORT]; without a port, or with 0, a free one. Prints its address.

Plays a fixed multi-step coding conversation for any harness that speaks
chat completions, responses or anthropic messages, and records every request.

  URL shape: http://127.0.0.1:PORT/<label>/<flavor>/v1/<endpoint>
  flavor: tools | text (aider edit blocks) | mini1 (fenced bash)
  Records: rec/<label>.jsonl ; fault plan: ctl/<label>.json
     {"faults":[{"call":2,"status":429,"headers":{"retry-after":"1"},"times":2}],
      "hang":{"call":3,"secs":20}, "cut":{"call":4}}
"""
import json, os, sys, tempfile, time, threading, re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BASE = os.environ.get("STUB_DIR") or tempfile.mkdtemp()
REC, CTL, RUNS = BASE + "/rec", BASE + "/ctl", BASE + "/runs"
for d in (REC, CTL, RUNS): os.makedirs(d, exist_ok=True)
LOCK = threading.Lock()
STATE = {}

SRC = "ledger/balance.py"
TESTCMD = "python3 -m unittest discover -s tests 2>&1 | tail -30"
OLD1 = "        if e.amount > 0:\n            total += e.amount\n"
NEW1 = "        total += e.amount\n"
OLD2 = "    return sum(1 for e in entries)\n"
NEW2 = "    return sum(1 for e in entries if e.account == account)\n"
OPS = [
    ("run", "ls -R . | grep -v pyc | head -40", "Let me look at the layout first."),
    ("read", "README.md", "Read the notes on the ledger rules."),
    ("read", SRC, "Now the module under suspicion."),
    ("run", TESTCMD, "Run the tests to see the failure."),
    ("read", "tests/test_balance.py", "See what the test expects."),
    ("edit", (SRC, OLD1, NEW1), "Debits are skipped; drop the guard."),
    ("run", TESTCMD, "Check again."),
    ("edit", (SRC, OLD2, NEW2), "The count ignores the account."),
    ("run", TESTCMD, "And once more."),
    ("run", "git diff --stat; git diff | head -60", "Review the change."),
    ("finish", "Both defects in ledger/balance.py are fixed and all tests pass.", "Done."),
    # second user turn
    ("run", "cat ledger/report.py", "Look at the report code."),
    ("run", TESTCMD, "Tests still green?"),
    ("finish", "ledger/report.py prints one line per account, sorted by name; tests stay green.", "Answer."),
    # third user turn
    ("run", "wc -l ledger/*.py", "Count lines."),
    ("finish", "There are about forty lines of code in three files.", "Answer."),
]
# text-edit flavour (aider): first answer fixes one of two bugs, second the other
TEXT = [
    "I will drop the guard so that debits count.\n\n" + SRC + "\n```python\n<<<<<<< SEARCH\n" + OLD1 + "=======\n" + NEW1 + ">>>>>>> REPLACE\n```\n",
    "The count must respect the account.\n\n" + SRC + "\n```python\n<<<<<<< SEARCH\n" + OLD2 + "=======\n" + NEW2 + ">>>>>>> REPLACE\n```\n",
    "Everything is green; nothing further to change.",
    "ledger/report.py prints one line per account.",
    "Nothing to add.",
]

def st(label):
    with LOCK:
        return STATE.setdefault(label, {"n": 0, "i": 0, "prev": "", "hits": {}})

def plan(label):
    try: return json.load(open(f"{CTL}/{label}.json"))
    except Exception: return {}

def tool_table(body, api):
    out = {}
    for t in body.get("tools") or []:
        if api == "chat" and "function" in t: out[t["function"]["name"]] = (t["function"].get("parameters") or {}, "function")
        elif api == "messages": out[t["name"]] = (t.get("input_schema") or {}, "function")
        elif api == "responses":
            if t.get("type") == "function": out[t["name"]] = (t.get("parameters") or {}, "function")
            elif t.get("type") == "custom": out[t["name"]] = ({}, "custom")
            elif t.get("type") == "namespace":
                for s in t.get("tools", []): out[s["name"]] = (s.get("parameters") or {}, "function")
            else: out[t.get("name") or t.get("type")] = ({}, t.get("type"))
    return out

def fill(schema, given):
    props = schema.get("properties") or {}
    for r in schema.get("required") or []:
        if r in given: continue
        p = props.get(r, {}); ty = p.get("type")
        if isinstance(ty, list): ty = ty[0]
        given[r] = {"boolean": False, "integer": 0, "number": 0, "array": [], "object": {}}.get(ty, "step")
        if "enum" in p: given[r] = p["enum"][0]
    return given

def pick(tools, names):
    for n in names:
        if n in tools: return n
    return None

def as_call(op, arg, tools, repo):
    """abstract op -> (tool name, args|str, kind)"""
    if op == "read":
        n = pick(tools, ["read", "read_file", "view", "Read", "read_files"])
        if n:
            pr = tools[n][0].get("properties") or {}
            path = os.path.join(repo, arg)
            for k in ("filePath", "absolute_path", "file_path", "path"):
                if k in pr: return n, fill(tools[n][0], {k: path}), "function"
            for k in ("files", "paths", "file_paths"):
                if k in pr:
                    it = (pr[k].get("items") or {})
                    v = [{"path": path}] if it.get("type") == "object" or "properties" in it or "anyOf" in it else [path]
                    return n, fill(tools[n][0], {k: v}), "function"
        op, arg = "run", "cat " + arg
    if op == "edit":
        path, old, new = arg
        n = pick(tools, ["edit", "replace", "edit_file", "Edit", "str_replace_editor", "editor", "str_replace_based_edit_tool"])
        if n:
            pr = tools[n][0].get("properties") or {}
            g = {}
            for k in ("filePath", "file_path", "absolute_path", "path"):
                if k in pr: g[k] = os.path.join(repo, path); break
            if "edits" in pr and "oldText" not in pr and "old_string" not in pr:
                ip = ((pr["edits"].get("items") or {}).get("properties") or {})
                ko = "oldText" if "oldText" in ip else "old_string"; kn = "newText" if "newText" in ip else "new_string"
                g["edits"] = [{ko: old, kn: new}]
                return n, fill(tools[n][0], g), "function"
            for a, b in (("oldString", "newString"), ("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("old_text", "new_text")):
                if a in pr:
                    g[a], g[b] = old, new
                    if "command" in pr: g["command"] = "str_replace"
                    return n, fill(tools[n][0], g), "function"
        if "apply_patch" in tools:
            pt = "*** Begin Patch\n*** Update File: " + path + "\n@@\n" + "".join("-" + l + "\n" for l in old.rstrip("\n").split("\n")) + "".join("+" + l + "\n" for l in new.rstrip("\n").split("\n")) + "*** End Patch"
            if tools["apply_patch"][1] == "custom": return "apply_patch", pt, "custom"
            pr = tools["apply_patch"][0].get("properties") or {}
            k = next(iter(pr), "input")
            return "apply_patch", {k: pt}, "function"
        code = f"p='{path}';s=open(p).read();o={old!r};assert o in s;open(p,'w').write(s.replace(o,{new!r}))"
        import shlex
        op, arg = "run", "python3 -c " + shlex.quote(code)
    n = pick(tools, ["bash", "exec_command", "shell_command", "shell", "run_shell_command", "execute_command", "run_commands", "Bash", "terminal", "execute_bash", "local_shell"])
    if not n:
        if "exec" in tools and tools["exec"][1] == "custom":
            js = "const r = await tools.exec_command({cmd: " + json.dumps(arg) + "});\ntext(r.output ?? JSON.stringify(r));"
            return "exec", js, "custom"
        return None
    pr = tools[n][0].get("properties") or {}
    if n == "shell" and (pr.get("command") or {}).get("type") == "array": g = {"command": ["bash", "-lc", arg]}
    elif "cmd" in pr: g = {"cmd": arg}
    elif "commands" in pr: g = {"commands": [arg]}
    else: g = {"command": arg}
    if "description" in pr: g["description"] = "Runs a check step"
    if "is_background" in pr: g["is_background"] = False
    return n, fill(tools[n][0], g), "function"

def canon(body):
    parts = [json.dumps(body.get("tools") or [], ensure_ascii=False)]
    parts.append(json.dumps(body.get("instructions") or body.get("system") or "", ensure_ascii=False))
    for m in body.get("messages") or body.get("input") or []:
        parts.append(json.dumps(m, ensure_ascii=False) if not isinstance(m, str) else m)
    return "\n".join(parts)

def lcp(a, b):
    n = min(len(a), len(b)); lo, hi = 0, n
    while lo < hi:
        mid = (lo + hi + 1) // 2
        if a[:mid] == b[:mid]: lo = mid
        else: hi = mid - 1
    return lo

def side_text(body):
    """answer for helper calls (titles, commit messages, summaries, checks)"""
    blob = json.dumps(body)[:200000].lower()
    if "commit message" in blob: return "fix: count debits and filter by account"
    if "next_speaker" in blob: return '{"reasoning":"done","next_speaker":"user"}'
    if "json" in json.dumps(body.get("response_format") or body.get("text") or {}): return '{"title":"Fix ledger balance"}'
    return "Fix ledger balance"

class H(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *a): pass
    def j(self, code, obj, hdrs=None):
        b = json.dumps(obj).encode()
        self.send_response(code)
        for k, v in (hdrs or {}).items(): self.send_header(k, v)
        self.send_header("content-type", "application/json"); self.send_header("content-length", str(len(b)))
        self.end_headers(); self.wfile.write(b)
    def parse(self):
        p = self.path.split("?")[0].strip("/").split("/")
        label = p[0] if p else "x"; flavor = p[1] if len(p) > 1 else "tools"
        return label, flavor, "/".join(p[2:])
    def rec(self, label, obj):
        with LOCK, open(f"{REC}/{label}.jsonl", "a") as f: f.write(json.dumps(obj, ensure_ascii=False) + "\n")
    def do_GET(self):
        label, flavor, ep = self.parse()
        if flavor == "reset":
            with LOCK: STATE.pop(label, None)
            return self.j(200, {})
        self.rec(label, {"t_ms": int(time.time() * 1000), "method": "GET", "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}})
        if ep.endswith("models"):
            return self.j(200, {"object": "list", "data": [{"id": "peak-test", "object": "model", "created": 1, "owned_by": "local", "max_model_len": 131072}], "models": []})
        self.j(404, {"error": {"message": "no such path", "type": "invalid_request_error"}})
    def do_POST(self):
        n = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(n)
        enc = (self.headers.get("content-encoding") or "").lower()
        try:
            if enc == "gzip":
                import gzip; raw = gzip.decompress(raw)
            body = json.loads(raw)
        except Exception as e:
            body = {"_raw": raw[:2000].decode("latin1"), "_enc": enc}
        label, flavor, ep = self.parse()
        s = st(label); pl = plan(label)
        api = "chat" if ep.endswith("chat/completions") else "responses" if ep.endswith("responses") else "messages" if ep.endswith("messages") else "other"
        with LOCK:
            s["n"] += 1; seq = s["n"]
        tools = tool_table(body, api) if isinstance(body, dict) else {}
        blob1 = json.dumps(body)[:60000]
        helper = (flavor == "tools" and not tools) or (flavor != "tools" and ("Git commit messages" in blob1 or "commit message" in blob1 or "summarize" in blob1.lower()[:4000] and "chat" in blob1[:4000] and flavor == "text" and "SEARCH" not in blob1))
        entry = {"t_ms": int(time.time() * 1000), "seq": seq, "api": api, "path": self.path, "helper": helper,
                 "headers": {k.lower(): ("<redacted>" if k.lower() in ("authorization", "x-api-key") else v) for k, v in self.headers.items()}, "body": body}
        if api == "other":
            entry["status"] = 404; self.rec(label, entry)
            return self.j(404, {"error": {"message": "unknown endpoint", "type": "invalid_request_error"}})
        step = s["i"]
        # faults, keyed by script step so that retries meet them again
        if not helper:
            for f in pl.get("faults", []):
                if f["call"] == step:
                    h = s["hits"].get("f%d" % step, 0)
                    if h < f.get("times", 1):
                        s["hits"]["f%d" % step] = h + 1
                        entry["status"] = f["status"]; self.rec(label, entry)
                        if f.get("delay"): time.sleep(f["delay"])
                        if f["status"] == 0:
                            self.close_connection = True
                            try: self.connection.shutdown(2)
                            except Exception: pass
                            return
                        return self.j(f["status"], {"error": {"message": "scripted fault", "type": "rate_limit_error" if f["status"] == 429 else "server_error", "code": "scripted"}}, f.get("headers"))
        c = canon(body)
        pre = lcp(s["prev"], c); 
        if not helper: s["prev"] = c
        usage = (max(1, len(c) // 4), pre // 4)
        # choose the reply
        text, call, think = None, None, None
        if helper: text = side_text(body)
        elif flavor == "text":
            text = TEXT[min(s["i"], len(TEXT) - 1)]; s["i"] += 1
        else:
            o = pl.get("order"); k = (o[min(s["i"], len(o) - 1)] if o else min(s["i"], len(OPS) - 1)); op, arg, think = OPS[k]; s["i"] += 1
            repo = f"{RUNS}/{label}/repo"
            if flavor == "mini1":
                if op == "finish": cmd = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git add -A && git diff --cached"
                else:
                    fake = {"bash": ({"properties": {"command": {}}}, "function")}
                    cmd = as_call(op, arg, fake, repo)[1]["command"]
                text = f"THOUGHT: {think}\n\n```bash\n{cmd}\n```"
            elif op == "finish":
                if pl.get("finish_cmd"):
                    call = as_call("run", pl["finish_cmd"], tools, repo)
                else:
                    fin = pick(tools, ["attempt_completion", "submit_and_exit", "finish", "submit"])
                    if fin and pl.get("finish_tool", True):
                        pr = tools[fin][0].get("properties") or {}
                        k = next((x for x in ("result", "message", "summary") if x in pr), None)
                        call = (fin, fill(tools[fin][0], {k: arg} if k else {}), "function")
                    else: text = arg
            else: call = as_call(op, arg, tools, repo)
            if call is None and text is None: text = "no usable tool: " + ",".join(tools)
        entry["status"] = 200; entry["step"] = step
        entry["reply"] = {"text": text, "call": call, "usage": usage}
        self.rec(label, entry)
        if pl.get("hang") and pl["hang"]["call"] == step and not s["hits"].get("h"):
            s["hits"]["h"] = 1; s["i"] = step; time.sleep(pl["hang"]["secs"])
        if pl.get("delay"): time.sleep(pl["delay"])
        stream = bool(body.get("stream"))
        cid = f"call_{label.replace('-', '')[:12]}_{step:03d}"
        cut = pl.get("cut") and pl["cut"]["call"] == step and not s["hits"].get("c")
        if cut: s["hits"]["c"] = 1; s["i"] = step
        try: getattr(self, "api_" + api)(body, stream, text, call, think, usage, cid, seq, cut)
        except (BrokenPipeError, ConnectionResetError): pass
    # --- wire formats
    def open_sse(self):
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.send_header("transfer-encoding", "chunked"); self.end_headers()
    def ev(self, obj, name=None):
        s = (f"event: {name}\n" if name else "") + "data: " + (obj if isinstance(obj, str) else json.dumps(obj)) + "\n\n"
        b = s.encode(); self.wfile.write(b"%x\r\n" % len(b) + b + b"\r\n"); self.wfile.flush()
    def end(self): self.wfile.write(b"0\r\n\r\n"); self.wfile.flush()
    def kill(self):
        self.close_connection = True
        try: self.connection.shutdown(2)
        except Exception: pass
    def api_chat(self, body, stream, text, call, think, usage, cid, seq, cut):
        base = {"id": f"chatcmpl-{seq}", "created": 1700000000 + seq, "model": body.get("model")}
        pt, ct = usage; out = 40
        us = {"prompt_tokens": pt, "completion_tokens": out, "total_tokens": pt + out, "prompt_tokens_details": {"cached_tokens": ct}}
        fr = "tool_calls" if call else "stop"
        msg = {"role": "assistant", "content": text or (think if call else "")}
        if think and os.environ.get("STUB_REASON", "1") == "1": msg["reasoning_content"] = "Thinking: " + think
        if call: msg["tool_calls"] = [{"id": cid, "type": "function", "function": {"name": call[0], "arguments": json.dumps(call[1])}}]
        if not stream:
            return self.j(200, {**base, "object": "chat.completion", "choices": [{"index": 0, "message": msg, "finish_reason": fr}], "usage": us})
        self.open_sse()
        def ch(delta, f=None, **k): self.ev({**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": f}], **k})
        ch({"role": "assistant", "content": ""})
        if "reasoning_content" in msg: ch({"reasoning_content": msg["reasoning_content"]})
        if msg["content"]:
            h = len(msg["content"]) // 2
            ch({"content": msg["content"][:h]})
            if cut: return self.kill()
            ch({"content": msg["content"][h:]})
        if call:
            a = msg["tool_calls"][0]["function"]["arguments"]
            ch({"tool_calls": [{"index": 0, "id": cid, "type": "function", "function": {"name": call[0], "arguments": ""}}]})
            ch({"tool_calls": [{"index": 0, "function": {"arguments": a}}]})
        ch({}, fr)
        if (body.get("stream_options") or {}).get("include_usage"):
            self.ev({**base, "object": "chat.completion.chunk", "choices": [], "usage": us})
        self.ev("[DONE]"); self.end()
    def api_responses(self, body, stream, text, call, think, usage, cid, seq, cut):
        pt, ct = usage; out = 40
        items = []
        if think and os.environ.get("STUB_REASON", "1") == "1": items.append({"type": "reasoning", "id": f"rs_{seq}", "summary": [{"type": "summary_text", "text": "Thinking: " + think}], "encrypted_content": f"enc-{seq}"})
        if text or (think and not call): items.append({"type": "message", "id": f"msg_{seq}", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text or think, "annotations": []}]})
        if call:
            if call[2] == "custom": items.append({"type": "custom_tool_call", "id": f"ctc_{seq}", "call_id": cid, "name": call[0], "input": call[1], "status": "completed"})
            else: items.append({"type": "function_call", "id": f"fc_{seq}", "call_id": cid, "name": call[0], "arguments": json.dumps(call[1]), "status": "completed"})
        r = {"id": f"resp_{seq}", "object": "response", "created_at": 1700000000 + seq, "model": body.get("model"), "status": "completed", "output": items, "parallel_tool_calls": False, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
             "usage": {"input_tokens": pt, "input_tokens_details": {"cached_tokens": ct}, "output_tokens": out, "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": pt + out}}
        if not stream: return self.j(200, r)
        self.open_sse(); q = [0]
        def ev(t, **k):
            self.ev({"type": t, "sequence_number": q[0], **k}, t); q[0] += 1
        ev("response.created", response={**r, "status": "in_progress", "output": [], "usage": None})
        for i, it in enumerate(items):
            ev("response.output_item.added", output_index=i, item={**it, **({"content": []} if it["type"] == "message" else {})})
            if it["type"] == "message":
                ev("response.content_part.added", item_id=it["id"], output_index=i, content_index=0, part={"type": "output_text", "text": "", "annotations": []})
                ev("response.output_text.delta", item_id=it["id"], output_index=i, content_index=0, delta=it["content"][0]["text"])
                if cut: return self.kill()
                ev("response.output_text.done", item_id=it["id"], output_index=i, content_index=0, text=it["content"][0]["text"])
                ev("response.content_part.done", item_id=it["id"], output_index=i, content_index=0, part=it["content"][0])
            if it["type"] == "function_call":
                if cut: return self.kill()
                ev("response.function_call_arguments.delta", item_id=it["id"], output_index=i, delta=it["arguments"])
                ev("response.function_call_arguments.done", item_id=it["id"], output_index=i, arguments=it["arguments"])
            ev("response.output_item.done", output_index=i, item=it)
        ev("response.completed", response=r); self.end()
    def api_messages(self, body, stream, text, call, think, usage, cid, seq, cut):
        pt, ct = usage; out = 40
        content = []
        if text or think: content.append({"type": "text", "text": text or think})
        if call: content.append({"type": "tool_use", "id": "toolu_" + cid, "name": call[0], "input": call[1]})
        us = {"input_tokens": pt - ct, "cache_read_input_tokens": ct, "cache_creation_input_tokens": 0, "output_tokens": out}
        m = {"id": f"msg_{seq}", "type": "message", "role": "assistant", "model": body.get("model"), "content": content, "stop_reason": "tool_use" if call else "end_turn", "stop_sequence": None, "usage": us}
        if not stream: return self.j(200, m)
        self.open_sse()
        self.ev({"type": "message_start", "message": {**m, "content": [], "stop_reason": None}}, "message_start")
        for i, b in enumerate(content):
            if b["type"] == "text":
                self.ev({"type": "content_block_start", "index": i, "content_block": {"type": "text", "text": ""}}, "content_block_start")
                self.ev({"type": "content_block_delta", "index": i, "delta": {"type": "text_delta", "text": b["text"]}}, "content_block_delta")
                if cut: return self.kill()
            else:
                self.ev({"type": "content_block_start", "index": i, "content_block": {**b, "input": {}}}, "content_block_start")
                self.ev({"type": "content_block_delta", "index": i, "delta": {"type": "input_json_delta", "partial_json": json.dumps(b["input"])}}, "content_block_delta")
            self.ev({"type": "content_block_stop", "index": i}, "content_block_stop")
        self.ev({"type": "message_delta", "delta": {"stop_reason": m["stop_reason"], "stop_sequence": None}, "usage": us}, "message_delta")
        self.ev({"type": "message_stop"}, "message_stop"); self.end()

if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    srv = ThreadingHTTPServer(("127.0.0.1", port), H); srv.daemon_threads = True
    print(f"http://127.0.0.1:{srv.server_address[1]}", flush=True); srv.serve_forever()
