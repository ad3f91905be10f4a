// Asks a filter at an address for a password: the page `uses/breached-passwords`. Nothing but ranges of bytes is
// requested.
import { openRemote } from "./petal-filters/petal.js";

const STRINGS = {
  en: {
    filter: "Filter",
    password: "Password",
    ask: "Ask",
    asking: "Asking …",
    answer: (found, hashes, bytes, requests) =>
      `${found ? "On the list, perhaps." : "Certainly not on the list."} ${hashes} hashes in a file of ${bytes} bytes; ` +
      `requests for this password: ${requests}.`,
    transform: (name) => `this page makes SHA-1 alone, not ${name}`,
    insecure: "a browser makes SHA-1 on pages of https:// and of this machine alone",
  },
  zh: {
    filter: "过滤器",
    password: "密码",
    ask: "查询",
    asking: "正在查询……",
    answer: (found, hashes, bytes, requests) =>
      `${found ? "可能在名单上。" : "一定不在名单上。"}文件 ${bytes} 字节，共 ${hashes} 个哈希；这次查询发出 ${requests} 个请求。`,
    transform: (name) => `这个页面只会算 SHA-1，不会算 ${name}`,
    insecure: "浏览器只在 https:// 的页面和本机的页面上计算 SHA-1",
  },
};

const root = document.getElementById("petal-remote");
const text = STRINGS[root?.dataset.lang] ?? STRINGS.en;

const hex = (bytes) => Array.from(new Uint8Array(bytes), (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Returns the key of a password: what `petal check` makes of it, by the metadata of the filter. */
async function keyOf(password, metadata) {
  const { query_transform, key_transform, hex: shape } = metadata ? JSON.parse(metadata) : {};
  const transform = query_transform ?? key_transform;
  if (transform === undefined) return password;
  if (transform !== "sha1") throw new Error(text.transform(transform));
  if (!crypto.subtle) throw new Error(text.insecure);
  const digits = hex(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(password)));
  return shape?.case === "upper" ? digits.toUpperCase() : digits;
}

if (root) {
  root.innerHTML = `
    <form class="petal-form">
      <label>${text.filter} <input id="petal-remote-url" size="60" required></label>
      <label>${text.password} <input id="petal-remote-key" autocomplete="off" required></label>
      <button>${text.ask}</button>
    </form>
    <p class="petal-message" role="status" aria-live="polite"></p>`;
  const [url, key, message] = ["#petal-remote-url", "#petal-remote-key", ".petal-message"].map((css) => root.querySelector(css));
  url.value = new URL(root.dataset.filter, location.href).href;
  const button = root.querySelector("button");
  let opened;

  root.querySelector("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    message.textContent = text.asking;
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
      const [hashes, bytes] = [inserted, sizeBytes].map((number) => number.toLocaleString("en"));
      message.textContent = text.answer(found, hashes, bytes, requests);
      root.dataset.state = found ? "present" : "absent";
    } catch (error) {
      message.textContent = error.message;
      root.dataset.state = "error";
    } finally {
      button.disabled = key.disabled = url.disabled = false;
    }
  });
}
