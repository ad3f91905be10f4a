// The clickable strip: a classic Bloom filter of few bits. Bits, counters and positions come from petal.ask; this file
// shows them. `data-lang` of the element `petal-strip` selects the language.
"use strict";

(() => {
  const { ask, element } = petal;
  const WORDS = [
    "ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen", "ibis", "jay", "koi", "lynx", "mole", "newt", "owl", "pig",
    "quail", "rat", "seal", "toad", "urchin", "vole", "wren", "yak", "zebra", "bear", "crow", "deer", "emu", "frog",
  ];

  const STRINGS = {
    en: {
      key: "Key",
      add: "Add",
      query: "Query",
      remove: "Remove",
      fill: "Add five keys",
      falsePositive: "Find a false positive",
      broken: "Show a failed deletion",
      reset: "Empty the filter",
      bits: "Bits, m",
      probes: "Probes, k",
      mode: "Cells",
      plain: "bits",
      counters: "counters (can delete)",
      keys: (count) => `Keys in the set (${count}); select one to query it:`,
      strip: (set, all) => `Strip of ${all} cells, ${set} of them not zero`,
      empty: "The filter is empty. Type a key and add it.",
      type: "Type a key first.",
      cell: (at, value, keys) => `cell ${at}: ${value}${keys.length ? `, set by ${keys.join(", ")}` : ""}`,
      added: (key, at) => `Added “${key}”: cells ${at} are set.`,
      again: (key) => `“${key}” is in the set already.`,
      removed: (key, at) => `Removed “${key}”: cells ${at} are cleared.`,
      decremented: (key, at) => `Removed “${key}”: the counters of cells ${at} are one lower.`,
      notIn: (key) => `“${key}” was not added. Removing it would take cells from other keys.`,
      no: (key, at, zero) => `“${key}” has cells ${at}. Cell ${zero} is 0: certainly not in the set.`,
      yes: (key, at) => `“${key}” has cells ${at}. All are set: present. That is right, it was added.`,
      false: (key, at, others) =>
        `False positive: “${key}” was never added, but its cells ${at} are all set, by ${others}.`,
      lost: (key, zero) =>
        `False negative: “${key}” was added, but cell ${zero} is 0. A key that was removed shared it.`,
      noneFound: "No false positive among 2,000 words. Add more keys and try again.",
      noneShared: "No two keys share a cell. Add more keys and try again.",
      demonstration: (removed, lost, zero) =>
        `Removed “${removed}” by clearing its cells. Now “${lost}” is lost: cell ${zero} belonged to both. ` +
        "Choose counters to repair this.",
      repaired: (removed, kept) =>
        `Removed “${removed}”. “${kept}” shared a cell with it and is still present: its counter went down by one, ` +
        "not to zero.",
      status: (n, m, k, set, fpr) => `n = ${n}, m = ${m}, k = ${k}; ${set} of ${m} cells set; expected false-positive rate ${fpr}`,
      hash: (hash) => `hash ${hash}`,
    },
    zh: {
      key: "键",
      add: "添加",
      query: "查询",
      remove: "删除",
      fill: "添加五个键",
      falsePositive: "找一个误判",
      broken: "演示删除失败",
      reset: "清空",
      bits: "位数 m",
      probes: "哈希函数个数 k",
      mode: "每格存放",
      plain: "一位",
      counters: "计数器（可以删除）",
      keys: (count) => `集合中的键（${count} 个），点击即可查询：`,
      strip: (set, all) => `位数组共 ${all} 格，其中 ${set} 格不为 0`,
      empty: "过滤器是空的。请输入一个键并添加。",
      type: "请先输入一个键。",
      cell: (at, value, keys) => `第 ${at} 格：${value}${keys.length ? `，来自 ${keys.join("、")}` : ""}`,
      added: (key, at) => `已添加“${key}”：第 ${at} 格置为 1。`,
      again: (key) => `“${key}”已在集合中。`,
      removed: (key, at) => `已删除“${key}”：第 ${at} 格清零。`,
      decremented: (key, at) => `已删除“${key}”：第 ${at} 格的计数器各减 1。`,
      notIn: (key) => `“${key}”没有添加过，删除它会误删其他键的位。`,
      no: (key, at, zero) => `“${key}”对应第 ${at} 格。第 ${zero} 格是 0：一定不在集合中。`,
      yes: (key, at) => `“${key}”对应第 ${at} 格，全是 1：判为“在”。判断正确，它确实添加过。`,
      false: (key, at, others) => `误判：“${key}”从未添加，但它的第 ${at} 格都已由 ${others} 置为 1。`,
      lost: (key, zero) => `漏判：“${key}”添加过，但第 ${zero} 格是 0：删除与它共用这一格的键时清掉了。`,
      noneFound: "2,000 个词中没有误判。请再添加一些键后重试。",
      noneShared: "没有两个键共用一格。请再添加一些键后重试。",
      demonstration: (removed, lost, zero) =>
        `删除“${removed}”时把它的各格清零，“${lost}”也跟着丢了：第 ${zero} 格是两者共用的。改用计数器就不会这样。`,
      repaired: (removed, kept) => `已删除“${removed}”。“${kept}”与它共用一格，但仍然在：计数器只减 1，没有归零。`,
      status: (n, m, k, set, fpr) => `n = ${n}，m = ${m}，k = ${k}；${m} 格中 ${set} 格不为 0；预期误判率 ${fpr}`,
      hash: (hash) => `哈希 ${hash}`,
    },
  };

  const root = document.getElementById("petal-strip");
  if (!root) return;
  const text = STRINGS[root.dataset.lang] ?? STRINGS.en;
  const joined = (items) => items.join(root.dataset.lang === "zh" ? "、" : ", ");

  // The operations since the filter was emptied, and the keys that should be in the set.
  let operations = [];
  let keys = new Set();

  const key = element("input", { id: "petal-key", type: "text", autocomplete: "off", spellcheck: "false", maxlength: "40" });
  const bits = choice("bits", [32, 64, 128], 64);
  const probes = choice("probes", [1, 2, 3, 4, 5, 6], 3);
  const mode = choice("mode", [["plain", text.plain], ["counters", text.counters]], "plain");
  const strip = element("div", { class: "petal-strip", role: "img" });
  const message = element("p", { class: "petal-message", role: "status" });
  const status = element("p", { class: "petal-status" });
  const members = element("div", { class: "petal-members" });

  function choice(name, values, selected) {
    const options = values.map((value) => {
      const [id, label] = Array.isArray(value) ? value : [value, String(value)];
      return element("option", { value: id, selected: id === selected }, label);
    });
    return element("select", { id: `petal-${name}`, onchange: () => restart() }, ...options);
  }

  function button(name, action, type = "button") {
    return element("button", { type, class: "petal-button", "data-action": name, onclick: action }, text[name]);
  }

  function labelled(name, input) {
    return element("span", { class: "petal-labelled" }, element("label", { for: input.id }, text[name]), input);
  }

  /** Asks for the cells, and for the positions of a key. */
  function look(query = "", more = []) {
    return ask({
      op: "strip",
      bits: Number(bits.value),
      probes: Number(probes.value),
      counters: mode.value === "counters",
      operations: [...operations, ...more],
      query,
      keys: keys.size,
    });
  }

  const positions = (written) => look(written).positions;

  function restart() {
    // The same keys in another filter.
    operations = [...keys].map((member) => ["add", member]);
    show(null, keys.size ? "" : text.empty);
  }

  function say(words, kind = "") {
    message.textContent = words;
    message.dataset.kind = kind;
  }

  /** Shows the strip with the cells of a key highlighted, and a message. */
  function show(query, words, kind = "") {
    const state = look(query ?? "");
    const highlighted = query === null ? [] : state.positions;
    const owners = state.cells.map(() => []);
    for (const member of keys) positions(member).forEach((at) => owners[at].push(member));
    strip.replaceChildren(...state.cells.map((value, at) => {
      const classes = ["petal-cell"];
      if (value) classes.push("petal-set");
      if (highlighted.includes(at)) classes.push("petal-probe");
      const meaning = text.cell(at, value, owners[at]);
      return element("span", { class: classes.join(" "), title: meaning, onclick: () => say(meaning) }, String(value));
    }));
    const set = state.cells.filter(Boolean).length;
    strip.setAttribute("aria-label", text.strip(set, state.cells.length));
    say(words, kind);
    if (query !== null) message.append(element("small", {}, ` ${text.hash(state.hash)}`));
    const rate = state.fpr * 100;
    status.textContent = text.status(keys.size, bits.value, probes.value, set, `${Number(rate.toPrecision(2))} %`);
    members.replaceChildren(text.keys(keys.size), ...[...keys].map((member) =>
      element("button", { type: "button", class: "petal-member", onclick: () => answer(member) }, member)));
  }

  /** Adds the typed key. */
  function add() {
    const typed = key.value.trim();
    if (!typed) return show(null, text.type);
    if (keys.has(typed)) return show(typed, text.again(typed));
    insert(typed);
    show(typed, text.added(typed, joined(positions(typed))), "added");
  }

  function insert(typed) {
    operations.push(["add", typed]);
    keys.add(typed);
  }

  /** Queries a key and explains the answer. */
  function answer(typed) {
    key.value = typed;
    if (!typed) return show(null, text.type);
    const state = look(typed);
    const at = joined(state.positions);
    const zero = state.positions.find((position) => !state.cells[position]);
    if (!state.contained) {
      if (keys.has(typed)) show(typed, text.lost(typed, zero), "wrong");
      else show(typed, text.no(typed, at, zero), "no");
    } else if (keys.has(typed)) {
      show(typed, text.yes(typed, at), "yes");
    } else {
      const owners = [...keys].filter((member) => positions(member).some((one) => state.positions.includes(one)));
      show(typed, text.false(typed, at, joined(owners)), "wrong");
    }
  }

  /** Removes the typed key: in a plain filter by clearing its bits, which is wrong. */
  function remove() {
    const typed = key.value.trim();
    if (!typed) return show(null, text.type);
    if (!keys.has(typed)) return show(typed, text.notIn(typed));
    const at = joined(positions(typed));
    operations.push(["remove", typed]);
    keys.delete(typed);
    const words = mode.value === "counters" ? text.decremented : text.removed;
    show(typed, words(typed, at), "removed");
  }

  function fill() {
    const more = WORDS.filter((word) => !keys.has(word)).slice(0, 5);
    more.forEach(insert);
    show(null, joined(more));
  }

  /** Queries words until one is a false positive. */
  function falsePositive() {
    for (let number = 0; number < 2000; number++) {
      const word = number < WORDS.length ? WORDS[number] : `${WORDS[number % WORDS.length]}${number}`;
      if (!keys.has(word) && look(word).contained) return answer(word);
    }
    return show(null, text.noneFound);
  }

  /** Removes a key that shares a cell with another one, and queries the other. */
  function broken() {
    if (keys.size < 5) WORDS.filter((word) => !keys.has(word)).slice(0, 5).forEach(insert);
    for (const removed of keys) {
      const cells = positions(removed);
      for (const other of keys) {
        const shared = positions(other).find((at) => cells.includes(at));
        if (other === removed || shared === undefined || !look(other).contained) continue;
        operations.push(["remove", removed]);
        keys.delete(removed);
        key.value = other;
        const state = look(other);
        if (state.contained) return show(other, text.repaired(removed, other), "yes");
        const zero = state.positions.find((position) => !state.cells[position]);
        return show(other, text.demonstration(removed, other, zero), "wrong");
      }
    }
    return show(null, text.noneShared);
  }

  root.replaceChildren(
    element("form", { class: "petal-buttons", onsubmit: (event) => event.preventDefault() },
      labelled("key", key), button("add", add, "submit"), button("query", () => answer(key.value.trim())),
      button("remove", remove)),
    element("p", { class: "petal-buttons" },
      button("fill", fill), button("falsePositive", falsePositive), button("broken", broken),
      button("reset", () => {
        keys = new Set();
        restart();
      })),
    strip, message, status, members,
    element("p", { class: "petal-buttons" }, labelled("bits", bits), labelled("probes", probes), labelled("mode", mode)));

  petal.ready.then(() => restart());
})();
