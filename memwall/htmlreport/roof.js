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
  return `${k.name}${k.detail && ` (${k.detail})`}: ${significant(k.arithmetic_intensity)} FLOP/B, ${scaled(k.flops / k.bound_time_s, "FLOP/s")}, ${k.repeats} x ${seconds(k.bound_time_s)}, ${k.regime}`;
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
