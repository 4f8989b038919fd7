// Copies a path, to be pasted into a file manager.
for (const button of document.querySelectorAll("button[data-path]")) {
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(button.dataset.path);
      button.textContent = "copied";
    } catch {
      window.prompt("Path", button.dataset.path);
    }
  });
}
