/** The verdict on two photos, and what another threshold would make of it. */

import { call, curlCommand } from "./api.js";
import { Curve } from "./curve.js";
import { byId, element, fillRows } from "./elements.js";
import { Task } from "./task.js";
import { errorsAt, oneIn, wordsAt } from "./words.js";

const STEPS = 250;
const KINDS = { "same person": "same", "not confirmed": "unsure", "different people": "different" };

export class VerdictPanel {
  /** @param {Photo[]} photos The two that are compared. */
  constructor(photos) {
    this.photos = photos;
    const place = element("div");
    byId("words").before(place);
    this.task = new Task(place);
    this.slider = byId("threshold");
    this.slider.addEventListener("input", () => this.explain());
    byId("reset").addEventListener("click", () => {
      this.slider.value = this.result.operating_point.threshold;
      this.explain(this.result.operating_point.threshold);
    });
    byId("copy-curl").addEventListener("click", () => copy("curl"));
    byId("copy-json").addEventListener("click", () => copy("json"));
  }

  /** @param {object} model The answer of `v1/model`. */
  setModel(model) {
    this.model = model;
    const table = model.curve;
    byId("threshold-part").hidden = !table;
    if (!table) return;
    this.curve = new Curve(byId("curve"), table);
    const { least, most } = this.curve;
    Object.assign(this.slider, { min: least, max: most, step: (most - least) / STEPS });
    byId("measured").textContent = `Measured on ${table.measured_on}.`;
  }

  /** Compare the photos, if both show a face; else wait. */
  async update() {
    this.task.stop();
    byId("answer").hidden = true;
    byId("words").textContent = "";
    byId("verdict").dataset.verdict = "";
    const ready = this.photos.every((photo) => photo.face);
    byId("verdict-invite").hidden = ready;
    if (!ready) return;
    const [left, right] = this.photos;
    const fields = { ...left.fields("left", "left_face"), ...right.fields("right", "right_face") };
    await this.task.run("Comparing the faces", async (signal) => {
      this.show(await call("POST", "v1/verify", { ...fields, describe: "true" }, signal), fields);
    });
  }

  show(result, fields) {
    this.result = result;
    this.fields = fields;
    const [[, words], ...rows] = result.description;
    byId("words").textContent = words;
    byId("verdict").dataset.verdict = KINDS[result.verdict] ?? "";
    fillRows(byId("rows"), rows);
    const { description, ...json } = result; // the same in words
    byId("json").textContent = JSON.stringify(json, null, 2);
    byId("copied").textContent = "";
    byId("answer").hidden = false;
    if (this.curve && result.operating_point.threshold !== null) {
      this.curve.mark(this.curve.score, result.score);
      this.slider.value = result.operating_point.threshold;
      this.explain(result.operating_point.threshold);
    } else byId("curl").textContent = curlCommand("v1/verify", fields);
  }

  /** Say what the slider's threshold would mean. */
  explain(threshold = Number(this.slider.value)) {
    const { score, probability } = this.result;
    const { fmr, lookalike_fmr: alike, fnmr } = errorsAt(this.model.curve, threshold);
    const words = wordsAt(score, probability, threshold);
    const side = score >= threshold ? "reaches" : "is below";
    const passing = `${oneIn(fmr)} would pass`;
    fillRows(byId("errors"), [
      ["verdict", `${words}: the score ${score.toFixed(4)} ${side} it`],
      ["strangers", passing],
      ...(alike ? [["strangers who look alike", `${oneIn(alike)} would pass`]] : []),
      ["genuine pairs", `${oneIn(fnmr)} would be missed`],
    ]);
    this.curve.mark(this.curve.threshold, threshold);
    byId("threshold-value").textContent = threshold.toFixed(4);
    this.slider.setAttribute("aria-valuetext", `${threshold.toFixed(3)}: ${words}; of strangers, ${passing}`);
    const other = threshold === this.result.operating_point.threshold ? {} : { threshold: threshold.toFixed(4) };
    byId("reset").hidden = threshold === this.result.operating_point.threshold;
    byId("curl").textContent = curlCommand("v1/verify", { ...this.fields, ...other });
  }
}

async function copy(id) {
  try {
    await navigator.clipboard.writeText(byId(id).textContent);
    byId("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(byId(id));
    byId("copied").textContent = "Press Ctrl+C to copy.";
  }
}
