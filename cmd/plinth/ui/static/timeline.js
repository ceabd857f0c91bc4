// The timeline: a slider and keys go through the versions of an object. The version is asked for alone, and takes the place
// of the one that is shown; the address follows. New versions come by themselves.
"use strict";
(() => {
  const { $, $$, toast, keys, live } = plinth;
  const box = $("#versions"), scrub = $("#scrub"), slider = $("#slider");
  if (!scrub) return;
  const parser = new DOMParser(), known = new Map(); // versions do not change, so that each is asked for once
  let list, last, at, asked = null;

  // take looks at the rows that are there now, of which one is chosen.
  function take(chosen) {
    list = $$("a.version", box);
    last = list.length - 1;
    at = Math.max(0, list.indexOf(chosen));
    scrub.hidden = last < 1;
    slider.max = last;
    mark();
  }

  // addressOf is the address of a row, seen as this page is seen now.
  function addressOf(i) {
    const u = new URL(location.href);
    u.searchParams.set("rv", list[i].dataset.rv);
    for (const gone of ["done", "more"]) u.searchParams.delete(gone);
    return u.pathname + u.search;
  }

  async function part(address) {
    if (known.has(address)) return known.get(address);
    const answer = await fetch(address, { headers: { "X-Part": "version", Accept: "text/html" } });
    const text = await answer.text();
    if (!answer.ok) throw new Error(answer.status + " " + answer.statusText);
    if (known.size > 200) known.clear();
    known.set(address, text);
    return text;
  }

  // open shows a version. Of several that are asked for one after the other the last is shown.
  async function open(address) {
    asked = address;
    history.replaceState(null, "", address);
    try {
      const text = await part(address);
      if (asked !== address) return;
      const next = parser.parseFromString(text, "text/html").body.firstElementChild, focused = document.activeElement?.closest("#version") && document.activeElement.getAttribute("href");
      $("#version").replaceWith(next);
      if (next.id !== "version") next.id = "version";
      if (focused) $$("a.part", next).find((a) => a.getAttribute("aria-current"))?.focus();
      mark();
    } catch (e) {
      toast("This version could not be read: " + e.message);
    }
  }

  // mark shows where the reader is: in the list, on the slider, and which of them is the base of comparisons.
  function mark() {
    const base = new URLSearchParams(location.search).get("from");
    list.forEach((a, i) => {
      if (i === at) a.setAttribute("aria-current", "true");
      else a.removeAttribute("aria-current");
      a.classList.toggle("base", a.dataset.rv === base);
    });
    slider.value = last - at;
    slider.setAttribute("aria-valuetext", list[at].innerText.replace(/\s+/g, " ").trim());
    $$(".dots circle").forEach((c, i) => c.classList.toggle("at", i === at));
    $("#older").disabled = at === last;
    $("#newer").disabled = at === 0;
  }

  function go(i) {
    i = Math.max(0, Math.min(last, i));
    if (i === at && list[i].dataset.rv === new URLSearchParams(location.search).get("rv")) return;
    at = i;
    mark();
    list[at].scrollIntoView({ block: "nearest" });
    open(addressOf(at));
    for (const beside of [at - 1, at + 1]) if (list[beside]) part(addressOf(beside)).catch(() => {});
  }

  const plain = (e) => e.button === 0 && !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.altKey;
  addEventListener("click", (e) => {
    const link = e.target.closest?.("#version a.part, #versions a.version");
    if (!link || !plain(e)) return;
    e.preventDefault();
    if (link.classList.contains("part")) open(link.getAttribute("href"));
    else go(list.indexOf(link));
  });
  slider.addEventListener("input", () => go(last - slider.value));
  $("#older").addEventListener("click", () => go(at + 1));
  $("#newer").addEventListener("click", () => go(at - 1));
  keys["["] = () => go(at + 1);
  keys["]"] = () => go(at - 1);
  keys.j = keys["["];
  keys.k = keys["]"];
  for (const [key, id] of [["u", "#undo"], ["r", "#restore"]]) keys[key] = () => { const link = $(id); if (link) location.href = link.href; };
  take($("a[aria-current]", box));
  list[at].scrollIntoView({ block: "nearest" });

  // replace puts a part of a newer page in its place. A link in it that had the focus has it again.
  function replace(old, next) {
    const had = old.contains(document.activeElement) && document.activeElement;
    old.replaceWith(next);
    if (had) ((had.id && $("#" + had.id)) || $$("a", next).find((a) => a.href === had.href))?.focus({ preventScroll: true });
  }

  // renew asks for the page again. Rows that have not changed stay in the document, and with them the focus and what is in
  // view. What is shown stays chosen; if that would be on another page, this one is as it is.
  async function renew() {
    const address = location.href, u = new URL(address);
    if (!u.searchParams.get("rv")) u.searchParams.set("rv", $("#version").dataset.rv);
    const answer = await fetch(u, { headers: { "X-Part": "all", Accept: "text/html" } });
    const page = parser.parseFromString(await answer.text(), "text/html"), rows = $("#versions", page);
    if (address !== location.href) return renew();
    if (!answer.ok || !rows?.dataset.live) return;
    known.clear();
    box.dataset.live = rows.dataset.live;
    const view = box.parentNode, top = (a) => a.getBoundingClientRect().top, first = list.find((a) => top(a) >= top(view)), was = first && top(first);
    const focused = box.contains(document.activeElement), chosen = $("a[aria-current]", rows)?.dataset.rv, still = new Set($$("a", rows).map((a) => a.dataset.rv));
    for (const a of list) if (!still.has(a.dataset.rv)) a.parentNode.remove();
    let place = box.firstElementChild;
    for (const row of [...rows.children]) {
      if (place && $("a", place).dataset.rv === $("a", row).dataset.rv) place = place.nextElementSibling;
      else box.insertBefore(row, place);
    }
    for (const part of [".subject", ".tabs", ".dots", ".ends", "#before"]) replace($(part), $(part, page));
    if ($("#version").dataset.rv === $("#version", page).dataset.rv) replace($("#version header"), $("#version header", page));
    take($(`a[data-rv="${chosen}"]`, box));
    if (view.scrollTop && first?.isConnected) view.scrollTop += top(first) - was;
    if (focused && !box.contains(document.activeElement)) list[at].focus({ preventScroll: true });
  }

  // later renews the page soon, once for the changes of that time; those that come meanwhile are for the next time. An object
  // that changes all the time takes a part of the server's time only.
  let timer = 0, pause = 300, renewed = Promise.resolve();
  const again = async () => { const begun = Date.now(); timer = 0; await renew(); pause = Math.max(300, 5 * (Date.now() - begun)); };
  const later = () => { timer ||= setTimeout(() => { renewed = renewed.then(again).catch(() => {}); }, pause); };
  function follow() {
    const source = live(box.dataset.live, {
      rows: later, back: later, bookmark: () => {}, refused: () => source.close(),
      again: () => { source.close(); setTimeout(() => { renewed = renewed.then(again).catch(() => {}).then(follow); }, 1000); },
    });
  }
  if (box.dataset.live) follow();
})();
