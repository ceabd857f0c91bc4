// Suggestions below the search field while somebody types: arrow keys choose, Enter opens, Escape closes.
"use strict";
(() => {
  const { $, $$, el, base } = plinth, field = $("#search"), form = field.form;
  const list = el("ul", { id: "suggestions", role: "listbox", "aria-label": "Suggestions", hidden: "" });
  form.append(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": "suggestions" })) field.setAttribute(name, value);
  let chosen = -1, timer = 0, asked = null;

  function open(yes) {
    list.hidden = !yes;
    field.setAttribute("aria-expanded", String(yes));
    if (!yes) choose(-1);
  }
  function choose(i) {
    const all = $$("[role=option]", list);
    chosen = all.length ? Math.max(-1, Math.min(all.length - 1, i)) : -1;
    all.forEach((o, j) => o.setAttribute("aria-selected", String(j === chosen)));
    all[chosen]?.scrollIntoView({ block: "nearest" });
    if (chosen >= 0) field.setAttribute("aria-activedescendant", all[chosen].id); else field.removeAttribute("aria-activedescendant");
  }
  async function ask() {
    const text = field.value.trim();
    asked?.abort();
    if (!text) { open(false); return; }
    asked = new AbortController();
    const u = new URL(base + "search", location.href), here = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries({ q: text, json: "1", ns: here.get("ns"), at: here.get("at") })) if (value) u.searchParams.set(name, value);
    try {
      const answer = await fetch(u, { headers: { Accept: "application/json" }, signal: asked.signal });
      if (!answer.ok || field.value.trim() !== text || document.activeElement !== field) return;
      const found = await answer.json();
      list.replaceChildren(...found.map((s, i) => {
        const option = el("li", { role: "option", id: "suggestion-" + i, "aria-selected": "false", "data-link": s.link }, el("span", { class: "kind" }, s.kind), el("b", {}, s.text), el("span", { class: "meta" }, s.place || ""));
        option.addEventListener("pointerdown", (e) => { e.preventDefault(); location.href = s.link; });
        return option;
      }));
      open(found.length > 0);
      choose(-1);
    } catch { /* a newer question, or no answer: the page of the search says why */ }
  }
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 150); });
  field.addEventListener("keydown", (e) => {
    if (list.hidden) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); choose(chosen + (e.key === "ArrowDown" ? 1 : -1)); }
    if (e.key === "Escape") { e.stopPropagation(); open(false); }
    if (e.key === "Enter" && chosen >= 0) { e.preventDefault(); location.href = list.children[chosen].dataset.link; }
  });
  field.addEventListener("blur", () => open(false));
})();
