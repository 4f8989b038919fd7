// Find the most prominent upright face of a photo, as facepairs/photos/{yunet,detector}.py do:
// search the whole photo, then detect the face again in upright views of itself and their mirror
// images, and take the mean. Faces that are turned by more than some 30 degrees are not searched for.

import { apply, centredSquare, cut, fitSimilarity, FRAME_PX, inverse, pixels, scaleOf } from "./geometry.js";

const STRIDES = [8, 16, 32];
const SEARCH_PX = 640;
const VIEWS = [[0.8, 136], [1.0, 160]]; // pixels per pixel of the frame, and side
const MIN_CANDIDATE = 0.6;
const MIN_SCORE = 0.84;
const MAX_VIEW_ERROR_PX = 25;
const MAX_ROUNDS = 4;
const SETTLED_PX = 2;
const MIRRORED = [1, 0, 2, 4, 3];
const UNMOVED = { cos: 1, sin: 0, x: 0, y: 0 };
// The file says 1 x 3 x 640 x 640; the network takes any size that 32 divides.
const FIXED_SHAPE = [0x0a, 2, 8, 1, 0x0a, 2, 8, 3, 0x0a, 3, 8, 0x80, 5, 0x0a, 3, 8, 0x80, 5];
const FREE_SHAPE = [0x0a, 2, 0x12, 0, 0x0a, 2, 8, 3, 0x0a, 3, 0x12, 1, 0x68, 0x0a, 3, 0x12, 1, 0x77];

export function withFreeShape(file) {
  const bytes = new Uint8Array(file);
  for (let at = 0; at + FIXED_SHAPE.length <= bytes.length; at += 1) {
    if (FIXED_SHAPE.every((byte, i) => bytes[at + i] === byte)) bytes.set(FREE_SHAPE, at);
  }
  return bytes;
}

const meanDistance = (a, b) =>
  a.reduce((sum, [x, y], i) => sum + Math.hypot(x - b[i][0], y - b[i][1]), 0) / a.length;

export class Detector {
  constructor(ort, session, template) {
    Object.assign(this, { ort, session, template });
  }

  // Return the landmarks of the most prominent face in pixels of the picture, or null.
  async find(picture) {
    const candidates = await this.search(picture);
    for (const candidate of candidates) {
      const face = await this.refine(picture, candidate);
      if (face && face.score >= MIN_SCORE) return face.landmarks;
    }
    return null;
  }

  async search(picture) {
    const scale = Math.min(1, SEARCH_PX / Math.max(picture.width, picture.height));
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.width, picture.height].map((side) =>
      Math.max(1, Math.round(side * scale)));
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.imageSmoothingQuality = "high";
    context.drawImage(picture, 0, 0, canvas.width, canvas.height);
    const back = ([x, y]) => [(x + 0.5) / scale - 0.5, (y + 0.5) / scale - 0.5];
    const found = (await this.detect(canvas, MIN_CANDIDATE)).map(({ landmarks, score }) => {
      const points = landmarks.map(back);
      return { landmarks: points, score, prominence: this.prominence(points, picture) };
    });
    return found.sort((a, b) => b.prominence - a.prominence);
  }

  prominence(landmarks, { width, height }) {
    const toFrame = fitSimilarity(landmarks, this.template);
    const [x, y] = apply(inverse(toFrame), [(FRAME_PX - 1) / 2, (FRAME_PX - 1) / 2]);
    const away = Math.hypot(x - width / 2, y - height / 2) / Math.min(width, height);
    return -Math.log(scaleOf(toFrame)) - 2 * away;
  }

  async refine(picture, face) {
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const seen = await this.detectInViews(picture, face, VIEWS.slice(-1));
      if (!seen) return null;
      const scale = scaleOf(fitSimilarity(face.landmarks, this.template));
      const moved = meanDistance(seen.landmarks, face.landmarks) * scale;
      face = seen;
      if (moved < SETTLED_PX) break;
    }
    return this.detectInViews(picture, face, VIEWS);
  }

  async detectInViews(picture, face, views) {
    const toFrame = fitSimilarity(face.landmarks, this.template);
    const found = [];
    for (const [scale, side] of views) {
      const toView = centredSquare(toFrame, scale, side);
      const expected = this.template.map((p) => apply(centredSquare(UNMOVED, scale, side), p));
      const view = cut(picture, toView, side);
      for (const mirror of [false, true]) {
        const distance = (one) => meanDistance(one.landmarks, expected);
        const [nearest] = (await this.detect(view, MIN_CANDIDATE / 2, mirror))
          .sort((a, b) => distance(a) - distance(b));
        if (nearest && distance(nearest) <= MAX_VIEW_ERROR_PX * scale) {
          const back = inverse(toView);
          found.push({ ...nearest, landmarks: nearest.landmarks.map((p) => apply(back, p)) });
        }
      }
    }
    if (!found.length) return null;
    const landmarks = this.template.map((_, i) =>
      [0, 1].map((axis) => found.reduce((sum, f) => sum + f.landmarks[i][axis], 0) / found.length));
    return { landmarks, score: found.reduce((sum, f) => sum + f.score, 0) / (2 * views.length) };
  }

  // Run the network on a canvas; return landmarks in its pixels, and scores.
  async detect(canvas, minScore, mirror = false) {
    const [width, height] = [canvas.width, canvas.height].map((side) => Math.ceil(side / 32) * 32);
    const input = new Float32Array(3 * width * height);
    const rgba = pixels(canvas);
    for (let y = 0; y < canvas.height; y += 1) {
      for (let x = 0; x < canvas.width; x += 1) {
        const from = 4 * (y * canvas.width + (mirror ? canvas.width - 1 - x : x));
        for (let channel = 0; channel < 3; channel += 1) { // BGR
          input[(channel * height + y) * width + x] = rgba[from + 2 - channel];
        }
      }
    }
    const tensor = new this.ort.Tensor("float32", input, [1, 3, height, width]);
    const outputs = await this.session.run({ input: tensor });
    const found = STRIDES.flatMap((stride) => decode(outputs, stride, width, minScore));
    if (!mirror) return found;
    return found.map(({ landmarks, score }) => ({
      score,
      landmarks: MIRRORED.map((i) => [canvas.width - 1 - landmarks[i][0], landmarks[i][1]]),
    }));
  }
}

function decode(outputs, stride, width, minScore) {
  const [cls, obj, points] = ["cls", "obj", "kps"].map((kind) => outputs[`${kind}_${stride}`].data);
  const columns = width / stride;
  const found = [];
  cls.forEach((value, cell) => {
    const score = Math.sqrt(Math.min(1, Math.max(0, value * obj[cell])));
    if (score < minScore) return;
    const [column, row] = [cell % columns, Math.floor(cell / columns)];
    const landmarks = [0, 1, 2, 3, 4].map((i) => [
      (points[10 * cell + 2 * i] + column) * stride,
      (points[10 * cell + 2 * i + 1] + row) * stride,
    ]);
    found.push({ landmarks, score });
  });
  return found;
}
