/** Errors at a threshold, in the words of `facepairs verify`: see bundles/rates.py. */

const ROUNDING = { roundingMode: "halfEven" }; // Python's
const whole = new Intl.NumberFormat("en", { ...ROUNDING, maximumFractionDigits: 0 });
const twoDigits = new Intl.NumberFormat("en", { ...ROUNDING, maximumSignificantDigits: 2 });

/** Return a rate [rate, low, high] in words: `1 in 16`, `36 in 100`, or `fewer than 1 in 900`. */
export function oneIn([rate, , high]) {
  if (rate > 0) return rate < 0.2 && high > 2 * rate ? `${words(rate)} (at most ${words(high)})` : words(rate);
  return high > 0 ? `fewer than ${words(high)}` : "none";
}

/** Return a share above 0 in words. */
function words(share) {
  if (share >= 0.2) return `${whole.format(100 * share)} in 100`;
  return `1 in ${(share > 0.1 ? whole : twoDigits).format(1 / share)}`;
}

/** Return the rates of a table of errors at a threshold, interpolated between two rows of it. */
export function errorsAt(table, threshold) {
  const { thresholds, fmr, lookalike_fmr: alike, fnmr } = table;
  const next = thresholds.findIndex((one) => one > threshold);
  const below = Math.max(0, (next < 0 ? thresholds.length : next) - 1);
  const above = Math.min(below + 1, thresholds.length - 1);
  const [low, high] = [thresholds[below], thresholds[above]];
  const share = low < threshold && threshold < high ? (threshold - low) / (high - low) : 0;
  const at = (rows) => rows[below].map((value, column) => value + share * (rows[above][column] - value));
  return { fmr: at(fmr), lookalike_fmr: alike ? at(alike) : null, fnmr: at(fnmr) };
}

/** Return the verdict on a score at a threshold, as `Verdict.words`. */
export function wordsAt(score, probability, threshold) {
  if (score >= threshold) return "same person";
  return probability !== null && probability >= 0.5 ? "not confirmed" : "different people";
}
