"use strict";
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, column) => row.cells[column].dataset.value;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "Sort";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      const rows = [...body.rows];
      const numeric = rows.every((row) => valueOf(row, column) === "" || !isNaN(valueOf(row, column)));
      rows.sort((one, other) => {
        const a = valueOf(one, column), b = valueOf(other, column);
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = numeric ? a - b : a.localeCompare(b);
        return down ? -order : order;
      });
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      body.append(...rows);
    });
  });
}
addEventListener("beforeprint", () => {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
});
