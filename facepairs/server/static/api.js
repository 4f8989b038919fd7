/** Requests to the server that this page comes from. */

const GONE = "The server does not answer. See whether facepairs serve is still running, then try again.";
const SECRET = "The server asks for its token.";
const WRONG = "The server does not accept this token.";
let token = ""; // in memory only

const PASSING = [408, 429]; // and all from 500 on

/** What is wrong, in words; `again` says whether the same request may succeed later. */
export class ApiError extends Error {
  constructor(kind, message, again) {
    super(message);
    this.kind = kind;
    this.again = again;
  }
}

export const needsToken = (error) => error.kind === "token";

export function setToken(text) {
  token = text;
}

/** Return the absolute address of a path such as `v1/verify`; the server may run below a prefix. */
const address = (path) => new URL(path, document.baseURI).href;

/**
 * Send a request and return the object that the server answers.
 *
 * @param {string} method
 * @param {string} path
 * @param {Object<string, string|File>} fields Sent as a form; without any, no body is sent.
 * @param {AbortSignal} signal
 * @throws {ApiError} The server refuses the request, or does not answer.
 */
export async function call(method, path, fields, signal) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  let body;
  if (fields) {
    body = new FormData();
    for (const [name, value] of Object.entries(fields)) body.append(name, value);
  }
  let response;
  try {
    response = await fetch(address(path), { method, headers, body, signal, cache: "no-store" });
  } catch (error) {
    throw error.name === "AbortError" ? error : new ApiError("gone", GONE, true);
  }
  const text = await response.text();
  let answer;
  try {
    answer = text ? JSON.parse(text) : {};
  } catch {
    throw new ApiError("answer", `The server answers ${response.status}, but not in JSON.`, true);
  }
  if (response.ok) return answer;
  if (response.status === 401) throw new ApiError("token", token ? WRONG : SECRET, true);
  const { kind, message } = answer.error ?? {};
  const again = response.status >= 500 || PASSING.includes(response.status);
  throw new ApiError(kind, message ?? `The server answers ${response.status}.`, again);
}

/** Return a request as a command for a shell; it names the token's variable, not the token. */
export function curlCommand(path, fields) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const secret = token ? ['-H "Authorization: Bearer $FACEPAIRS_TOKEN"'] : [];
  const parts = Object.entries(fields).map(([name, value]) =>
    `-F ${quote(value instanceof File ? `${name}=@${value.name}` : `${name}=${value}`)}`,
  );
  return ["curl", ...secret, ...parts, quote(address(path))].join(" ");
}
