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
// Thousands apart: 131,072. A rate keeps its digits after the point.
const count = (value) => value.toLocaleString("en-US", { maximumFractionDigits: 0 });
const rate = (value) => (value >= 1000 ? count(value) : significant(value));
const counted = (number, one) => `${count(number)} ${one}${number === 1 ? "" : "s"}`;
// A part of a whole: what is there at all is not nothing.
function percent(share, digits = 2) {
  if (share > 0 && share < 0.001) return "< 0.1 %";
  return `${significant(100 * share, digits)} %`;
}

const state = { ...REPORT.asked, sort: "time", down: true, filter: "" };
const many = REPORT.count > 1;
const staged = REPORT.stages > 1;
const gpuOf = (name) => REPORT.gpus.find((each) => each.name === name);

// How far off such estimates have been.
function errors(now) {
  if (now.error_p50 === null || now.error_p90 === null) return "";
  return `half of such estimates were within ${percent(now.error_p50)} of the measured time, nine in ten within ${percent(now.error_p90)}`;
}

function why(now) {
  const traffic = scaled(now.traffic_bytes, "B");
  const passed = staged ? `a microbatch on its way through all stages moves ${traffic} through the memories of a GPU of each`
    : `${traffic} have to cross ${many ? "each GPU's" : "the"} memory`;
  if (now.regime === "memory-bound") return `It is memory-bound: ${passed}, whatever the arithmetic.`;
  if (now.regime === "link-bound") return "It is link-bound: what passes between the GPUs takes longer than anything in them.";
  const on = staged ? " of a microbatch, on a GPU of each stage in turn," : many ? " on each GPU" : "";
  return `It is compute-bound: ${scaled(now.flops, "FLOP")}${on} keep the ${now.limited_by} unit busy for longer than memory needs.`;
}

function asked() {
  const one = state.batch === 1, tokens = counted(state.context, "token");
  if (state.phase === "decode")
    return `One step of decoding for ${one ? `one sequence of ${tokens}` : `${count(state.batch)} sequences of ${tokens} each`}`;
  return `Reading ${one ? `the prompt of one sequence, ${tokens},` : `the prompts of ${count(state.batch)} sequences, ${tokens} each,`}`;
}

function lacking(now) {
  const over = now.resident_weight_bytes + now.resident_cache_bytes - now.capacity_bytes;
  return `${scaled(over, "B")} more than ${many ? "each GPU has" : "the GPU has"}`;
}

function words(now) {
  const gpu = gpuOf(state.gpu);
  const where = many ? `${REPORT.count} x ${gpu.title} (${REPORT.layout})` : `one ${gpu.title}`;
  const how = `in ${gpu.formats}${gpu.what_ifs ? ` and with the what-if ${gpu.what_ifs}` : ""}`;
  const least = `${asked()} takes at least ${seconds(now.bound_time_s)} on ${where} ${how}: at most ${rate(now.tokens_per_s)} tokens a second.`;
  const error = errors(now);
  const runs = gpu.engine && state.phase === "decode" ? `${gpu.engine}, its kernels${many ? ", exchanges" : ""} and host one after the other, is expected`
    : staged ? `Good kernels and exchanges, ${now.microbatches === 1 ? "1 microbatch" : `${count(now.microbatches)} microbatches`} through stages of which the last has the head besides, are expected`
    : `Good kernels${many ? " and exchanges" : ""}, one after the other, are expected`;
  const expected = now.estimate_time_s === null ? ""
    : ` ${runs} to take ${seconds(now.estimate_time_s)}: ${rate(now.estimate_tokens_per_s)} tokens a second${error && ` (${error})`}.`;
  const room = now.fits === false
    ? ` But it does not fit: weights and cache${many ? " of the fullest GPU" : ""} are ${lacking(now)}, so these are the times of a GPU with more memory.` : "";
  return `${least}${expected} ${why(now)}${room}`;
}

function memory(now) {
  const total = now.resident_weight_bytes + now.resident_cache_bytes;
  const scale = Math.max(total, now.capacity_bytes || 0) || 1;
  $("bar-weights").style.width = `${100 * now.resident_weight_bytes / scale}%`;
  $("bar-cache").style.width = `${100 * now.resident_cache_bytes / scale}%`;
  $("bar-limit").hidden = now.capacity_bytes === null;
  $("bar-limit").style.left = `calc(${100 * (now.capacity_bytes || 0) / scale}% - 3px)`;
  const over = now.fits === false;
  const each = many ? " on the fullest GPU" : "";
  $("bar-text").textContent = now.capacity_bytes === null
    ? `${scaled(total, "B")}${each}; this GPU's memory is not in its file`
    : `${scaled(total, "B")} of ${scaled(now.capacity_bytes, "B")}${each}${over ? `: does not fit, ${lacking(now)}` : ""}`;
  $("bar-text").className = over ? "warn" : "";
  $("bar").setAttribute("aria-label", $("bar-text").textContent);
}

// Remarks that are true of what is shown: those of the command line, the rest of which the page has as it is.
function computedRemarks(now) {
  const made = REPORT.longest[state.phase]
    .filter(([most]) => state.context > most)
    .map(([most, who]) => `${count(state.context)} tokens are more than the ${count(most)} ${who} was made for`);
  const replicas = REPORT.replicas, full = state.batch % replicas, largest = Math.ceil(state.batch / replicas);
  if (full)
    made.push(`a batch of ${state.batch} over ${replicas} replicas: ${full} with ${largest}, ${replicas - full} with ${largest - 1}`);
  if (now.absorbed) made.push("latent attention absorbed: on this device faster than making K and V of the whole cache");
  const { engine } = gpuOf(state.gpu);
  if (engine && state.phase === "decode" && now.estimate_time_s !== null) {
    made.push(`a step of ${engine}: ${seconds(now.engine_time_s)} of its own, for its host, launches and waits`);
    if (staged) made.push("that is counted once for all microbatches: no measured pipeline stands behind it");
  }
  const share = now.activation_bytes / now.traffic_bytes;
  if (now.limited_by === "hbm" && share > 0.01)
    made.push(`activations are ${percent(share, 3)} of the traffic; those that stay in L2 cost less`);
  return made;
}
function remarks(now) {
  const limits = [now.limited_by, ...now.kernels.map((k) => k.limited_by)];
  for (const remark of document.querySelectorAll("li[data-phases]")) {
    const { phases, any, all } = remark.dataset, among = (text) => (limit) => text.split(" ").includes(limit);
    remark.hidden = !phases.split(" ").includes(state.phase) ||
      (any !== undefined && !limits.some(among(any))) || (all !== undefined && !limits.every(among(all)));
  }
  for (const part of document.querySelectorAll("[data-context]")) part.textContent = state.context;
  $("computed").replaceChildren(...computedRemarks(now).map((text) => {
    const remark = document.createElement("li");
    remark.textContent = text;
    return remark;
  }));
}
