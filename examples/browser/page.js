// The page: two files in, a verdict out.

import { loadVerifier } from "./verifier.js";

const verdict = document.getElementById("verdict");
const inputs = ["left", "right"].map((id) => document.getElementById(id));

function show(result, record) {
  const same = result.score >= record.verify_threshold;
  verdict.value = [
    same ? "same person" : "not confirmed as the same person",
    `errors: at this threshold ${record.verify_errors}`,
    `score ${result.score.toFixed(4)} (threshold ${record.verify_threshold.toFixed(4)})`,
    `probability ${result.probability.toFixed(3)} at equal priors`,
    `${Math.round(result.ms)} ms`,
  ].join("\n");
  verdict.dataset.score = result.score;
  document.getElementById("crops").replaceChildren(...result.crops);
}

async function compare(verifier) {
  const files = inputs.map((input) => input.files[0]);
  if (!files[0] || !files[1]) return;
  verdict.value = "Comparing …";
  try {
    show(await verifier.verify(...files), verifier.record);
  } catch (error) {
    verdict.value = `Error: ${error.message}`;
  }
}

try {
  const verifier = await loadVerifier("model");
  for (const input of inputs) {
    input.disabled = false;
    input.addEventListener("change", () => compare(verifier));
  }
  verdict.value = "Choose two photos.";
} catch (error) {
  verdict.value = `Error: ${error.message}`;
}
