// The form in which an object is edited: the indentation of a line goes on in the next one, Ctrl-Enter previews, and a
// text that is not written is not lost by a slip.
"use strict";
(() => {
  const { $ } = plinth, form = $("#edit"), text = $("#edit textarea");
  if (!text) return;
  const before = text.value;
  let sending = false;
  text.addEventListener("keydown", (e) => {
    if (e.key !== "Enter") return;
    e.preventDefault();
    if (e.ctrlKey || e.metaKey) { form.requestSubmit($("button[value=preview]", form)); return; }
    const start = text.value.lastIndexOf("\n", text.selectionStart - 1) + 1;
    const indent = /^ *(?:- )?/.exec(text.value.slice(start, text.selectionStart))[0].replace("-", " ");
    const insert = "\n" + indent;
    if (!document.execCommand("insertText", false, insert)) text.setRangeText(insert, text.selectionStart, text.selectionEnd, "end");
  });
  form.addEventListener("submit", () => { sending = true; });
  addEventListener("beforeunload", (e) => { if (!sending && text.value !== before) e.preventDefault(); });
})();
