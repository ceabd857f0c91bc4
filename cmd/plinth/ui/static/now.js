// What happens: the chart of a day, and the log of changes, live.
"use strict";
(() => {
  const { $, el, here, toast, get, live, keys, chart } = plinth;
  const box = $("#day"), note = $("#day-note"), most = 500;
  let day = null, drawn = null, asked = 0;

  // pick shows the changes of the bars that were dragged over.
  function pick(from, to) {
    const bar = (t, round) => day.start + round((t - day.start) / day.step) * day.step;
    from = bar(from, Math.floor);
    to = bar(to, Math.ceil) - 0.001;
    const u = new URL(box.dataset.now, location.href);
    for (const [name, value] of new URLSearchParams(location.search)) if (!u.searchParams.has(name) && name !== "theme") u.searchParams.set(name, value);
    u.searchParams.set("since", new Date(Math.max(from, day.start) * 1000).toISOString());
    if (to < day.end) u.searchParams.set("until", new Date(to * 1000).toISOString()); else u.searchParams.delete("until");
    location.href = u;
  }

  async function drawDay() {
    asked = Date.now();
    try {
      day = await get(box.dataset.day);
    } catch (e) {
      note.textContent = e.message;
      return;
    }
    const times = day.people[0]?.counts || Array(144).fill(0), end = day.start + times.length * day.step;
    const others = (p) => !p.user && /^\d+ others$/.test(p.name);
    const lines = day.people.map((p, i) => ({ label: p.name, colour: others(p) ? "o" : i + 1, link: p.link }));
    const tell = chart.legend($("#people"), lines);
    const totals = () => { tell(day.people.map((p) => chart.spaced(p.total))); note.textContent = sentence(); };
    drawn?.end();
    drawn = chart.make(box, {
      bars: true, height: 150, lines, write: chart.short, least: 4, range: () => [day.start, end], pick,
      hover: (t) => {
        const i = t === null ? -1 : Math.floor((t - day.start) / day.step);
        if (i < 0 || i >= times.length) return totals();
        tell(day.people.map((p) => chart.spaced(p.counts[i])));
        const from = day.start + i * day.step;
        note.textContent = `${chart.clock(from)} to ${chart.clock(from + day.step)}: ${chart.spaced(day.people.reduce((n, p) => n + p.counts[i], 0))} changes`;
      },
    }, [times.map((_, i) => day.start + i * day.step), ...day.people.map((p) => p.counts)]);
    totals();
    markSpan();
    if ($("#today")) $("#today").textContent = chart.spaced(day.total) + (day.from ? "+" : "");
    box.setAttribute("aria-label", `Changes in each 10 minutes of 24 hours: ${day.people.map((p) => `${p.name} ${p.total}`).join(", ") || "none"}`);
  }

  function sentence() {
    if (!day.total) return "Nothing has changed in these 24 hours.";
    const cut = day.from ? ` Only the newest are counted, since ${new Date(day.from * 1000).toLocaleString("en-GB")}.` : day.kept ? ` ${day.kept[0].toUpperCase()}${day.kept.slice(1)}.` : "";
    return `${chart.spaced(day.total)} changes in these 24 hours.${cut} Drag over the chart to see those of a time.`;
  }

  // markSpan shows which part of the day the list is of.
  function markSpan() {
    const q = new URLSearchParams(location.search), since = Date.parse(q.get("since")) / 1000, until = q.get("until") ? Date.parse(q.get("until")) / 1000 : day.end;
    if (!(since < until)) return;
    const left = Math.max(0, drawn.u.valToPos(since, "x")), right = drawn.u.valToPos(until, "x");
    if (right > 0) drawn.u.setSelect({ left, width: right - left, top: 0, height: drawn.u.over.clientHeight }, false);
  }

  if (box) {
    drawDay();
    setInterval(() => { if (!document.hidden && Date.now() - asked > 60000 && !box.matches(":active")) drawDay(); }, 5000);
  }

  const log = $("#log");
  if (!log?.dataset.live) return;
  const body = log.tBodies[0], state = $("#state"), button = $("#pause");
  let paused = false, held = [], missed = 0;

  const row = (c) => el("tr", { class: "new", "data-rv": c.rv },
    el("td", {}, el("time", { datetime: c.time, title: c.time }, plinth.ago(Date.parse(c.time)))),
    el("td", {}, el("span", { class: "badge " + c.action }, c.action)),
    el("td", {}, el("a", { href: c.link }, `${c.resource}/${c.name}`), " ", c.ns ? el("span", { class: "meta" }, c.ns) : null),
    el("td", {}, c.account ? el("a", { class: "plain", href: here({ user: c.account }) }, c.person) : c.person),
    el("td", {}, c.manager, " ", el("span", { class: "meta" }, c.way)));

  // put adds changes, the oldest of which is the first. The oldest rows go; the link to older ones begins there then.
  function put(changes) {
    $("tr.none", body)?.remove();
    body.prepend(...changes.slice(-most).reverse().map(row));
    if (body.rows.length <= most) return;
    while (body.rows.length > most) body.lastElementChild.remove();
    $("#older").replaceChildren(el("a", { href: here({ until: String(body.lastElementChild.dataset.rv - 1) }) }, "Older"));
  }

  const tell = () => { state.textContent = paused ? `paused; ${chart.spaced(missed)} came meanwhile` : "live"; button.textContent = paused ? "Go on" : "Pause"; };
  function toggle() {
    paused = !paused;
    if (!paused) { put(held); held = []; missed = 0; }
    tell();
  }
  button.addEventListener("click", toggle);
  keys[" "] = (e) => { if (e.target.matches("button, summary")) e.target.click(); else toggle(); };

  const source = live(log.dataset.live, {
    changes: (changes) => {
      if (!paused) put(changes);
      else { missed += changes.length; held = held.concat(changes).slice(-most); tell(); }
      if (Date.now() - asked > 20000 && !document.hidden && !box.matches(":active")) drawDay();
    },
    again: () => location.reload(),
    fault: (e) => { source.close(); state.textContent = `${e.Title}: ${e.Text}`; state.setAttribute("role", "alert"); },
    back: () => toast("The server is back."),
  });
})();
