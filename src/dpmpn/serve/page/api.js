// Talks to the server: errors in one shape, one retry where it is busy, a token where it wants one.
import { announce, byId } from "./words.js";

const TOKEN = "dpmpn token";
const LONGEST_WAIT = 5; // seconds before the one retry

export class Problem extends Error {
  constructor(code, message, near = []) {
    super(message);
    this.code = code;
    this.near = near;
  }
}

export const isAbort = (error) => error.name === "AbortError";

export const get = async (path, query, signal) =>
  (await answered(`${path}?${new URLSearchParams(query)}`, { signal })).json();

export const post = async (path, body, signal) =>
  (await answered(path, {
    method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, signal,
  })).json();

// A file, and the name the server gives it.
export async function download(address) {
  const response = await answered(address, {});
  const name = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition") ?? "");
  return { blob: await response.blob(), name: name?.[1] ?? "explanation" };
}

async function answered(address, options) {
  let response = await sent(address, options);
  while (response.status === 401) {
    await askForToken();
    response = await sent(address, options);
  }
  if (response.status === 503 && response.headers.has("Retry-After")) {
    announce("The server is busy; trying again.");
    await pause(Math.min(LONGEST_WAIT, +response.headers.get("Retry-After") || 1), options.signal);
    response = await sent(address, options);
  }
  if (response.ok) return response;
  throw await problemOf(response);
}

async function sent(address, options) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  try {
    return await fetch(address, { ...options, headers });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new Problem("gone", "The server is not responding. Is it still running?");
  }
}

async function problemOf(response) {
  try {
    const { error } = await response.json();
    return new Problem(error.code, error.message, error.near);
  } catch {
    return new Problem("internal", `The server answered with status ${response.status} and no message.`);
  }
}

const pause = (seconds, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });

let asking = null; // requests that find the token missing at the same time ask once

function askForToken() {
  asking ??= new Promise((resolve, reject) => {
    const dialog = byId("token"), text = byId("token-text"), ending = new AbortController(), { signal } = ending;
    const end = (how, ...given) => {
      ending.abort();
      asking = null;
      dialog.close();
      how(...given);
    };
    byId("token-problem").textContent = sessionStorage.getItem(TOKEN) ? "That is not the token of this server." : "";
    byId("token-form").addEventListener("submit", (event) => {
      event.preventDefault();
      // What no header can hold is no token.
      sessionStorage.setItem(TOKEN, text.value.replace(/[^\x21-\x7e]/g, "") || "-");
      text.value = "";
      end(resolve);
    }, { signal });
    const cancel = () => end(reject, new Problem("unauthorised", "This server answers only requests that carry its token."));
    byId("token-cancel").addEventListener("click", cancel, { signal });
    dialog.addEventListener("cancel", cancel, { signal });
    dialog.showModal();
  });
  return asking;
}
