// A list of objects: rows come page by page, stay in memory as arrays, and only those that are seen are in the document.
"use strict";
(() => {
  const { $, el, ago, get, live, keys } = plinth;
  const box = $("#list"), height = 34, namespaced = box.dataset.namespaced === "true";
  let columns = [], names = [], all = [], shown = [], byKey = new Map(), at = -1, loading = true, sortBy = -1, down = false, remaining = 0, version = "", note = "";
  const count = $("#count"), filter = $("#filter");
  const keyOf = (r) => (r.s || "") + "/" + r.n;
  const head = el("thead"), body = el("tbody"), widths = el("colgroup");
  const table = el("table", { "aria-label": "Objects" }, widths, head, body);
  box.replaceChildren(table);
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

  // cell is the text of a column; Age goes on while the page is open.
  function cell(row, i) {
    const c = columns[i];
    if (c.name === "Age" && row.c > 0) return ago(row.c * 1000).replace(" ago", "");
    const value = row.v[i];
    if (typeof value === "string" && time.test(value)) return ago(Date.parse(value));
    return value === null || value === undefined ? "" : String(value);
  }

  // drawHead makes the head of the table, and has draw make its rows anew.
  function drawHead() {
    names = columns.map((c, i) => i).filter((i) => !columns[i].priority);
    lines = [];
    body.replaceChildren();
    head.replaceChildren(el("tr", {}, ...(namespaced ? [el("th", { scope: "col" }, "Namespace")] : []), ...names.map((i) => {
      const b = el("button", { type: "button", title: columns[i].help || null }, columns[i].name + (sortBy === i ? (down ? " ↓" : " ↑") : ""));
      b.addEventListener("click", () => { down = sortBy === i && !down; sortBy = i; drawHead(); arrange(); });
      return el("th", { scope: "col", class: columns[i].number ? "num" : null }, b);
    })));
    const sample = all.slice(0, 400), most = (f, name) => Math.min(46, Math.max(name.length + 3, ...sample.map((r) => f(r).length))) + 3;
    const wide = [...(namespaced ? [most((r) => r.s || "", "Namespace")] : []), ...names.map((i) => most((r) => cell(r, i), columns[i].name))];
    widths.replaceChildren(...wide.map((w) => { const c = el("col"); c.style.width = w + "ch"; return c; }));
  }

  // arrange filters and sorts; then what is seen is drawn.
  function arrange() {
    const text = filter.value.toLowerCase();
    shown = text ? all.filter((r) => (r.s || "").includes(text) || r.v.some((x) => String(x).toLowerCase().includes(text))) : all.slice();
    if (sortBy >= 0) {
      const value = (r) => (columns[sortBy].name === "Age" ? -r.c : columns[sortBy].number ? Number(r.v[sortBy]) : String(r.v[sortBy]));
      shown.sort((a, b) => { const x = value(a), y = value(b); return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1); });
    }
    tell();
    draw();
  }

  function tell() {
    const n = (x) => x.toLocaleString("en").replaceAll(",", "\u202f");
    let text = shown.length === all.length ? `${n(all.length)} objects` : `${n(shown.length)} of ${n(all.length)} objects`;
    if (loading) text += remaining ? `, ${n(remaining)} to come` : ", more to come";
    count.textContent = text + (note ? ` · ${note}` : "");
    box.setAttribute("aria-busy", String(loading));
  }

  // A line is a row of the table, and is used again for other objects: scrolling makes no elements, and writes only what differs.
  const pad = () => el("tr", { class: "pad", "aria-hidden": "true" }, el("td")), above = pad(), below = pad();
  const set = (node, name, value) => { if ((node.getAttribute(name) || "") !== value) value ? node.setAttribute(name, value) : node.removeAttribute(name); };
  let lines = [], begin = 0; // begin is the index of the first line's object

  function line() {
    const link = el("a", { tabindex: "-1" }, "");
    const row = el("tr", {}, ...(namespaced ? [el("td", {}, "")] : []), ...names.map((c, j) => el("td", { class: columns[c].number ? "num" : null }, j ? "" : link)));
    below.before(row);
    return { row, link, texts: [...row.cells].map((td) => (td.firstElementChild || td).firstChild) };
  }
  function fill({ row, link, texts }, i) {
    const r = shown[i], values = [...(namespaced ? [r.s || ""] : []), ...names.map((c) => cell(r, c))];
    texts.forEach((text, j) => { if (text.data !== values[j]) { text.data = values[j]; set(text.parentNode, "title", values[j].length > 40 ? values[j] : ""); } });
    set(link, "href", r.l);
    set(row, "class", [i === at ? "at" : "", r.fresh ? "new" : ""].join(" ").trim());
    set(row, "aria-rowindex", String(i + 2));
  }

  // turn takes lines that are not seen any longer from one end to the other. One that keeps its place gives up the focus.
  function turn(step) {
    const moved = Math.abs(step) < lines.length ? lines.splice(step > 0 ? 0 : step, Math.abs(step)) : [];
    if (step > 0) { lines.push(...moved); below.before(...moved.map((l) => l.row)); }
    if (step < 0) { lines.unshift(...moved); above.after(...moved.map((l) => l.row)); }
    if (step && !moved.length && body.contains(document.activeElement)) document.activeElement.blur();
  }

  function draw() {
    const first = Math.max(0, Math.floor(box.scrollTop / height) - 8), last = Math.min(shown.length, first + Math.ceil(box.clientHeight / height) + 16);
    table.setAttribute("aria-rowcount", shown.length + 1);
    if (!shown.length) {
      lines = [];
      body.replaceChildren(...(loading ? [] : [el("tr", {}, el("td", { colspan: names.length + namespaced || 1 }, all.length ? "Nothing matches." : "There are none."))]));
      return;
    }
    if (!lines.length) body.replaceChildren(above, below);
    turn(first - begin);
    begin = first;
    while (lines.length > Math.max(0, last - first)) lines.pop().row.remove();
    while (lines.length < last - first) lines.push(line());
    lines.forEach((l, k) => fill(l, first + k));
    for (const [p, n] of [[above, first], [below, shown.length - last]]) { p.hidden = n <= 0; p.firstChild.style.height = n * height + "px"; }
  }
  let waiting = false;
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(() => { waiting = false; draw(); }); } };
  box.addEventListener("scroll", later, { passive: true });
  addEventListener("resize", later);
  filter.addEventListener("input", () => { at = -1; box.scrollTop = 0; arrange(); });
  setInterval(() => { if (!document.hidden) later(); }, 10000);

  const put = (r) => {
    const key = keyOf(r), i = byKey.get(key);
    if (i === undefined) { byKey.set(key, all.length); all.push(r); } else all[i] = r;
  };
  const remove = (key) => {
    const i = byKey.get(key);
    if (i === undefined) return;
    all.splice(i, 1);
    byKey = new Map(all.map((r, j) => [keyOf(r), j]));
  };

  async function load() {
    all = []; byKey = new Map(); loading = true;
    let next = "";
    try {
      do {
        const u = new URL(box.dataset.rows, location.href);
        if (next) u.searchParams.set("continue", next);
        const page = await get(u);
        if (page.columns.length) columns = page.columns;
        for (const r of page.rows) put(r);
        if (!next) { drawHead(); version = page.resourceVersion; note = page.note || ""; }
        next = page.continue || "";
        remaining = page.remaining || 0;
        loading = !!next;
        arrange();
      } while (next);
    } catch (e) {
      loading = false;
      count.textContent = e.message;
      count.setAttribute("role", "alert");
      return;
    }
    follow();
  }

  let source = null;
  function follow() {
    if (!box.dataset.live || !version) return;
    const u = new URL(box.dataset.live, location.href);
    u.searchParams.set("rv", version);
    source?.close();
    source = live(u, {
      rows: (event) => {
        for (const r of event.rows) {
          if (event.type === "DELETED") remove(keyOf(r));
          else { r.fresh = event.type === "ADDED"; put(r); }
        }
        if (!columns.length && event.columns) { columns = event.columns; drawHead(); }
        clearTimeout(follow.timer);
        follow.timer = setTimeout(arrange, 50);
      },
      bookmark: () => {},
      refused: () => source.close(),
      again: () => { source.close(); load(); },
    });
  }

  function walk(step) {
    if (!shown.length) return;
    at = Math.min(shown.length - 1, Math.max(0, at + step));
    const top = at * height;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + 2 * height > box.scrollTop + box.clientHeight) box.scrollTop = top + 3 * height - box.clientHeight;
    draw();
    $("tr.at a", body)?.focus({ preventScroll: true });
  }
  keys.j = () => walk(1);
  keys.k = () => walk(-1);
  box.addEventListener("keydown", (e) => { if (e.key === "Enter" && shown[at] && e.target === box) location.href = shown[at].l; });
  load();
})();
