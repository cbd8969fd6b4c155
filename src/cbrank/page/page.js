"use strict";
const valueOf = (row, column) => {
  const cell = row.cells[column];
  if (column === 0) return cell.textContent;
  return "value" in cell.dataset ? Number(cell.dataset.value) : null;
};
const order = (sign, column) => (one, other) => {
  const [a, b] = [valueOf(one, column), valueOf(other, column)];
  if (a === null || b === null) return (a === null) - (b === null);
  return sign * (typeof a === "string" ? a.localeCompare(b) : a - b);
};
for (const button of document.querySelectorAll("thead button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th");
    const body = head.closest("table").tBodies[0];
    const down = head.ariaSort === "ascending" || (head.ariaSort === null && head.cellIndex > 0);
    const next = head.ariaSort === "descending" ? "ascending" : down ? "descending" : "ascending";
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", next);
    const sign = next === "ascending" ? 1 : -1;
    body.append(...[...body.rows].sort(order(sign, head.cellIndex)));
  });
}
