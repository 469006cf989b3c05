"use strict";
const SI = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];
const SECONDS = [["s", 1], ["ms", 1e-3], ["us", 1e-6], ["ns", 1e-9]];
const $ = (id) => document.getElementById(id);

function significant(value, digits = 4) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude >= 9 || magnitude < -4) return value.toExponential(digits - 1).replace(/e([+-])(\d)$/, "e$10$2");
  const text = value.toFixed(Math.max(digits - 1 - magnitude, 0));
  return text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}
function scaled(value, unit) {
  for (const [prefix, factor] of SI)
    if (Math.abs(value) >= factor * (1 - 5e-5)) return `${significant(value / factor)} ${prefix}${unit}`;
  return `${significant(value)} ${unit}`;
}
function seconds(value) {
  for (const [unit, factor] of SECONDS)
    if (Math.abs(value) >= factor * 0.99995) return `${significant(value / factor)} ${unit}`;
  return `${significant(value / 1e-9)} ns`;
}

const state = { ...REPORT.asked, sort: "time", down: true, filter: "" };
const many = REPORT.count > 1;
const percent = (share) => `${significant(100 * share, 2)} %`;
const POINTS = { batch: REPORT.most[0], context: REPORT.most[1] };
const FINE = 8; // places of a slider for each doubling
const toPlace = (value) => Math.round(Math.log2(value) * FINE);
const toValue = (place, most) => Math.min(most, Math.max(1, Math.round(2 ** (place / FINE))));

function readHash() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (REPORT.gpus.some((g) => g.name === given.get("gpu"))) state.gpu = given.get("gpu");
  for (const name of ["batch", "context"]) {
    const value = Number(given.get(name));
    if (Number.isInteger(value) && value >= 1 && value <= POINTS[name]) state[name] = value;
  }
  if (REPORT.phases.includes(given.get("phase"))) state.phase = given.get("phase");
}

function put(key, value, text) {
  for (const cell of document.querySelectorAll(`[data-key="${key}"]`)) {
    cell.dataset.value = value === null ? "" : String(value);
    cell.textContent = text;
  }
}

// What the estimate rests on, and how far off such estimates have been.
function basis(now) {
  if (now.error_p50 === null || now.error_p90 === null) return now.basis;
  return `${now.basis}: half within ${percent(now.error_p50)}, nine in ten within ${percent(now.error_p90)}`;
}

function why(now) {
  if (now.regime === "memory-bound")
    return `It is memory-bound: ${scaled(now.traffic_bytes, "B")} have to cross ${many ? "each GPU's" : "the"} memory, whatever the arithmetic.`;
  if (now.regime === "link-bound") return "It is link-bound: what passes between the GPUs takes longer than anything in them.";
  return `It is compute-bound: ${scaled(now.flops, "FLOP")}${many ? " on each GPU" : ""} keep the ${now.limited_by} unit busy for longer than memory needs.`;
}

function words(now) {
  const gpu = REPORT.gpus.find((each) => each.name === state.gpu);
  const sequences = state.batch === 1 ? "one sequence" : `${state.batch} sequences`;
  const what = state.phase === "decode"
    ? `One step of decoding for ${sequences} of ${state.context} tokens`
    : `Reading the prompt${state.batch === 1 ? "" : "s"} of ${sequences}, ${state.context} tokens${state.batch === 1 ? "" : " each"},`;
  const where = many ? `${REPORT.count} x ${gpu.title} (${REPORT.layout})` : `one ${gpu.title}`;
  const least = `${what} takes at least ${seconds(now.bound_time_s)} on ${where}: at most ${significant(now.tokens_per_s)} tokens a second.`;
  const expected = now.estimate_time_s === null ? ""
    : ` Good kernels${many ? " and exchanges" : ""}, one after the other, are expected to take ${seconds(now.estimate_time_s)}: ${significant(now.estimate_tokens_per_s)} tokens a second (${basis(now)}).`;
  return `${least}${expected} ${why(now)}`;
}

function memory(now) {
  const total = now.resident_weight_bytes + now.resident_cache_bytes;
  const scale = Math.max(total, now.capacity_bytes || 0) || 1;
  $("bar-weights").style.width = `${100 * now.resident_weight_bytes / scale}%`;
  $("bar-cache").style.width = `${100 * now.resident_cache_bytes / scale}%`;
  $("bar-limit").hidden = now.capacity_bytes === null;
  $("bar-limit").style.left = `calc(${100 * (now.capacity_bytes || 0) / scale}% - 3px)`;
  const over = now.fits === false;
  const each = many ? " on each GPU" : "";
  $("bar-text").textContent = now.capacity_bytes === null
    ? `${scaled(total, "B")}${each}; this GPU's memory is not in its file`
    : `${scaled(total, "B")} of ${scaled(now.capacity_bytes, "B")}${each}${over ? `: ${scaled(total - now.capacity_bytes, "B")} too much for one` : ""}`;
  $("bar-text").className = over ? "warn" : "";
  $("bar").setAttribute("aria-label", $("bar-text").textContent);
}

// A row of the table, of a kernel or of an exchange between GPUs.
function rowsOf(now) {
  const exchanges = now.exchanges.map((each) => ({
    ...each, exchange: true, kind: `${each.op}, ${each.gpus} GPUs`, flops: 0, traffic_bytes: each.bytes,
    arithmetic_intensity: null, limited_by: "link", regime: REPORT.regimes.link,
  }));
  return [...now.kernels, ...exchanges];
}
const COLUMNS = {
  name: (k) => k.name, kind: (k) => k.kind, repeats: (k) => k.repeats, flops: (k) => k.repeats * k.flops,
  bytes: (k) => k.repeats * k.traffic_bytes, intensity: (k) => k.arithmetic_intensity ?? -1, limit: (k) => k.limited_by,
  each: (k) => k.bound_time_s, share: (k) => k.repeats * k.bound_time_s, time: (k) => k.repeats * k.bound_time_s, estimate: (k) => k.repeats * (k.estimate_time_s ?? 0),
};
const WORDS = ["name", "kind", "limit"];

function table(now) {
  const wanted = state.filter.toLowerCase();
  const all = rowsOf(now);
  const rows = all.filter((k) => `${k.name} ${k.kind} ${k.limited_by} ${k.regime}`.toLowerCase().includes(wanted));
  const by = COLUMNS[state.sort];
  rows.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0) * (state.down ? -1 : 1));
  $("kernels").replaceChildren(...rows.map((k) => tableRow(k, now)));
  $("count").textContent = `${rows.length} of ${all.length} rows`;
  for (const head of document.querySelectorAll("th[data-sort]"))
    head.setAttribute("aria-sort", head.dataset.sort === state.sort ? (state.down ? "descending" : "ascending") : "none");
}
function tableRow(k, now) {
  const row = document.createElement("tr");
  const share = now.stretch * k.repeats * k.bound_time_s / now.kernels_bound_time_s;
  row.dataset[k.exchange ? "exchange" : "kernel"] = k.name;
  row.dataset.value = String(k.bound_time_s);
  row.dataset.estimate = k.estimate_time_s === null ? "" : String(k.estimate_time_s);
  const texts = {
    name: k.name, time: seconds(k.repeats * k.bound_time_s),
    estimate: k.estimate_time_s === null ? "-" : seconds(k.repeats * k.estimate_time_s), share: "",
    each: seconds(k.bound_time_s), repeats: String(k.repeats), limit: k.limited_by,
    bytes: scaled(k.repeats * k.traffic_bytes, "B"), flops: k.flops ? scaled(k.repeats * k.flops, "FLOP") : "-",
    intensity: k.arithmetic_intensity === null ? "-" : significant(k.arithmetic_intensity), kind: k.kind,
  };
  for (const [name, text] of Object.entries(texts)) {
    const cell = row.insertCell();
    cell.textContent = text;
    if (WORDS.includes(name)) cell.className = "word";
    if (name === "estimate") cell.className = "estimated";
    if (name !== "share") continue;
    const bar = document.createElement("span");
    bar.className = "share";
    bar.style.width = `${(2.5 * share).toFixed(2)}rem`;
    cell.append(bar, `${share >= 0.001 ? significant(100 * share, 3) : "0"} %`);
  }
  return row;
}

const SVG = "http://www.w3.org/2000/svg";
function dots(now) {
  for (const holder of document.querySelectorAll(".roof figure")) {
    const shown = holder.dataset.gpu === state.gpu;
    holder.hidden = !shown;
    if (!shown) continue;
    const svg = holder.querySelector("svg"), frame = JSON.parse(holder.dataset.frame);
    svg.querySelectorAll(".op").forEach((old) => old.remove());
    const ranked = now.kernels.filter((k) => k.flops && k.traffic_bytes).sort((a, b) => b.repeats * b.bound_time_s - a.repeats * a.bound_time_s);
    const boxes = [...frame.taken];
    const shownAt = ranked.map((k) => ({
      k, x: place(k.arithmetic_intensity, frame.x, frame.left, frame.right),
      y: place(k.flops / k.bound_time_s, frame.y, frame.bottom, frame.top),
    }));
    for (const { k, x, y } of [...shownAt].reverse()) {
      const dot = document.createElementNS(SVG, "circle");
      const beside = shownAt.filter((other) => other.k !== k && Math.hypot(other.x - x, other.y - y) < 6);
      const said = [spoken(k), ...beside.map((other) => spoken(other.k))].join("\n"); // dots on each other speak together
      Object.entries({ class: "op", cx: x.toFixed(1), cy: y.toFixed(1), r: 5.5, tabindex: 0, role: "img", "aria-label": said }).forEach(([key, value]) => dot.setAttribute(key, value));
      for (const event of ["mouseenter", "focus"]) dot.addEventListener(event, () => tip(said, dot));
      for (const event of ["mouseleave", "blur"]) dot.addEventListener(event, () => tip("", dot));
      svg.append(dot);
      boxes.push([x - 6, y - 6, x + 6, y + 6]);
    }
    for (const { k, x, y } of shownAt.slice(0, frame.right - frame.left < 400 ? 2 : 6)) label(svg, frame, boxes, k.name, x, y);
  }
}
function spoken(k) {
  return `${k.name}: ${significant(k.arithmetic_intensity)} FLOP/B, ${scaled(k.flops / k.bound_time_s, "FLOP/s")}, ${k.repeats} x ${seconds(k.bound_time_s)}, ${k.regime}`;
}
function place(value, [low, high], from, to) {
  const share = Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));
  return from + share * (to - from);
}
function label(svg, frame, boxes, text, x, y) {
  const width = text.length * 7.2;
  for (const [dx, dy] of [[10, 17], [10, -9], [-10 - width, -9], [10, 32], [-10 - width, 5], [10, 47], [-10 - width, 17], [-10 - width, -24]]) {
    const box = [x + dx, y + dy - 11, x + dx + width, y + dy + 3];
    const free = box[0] > frame.left && box[2] < frame.right && box[3] < frame.bottom && box[1] > frame.top &&
      !boxes.some((b) => b[0] < box[2] && box[0] < b[2] && b[1] < box[3] && box[1] < b[3]);
    if (!free) continue;
    boxes.push(box);
    const made = document.createElementNS(SVG, "text");
    Object.entries({ class: "op", x: box[0].toFixed(1), y: (y + dy).toFixed(1), "aria-hidden": true }).forEach(([key, value]) => made.setAttribute(key, value));
    made.textContent = text;
    svg.append(made);
    return;
  }
}
function tip(text, near) {
  $("tip").textContent = text;
  if (!text) return;
  const box = near.getBoundingClientRect();
  $("tip").style.left = `${Math.min(box.right + 6, innerWidth - 330)}px`;
  $("tip").style.top = `${box.bottom + 6}px`;
}

function show() {
  for (const radio of document.querySelectorAll("form.what input[type=radio]")) radio.checked = state[radio.name] === radio.value;
  for (const name of ["batch", "context"]) {
    $(name).value = toPlace(state[name]);
    $(name).setAttribute("aria-valuetext", String(state[name]));
    $(`${name}-number`).value = state[name];
  }
  $("context-name").textContent = state.phase === "decode" ? "context" : "prompt";
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== state.gpu;
  const now = at(state.gpu, state.phase, state.batch, state.context);
  $("none").hidden = Boolean(now);
  $("answer").hidden = !now;
  if (!now) {
    $("none").textContent = `${state.gpu} has no answer here: ask memwall step`;
    return;
  }
  $("summary").textContent = words(now);
  put("bound_time_s", now.bound_time_s, seconds(now.bound_time_s));
  put("tokens_per_s", now.tokens_per_s, significant(now.tokens_per_s));
  put("tokens_per_s_per_user", now.tokens_per_s_per_user, significant(now.tokens_per_s_per_user));
  put("tokens_per_s_per_gpu", now.tokens_per_s_per_gpu, significant(now.tokens_per_s_per_gpu));
  const estimate = now.estimate_time_s !== null;
  for (const part of document.querySelectorAll(".estimate")) part.hidden = !estimate;
  put("estimate_time_s", now.estimate_time_s, estimate ? seconds(now.estimate_time_s) : "-");
  put("estimate_tokens_per_s", now.estimate_tokens_per_s, estimate ? significant(now.estimate_tokens_per_s) : "-");
  put("basis", now.basis, estimate ? basis(now) : "-");
  const between = now.communication_estimate_time_s;
  put("communication_bound_time_s", now.communication_bound_time_s, seconds(now.communication_bound_time_s));
  put("communication_estimate_time_s", between, between === null ? "not known" : seconds(between));
  put("microbatches", now.microbatches, String(now.microbatches));
  put("bubble", now.bubble, `${significant(100 * now.bubble, 3)} %`);
  put("flops", now.flops, scaled(now.flops, "FLOP"));
  put("traffic_bytes", now.traffic_bytes, scaled(now.traffic_bytes, "B"));
  put("arithmetic_intensity", now.arithmetic_intensity, `${significant(now.arithmetic_intensity)} FLOP/B`);
  put("regime", now.regime, now.regime);
  put("limited_by", now.limited_by, now.limited_by);
  put("kernels_bound_time_s", now.kernels_bound_time_s, seconds(now.kernels_bound_time_s));
  put("resident_weight_bytes", now.resident_weight_bytes, scaled(now.resident_weight_bytes, "B"));
  put("resident_cache_bytes", now.resident_cache_bytes, scaled(now.resident_cache_bytes, "B"));
  put("fits", now.fits, now.fits === null ? "not known" : now.fits ? "yes" : "no");
  $("time-name").textContent = state.phase === "decode" ? "time per token, at least" : "time to first token, at least";
  const length = state.phase === "decode" ? "--context" : "--seq";
  const gpu = REPORT.gpus.find((each) => each.name === state.gpu);
  $("command").textContent = `memwall step --model ${REPORT.model} --gpu ${gpu.typed} --phase ${state.phase} --batch ${state.batch} ${length} ${state.context}${gpu.flags}`;
  memory(now);
  table(now);
  dots(now);
}
function change(fresh) {
  Object.assign(state, fresh);
  history.replaceState(null, "", `#gpu=${state.gpu}&phase=${state.phase}&batch=${state.batch}&context=${state.context}`);
  show();
}

document.querySelector("form.what").addEventListener("submit", (event) => event.preventDefault());
for (const radio of document.querySelectorAll("form.what input[type=radio]"))
  radio.addEventListener("change", () => change({ [radio.name]: radio.value }));
for (const name of ["batch", "context"]) {
  $(name).addEventListener("input", () => change({ [name]: toValue(Number($(name).value), POINTS[name]) }));
  $(`${name}-number`).addEventListener("change", (event) => {
    const value = Math.round(Number(event.target.value));
    change(value >= 1 ? { [name]: Math.min(POINTS[name], value) } : {}); // what is no count leaves the last one
  });
}
$("filter").addEventListener("input", (event) => { state.filter = event.target.value; show(); });
for (const head of document.querySelectorAll("th[data-sort] button"))
  head.addEventListener("click", () => {
    const sort = head.parentElement.dataset.sort;
    change({ sort, down: state.sort === sort ? !state.down : !WORDS.includes(sort) });
  });
addEventListener("hashchange", () => { readHash(); show(); });
readHash();
show();
