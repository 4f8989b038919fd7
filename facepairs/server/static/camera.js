/** A photo from the camera: asked for, shown only here, and turned off afterwards. */

import { byId } from "./elements.js";

const REFUSED = {
  NotAllowedError: "The browser does not allow this page to use the camera.",
  NotFoundError: "No camera was found.",
};

/** Ask for consent, and return a photo as a File; undefined if none was taken. */
export function takePhoto() {
  const dialog = byId("camera");
  const find = (selector) => dialog.querySelector(selector);
  const video = find("video");
  const show = (running) => {
    find(".start").hidden = running;
    find(".take").hidden = video.hidden = !running;
  };
  let stream;
  let file;
  find(".problem").textContent = "";
  show(false);
  find(".start").onclick = async () => {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "user" }, audio: false });
    } catch (error) {
      find(".problem").textContent = REFUSED[error.name] ?? `The camera cannot be used: ${error.message}`;
      return;
    }
    if (!dialog.open) return stopCamera(stream); // cancelled meanwhile
    video.srcObject = stream;
    show(true);
    await video.play();
    find(".take").focus();
  };
  find(".take").onclick = async () => {
    file = await photograph(video);
    dialog.close();
  };
  find(".cancel").onclick = () => dialog.close();
  dialog.showModal();
  return new Promise((done) => {
    dialog.onclose = () => {
      stopCamera(stream);
      video.srcObject = null;
      done(file);
    };
  });
}

function stopCamera(stream) {
  stream?.getTracks().forEach((track) => track.stop());
}

function photograph(video) {
  const canvas = document.createElement("canvas");
  canvas.width = video.videoWidth;
  canvas.height = video.videoHeight;
  canvas.getContext("2d").drawImage(video, 0, 0);
  return new Promise((done) => {
    canvas.toBlob((blob) => done(new File([blob], "camera.jpg", { type: blob.type })), "image/jpeg", 0.95);
  });
}
