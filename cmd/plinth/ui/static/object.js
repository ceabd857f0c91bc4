// Folding of YAML: a click on the number of a line that opens something hides what is in it.
"use strict";
for (const table of plinth.$$("table[data-fold]")) {
  const rows = [...table.rows];
  const within = (i) => {
    const depth = +rows[i].dataset.depth, all = [];
    for (let j = i + 1; j < rows.length; j++) {
      const d = +rows[j].dataset.depth, item = d === depth && rows[j].cells[rows[j].cells.length - 1].textContent.trimStart().startsWith("- ");
      if (d > depth || (item && !rows[i].cells[rows[i].cells.length - 1].textContent.trimStart().startsWith("- "))) all.push(rows[j]);
      else break;
    }
    return all;
  };
  const draw = () => {
    for (const r of rows) r.hidden = false;
    rows.forEach((r, i) => { if (r.classList.contains("shut")) for (const inner of within(i)) inner.hidden = true; });
  };
  table.addEventListener("click", (e) => {
    const row = e.target.closest("td.no")?.parentNode;
    if (!row || !("opens" in row.dataset)) return;
    row.classList.toggle("shut");
    draw();
  });
}
