/** Progress, the error, and a button to try again: of one part of the page, in one place. */

import { element } from "./elements.js";
import { needsToken } from "./api.js";

const PHOTO = /^(image|photo \d+): /; // the server's name of a photo that stands beside the message
const PATIENCE_MS = 400; // quick answers need no progress

export class Task {
  /** @param {Element} place An empty element. */
  constructor(place) {
    this.bar = element("progress", { "aria-label": "Working" });
    this.seconds = element("span", { "aria-hidden": "true" });
    this.progress = element("p", { role: "status", class: "progress" });
    this.problem = element("p", { role: "alert", class: "problem" });
    this.again = element("button", { type: "button" }, "Try again");
    this.again.hidden = true;
    place.replaceChildren(this.progress, this.problem, this.again);
  }

  /** Forget what runs and what went wrong. */
  stop() {
    this.running?.abort();
    this.running = undefined;
    clearInterval(this.clock);
    this.progress.replaceChildren();
    this.problem.textContent = "";
    this.again.hidden = true;
  }

  /**
   * Run an action in place of the one that runs; show its progress and its error.
   *
   * @param {string} label What is done, such as `Looking for faces`.
   * @param {function(AbortSignal): Promise} action
   * @returns {Promise<boolean>} Whether it was done.
   */
  async run(label, action) {
    this.stop();
    const running = (this.running = new AbortController());
    const begin = performance.now();
    this.clock = setInterval(() => this.showProgress(label, begin), PATIENCE_MS);
    try {
      await action(running.signal);
      return true;
    } catch (error) {
      if (running !== this.running) return false;
      this.fail(error, () => this.run(label, action));
      if (needsToken(error)) document.dispatchEvent(new CustomEvent("token-needed"));
      return false;
    } finally {
      if (running === this.running) {
        clearInterval(this.clock);
        this.progress.replaceChildren();
      }
    }
  }

  /** Show what went wrong, and offer to do it again if that may help. */
  fail(error, again) {
    this.problem.textContent = error.message.replace(PHOTO, "");
    this.again.hidden = !error.again;
    this.again.onclick = again;
  }

  showProgress(label, begin) {
    const seconds = Math.round((performance.now() - begin) / 1000);
    if (!this.bar.isConnected) this.progress.replaceChildren(this.bar, element("span", {}, label), this.seconds);
    this.seconds.textContent = seconds > 1 ? ` (${seconds} s)` : "";
  }
}
