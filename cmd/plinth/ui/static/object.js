// Folding of YAML: a click on the number of a line that opens something hides what is in it. Tables may come later.
"use strict";
(() => {
  const source = (row) => row.cells[row.cells.length - 1].textContent.trimStart();
  const isItem = (row) => source(row).startsWith("- ");
  function within(rows, i) {
    const depth = +rows[i].dataset.depth, all = [];
    for (let j = i + 1; j < rows.length; j++) {
      const d = +rows[j].dataset.depth;
      if (d > depth || (d === depth && isItem(rows[j]) && !isItem(rows[i]))) all.push(rows[j]);
      else break;
    }
    return all;
  }
  addEventListener("click", (e) => {
    const row = e.target.closest?.("table[data-fold] td.no")?.parentNode;
    if (!row || !("opens" in row.dataset)) return;
    row.classList.toggle("shut");
    const rows = [...row.parentNode.rows];
    for (const r of rows) r.hidden = false;
    rows.forEach((r, i) => { if (r.classList.contains("shut")) for (const inner of within(rows, i)) inner.hidden = true; });
  });
})();
