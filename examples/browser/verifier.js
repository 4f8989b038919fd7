// Verify two photos with a network of `facepairs export default --out model` (or any aligned bundle
// of embeddings), and the face detector beside it.

import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.bundle.min.mjs";
import { Detector, withFreeShape } from "./detector.js";
import { centredSquare, cut, fitSimilarity, FRAME_PX, pixels } from "./geometry.js";

const LARGE_PX = 1600; // larger photos are shrunk first

ort.env.wasm.numThreads = 1; // more need headers that a plain file server does not send

async function load(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path} is missing; see docs/how-to/export.md`);
  return answer;
}

export async function loadVerifier(folder) {
  const record = await (await load(`${folder}/export.json`)).json();
  if (record.kind !== "embedding" || record.alignment !== "landmarks-5") {
    throw new Error("this page needs a bundle of embeddings that aligns faces");
  }
  const open = async (name, change = (file) => new Uint8Array(file)) =>
    ort.InferenceSession.create(change(await (await load(`${folder}/${name}`)).arrayBuffer()));
  const network = await open(record.file);
  const yunet = await open("face_detection_yunet_2023mar.onnx", withFreeShape);
  return new Verifier(record, network, new Detector(ort, yunet, record.template));
}

class Verifier {
  constructor(record, network, detector) {
    Object.assign(this, { record, network, detector });
  }

  // Compare two files; return score, probability, the crops and the time.
  async verify(left, right) {
    const begun = performance.now();
    const faces = [await this.embed(left), await this.embed(right)];
    const [a, b] = faces.map((face) => face.embedding);
    const score = a.reduce((sum, value, i) => sum + value * b[i], 0);
    const { scale, offset } = this.record.calibration;
    return {
      score,
      probability: 1 / (1 + Math.exp(-(scale * score + offset))),
      crops: faces.map((face) => face.crop),
      ms: performance.now() - begun,
    };
  }

  async embed(file) {
    const crop = await this.crop(file);
    const side = crop.width;
    const rgb = pixels(crop).filter((_, i) => i % 4 < 3);
    const tensor = new ort.Tensor("uint8", new Uint8Array(rgb), [1, side, side, 3]);
    const outputs = await this.network.run({ [this.record.inputs[0]]: tensor });
    return { crop, embedding: outputs[this.record.output].data };
  }

  // Return the aligned crop that the network takes, as a canvas.
  async crop(file) {
    const picture = await decode(file);
    const landmarks = await this.detector.find(picture);
    if (!landmarks) throw new Error(`${file.name}: no upright face found`);
    const { frame_px: frame, crop_px: side, points } = this.record.framing;
    if (points) return cut(picture, fitSimilarity(landmarks, points, [1, 1, 1, 1, 1]), side);
    const toFrame = fitSimilarity(landmarks, this.record.template);
    return cut(picture, centredSquare(toFrame, frame / FRAME_PX, side), side);
  }
}

// Decode a file upright, its longer side at most LARGE_PX.
async function decode(file) {
  const picture = await createImageBitmap(file).catch(() => {
    throw new Error(`${file.name}: not an image that this browser can read`);
  });
  const scale = LARGE_PX / Math.max(picture.width, picture.height);
  if (scale >= 1) return picture;
  const [resizeWidth, resizeHeight] = [picture.width, picture.height].map((side) => Math.round(side * scale));
  return createImageBitmap(picture, { resizeWidth, resizeHeight, resizeQuality: "high" });
}
