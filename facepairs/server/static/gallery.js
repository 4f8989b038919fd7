/** Known people: who a photo shows, enrol, list, forget. */

import { call } from "./api.js";
import { byId, element, fillRows, table } from "./elements.js";
import { HeapPanel } from "./heap.js";
import { Task } from "./task.js";

export class GalleryPanel {
  /** @param {Photo} photo The one that is identified or enrolled. */
  constructor(photo) {
    this.photo = photo;
    this.task = new Task(byId("gallery-task"));
    this.listing = new Task(byId("people-task"));
    new HeapPanel(() => this.list());
    byId("identify").addEventListener("click", () => this.identify());
    byId("enrol").addEventListener("submit", (event) => {
      event.preventDefault();
      this.enrol(byId("name").value.trim());
    });
  }

  /** @param {?string} access What the server allows: `read`, `write`, or null without a gallery. */
  open(access) {
    byId("gallery").hidden = byId("nav").hidden = !access;
    this.writable = access === "write";
    byId("enrol").hidden = byId("heap").hidden = !this.writable;
    if (access) this.list();
  }

  /** Follow the photo: without a face there is nothing to do. */
  update() {
    this.task.stop();
    this.say("");
    for (const button of [byId("identify"), byId("enrol").querySelector("button")]) {
      button.disabled = !this.photo.face;
    }
  }

  say(words, rows = [], candidates = []) {
    byId("who").textContent = words;
    fillRows(byId("who-rows"), rows);
    byId("candidates").replaceChildren(...candidates);
  }

  identify() {
    this.say("");
    return this.task.run("Looking among the known people", async (signal) => {
      const wish = { max_fpir: byId("max-fpir").value, describe: "true" };
      const fields = { ...this.photo.fields("image", "face"), ...wish };
      const found = await call("POST", "v1/identify", fields, signal);
      const [[, words], ...rows] = found.description;
      const candidates = found.candidates.map(({ name, score, match }) => [
        name,
        score.toFixed(4),
        { true: "yes", false: "no", null: "" }[match],
      ]);
      this.say(words, rows, [table(["name", "score", "match"], candidates)]);
    });
  }

  enrol(name) {
    this.say("");
    return this.task.run(`Enrolling ${name}`, async (signal) => {
      const quality = { any_quality: String(byId("any-quality").checked) };
      const fields = { name, ...quality, ...this.photo.fields("photo", "face") };
      const enrolment = await call("POST", "v1/people", fields, signal);
      if (enrolment.refused.length) throw new Error(enrolment.refused[0].error);
      this.say(enrolment.enrolled ? `${name} is enrolled.` : `${name} is enrolled with this photo already.`);
      byId("name").value = "";
      await this.list();
    });
  }

  /** Show who is enrolled. */
  async list() {
    await this.listing.run("Reading the gallery", async (signal) => {
      const { people } = await call("GET", "v1/people", undefined, signal);
      const rows = people.map(({ name, photos, added }) => {
        const button = element("button", { type: "button", "aria-label": `Forget ${name}` }, "Forget");
        button.addEventListener("click", () => this.forget(name));
        return [name, String(photos), added.slice(0, 10), this.writable ? button : ""];
      });
      const count = people.length === 1 ? "1 person is enrolled." : `${people.length} people are enrolled.`;
      byId("people-count").textContent = people.length ? count : "No one is enrolled yet.";
      byId("people").replaceChildren(people.length ? table(["name", "photos", "since", ""], rows) : "");
    });
  }

  async forget(name) {
    const dialog = byId("forget");
    byId("forget-title").textContent = `Forget ${name}?`;
    dialog.returnValue = "";
    dialog.showModal();
    await new Promise((closed) => (dialog.onclose = closed));
    if (dialog.returnValue !== "forget") return;
    this.say("");
    await this.task.run(`Forgetting ${name}`, async (signal) => {
      await call("DELETE", `v1/people/${encodeURIComponent(name)}`, undefined, signal);
      this.say(`${name} is forgotten.`);
      await this.list();
      byId("people-count").focus(); // the button is gone
    });
  }
}
