// The timeline: a slider and keys go through the versions of an object. The version is asked for alone, and takes the place
// of the one that is shown; the address follows.
"use strict";
(() => {
  const { $, $$, toast, keys } = plinth;
  const list = $$("#versions a.version"), scrub = $("#scrub"), slider = $("#slider"), last = list.length - 1;
  if (!list.length) return;
  const parser = new DOMParser(), known = new Map(); // versions do not change, so that each is asked for once
  let at = Math.max(0, list.findIndex((a) => a.getAttribute("aria-current"))), asked = null;

  // addressOf is the address of a row, seen as this page is seen now.
  function addressOf(i) {
    const u = new URL(location.href);
    u.searchParams.set("rv", list[i].dataset.rv);
    for (const gone of ["done", "more"]) u.searchParams.delete(gone);
    return u.pathname + u.search;
  }

  async function part(address) {
    if (known.has(address)) return known.get(address);
    const answer = await fetch(address, { headers: { "X-Part": "1", Accept: "text/html" } });
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
    if (!slider) return;
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
  list.forEach((a, i) => a.addEventListener("click", (e) => { if (plain(e)) { e.preventDefault(); go(i); } }));
  addEventListener("click", (e) => {
    const link = e.target.closest?.("#version a.part");
    if (link && plain(e)) { e.preventDefault(); open(link.getAttribute("href")); }
  });
  if (scrub) {
    scrub.hidden = false;
    slider.addEventListener("input", () => go(last - slider.value));
    $("#older").addEventListener("click", () => go(at + 1));
    $("#newer").addEventListener("click", () => go(at - 1));
  }
  keys["["] = () => go(at + 1);
  keys["]"] = () => go(at - 1);
  keys.j = keys["["];
  keys.k = keys["]"];
  keys.u = () => { const undo = $("#undo"); if (undo) location.href = undo.href; };
  mark();
  list[at].scrollIntoView({ block: "nearest" });
})();
