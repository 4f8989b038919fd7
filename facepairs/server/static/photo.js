/** One photo: choose, drop, paste or take it; see its faces, and choose one of several. */

import { call } from "./api.js";
import { takePhoto } from "./camera.js";
import { byId, element, shape } from "./elements.js";
import { Task } from "./task.js";

let slots = 0;
let maxBytes = Infinity;

export function setMaxBytes(count) {
  maxBytes = count;
}

/** Return why the server would refuse a file, or "": it may stop listening in the midst of a large one. */
export function tooLarge(file) {
  if (file.size <= maxBytes) return "";
  const [size, most] = [file.size, maxBytes].map((count) => (count / 2 ** 20).toFixed(1));
  return `${file.name} has ${size} MB, and the server takes ${most} at most; shrink it.`;
}

export class Photo {
  /**
   * @param {Element} place Is replaced.
   * @param {string} name What the page calls the photo.
   * @param {function(): void} changed Called when the photo or the chosen face is another one.
   */
  constructor(place, name, changed) {
    this.name = name;
    this.changed = changed;
    this.root = byId("slot").content.firstElementChild.cloneNode(true);
    this.find = (selector) => this.root.querySelector(selector);
    this.group = `face-${(slots += 1)}`;
    this.root.setAttribute("aria-label", name);
    this.find("h2").textContent = name;
    for (const part of ["input[type=file]", ".camera", ".remove"]) {
      const words = this.find(part).textContent || "Choose a file";
      this.find(part).setAttribute("aria-label", `${words}: ${name}`);
    }
    this.task = new Task(this.find(".task"));
    this.clear();
    this.listen();
    place.replaceWith(this.root);
  }

  listen() {
    const input = this.find("input[type=file]");
    input.addEventListener("change", () => {
      if (input.files.length) this.use(input.files[0]);
      input.value = ""; // so that the same file can be chosen again
    });
    this.find(".remove").addEventListener("click", () => {
      this.clear();
      input.focus();
      this.changed();
    });
    const camera = this.find(".camera");
    camera.hidden = !navigator.mediaDevices?.getUserMedia; // not offered to pages without HTTPS
    camera.addEventListener("click", async () => {
      const file = await takePhoto();
      if (file) this.use(file);
    });
    const drop = this.find(".drop");
    for (const kind of ["dragenter", "dragover", "dragleave", "drop"]) {
      drop.addEventListener(kind, (event) => {
        event.preventDefault();
        drop.classList.toggle("over", kind === "dragenter" || kind === "dragover");
      });
    }
    drop.addEventListener("drop", (event) => {
      const [file] = event.dataTransfer.files;
      if (file) this.use(file);
    });
    this.find("img").addEventListener("error", () => {
      this.find(".invite").textContent = "Your browser cannot show photos of this format.";
      this.find(".invite").hidden = false;
      this.find(".photo").hidden = true;
    });
  }

  /** The face that was chosen; undefined before any was found. */
  get face() {
    return this.faces[this.chosen];
  }

  /** What requests need: the file under `name`, and which of several faces counts. */
  fields(name, face) {
    return this.faces.length > 1
      ? { [name]: this.file, [face]: String(this.face.number) }
      : { [name]: this.file };
  }

  clear() {
    this.task.stop();
    this.file = undefined;
    this.faces = [];
    this.chosen = 0;
    URL.revokeObjectURL(this.find("img").src);
    this.find("img").removeAttribute("src");
    this.find("svg").replaceChildren();
    for (const part of [".photo", ".remove", ".faces", ".seen"]) this.find(part).hidden = true;
    this.find(".invite").hidden = false;
    this.find(".invite").textContent = "Drop a photo here, or paste one.";
  }

  /** Show a file and look for its faces. */
  async use(file) {
    this.clear();
    this.file = file;
    this.changed();
    this.find("img").src = URL.createObjectURL(file);
    this.find("img").alt = `${this.name}: ${file.name}`;
    this.find(".invite").hidden = true;
    this.find(".photo").hidden = false;
    this.find(".remove").hidden = false;
    await this.look();
  }

  /** Look for faces in the photo, if there is one and none was found yet. */
  look() {
    if (!this.file || this.faces.length) return undefined;
    return this.task.run("Looking for faces", async (signal) => {
      if (tooLarge(this.file)) throw new Error(tooLarge(this.file));
      const found = await call("POST", "v1/detect", { image: this.file, crops: "true" }, signal);
      this.faces = found.faces;
      this.draw(found.width, found.height);
      this.list();
      this.choose(0);
    });
  }

  draw(width, height) {
    const overlay = this.find("svg");
    overlay.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const groups = this.faces.map(({ box, landmarks }, number) => {
      const group = shape("g", {});
      if (!box) return group; // the model looks at the whole image
      const [x, y, side] = box;
      group.append(shape("rect", { x, y, width: side, height: side }));
      for (const [cx, cy] of landmarks) group.append(shape("circle", { cx, cy, r: side / 80 }));
      group.addEventListener("click", () => this.choose(number));
      return group;
    });
    overlay.replaceChildren(...groups);
  }

  /** List several faces as radio buttons. */
  list() {
    const fieldset = this.find(".faces");
    fieldset.hidden = this.faces.length < 2;
    const legend = element("legend", {}, `${this.faces.length} faces: choose one`);
    const choices = this.faces.map((face, number) => {
      const radio = element("input", { type: "radio", name: this.group, value: number });
      radio.addEventListener("change", () => this.choose(number));
      const picture = element("img", { src: face.crop, alt: "" });
      return element("label", {}, radio, picture, `face ${face.number}, ${face.box?.[2] ?? 0} pixels`);
    });
    fieldset.replaceChildren(legend, ...choices);
  }

  choose(number) {
    this.chosen = number;
    const face = this.face;
    const radios = this.find(".faces").querySelectorAll("input");
    radios.forEach((radio, at) => (radio.checked = at === number));
    this.find("svg").childNodes.forEach((group, at) => group.classList.toggle("chosen", at === number));
    this.find(".seen").hidden = false;
    this.find(".seen img").src = face.crop;
    this.find(".seen .note").textContent = `The model sees this: ${face.description}.`;
    this.find(".hints").replaceChildren(...face.hints.map((hint) => element("li", {}, hint.text)));
    this.changed();
  }
}

/** Give pasted pictures to the photo that has the focus, else to the first that is empty. */
export function listenForPaste(photos) {
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (!file) return;
    event.preventDefault();
    const focused = photos.find((photo) => photo.root.contains(document.activeElement));
    (focused ?? photos.find((photo) => !photo.file) ?? photos[0]).use(file);
  });
}
