// Collects corrections; what is clicked becomes a line of the CSV file below.
const lines = document.getElementById("lines");
const cell = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
const add = (...cells) => {
  lines.value += cells.map(cell).join(",") + "\n";
};
for (const button of document.querySelectorAll("button[data-what]")) {
  button.addEventListener("click", () => {
    const { what, person, to } = button.dataset;
    add(what, person, to);
    button.disabled = true;
  });
}
for (const input of document.querySelectorAll("input[data-person]")) {
  input.addEventListener("change", () => {
    if (input.value.trim()) add("name", input.dataset.person, input.value.trim());
  });
}
