// Asks a filter at an address for a password: the page `uses/breached-passwords`. Nothing but ranges of bytes is
// requested.
import { openRemote } from "./petal-filters/petal.js";

const root = document.getElementById("petal-remote");

const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the key of a password: what `petal check` makes of it, by the metadata of the filter. */
async function keyOf(text, metadata) {
  const { query_transform, key_transform, hex: shape } = metadata ? JSON.parse(metadata) : {};
  const transform = query_transform ?? key_transform;
  if (transform === undefined) return text;
  if (transform !== "sha1") throw new Error(`this page makes SHA-1 alone, not ${transform}`);
  if (!crypto.subtle) throw new Error("a browser makes SHA-1 on pages of https:// and of this machine alone");
  const digits = hex(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  return shape?.case === "upper" ? digits.toUpperCase() : digits;
}

if (root) {
  root.innerHTML = `
    <form class="petal-form">
      <label>Filter <input id="petal-remote-url" size="60" required></label>
      <label>Password <input id="petal-remote-key" autocomplete="off" required></label>
      <button>Ask</button>
    </form>
    <p class="petal-message" role="status" aria-live="polite"></p>`;
  const [url, key, message] = ["#petal-remote-url", "#petal-remote-key", ".petal-message"].map((css) => root.querySelector(css));
  url.value = new URL(root.dataset.filter, location.href).href;
  const button = root.querySelector("button");
  let opened;

  root.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    message.textContent = "Asking …";
    delete root.dataset.state;
    // The next question waits for this answer.
    button.disabled = key.disabled = url.disabled = true;
    try {
      const address = new URL(url.value, location.href).href;
      if (opened?.address !== address) {
        opened?.filter.close();
        opened = undefined;
        opened = { address, filter: await openRemote(address) };
      }
      const { filter } = opened;
      const { inserted, sizeBytes, metadata } = filter.info();
      performance.clearResourceTimings();
      const found = await filter.has(await keyOf(key.value, metadata));
      const requests = performance.getEntriesByType("resource").filter((entry) => entry.name === address).length;
      message.textContent =
        `${found ? "On the list, perhaps." : "Certainly not on the list."} ${inserted.toLocaleString("en")} hashes in a ` +
        `file of ${sizeBytes.toLocaleString("en")} bytes; requests for this password: ${requests}.`;
      root.dataset.state = found ? "present" : "absent";
    } catch (error) {
      message.textContent = error.message;
      root.dataset.state = "error";
    } finally {
      button.disabled = key.disabled = url.disabled = false;
    }
  });
}
