/** A sorted heap: name the people of a folder that `facepairs group` wrote, and enrol them. */

import { call } from "./api.js";
import { byId, element } from "./elements.js";
import { tooLarge } from "./photo.js";
import { Task } from "./task.js";

const PAGE = "people.html"; // has a person's faces as small pictures
const UNNAMED = /^person_\d{4,}$/;

export class HeapPanel {
  /** @param {function(): Promise} enrolled Called after a person was enrolled. */
  constructor(enrolled) {
    this.enrolled = enrolled;
    this.task = new Task(byId("heap-task"));
    const input = byId("heap-folder");
    input.addEventListener("change", () => this.open([...input.files]));
  }

  /** Show the people of a folder; nothing is sent. */
  open(files) {
    byId("heap-people").replaceChildren();
    return this.task.run("Reading the folder", async () => {
      const page = files.find(({ webkitRelativePath: path }) => path.split("/").slice(1).join("/") === PAGE);
      if (!page) throw new Error(`This folder has no ${PAGE}: choose one that facepairs group wrote.`);
      const html = (await page.text()).replace(/<style>.*?<\/style>/s, ""); // which this page may not use
      const people = new DOMParser().parseFromString(html, "text/html");
      const rows = [...people.querySelectorAll("section[data-person]")].map((section) => {
        const name = section.dataset.person;
        const pictures = [...section.querySelectorAll("img")].map((image) => image.getAttribute("src"));
        return this.row(name, pictures, files.filter((file) => isOf(name, file)));
      });
      byId("heap-people").replaceChildren(...rows);
    });
  }

  /** Return the faces of a person, and a form for the name. */
  row(folder, pictures, files) {
    const faces = pictures
      .filter((src) => src.startsWith("data:image/"))
      .map((src) => element("img", { src, alt: "", loading: "lazy" }));
    const name = element("input", { "aria-label": `Name of ${folder}`, maxlength: 200, required: "" });
    if (!UNNAMED.test(folder)) name.value = folder;
    const place = element("div");
    const said = element("span", { role: "status" });
    const button = element("button", {}, "Enrol");
    const form = element("form", { class: "row" }, name, button, said);
    const task = new Task(place);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      button.disabled = true;
      said.textContent = "";
      const done = await task.run("Enrolling", (signal) => enrol(name.value.trim(), files, said, signal));
      button.disabled = false;
      if (done) await this.enrolled();
    });
    const count = files.length === 1 ? "1 photo" : `${files.length} photos`;
    return element("section", {}, element("h3", {}, `${folder}, ${count}`), element("div", { class: "heap" }, ...faces), form, place);
  }
}

const isOf = (name, { webkitRelativePath: path }) => {
  const [, folder, file, deeper] = path.split("/");
  return folder === name && file !== undefined && deeper === undefined;
};

/** Enrol one photo after the other, so that none is too much for a request. */
async function enrol(name, files, said, signal) {
  const any_quality = String(byId("any-quality").checked);
  const refused = [];
  for (const [at, file] of files.entries()) {
    said.textContent = `${at} of ${files.length}`;
    const large = tooLarge(file);
    if (large) refused.push(large);
    else {
      const answer = await call("POST", "v1/people", { name, any_quality, photo: file }, signal);
      refused.push(...answer.refused.map(({ error }) => `${file.name}: ${error.replace(/^photo \d+: /, "")}`));
    }
  }
  const words = `${name}: ${files.length - refused.length} of ${files.length} photos are enrolled.`;
  said.textContent = refused.length ? `${words} Not ${refused[0]}` : words;
}
