// A row of the table, of a kernel or of an exchange between GPUs.
function rowsOf(now) {
  const exchanges = now.exchanges.map((each) => ({
    ...each, exchange: true, detail: "", kind: `${each.op}, ${each.gpus} GPUs`, flops: 0, traffic_bytes: each.bytes,
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

// Every word of the filter has to be somewhere in the row; commas part words as blanks do.
function matches(k) {
  const said = `${k.name} ${k.detail} ${k.kind} ${k.limited_by} ${k.regime}`.toLowerCase();
  return state.filter.toLowerCase().split(/[\s,]+/).every((word) => said.includes(word));
}
function table(now) {
  const all = rowsOf(now), rows = all.filter(matches);
  const by = COLUMNS[state.sort];
  rows.sort((a, b) => (by(a) < by(b) ? -1 : by(a) > by(b) ? 1 : 0) * (state.down ? -1 : 1));
  $("kernels").replaceChildren(...rows.map((k) => tableRow(k, now)));
  const shown = `${rows.length} of ${all.length} rows`;
  if ($("count").textContent !== shown) $("count").textContent = shown; // what stays is not read out again
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
    each: seconds(k.bound_time_s), repeats: count(k.repeats), limit: k.limited_by,
    bytes: scaled(k.repeats * k.traffic_bytes, "B"), flops: k.flops ? scaled(k.repeats * k.flops, "FLOP") : "-",
    intensity: k.arithmetic_intensity === null ? "-" : significant(k.arithmetic_intensity), kind: k.kind,
  };
  for (const [name, text] of Object.entries(texts)) {
    const cell = row.insertCell();
    cell.textContent = text;
    if (WORDS.includes(name)) cell.className = "word";
    if (name === "estimate") cell.className = "estimated";
    if (name === "name") cell.replaceChildren(...breakable(k.name), ...(k.detail ? [spanned("faint", ` ${k.detail}`)] : []));
    if (name !== "share") continue;
    const bar = spanned("share", "");
    bar.style.width = `${(2.5 * share).toFixed(2)}rem`;
    cell.append(bar, percent(share, 3));
  }
  return row;
}
// A name that may be broken after its dots and underscores.
function breakable(name) {
  return name.split(/(?<=[._])/).flatMap((part, place) => (place ? [document.createElement("wbr"), part] : [part]));
}
function spanned(kind, text) {
  const made = document.createElement("span");
  made.className = kind;
  made.textContent = text;
  return made;
}

// The same pass on each GPU of the page, and which is quickest.
function comparison() {
  if (REPORT.gpus.length < 2) return;
  const rows = REPORT.gpus.map((gpu) => [gpu, at(gpu.name, state.phase, state.batch, state.context)]);
  $("compared").replaceChildren(...rows.map(([gpu, now]) => {
    const row = document.createElement("tr");
    row.dataset.compared = gpu.name;
    if (gpu.name === state.gpu) row.className = "shown";
    const head = document.createElement("th");
    Object.assign(head, { scope: "row", className: "word", textContent: gpu.name });
    row.append(head);
    const texts = now === null ? ["-", "-", "-", "-", "-"] : [
      seconds(now.bound_time_s), now.estimate_time_s === null ? "-" : seconds(now.estimate_time_s),
      rate(now.tokens_per_s), now.estimate_tokens_per_s === null ? "-" : rate(now.estimate_tokens_per_s), fitText(now),
    ];
    texts.forEach((text, place) => {
      const cell = row.insertCell();
      cell.textContent = text;
      if (place === 1 || place === 3) cell.className = "estimated";
    });
    return row;
  }));
  $("quickest").textContent = quickest(rows.filter(([, now]) => now !== null));
}
const fitText = (now) => (now.fits === null ? "not known" : now.fits ? "yes" : "no");
function quickest(rows) {
  const room = rows.filter(([, now]) => now.fits !== false);
  if (!room.length) return "It fits on none of them.";
  const known = room.every(([, now]) => now.estimate_time_s !== null);
  const time = ([, now]) => (known ? now.estimate_time_s : now.bound_time_s);
  const [first, second] = [...room].sort((a, b) => time(a) - time(b));
  const among = room.length < rows.length ? "Of those that it fits on, " : "";
  const by = known ? "by the estimate" : "at the bound";
  if (!second) return `It fits on ${first[0].name} alone.`;
  if (time(first) === time(second)) return `${among}${first[0].name} and ${second[0].name} are equally quick ${by}.`;
  return `${among}${first[0].name} is quickest ${by}: ${significant(time(second) / time(first), 3)} times as fast as ${second[0].name}.`;
}
