"use strict";
// The numbers are those of `memwall step`: the forms were written down while its own formulas ran.
// An operation is an input's name, a constant, or a kind with the places of its operands.
const COMPUTE = {
  "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b,
  "//": (a, b) => Math.floor(a / b), "%": (a, b) => ((a % b) + b) % b, "**": (a, b) => Math.pow(a, b),
  "<": (a, b) => a < b, "<=": (a, b) => a <= b, ">": (a, b) => a > b, ">=": (a, b) => a >= b,
  "==": (a, b) => a === b, "!=": (a, b) => a !== b, "|": (a, b) => Boolean(a || b),
  "&": (a, b) => Boolean(a && b),
  abs: Math.abs, ceil: Math.ceil, log2: Math.log2, round: halfToEven,
  min: (a, b) => Math.min(a, b), max: (a, b) => Math.max(a, b), where: (condition, a, b) => (condition ? a : b),
};
function halfToEven(value) {
  const near = Math.round(value);
  return near - value === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

const operandsOf = ([kind, ...rest]) => (kind === "candidate" ? [] : kind === "least" ? rest.slice(0, 1) : rest);
const VARIES = []; // whether a place depends on a candidate
for (const each of OPERATIONS)
  VARIES.push(Array.isArray(each) && (each[0] === "candidate" || (each[0] !== "least" && operandsOf(each).some((place) => VARIES[place]))));

// What computes forms at a point, each operation once.
function evaluator(inputs) {
  const fixed = [];
  function value(place, own, candidate) {
    const each = OPERATIONS[place];
    if (typeof each === "number") return each;
    if (typeof each === "string") return inputs[each];
    const known = VARIES[place] ? own : fixed;
    if (known[place] === undefined) known[place] = made(each, own, candidate);
    return known[place];
  }
  function made([kind, ...rest], own, candidate) {
    if (kind === "candidate") return candidate[rest[0]];
    if (kind === "least") return Math.min(...CANDIDATES[rest[1]].map((each) => value(rest[0], [], each)));
    return COMPUTE[kind](...rest.map((place) => value(place, own, candidate)));
  }
  return (place) => value(place, [], null);
}

// Data with each form replaced by its value.
function resolved(data, of) {
  if (Array.isArray(data)) return data.map((each) => resolved(each, of));
  if (data === null || typeof data !== "object") return data;
  if ("f" in data) return of(data.f);
  return Object.fromEntries(Object.entries(data).map(([key, each]) => [key, resolved(each, of)]));
}

function slowest(limits) {
  let [limit, time] = limits[0];
  for (const [name, each] of limits) if (each > time) [limit, time] = [name, each];
  return { limited_by: limit, regime: REPORT.regimes[limit], bound_time_s: time };
}
const hbmTime = (made) => made.limits.reduce((time, [name, each]) => (name === "hbm" ? each : time), 0);
const busyShare = (made, whole, time) => time / whole.bound_time_s * (1 - made.bubble);
const sum = (rows, key) => rows.reduce((total, each) => total + each.repeats * each[key], 0);
const known = (rows, key) => rows.every((each) => each[key] !== null);

// A pass under the keys of `memwall step --json`; null where it has no answer.
function at(gpu, phase, batch, context) {
  const forms = FORMS[gpu] && FORMS[gpu][phase];
  if (!forms) return null;
  const of = evaluator({ batch, context });
  const region = forms.regions.find((each) => each.guards.every(([place, side]) => Boolean(of(place)) === side));
  if (!region) return null;
  const { guards, kernels: places, ...rest } = region;
  const made = resolved(rest, of);
  const kernels = places.map((place) => {
    const k = resolved(KERNELS[place], of);
    return { ...k, ...slowest(k.limits), arithmetic_intensity: k.traffic_bytes ? k.flops / k.traffic_bytes : null };
  });
  const whole = slowest(made.limits);
  const bound = made.stretch * whole.bound_time_s;
  const linked = sum(made.exchanges, "bound_time_s");
  const needed = forms.weight_bytes + made.cache_bytes;
  const fits = forms.capacity_bytes === null ? null : needed <= forms.capacity_bytes;
  return {
    ...whole, kernels, exchanges: made.exchanges, bound_time_s: bound,
    flops: made.flops, traffic_bytes: halfToEven(made.traffic_bytes),
    arithmetic_intensity: made.flops / made.traffic_bytes,
    kernels_bound_time_s: made.stretch * (sum(kernels, "bound_time_s") + linked),
    tokens_per_s: made.batch * made.each_tokens / bound, tokens_per_s_per_user: made.each_tokens / bound,
    tokens_per_s_per_gpu: made.batch * made.each_tokens / bound / REPORT.count,
    resident_weight_bytes: forms.weight_bytes, resident_cache_bytes: made.cache_bytes,
    capacity_bytes: forms.capacity_bytes, fits, stretch: made.stretch,
    microbatches: made.microbatches, bubble: made.bubble, expected_stretch: made.expected_stretch, communication_bound_time_s: linked,
    mbu: busyShare(made, whole, hbmTime(made)), mfu: busyShare(made, whole, made.matrix_s),
    activation_bytes: made.activation_bytes, absorbed: made.absorbed,
    ...estimated(made, kernels, linked),
  };
}

// Kernels one after the other, what passes between GPUs, and what an engine adds; an error is that of the
// engine's passes, else the kernels' own, weighted by their time.
function estimated(made, kernels, linked) {
  const between = known(made.exchanges, "estimate_time_s") ? sum(made.exchanges, "estimate_time_s") : null;
  const none = { estimate_time_s: null, estimate_bubble: null, estimate_tokens_per_s: null, basis: null, error_p50: null, error_p90: null };
  if (!known(kernels, "estimate_time_s")) return { ...none, communication_estimate_time_s: between };
  const busy = sum(kernels, "estimate_time_s");
  const time = made.expected_stretch * (busy + (between === null ? linked : between)) + made.engine_time_s;
  const waits = 1 - (1 - made.bubble) * made.stretch / made.expected_stretch;
  const error = (key, place) => made.engine_errors ? made.engine_errors[place] : known(kernels, key)
    ? kernels.reduce((total, k) => total + k.repeats * k.estimate_time_s * k[key], 0) / busy : null;
  return {
    engine_time_s: made.engine_time_s, estimate_bubble: waits, estimate_time_s: time, estimate_tokens_per_s: made.batch * made.each_tokens / time, basis: made.basis,
    error_p50: error("error_p50", 0), error_p90: error("error_p90", 1), communication_estimate_time_s: between,
  };
}
