// What every page has: theme, keys, times, the choice of namespace and moment. Other scripts use plinth.
"use strict";
const plinth = (() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const root = document.documentElement, base = document.body.dataset.base;

  // el makes an element: text is never read as HTML.
  function el(name, attributes = {}, ...children) {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null && value !== false) node.setAttribute(key, value);
    node.append(...children.filter((c) => c !== undefined && c !== null));
    return node;
  }

  // here is the address of this page with other parameters; an empty one is left out.
  function here(parameters) {
    const u = new URL(location.href);
    for (const [key, value] of Object.entries(parameters)) value ? u.searchParams.set(key, value) : u.searchParams.delete(key);
    return u.pathname + u.search;
  }

  // toast tells something for a moment, or until the next one.
  function toast(text, stays) {
    const t = $("#toast");
    t.textContent = text;
    t.classList.add("on");
    clearTimeout(toast.timer);
    if (!stays) toast.timer = setTimeout(() => t.classList.remove("on"), 4000);
  }

  // ago writes how long ago a time was, as kubectl does.
  function ago(ms) {
    const s = Math.max(0, Math.round((Date.now() - ms) / 1000));
    if (s < 1) return "now";
    if (s < 120) return s + "s ago";
    const m = Math.floor(s / 60);
    if (m < 10) return m + "m" + (s % 60 ? (s % 60) + "s" : "") + " ago";
    if (m < 180) return m + "m ago";
    const h = Math.floor(m / 60);
    if (h < 8) return h + "h" + (m % 60 ? (m % 60) + "m" : "") + " ago";
    if (h < 48) return h + "h ago";
    const d = Math.floor(h / 24);
    return d < 8 && h % 24 ? `${d}d${h % 24}h ago` : d + "d ago";
  }
  setInterval(() => {
    if (!document.hidden) for (const t of $$("time[datetime][title]")) t.textContent = ago(Date.parse(t.dateTime));
  }, 5000);

  // get asks for JSON, and throws what the server says.
  async function get(address) {
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  }

  // live follows Server-Sent Events; handlers are by the names of events. A browser gives up when the answer is an error,
  // so the address is asked again then, with the id of the last event as the parameter rv. It says when the server is
  // away; the handler back is called when it is there again.
  function live(address, handlers) {
    const u = new URL(address, location.href);
    let source, timer, away = false, ended = false;
    const lost = () => {
      if (!away) timer = setTimeout(() => { away = true; toast("The server is away. This page goes on when it is back.", true); }, 1500);
    };
    const open = () => {
      source = new EventSource(u);
      source.onopen = () => { clearTimeout(timer); if (away) { away = false; toast("The server is back."); handlers.back?.(); } };
      source.onerror = () => {
        if (ended) return;
        clearTimeout(timer);
        lost();
        if (source.readyState === EventSource.CLOSED) setTimeout(() => ended || document.hidden || open(), 1000);
      };
      for (const [name, handle] of Object.entries(handlers)) if (name !== "back") source.addEventListener(name, (e) => {
        if (e.lastEventId) u.searchParams.set("rv", e.lastEventId);
        handle(JSON.parse(e.data), e);
      });
    };
    open();
    // A browser has six connections for a host, over all tabs: one that nobody sees gives its own back.
    document.addEventListener("visibilitychange", () => {
      if (ended) return;
      clearTimeout(timer);
      if (document.hidden) source.close();
      else if (source.readyState === EventSource.CLOSED) open();
    });
    const close = () => { ended = true; clearTimeout(timer); source.close(); };
    addEventListener("pagehide", close);
    return { close };
  }

  // theme: without a choice that of the system; the server reads the choice from the cookie.
  const system = matchMedia("(prefers-color-scheme: dark)"), changed = () => dispatchEvent(new Event("theme"));
  system.addEventListener("change", changed);
  $("#theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `plinth-theme=${root.dataset.theme}; path=${base}; max-age=31536000; samesite=lax`;
    changed();
  });

  // namespace and moment
  $("#namespace").addEventListener("change", (e) => { location.href = here({ ns: e.target.value.trim() }); });
  $("#moment").addEventListener("submit", (e) => { e.preventDefault(); location.href = here({ at: $("#at").value.trim(), rv: "" }); });
  $("#at").addEventListener("change", () => $("#moment").requestSubmit());

  // dialogs
  const keysDialog = $("#keys"), gotoDialog = $("#goto");
  $("#help").addEventListener("click", () => keysDialog.showModal());
  const kinds = $$(".side a[data-kind]").map((a) => ({ name: a.textContent, resource: a.dataset.kind, link: a.href }));
  let chosen = 0;
  function listKinds() {
    const text = $("#goto-text").value.toLowerCase();
    const found = kinds.filter((k) => k.name.toLowerCase().includes(text) || k.resource.includes(text));
    found.sort((a, b) => !a.name.toLowerCase().startsWith(text) - !b.name.toLowerCase().startsWith(text));
    chosen = Math.min(chosen, Math.max(0, found.length - 1));
    $("#goto-list").replaceChildren(...found.slice(0, 40).map((k, i) => el("li", { class: i === chosen ? "at" : null }, el("a", { href: k.link }, `${k.name} `, el("span", { class: "meta" }, k.resource)))));
    return found;
  }
  $("#goto-text").addEventListener("input", () => { chosen = 0; listKinds(); });
  $("#goto-text").addEventListener("keydown", (e) => {
    if (e.key === "ArrowDown" || e.key === "ArrowUp") { e.preventDefault(); chosen = Math.max(0, chosen + (e.key === "ArrowDown" ? 1 : -1)); listKinds(); }
    if (e.key === "Enter") { e.preventDefault(); const k = listKinds()[chosen]; if (k) location.href = k.link; }
  });

  // rows of a table that are walked through with j and k
  let at = -1;
  function walk(step) {
    const rows = $$("[data-rows] tbody tr");
    if (!rows.length) return;
    rows[at]?.classList.remove("at");
    at = Math.min(rows.length - 1, Math.max(0, at + step));
    rows[at].classList.add("at");
    rows[at].scrollIntoView({ block: "nearest" });
    $("a", rows[at])?.focus({ preventScroll: true });
  }

  // keys: a page adds its own in plinth.keys.
  const keys = {
    "/": () => $("#search").focus(),
    "g": () => { $("#goto-text").value = ""; chosen = 0; listKinds(); gotoDialog.showModal(); },
    "j": () => walk(1), "k": () => walk(-1),
    "?": () => keysDialog.showModal(),
    "n": () => { if (new URLSearchParams(location.search).has("at")) location.href = here({ at: "" }); },
    "Escape": () => { const up = $$(".crumbs a").pop(); if (up) location.href = up.href; },
  };
  for (const a of $$(".tabs a[data-key]")) keys[a.dataset.key] = () => { location.href = a.href; };
  addEventListener("keydown", (e) => {
    const typing = e.target.matches("textarea, select, input:not([type=range], [type=radio], [type=checkbox])") || e.key === " " && e.target.matches("input");
    if (typing && e.key === "Escape") { e.target.blur(); return; }
    if (typing || e.ctrlKey || e.metaKey || e.altKey || $("dialog[open]")) return;
    const key = keys[e.key];
    if (key) { e.preventDefault(); key(e); }
  });

  return { $, $$, el, here, toast, ago, get, live, keys, base };
})();
