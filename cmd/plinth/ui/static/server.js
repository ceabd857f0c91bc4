// The server: what its metrics count, every 2 seconds, as rates; and its condition, every 5.
"use strict";
(() => {
  const { $, $$, get, toast, chart } = plinth;
  const every = 2000, keep = 15 * 60, box = $("#charts"), none = "–";
  const bytes = (n) => { let i = 0; for (; n >= 1024 && i < 4; i++) n /= 1024; return `${n.toFixed(i && n < 100 ? (n < 10 ? 2 : 1) : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][i]}`; };
  const seconds = (s) => (s < 1 ? `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(1)} s`);
  const rate = (n) => `${chart.short(n)} /s`;

  // A plot is a chart with the values of the last minutes: a list for each of its lines.
  function plot(id, o) {
    const values = o.lines.map(() => []), times = [];
    const draw = chart.make($("#" + id), { ...o, range: () => { const now = Date.now() / 1000; return [Math.min(now - 120, times[0] ?? now), now]; } }, [times, ...values]);
    const tell = chart.legend($(`#${id}-legend`), o.lines);
    return (time, now) => {
      times.push(time);
      now.forEach((value, i) => values[i].push(value));
      while (times[0] < time - keep) { times.shift(); for (const v of values) v.shift(); }
      draw.set([times, ...values]);
      tell(now.map((value) => (value === null ? none : o.tell(value))));
    };
  }

  // percentile estimates within a bucket, as Prometheus does; null if there were no requests.
  function percentile(buckets, part) {
    const all = buckets.at(-1)?.count || 0;
    if (all <= 0) return null;
    const i = buckets.findIndex((b) => b.count >= part * all), below = i ? buckets[i - 1] : { most: 0, count: 0 };
    return buckets[i].most ? below.most + (buckets[i].most - below.most) * (part * all - below.count) / (buckets[i].count - below.count) : below.most;
  }

  const kinds = ["get", "list", "watch", "create", "change", "delete"];
  const last = new Map(); // by process: behind one address there may be several servers
  let plots = null, first = null, failed = false;

  function start() {
    plots = {
      rate: plot("rate", { lines: kinds.map((label, i) => ({ label, colour: i + 1 })), write: chart.short, tell: rate, least: 1 }),
      took: plot("took", { lines: [{ label: "half are faster than", colour: 2 }, { label: "99 of 100 are faster than", colour: 1 }], write: seconds, tell: seconds, least: 0.005 }),
      refused: plot("refused", { lines: [{ label: "refused (4xx)", colour: 5 }, { label: "too many (429)", colour: 4 }, { label: "failed (5xx)", colour: 6 }], write: chart.short, tell: rate, least: 1 }),
      grown: plot("grown", { lines: [{ label: "database", colour: 3 }], write: bytes, tell: bytes, near: true, least: 65536, steps: Array.from({ length: 40 }, (_, i) => 2 ** (i + 10)) }),
    };
  }

  function take(f) {
    const before = last.get(f.process), time = f.time / 1000;
    last.set(f.process, f);
    first ??= f;
    plots.grown(time, [f.bytes ?? null]);
    if (f.bytes !== undefined) $("#grown-legend").append(growth(f));
    if (!before || f.time <= before.time) return;
    const span = (f.time - before.time) / 1000, per = (now, then) => ((now || 0) - (then || 0)) / span;
    plots.rate(time, kinds.map((k) => per(f.requests[k], before.requests[k])));
    plots.refused(time, ["4xx", "429", "5xx"].map((k) => per(f.refused[k], before.refused[k])));
    const buckets = f.buckets.map((b, i) => ({ most: b.most, count: b.count - (before.buckets[i]?.count || 0) }));
    plots.took(time, [percentile(buckets, 0.5), percentile(buckets, 0.99)]);
  }

  function growth(f) {
    const sign = (n, write) => (n < 0 ? "−" : "+") + write(Math.abs(n));
    const old = $("#grown-legend .since");
    const node = old || plinth.el("li", { class: "since meta" });
    node.textContent = first.bytes === undefined ? "" : `${sign(f.bytes - first.bytes, bytes)}, ${sign(f.rows - first.rows, chart.spaced)} rows, ${chart.spaced(f.changes - first.changes)} revisions in ${plinth.ago(first.time).replace(" ago", "").replace("now", "0s")}`;
    return node;
  }

  async function look() {
    if (!document.hidden) {
      try {
        take(await get(box.dataset.figures));
        if (failed) { failed = false; toast("The server is back."); }
      } catch (e) {
        if (!failed) toast(e.message || "The server is away. This page goes on when it is back.");
        failed = true;
      }
    }
    setTimeout(look, every);
  }
  if (box) { start(); look(); }

  // The other parts are those of the same page, asked for again; what has the focus, is open or selected stays.
  setInterval(async () => {
    const parts = $$("[data-again]");
    if (document.hidden || !parts.length || !getSelection().isCollapsed) return;
    try {
      const answer = await fetch(location.href, { headers: { "X-Part": "1", Accept: "text/html" } });
      const page = answer.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of page ? parts : []) {
        const next = page.getElementById(part.id);
        if (next && !part.contains(document.activeElement) && !$("details[open]", part)) part.replaceWith(document.adoptNode(next));
      }
    } catch { /* look tells */ }
  }, 5000);
})();
