// The log of a container: it goes on while it is followed, at most so many lines stay in the document, and a filter
// hides lines.
"use strict";
(() => {
  const { $, el, live, toast } = plinth;
  const box = $("#log"), filter = $("#logfilter"), most = 5000;
  if (!box) return;
  const hide = (line) => { line.hidden = filter.value !== "" && !line.textContent.toLowerCase().includes(filter.value.toLowerCase()); };
  filter.addEventListener("input", () => { for (const line of box.children) hide(line); });
  const state = $("#logstate"), stop = $("#stop");
  if (!box.dataset.live) { box.scrollTop = box.scrollHeight; return; }

  let count = 0, source = null;
  const tell = (text) => { state.textContent = text; };
  const end = (text) => { source?.close(); source = null; stop.textContent = "Go on"; tell(text); };
  function add(lines) {
    const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
    const rows = lines.slice(-most).map((text) => { const row = el("div", {}, text); hide(row); return row; });
    box.append(...rows);
    for (let over = box.children.length - most; over > 0; over--) box.firstChild.remove();
    count += lines.length;
    tell(count > most ? `the last ${most} of ${count} lines` : "");
    if (atEnd) box.scrollTop = box.scrollHeight;
  }
  function follow() {
    count = 0;
    box.replaceChildren();
    stop.textContent = "Stop";
    tell("");
    source = live(box.dataset.live, {
      lines: add,
      end: () => end("The log has ended."),
      fault: (e) => { end(""); box.before(el("div", { class: "notice", role: "alert" }, el("h2", {}, e.Title), el("p", {}, e.Text), el("p", {}, e.Advice || ""))); },
      back: () => toast("The server is back."),
    });
  }
  stop.addEventListener("click", () => { if (source) end("Stopped."); else { for (const n of plinth.$$(".notice[role=alert]")) n.remove(); follow(); } });
  follow();
})();
