/** The page: two photos and a verdict; with a gallery, known people. */

import { call, setToken } from "./api.js";
import { byId, element } from "./elements.js";
import { GalleryPanel } from "./gallery.js";
import { Photo, listenForPaste, setMaxBytes } from "./photo.js";
import { Task } from "./task.js";
import { VerdictPanel } from "./verdict.js";

const start = new Task(byId("start"));
const pair = ["Photo A", "Photo B"].map((name) => {
  const place = byId("photos").appendChild(element("div"));
  return new Photo(place, name, () => verdict.update());
});
const verdict = new VerdictPanel(pair);
const asked = new Photo(byId("gallery-photo"), "Photo of a person", () => gallery.update());
const gallery = new GalleryPanel(asked);

listenForPaste([...pair, asked]);
// A photo that misses its place must not replace this page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());

document.addEventListener("token-needed", () => {
  byId("token").hidden = false;
  byId("token-field").focus();
});
byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token-field").value);
  byId("token-field").value = "";
  byId("token").hidden = true;
  load();
});

/** Ask what the server offers, then do what waited for it. */
async function load() {
  await start.run("Asking the server for its model", async (signal) => {
    const model = await call("GET", "v1/model", undefined, signal);
    verdict.setModel(model);
    setMaxBytes(model.max_bytes);
    byId("model").textContent = `Model: ${model.model}. Threshold: ${model.label}.`;
    gallery.open(model.gallery);
    for (const photo of [...pair, asked]) photo.look();
    verdict.update();
  });
}

load();
