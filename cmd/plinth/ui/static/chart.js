// Charts: uPlot in the colours of the page. Other scripts use plinth.chart.
"use strict";
plinth.chart = (() => {
  const { el } = plinth;
  const probe = document.body.appendChild(el("i", { hidden: "" }));
  const colour = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; }; // as it is in light or dark
  const clock = (s, exact) => new Date(s * 1000).toTimeString().slice(0, exact ? 8 : 5);
  const drawn = new Set();
  addEventListener("theme", () => { for (const u of drawn) u.redraw(true, true); });

  // make draws a chart into a box. Of o: lines have a label and the number of their colour; bars are stacked, the first at
  // the bottom; write writes a value; range is that of the time; least is how much the values differ at least, from 0 or, if they are
  // to be seen from near, from each other;
  // pick gets what was dragged over, and hover the time under the pointer, or null.
  function make(box, o, data) {
    const axis = { stroke: () => colour("soft"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    const series = o.lines.map((l) => ({
      label: l.label, points: { show: false }, stroke: () => colour("c" + l.colour), width: o.bars ? 0 : 2,
      fill: o.bars ? () => colour("c" + l.colour) : null, paths: o.bars ? uPlot.paths.bars({ size: [0.88, 40], align: 1 }) : uPlot.paths.linear(),
    }));
    if (o.bars) series.reverse();
    const u = new uPlot({
      width: box.clientWidth, height: o.height || 170, padding: [8, 6, 0, 0], legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: !!o.pick, y: false, setScale: false } },
      scales: { x: { time: true, range: o.range }, y: { range: (_, low, high) => (o.near ? near(low || 0, high || 0, o.least) : [0, Math.max((high || 0) * 1.08, o.least || 1)]) } },
      axes: [{ ...axis, size: 24, values: (_, all, axis, space, step) => all.map((t) => clock(t, step < 60)) }, { ...axis, size: 62, space: 36, ...(o.steps ? { incrs: o.steps } : {}), values: (_, all) => all.map(o.write) }],
      series: [{}, ...series],
      hooks: {
        setCursor: [(u) => o.hover?.(u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null)],
        setSelect: [(u) => { if (o.pick && u.select.width > 3) o.pick(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); }],
      },
    }, arrange(o, data), box);
    drawn.add(u);
    const watch = new ResizeObserver(() => { if (box.clientWidth) u.setSize({ width: box.clientWidth, height: o.height || 170 }); });
    watch.observe(box);
    return { u, set: (next) => u.setData(arrange(o, next)), end: () => { watch.disconnect(); drawn.delete(u); u.destroy(); } };
  }

  const near = (low, high, least) => { const room = Math.max((high - low) * 0.2, least); return [Math.max(0, low - room), high + room]; };

  // arrange adds up the values of bars that are stacked: the whole bar is drawn first, and then what is less.
  function arrange(o, [times, ...values]) {
    if (!o.bars) return [times, ...values];
    const sum = times.map(() => 0);
    return [times, ...values.map((v) => v.map((x, i) => (sum[i] += x))).reverse()];
  }

  // legend lists lines with a value each, which tell changes.
  function legend(list, lines) {
    const values = lines.map(() => el("b"));
    list.replaceChildren(...lines.map((l, i) => el("li", {}, el("i", { class: "c" + l.colour, "aria-hidden": "true" }),
      l.link ? el("a", { href: l.link }, l.label) : el("span", {}, l.label), " ", values[i])));
    return (texts) => texts.forEach((text, i) => { values[i].textContent = text; });
  }

  const spaced = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
  const short = (n) => (n >= 100 || Number.isInteger(n) ? spaced(n) : n.toFixed(n < 1 ? 2 : 1));
  return { make, legend, clock, spaced, short };
})();
