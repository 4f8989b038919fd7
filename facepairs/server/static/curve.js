/** The errors of a model at every threshold, as a figure above the slider. */

import { element, shape } from "./elements.js";

const WIDTH = 1000;
const HEIGHT = 200;
const DECADES = 4; // from 100 % down to 0.01 %
const KINDS = [
  ["fmr", "strangers who pass"],
  ["lookalike_fmr", "strangers who look alike and pass"],
  ["fnmr", "genuine pairs missed"],
];

export class Curve {
  /**
   * @param {Element} place An empty element.
   * @param {object} table `curve` of `v1/model`.
   */
  constructor(place, table) {
    const { thresholds } = table;
    [this.least, this.most] = [thresholds[0], thresholds.at(-1)];
    const figure = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (let decade = 1; decade < DECADES; decade += 1) {
      const y = (HEIGHT * decade) / DECADES;
      figure.append(shape("line", { class: "grid", x1: 0, x2: WIDTH, y1: y, y2: y }));
    }
    const kinds = KINDS.filter(([kind]) => table[kind]);
    for (const [kind] of kinds) {
      const points = table[kind].map(([rate], at) => `${this.x(thresholds[at])},${height(rate)}`);
      figure.append(shape("polyline", { class: kind, points: points.join(" ") }));
    }
    this.score = shape("line", { class: "score", y1: 0, y2: HEIGHT });
    this.threshold = shape("line", { class: "threshold", y1: 0, y2: HEIGHT });
    figure.append(this.score, this.threshold);
    const scale = ["100 %", "10 %", "1 %", "0.1 %", "0.01 %"].map((text) => element("span", {}, text));
    const legend = [...kinds, ["score", "score of these photos"], ["threshold", "threshold"]].map(
      ([kind, text]) => element("li", { class: kind }, text),
    );
    place.replaceChildren(
      element("div", { class: "scale", "aria-hidden": "true" }, ...scale),
      figure,
      element("ul", { class: "legend" }, ...legend),
    );
  }

  x(threshold) {
    const share = (threshold - this.least) / (this.most - this.least);
    return WIDTH * Math.min(1, Math.max(0, share));
  }

  /** Mark the score of a pair, or the threshold. */
  mark(line, value) {
    for (const end of ["x1", "x2"]) line.setAttribute(end, this.x(value));
  }
}

function height(rate) {
  const decades = rate > 0 ? -Math.log10(rate) : DECADES;
  return (HEIGHT * Math.min(DECADES, decades)) / DECADES;
}
