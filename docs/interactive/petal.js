// The library, compiled to WebAssembly: petal.ready is a promise, after which petal.ask(request) returns an answer.
// `cargo x book` writes petal-wasm.js, which has the bytes of the module in base64, so that the pages also work as
// files without a server.
"use strict";

const petal = (() => {
  let exports;

  function ask(request) {
    const text = new TextEncoder().encode(JSON.stringify(request));
    const at = exports.petal_request(text.length);
    new Uint8Array(exports.memory.buffer, at, text.length).set(text);
    exports.petal_call();
    const answer = new Uint8Array(exports.memory.buffer, exports.petal_answer(), exports.petal_answer_length());
    return JSON.parse(new TextDecoder().decode(answer));
  }

  const bytes = Uint8Array.from(atob(petalWasm), (c) => c.charCodeAt(0));
  // Pages open no files.
  const ready = WebAssembly.instantiate(bytes, { petal: { read: () => 0 } }).then(({ instance }) => {
    exports = instance.exports;
  });

  /** Makes an element: element("a", { href: "…" }, "text", child, …). */
  function element(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (value === true) made.setAttribute(key, "");
      else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  return { ready, ask, element };
})();
