"use strict";
// The numbers are those of `memwall step`: the forms were written down while its own formulas ran.
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

function slowest(limits) {
  let [limit, time] = limits[0];
  for (const [name, each] of limits) if (each > time) [limit, time] = [name, each];
  return { limited_by: limit, regime: REPORT.regimes[limit], bound_time_s: time };
}

function at(gpu, phase, batch, context) {
  const forms = FORMS[gpu] && FORMS[gpu][phase];
  const region = forms && forms.regions.find((each) => each.when(batch, context));
  if (!region) return null;
  const made = region.at(batch, context);
  const kernels = made.kernels.map((k) => ({ ...k, ...slowest(k.limits), arithmetic_intensity: k.traffic_bytes ? k.flops / k.traffic_bytes : null }));
  const whole = slowest(made.limits);
  const user = made.each_tokens / whole.bound_time_s;
  const needed = forms.weight_bytes + made.cache_bytes;
  return {
    ...whole, kernels, flops: made.flops, traffic_bytes: Math.round(made.traffic_bytes),
    arithmetic_intensity: made.flops / made.traffic_bytes,
    kernels_bound_time_s: kernels.reduce((sum, k) => sum + k.repeats * k.bound_time_s, 0),
    tokens_per_s: made.batch * user, tokens_per_s_per_user: user,
    resident_weight_bytes: forms.weight_bytes, resident_cache_bytes: made.cache_bytes,
    capacity_bytes: forms.capacity_bytes,
    fits: forms.capacity_bytes === null ? null : needed <= forms.capacity_bytes,
  };
}

const state = { ...REPORT.asked, sort: "time", down: true, filter: "" };
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

function words(now) {
  const gpu = REPORT.gpus.find((each) => each.name === state.gpu);
  const many = state.batch === 1 ? "one sequence" : `${state.batch} sequences`;
  const what = state.phase === "decode"
    ? `One step of decoding for ${many} of ${state.context} tokens`
    : `Reading the prompts of ${many}, ${state.context} tokens each,`;
  const why = now.regime === "memory-bound"
    ? `It is memory-bound: ${scaled(now.traffic_bytes, "B")} have to cross the memory, whatever the arithmetic.`
    : `It is compute-bound: ${scaled(now.flops, "FLOP")} keep the ${now.limited_by} unit busy for longer than memory needs.`;
  return `${what} takes at least ${seconds(now.bound_time_s)} on one ${gpu.title}: at most ${significant(now.tokens_per_s)} tokens a second. ${why}`;
}

function memory(now) {
  const total = now.resident_weight_bytes + now.resident_cache_bytes;
  const scale = Math.max(total, now.capacity_bytes || 0) || 1;
  $("bar-weights").style.width = `${100 * now.resident_weight_bytes / scale}%`;
  $("bar-cache").style.width = `${100 * now.resident_cache_bytes / scale}%`;
  $("bar-limit").style.left = `calc(${100 * (now.capacity_bytes || 0) / scale}% - 3px)`;
  const over = now.fits === false;
  $("bar-text").textContent = now.capacity_bytes === null
    ? `${scaled(total, "B")}; this GPU's memory is not in its file`
    : `${scaled(total, "B")} of ${scaled(now.capacity_bytes, "B")}${over ? `: ${scaled(total - now.capacity_bytes, "B")} too much for one GPU` : ""}`;
  $("bar-text").className = over ? "warn" : "";
  $("bar").setAttribute("aria-label", $("bar-text").textContent);
}

const COLUMNS = {
  name: (k) => k.name, kind: (k) => k.kind, repeats: (k) => k.repeats, flops: (k) => k.flops,
  bytes: (k) => k.traffic_bytes, intensity: (k) => k.arithmetic_intensity ?? -1, limit: (k) => k.limited_by,
  each: (k) => k.bound_time_s, time: (k) => k.repeats * k.bound_time_s,
};

function table(now) {
  const wanted = state.filter.toLowerCase();
  const rows = now.kernels.filter((k) => `${k.name} ${k.kind} ${k.limited_by} ${k.regime}`.toLowerCase().includes(wanted));
  const by = COLUMNS[state.sort];
  rows.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0) * (state.down ? -1 : 1));
  const body = $("kernels");
  body.replaceChildren(...rows.map((k) => {
    const row = document.createElement("tr");
    const share = k.repeats * k.bound_time_s / now.kernels_bound_time_s;
    row.dataset.kernel = k.name;
    row.dataset.value = String(k.bound_time_s);
    const texts = [k.name, k.kind, String(k.repeats), scaled(k.flops, "FLOP"), scaled(k.traffic_bytes, "B"),
      k.arithmetic_intensity === null ? "-" : significant(k.arithmetic_intensity), k.limited_by, seconds(k.bound_time_s)];
    texts.forEach((text, place) => {
      const cell = row.insertCell();
      cell.textContent = text;
      if (place === 6) cell.className = "word";
    });
    const last = row.insertCell();
    const bar = document.createElement("span");
    bar.className = "share";
    bar.style.width = `${(2.5 * share).toFixed(2)}rem`;
    last.append(bar, `${seconds(k.repeats * k.bound_time_s)}  ${share >= 0.001 ? significant(100 * share, 3) : "0"} %`);
    return row;
  }));
  $("count").textContent = `${rows.length} of ${now.kernels.length} kernels`;
  for (const head of document.querySelectorAll("th[data-sort]"))
    head.setAttribute("aria-sort", head.dataset.sort === state.sort ? (state.down ? "descending" : "ascending") : "none");
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
    const boxes = [];
    for (const k of [...ranked].reverse()) {
      const x = place(k.arithmetic_intensity, frame.x, frame.left, frame.right);
      const y = place(k.flops / k.bound_time_s, frame.y, frame.bottom, frame.top);
      const dot = document.createElementNS(SVG, "circle");
      const said = `${k.name}: ${significant(k.arithmetic_intensity)} FLOP/B, ${scaled(k.flops / k.bound_time_s, "FLOP/s")}, ${k.repeats} x ${seconds(k.bound_time_s)}, ${k.regime}`;
      Object.entries({ class: "op", cx: x.toFixed(1), cy: y.toFixed(1), r: 5.5, tabindex: 0, role: "img", "aria-label": said }).forEach(([key, value]) => dot.setAttribute(key, value));
      for (const event of ["mouseenter", "focus"]) dot.addEventListener(event, () => tip(said, dot));
      for (const event of ["mouseleave", "blur"]) dot.addEventListener(event, () => tip("", dot));
      svg.append(dot);
    }
    for (const k of ranked.slice(0, frame.right - frame.left < 400 ? 2 : 6)) {
      const x = place(k.arithmetic_intensity, frame.x, frame.left, frame.right);
      const y = place(k.flops / k.bound_time_s, frame.y, frame.bottom, frame.top);
      label(svg, frame, boxes, k.name, x, y);
    }
  }
}
function place(value, [low, high], from, to) {
  const share = Math.min(1, Math.max(0, Math.log(value / low) / Math.log(high / low)));
  return from + share * (to - from);
}
function label(svg, frame, boxes, text, x, y) {
  const width = text.length * 7.4;
  for (const [dx, dy] of [[10, 17], [10, -9], [10, 32], [-10 - width, -9], [10, 47], [-10 - width, 17]]) {
    const box = [x + dx, y + dy - 12, x + dx + width, y + dy + 3];
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
  const dtype = REPORT.flags;
  const length = state.phase === "decode" ? "--context" : "--seq";
  $("command").textContent = `memwall step --model ${REPORT.model} --gpu ${state.gpu} --phase ${state.phase} --batch ${state.batch} ${length} ${state.context}${dtype}`;
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
    change({ [name]: Math.min(POINTS[name], Math.max(1, value || 1)) });
  });
}
$("filter").addEventListener("input", (event) => { state.filter = event.target.value; show(); });
for (const head of document.querySelectorAll("th[data-sort] button"))
  head.addEventListener("click", () => {
    const sort = head.parentElement.dataset.sort;
    change({ sort, down: state.sort === sort ? !state.down : !["name", "kind", "limit"].includes(sort) });
  });
addEventListener("hashchange", () => { readHash(); show(); });
readHash();
show();
