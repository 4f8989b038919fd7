// Similarity transforms, as facepairs/photos/crop.py and facepairs/photos/frame.py have them.
// A map is {cos, sin, x, y}: (px, py) -> (cos px - sin py + x, sin px + cos py + y).
// Points are positions of pixel centres: the first pixel is at (0, 0).

const WEIGHTS = [1, 1, 0.43, 0.62, 0.62]; // of the landmarks: eyes, nose tip, mouth corners
export const FRAME_PX = 250;

export const apply = (map, [px, py]) => [
  map.cos * px - map.sin * py + map.x,
  map.sin * px + map.cos * py + map.y,
];

export function inverse({ cos, sin, x, y }) {
  const size = cos * cos + sin * sin;
  const [c, s] = [cos / size, -sin / size];
  return { cos: c, sin: s, x: -(c * x - s * y), y: -(s * x + c * y) };
}

export const scaleOf = (map) => Math.hypot(map.cos, map.sin);

// The similarity that brings landmarks closest to the template of the canonical frame.
export function fitSimilarity(landmarks, template, weights = WEIGHTS) {
  const total = weights.reduce((a, b) => a + b);
  const mean = (points) =>
    [0, 1].map((axis) => points.reduce((sum, p, i) => sum + weights[i] * p[axis], 0) / total);
  const [from, to] = [mean(landmarks), mean(template)];
  let [size, cos, sin] = [0, 0, 0];
  landmarks.forEach(([px, py], i) => {
    const [dx, dy] = [px - from[0], py - from[1]];
    const [tx, ty] = [template[i][0] - to[0], template[i][1] - to[1]];
    size += weights[i] * (dx * dx + dy * dy);
    cos += weights[i] * (dx * tx + dy * ty);
    sin += weights[i] * (dx * ty - dy * tx);
  });
  [cos, sin] = [cos / size, sin / size];
  return { cos, sin, x: to[0] - cos * from[0] + sin * from[1], y: to[1] - sin * from[0] - cos * from[1] };
}

// The map to the centre square of a frame, `scale` pixels of the square per pixel of the frame.
export function centredSquare(toFrame, scale, sidePx) {
  const shift = (sidePx - scale * FRAME_PX + scale - 1) / 2;
  return {
    cos: toFrame.cos * scale,
    sin: toFrame.sin * scale,
    x: toFrame.x * scale + shift,
    y: toFrame.y * scale + shift,
  };
}

// Cut a turned square out of a picture; what lies outside of the picture is black.
export function cut(picture, toSquare, sidePx) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = sidePx;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.fillRect(0, 0, sidePx, sidePx);
  context.imageSmoothingQuality = scaleOf(toSquare) > 0.5 ? "low" : "high"; // low: bilinear
  const { cos, sin, x, y } = toSquare; // a canvas counts from the pixels' corners
  context.setTransform(cos, sin, -sin, cos, x + 0.5 - (cos - sin) / 2, y + 0.5 - (sin + cos) / 2);
  context.drawImage(picture, 0, 0);
  return canvas;
}

export const pixels = (canvas) =>
  canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
