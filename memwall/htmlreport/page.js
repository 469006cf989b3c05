const POINTS = { batch: REPORT.most[0], context: REPORT.most[1] };
// A slider's places are counts, each larger than the one before: one press of an arrow always moves.
const toPlace = (name, value) => REPORT.places[name].reduce(
  (best, each, place, all) => (Math.abs(Math.log(each / value)) < Math.abs(Math.log(all[best] / value)) ? place : best), 0);
const toValue = (name, place) => REPORT.places[name][place];

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

function controls() {
  for (const radio of document.querySelectorAll("form.what input[type=radio]")) radio.checked = state[radio.name] === radio.value;
  for (const name of ["batch", "context"]) {
    $(name).value = toPlace(name, state[name]);
    $(name).setAttribute("aria-valuetext", String(state[name]));
    $(`${name}-number`).value = state[name];
  }
  $("context-name").textContent = state.phase === "decode" ? "context" : "prompt";
  for (const part of document.querySelectorAll("[data-of]")) part.hidden = part.dataset.of !== state.gpu;
}

function cards(now) {
  put("bound_time_s", now.bound_time_s, seconds(now.bound_time_s));
  for (const key of ["tokens_per_s", "tokens_per_s_per_user", "tokens_per_s_per_gpu"]) put(key, now[key], rate(now[key]));
  const estimate = now.estimate_time_s !== null;
  for (const part of document.querySelectorAll(".estimate")) part.hidden = !estimate;
  put("estimate_time_s", now.estimate_time_s, estimate ? seconds(now.estimate_time_s) : "-");
  put("estimate_tokens_per_s", now.estimate_tokens_per_s, estimate ? rate(now.estimate_tokens_per_s) : "-");
  put("basis", now.basis, estimate ? now.basis : "-");
  $("errors").textContent = errors(now) && `; ${errors(now)}`;
  const between = now.communication_estimate_time_s;
  put("communication_bound_time_s", now.communication_bound_time_s, seconds(now.communication_bound_time_s));
  put("communication_estimate_time_s", between, between === null ? "not known" : seconds(between));
  put("microbatches", now.microbatches, count(now.microbatches));
  put("bubble", now.bubble, percent(now.bubble, 3));
  put("estimate_bubble", now.estimate_bubble, estimate ? percent(now.estimate_bubble, 3) : "-");
  put("flops", now.flops, scaled(now.flops, "FLOP"));
  put("traffic_bytes", now.traffic_bytes, scaled(now.traffic_bytes, "B"));
  put("arithmetic_intensity", now.arithmetic_intensity, `${significant(now.arithmetic_intensity)} FLOP/B`);
  put("mbu", now.mbu, percent(now.mbu, 3));
  put("mfu", now.mfu, percent(now.mfu, 3));
  put("regime", now.regime, now.regime);
  put("limited_by", now.limited_by, now.limited_by);
  put("kernels_bound_time_s", now.kernels_bound_time_s, seconds(now.kernels_bound_time_s));
  put("resident_weight_bytes", now.resident_weight_bytes, scaled(now.resident_weight_bytes, "B"));
  put("resident_cache_bytes", now.resident_cache_bytes, scaled(now.resident_cache_bytes, "B"));
  put("fits", now.fits, fitText(now));
  $("time-name").textContent = state.phase === "decode" ? "time per token, at least" : "time to first token, at least";
}

// What a screen reader says once the controls rest: the answer alone.
let waiting = 0;
function say(now) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const expected = now.estimate_time_s === null ? "" : `, estimate ${seconds(now.estimate_time_s)}`;
    $("said").textContent = `at least ${seconds(now.bound_time_s)}${expected}${now.fits === false ? ", does not fit" : ""}`;
  }, 600);
}

function show() {
  controls();
  comparison();
  const now = at(state.gpu, state.phase, state.batch, state.context);
  $("none").hidden = Boolean(now);
  $("answer").hidden = !now;
  if (!now) {
    $("none").textContent = `${state.gpu} has no answer here: ask memwall step`;
    return;
  }
  $("summary").textContent = words(now);
  cards(now);
  const length = state.phase === "decode" ? "--context" : "--seq";
  const gpu = gpuOf(state.gpu);
  $("command").textContent = `memwall step --model ${REPORT.model} --gpu ${gpu.typed} --phase ${state.phase} --batch ${state.batch} ${length} ${state.context}${gpu.flags}`;
  memory(now);
  remarks(now);
  table(now);
  dots(now);
  say(now);
}
function change(fresh) {
  Object.assign(state, fresh);
  history.replaceState(null, "", `#gpu=${encodeURIComponent(state.gpu)}&phase=${state.phase}&batch=${state.batch}&context=${state.context}`);
  show();
}

document.querySelector("form.what").addEventListener("submit", (event) => event.preventDefault());
for (const radio of document.querySelectorAll("form.what input[type=radio]"))
  radio.addEventListener("change", () => change({ [radio.name]: radio.value }));
for (const name of ["batch", "context"]) {
  $(name).addEventListener("input", () => change({ [name]: toValue(name, Number($(name).value)) }));
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
