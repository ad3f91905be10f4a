// The calculator: a form, its result and three charts. All numbers come from petal.ask; this file only reads input and
// formats output. `data-lang` of the element `petal-calculator` selects the language.
"use strict";

(() => {
  const { ask, element } = petal;
  const TYPES = [
    "bloom", "classic", "counting", "counting-classic", "quotient", "vector-quotient", "scalable", "windowed", "static",
    "static-fuse",
  ];
  const UNITS = {
    bits: 1 / 8, bytes: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, kB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12,
  };
  const PROBES = ["bloom", "classic", "counting", "counting-classic"];

  const STRINGS = {
    en: {
      type: "Filter type",
      capacity: "Number of keys, n",
      fpr: "False-positive rate, ε",
      memory: "Memory, m",
      unit: "Unit of memory",
      probes: "Probes, k",
      capacityHint: "1e6, 5,000,000 or 2^30",
      fprHint: "1%, 0.001, 1e-6 or 1/1000",
      memoryHint: "a number; choose its unit",
      probesHint: "bits that a key sets",
      noProbes: "this type has no free k",
      intro: "Fill in two or three fields and leave the others empty: they are computed.",
      types: {
        bloom: "Bloom (blocked): the default, one cache line per key",
        classic: "Classic Bloom: the textbook's",
        counting: "Counting: bloom with removal, 4-bit counters",
        "counting-classic": "Counting classic: classic with removal",
        quotient: "Quotient: removal, counting, growth",
        "vector-quotient": "Vector quotient: removal in constant time",
        scalable: "Scalable: grows with its keys",
        windowed: "Windowed: the last n keys",
        static: "Static: built once, the smallest",
        "static-fuse": "Static fuse: built once, faster",
      },
      result: {
        capacity: "keys",
        fpr: "false-positive rate",
        size: "memory",
        perKey: "bits per key",
        probes: "probes",
        double: "rate with twice the keys",
        layout: "layout",
      },
      oneIn: (n) => `1 in ${n}`,
      none: "–",
      full: "takes no more keys than planned",
      approximate: "about ",
      units: { bits: "bits", bytes: "bytes" },
      remark: (value, remark) => `${value} (${remark})`,
      limit: (times, limit) => `${times} × the information limit of ${limit}`,
      layoutFirst: "first layer: ",
      lines: { shell: "Shell", rust: "Rust", python: "Python" },
      copy: "Copy",
      copied: "Copied",
      link: "Copy a link to this calculation",
      reset: "Start again",
      charts: {
        keys: ["False-positive rate against the number of keys", "keys", "rate"],
        probes: ["False-positive rate against the number of probes, in the same memory", "k", "rate"],
        rates: ["Bits per key against the rate", "rate", "bits per key"],
      },
      fixedKeys: "A filter of this type takes no more keys than planned, so its curve ends there.",
      series: {
        fpr: "this filter", planned: "plan", textbook: "textbook formula", limit: "information limit, log2(1/ε)",
        static: "static", classic: "classic",
      },
      values: "Values as a table",
      bad: {
        capacity: "keys: write a number such as 1e6, 5,000,000 or 2^30",
        fpr: "rate: write 1%, 0.001, 1e-6 or 1/1000; it must be between 0 and 1",
        memory: "memory: write a number",
        probes: "probes: write a whole number from 1 to 64",
      },
      few: "Fill in two or three fields; the number of keys or the memory must be one of them.",
      failed: "petal:",
    },
    zh: {
      type: "过滤器类型",
      capacity: "键的个数 n",
      fpr: "误判率 ε",
      memory: "内存 m",
      unit: "内存单位",
      probes: "哈希函数个数 k",
      capacityHint: "1e6、5,000,000 或 2^30",
      fprHint: "1%、0.001、1e-6 或 1/1000",
      memoryHint: "数值，单位在右侧选择",
      probesHint: "每个键在位数组里置几位",
      noProbes: "该类型不能单独指定 k",
      intro: "填写两到三项，其余留空，由计算得出。",
      types: {
        bloom: "bloom：分块布隆过滤器，默认，每个键只访问一条缓存行",
        classic: "classic：经典布隆过滤器，即教科书上的那种",
        counting: "counting：计数布隆过滤器，4 位计数器，可删除",
        "counting-classic": "counting-classic：经典的计数布隆过滤器，可删除",
        quotient: "quotient：商过滤器，可删除、计数、扩容",
        "vector-quotient": "vector-quotient：向量商过滤器，常数时间删除",
        scalable: "scalable：随键数增长",
        windowed: "windowed：滑动窗口，只保留最近 n 个键",
        static: "static：一次建成、不可修改，最省空间",
        "static-fuse": "static-fuse：一次建成、不可修改，查询更快",
      },
      result: {
        capacity: "键数",
        fpr: "误判率",
        size: "内存",
        perKey: "每键位数",
        probes: "哈希函数个数 k",
        double: "键数翻倍时的误判率",
        layout: "布局",
      },
      oneIn: (n) => `每 ${n} 次约 1 次`,
      none: "–",
      full: "键数不能超过计划值",
      approximate: "约 ",
      units: { bits: "位", bytes: "字节" },
      remark: (value, remark) => `${value}（${remark}）`,
      limit: (times, limit) => `信息论下限 ${limit} 的 ${times} 倍`,
      layoutFirst: "第一层：",
      lines: { shell: "命令行", rust: "Rust", python: "Python" },
      copy: "复制",
      copied: "已复制",
      link: "复制本次计算的链接",
      reset: "重新开始",
      charts: {
        keys: ["误判率随键数的变化", "键数", "误判率"],
        probes: ["内存不变时，误判率随哈希函数个数 k 的变化", "k", "误判率"],
        rates: ["每键位数随误判率的变化", "误判率", "每键位数"],
      },
      fixedKeys: "该类型的过滤器容纳的键数不能超过计划值，曲线到此为止。",
      series: {
        fpr: "当前过滤器", planned: "计划点", textbook: "教科书公式", limit: "信息论下限 log2(1/ε)",
        static: "static", classic: "classic",
      },
      values: "数据表",
      bad: {
        capacity: "键数：请写成 1e6、5,000,000 或 2^30 这样的数",
        fpr: "误判率：请写成 1%、0.001、1e-6 或 1/1000，须在 0 与 1 之间",
        memory: "内存：请填写数字",
        probes: "哈希函数个数：请填写 1 到 64 的整数",
      },
      few: "请填写两到三项，其中至少包括键数或内存。",
      failed: "petal：",
      // Layouts and errors of the library.
      phrases: [
        [/^(\d+) layers?, the newest of /, "$1 层，最新一层："],
        [/^(\d+) generations of /, "$1 代，每代："],
        [/(\d+) blocks of (\d+) bits/, "$1 块，每块 $2 位"],
        [/(\d+) blocks of (\d+) slots in (\d+) buckets/, "$1 块，每块 $2 个槽、$3 个桶"],
        [/(\d+) slots/, "$1 个槽"],
        [/, (\d+) probes/, "，k = $1"],
        [/, counters of (\d+) bits/, "，计数器 $1 位"],
        [/, remainders of (\d+) bits/, "，余数 $1 位"],
        [/, tags of (\d+) bits/, "，标签 $1 位"],
        [/^(\d+) bits/, "$1 位"],
        ["approximate size", "大小为近似值"],
        ["maximum size", "大小为上限"],
        [/^this filter takes (\d+) bytes, more than (\d+): .*/, "这个过滤器要 $1 字节，超过 $2 字节；四项中请留空一项"],
        ["no key fits this memory", "内存太小，一个键也放不下"],
        ["the memory is too small for this number of keys", "内存太小，放不下这么多键"],
        [/^a false-positive rate of (\S+) for ([\d,]+) keys cannot be reached: .*/,
          "$2 个键达不到误判率 $1：哈希只有 64 位，会有键相撞；请提高误判率"],
        [/^capacity: expected fewer keys.*/, "键太多或内存太小：几乎每个键都会判为“在”"],
        [/^probes: expected (\d+) to (\d+), found .*/, "哈希函数个数：这种类型可取 $1 到 $2"],
      ],
    },
  };

  const root = document.getElementById("petal-calculator");
  if (!root) return;
  const text = STRINGS[root.dataset.lang] ?? STRINGS.en;
  const FIELDS = ["capacity", "fpr", "memory", "probes"];
  const SHORT = { capacity: "n", fpr: "p", memory: "m", unit: "unit", probes: "k", type: "type" };
  const DEFAULTS = { type: "bloom", capacity: "1e6", fpr: "1%", memory: "", unit: "MiB", probes: "" };
  const inputs = {};
  let charts = [];

  // Input: text to numbers.

  /** Reads 1e6, 5,000,000, 1_000 or 2^30; NaN for other text. */
  function number(written) {
    const plain = written.replace(/[\s,_\u00a0\u202f']/g, "");
    const power = plain.match(/^(\d+(?:\.\d+)?)\^(\d+)$/);
    if (power) return Number(power[1]) ** Number(power[2]);
    return /^\d*\.?\d+(?:e[+-]?\d+)?$|^\d+\.$/i.test(plain) ? Number(plain) : NaN;
  }

  /** Reads 1%, 0.01, 1e-6, 1/1000 or 2^-10. */
  function rate(written) {
    const plain = written.trim();
    const quotient = plain.split("/");
    if (quotient.length === 2) return number(quotient[0]) / number(quotient[1]);
    const power = plain.match(/^(\d+)\^-(\d+)$/);
    if (power) return Number(power[1]) ** -Number(power[2]);
    // Division by 100 is correctly rounded: 1% is 0.01.
    return /%$/.test(plain) ? number(plain.slice(0, -1)) / 100 : number(plain);
  }

  /** Returns a text of the library in the language of the page. */
  function translated(words) {
    return (text.phrases ?? []).reduce((said, [phrase, other]) => said.replace(phrase, other), words);
  }

  /** Returns the request, or the message about the first field that is not understood. */
  function request() {
    const asked = { type: inputs.type.value };
    const read = {
      capacity: number,
      fpr: rate,
      memory: (written) => Math.floor(number(written) * UNITS[inputs.unit.value]),
      probes: number,
    };
    let given = 0;
    for (const field of FIELDS) {
      const written = inputs[field].value.trim();
      inputs[field].removeAttribute("aria-invalid");
      if (written === "" || inputs[field].disabled) continue;
      const value = read[field](written);
      const good = field === "fpr" ? value > 0 && value < 1
        : field === "probes" ? Number.isInteger(value) && value >= 1 && value <= 64 : value > 0;
      if (!good) {
        inputs[field].setAttribute("aria-invalid", "true");
        return { error: text.bad[field] };
      }
      asked[field] = field === "capacity" ? Math.round(value) : value;
      given += 1;
    }
    if (given < 2 || (asked.capacity === undefined && asked.memory === undefined)) return { error: text.few };
    return asked;
  }

  // Output: numbers to text.

  const grouped = (value) => Math.round(value).toLocaleString("en-US");

  /** Three or four significant digits. */
  function digits(value, count = 3) {
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e15 || size < 1e-4) {
      const [mantissa, exponent] = value.toExponential(count - 1).split("e");
      return `${Number(mantissa)}e${Number(exponent)}`;
    }
    if (size >= 10 ** count) return grouped(value);
    return String(Number(value.toPrecision(count)));
  }

  function percent(value) {
    return value < 1e-5 ? digits(value) : `${digits(value * 100)} %`;
  }

  function oneIn(value) {
    const times = 1 / value;
    return text.oneIn(times < 10 ? digits(times, 2) : digits(Number(times.toPrecision(3))));
  }

  function size(bytes) {
    const units = [text.units.bytes, "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let [value, at] = [bytes, 0];
    while (value >= 1024 && at < units.length - 1) [value, at] = [value / 1024, at + 1];
    return `${digits(value)} ${units[at]}`;
  }

  // The page.

  function field(name, input, ...more) {
    inputs[name] = input;
    input.id = `petal-${name}`;
    const hint = element("small", { id: `petal-${name}-hint` }, text[`${name}Hint`] ?? "");
    if (text[`${name}Hint`]) input.setAttribute("aria-describedby", hint.id);
    return element("div", { class: "petal-field" },
      element("label", { for: input.id }, text[name]),
      element("div", { class: "petal-input" }, input, ...more),
      text[`${name}Hint`] ? hint : null);
  }

  function entry(name) {
    const mode = name === "fpr" ? "text" : "decimal";
    const attributes = { type: "text", inputmode: mode, autocomplete: "off", spellcheck: "false", oninput: update };
    return element("input", attributes);
  }

  const unit = element("select", { id: "petal-unit", "aria-label": text.unit, oninput: update },
    ...Object.keys(UNITS).map((name) => element("option", { value: name }, text.units[name] ?? name)));
  inputs.unit = unit;
  const type = element("select", { oninput: update },
    ...TYPES.map((name) => element("option", { value: name }, text.types[name])));

  const message = element("p", { class: "petal-message", role: "alert" });
  const table = element("table", { class: "petal-result", "aria-live": "polite" });
  const lines = element("div", { class: "petal-lines" });
  const figures = element("div", { class: "petal-figures" });

  function button(label, action) {
    return element("button", { type: "button", class: "petal-button", onclick: action }, label);
  }

  /** A button that copies a text and says so. */
  function copier(label, read) {
    const made = button(label, async () => {
      try {
        await navigator.clipboard.writeText(read());
      } catch {
        // Pages from files have no clipboard.
        const area = element("textarea", { class: "petal-hidden" });
        area.value = read();
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      made.textContent = text.copied;
      setTimeout(() => (made.textContent = label), 1500);
    });
    return made;
  }

  root.replaceChildren(
    element("p", {}, text.intro),
    element("form", { class: "petal-form", onsubmit: (event) => event.preventDefault() },
      field("type", type),
      ...FIELDS.map((name) => field(name, entry(name), ...(name === "memory" ? [unit] : [])))),
    element("p", { class: "petal-buttons" },
      copier(text.link, address),
      button(text.reset, (event) => {
        fill(DEFAULTS);
        update(event);
      })),
    message, table, lines, figures);

  // State in the address.

  function fill(values) {
    for (const [name, value] of Object.entries(values)) inputs[name].value = value;
  }

  function restore() {
    const query = new URLSearchParams(location.hash.slice(1));
    const known = Object.values(SHORT).some((short) => query.has(short));
    const values = { ...DEFAULTS };
    if (known) {
      for (const [name, short] of Object.entries(SHORT)) {
        values[name] = query.get(short) ?? (FIELDS.includes(name) ? "" : DEFAULTS[name]);
      }
      if (!TYPES.includes(values.type)) values.type = DEFAULTS.type;
      if (!(values.unit in UNITS)) values.unit = DEFAULTS.unit;
    }
    fill(values);
  }

  /** Returns the address of this calculation. */
  function address() {
    const query = new URLSearchParams();
    for (const [name, short] of Object.entries(SHORT)) {
      const value = inputs[name].value.trim();
      if (value !== "" && (name !== "unit" || inputs.memory.value.trim() !== "")) query.set(short, value);
    }
    return `${location.href.split("#")[0]}#${query}`;
  }

  /** Computes and shows the result; after input, the address of the page changes, too. */
  function update(event) {
    const hasProbes = PROBES.includes(inputs.type.value);
    inputs.probes.disabled = !hasProbes;
    inputs.probes.placeholder = hasProbes ? "" : text.noProbes;
    if (event) history.replaceState(null, "", address());
    const asked = request();
    const plan = asked.error ? asked : ask({ op: "plan", ...asked });
    root.dataset.state = plan.error ? "error" : "done";
    message.textContent = plan.error ? (asked.error ? plan.error : `${text.failed} ${translated(plan.error)}`) : "";
    for (const part of [table, lines, figures]) part.hidden = Boolean(plan.error);
    if (plan.error) return;
    root.dataset.plan = JSON.stringify(plan);
    const shown = {
      capacity: grouped(plan.capacity),
      fpr: percent(plan.fpr),
      memory: digits(plan.size_bytes / UNITS[inputs.unit.value], 4),
      probes: hasProbes ? String(plan.probes) : text.noProbes,
    };
    for (const field of FIELDS) inputs[field].placeholder = shown[field];
    show(plan);
    plot(plan, ask({ op: "curves", ...asked }));
  }

  function show(plan) {
    const about = plan.type.startsWith("static") ? text.approximate : "";
    const ratio = digits(plan.bits_per_key / plan.information_bits_per_key);
    const limit = text.limit(ratio, digits(plan.information_bits_per_key));
    const layout = plan.type === "scalable" ? `${text.layoutFirst}${translated(plan.layout)}` : translated(plan.layout);
    const rows = [
      ["capacity", grouped(plan.capacity)],
      ["fpr", text.remark(percent(plan.fpr), oneIn(plan.fpr))],
      ["size", text.remark(about + size(plan.size_bytes), `${grouped(plan.size_bytes)} ${text.units.bytes}`)],
      ["perKey", text.remark(about + digits(plan.bits_per_key, 4), limit)],
      ["probes", plan.probes === null ? text.none : String(plan.probes)],
      ["double", plan.fpr_at_double_capacity === null ? text.full : percent(plan.fpr_at_double_capacity)],
      ["layout", layout],
    ];
    table.replaceChildren(element("tbody", {}, ...rows.map(([name, value]) =>
      element("tr", {}, element("th", { scope: "row" }, text.result[name]), element("td", {}, value)))));
    lines.replaceChildren(...Object.entries(plan.lines).map(([name, line]) =>
      element("div", { class: "petal-line" },
        element("span", { class: "petal-line-name" }, text.lines[name]),
        element("code", { "data-line": name, tabindex: "0" }, line),
        copier(text.copy, () => line))));
  }

  // Charts.

  function plot(plan, curves) {
    charts.forEach((chart) => chart.destroy());
    charts = [];
    figures.replaceChildren();
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(`--petal-${name}`).trim();
    const line = (name, label, more = {}) => ({
      label, stroke: colour(name), width: 2, points: { show: false }, spanGaps: true, ...more,
    });
    const dot = { width: 0, points: { show: true, size: 10, fill: colour("plan") }, spanGaps: false };
    const at = (xs, x, y) => xs.map((value) => (value === x ? y : null));

    const keys = [...curves.keys.keys];
    const fpr = [...curves.keys.fpr];
    const place = keys.findIndex((value) => value >= plan.capacity);
    if (keys[place] !== plan.capacity) {
      keys.splice(place, 0, plan.capacity);
      fpr.splice(place, 0, plan.fpr);
    }
    const note = plan.fpr_at_double_capacity === null ? text.fixedKeys : "";
    figure("keys", [keys, fpr, at(keys, plan.capacity, plan.fpr)], [
      line("this", text.series.fpr), line("plan", text.series.planned, dot),
    ], { x: compact, y: percent, log: true, note });

    if (curves.probes) {
      const { probes } = curves.probes;
      figure("probes", [probes, curves.probes.fpr, curves.probes.textbook, at(probes, plan.probes, plan.fpr)], [
        line("this", text.series.fpr), line("textbook", text.series.textbook, { dash: [6, 4] }),
        line("plan", text.series.planned, dot),
      ], { x: String, y: percent, log: true, integers: true });
    }

    const { rates } = curves;
    // To the right, filters become more exact.
    const exponent = rates.fpr.map((value) => -Math.log10(value));
    const series = [line("limit", text.series.limit, { dash: [2, 3] }), line("static", text.series.static)];
    const data = [exponent, rates.limit, rates.static];
    if (plan.type !== "classic") {
      series.push(line("textbook", text.series.classic, { dash: [6, 4] }));
      data.push(rates.classic);
    }
    if (plan.type !== "static") {
      series.push(line("this", text.types[plan.type].split(/[:：]/)[0]));
      data.push(rates.selected);
    }
    figure("rates", data, series, { x: (value) => digits(10 ** -value), y: digits, log: false });
  }

  /** 1,500,000 as 1.5e6, in the few characters of an axis. */
  function compact(value) {
    if (value === 0 || Math.abs(value) < 1e5) return grouped(value);
    const [mantissa, power] = value.toExponential(2).split("e+");
    return `${Number(mantissa)}e${power}`;
  }

  function figure(name, data, series, { x, y, log, integers, note }) {
    const [title, xLabel, yLabel] = text.charts[name];
    const place = element("div", { class: "petal-chart", role: "img", "aria-label": title });
    const shown = [...new Set(data[0].keys())].filter((at) => data[0].length <= 20 || at % 6 === 5);
    const values = element("details", {}, element("summary", {}, text.values),
      element("table", {},
        element("thead", {}, element("tr", {}, element("th", { scope: "col" }, xLabel),
          ...series.map(({ label }) => element("th", { scope: "col" }, label)))),
        element("tbody", {}, ...shown.map((at) => element("tr", {}, element("td", {}, x(data[0][at])),
          ...data.slice(1).map((column) => element("td", {}, column[at] === null ? "" : y(column[at]))))))));
    figures.append(element("figure", { "data-chart": name }, element("figcaption", {}, title), place,
      note ? element("p", {}, note) : null, values));
    const width = place.clientWidth || 600;
    const ink = { stroke: getComputedStyle(root).color, grid: { stroke: "#8884", width: 1 }, ticks: { stroke: "#8884" } };
    const show = (format) => (_, shownValues) => shownValues.map((value) => (value === null ? "" : format(value)));
    // Powers of ten, at most seven of them; in less than two decades also their double and fivefold.
    const powers = (_, axis, low, high) => {
      const [from, to] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
      const step = Math.ceil((to - from) / 6);
      const factors = to - from <= 2 ? [1, 2, 5] : [1];
      const all = [];
      for (let power = to; power >= from; power -= step) {
        for (const factor of factors) all.push(Number(`${factor}e${power}`));
      }
      return all.filter((value) => value >= low && value <= high).sort((a, b) => a - b);
    };
    charts.push(new uPlot({
      width,
      height: Math.min(320, Math.max(240, width / 2)),
      legend: { live: true, markers: { fill: (_, at) => series[at - 1]?.stroke } },
      scales: { x: { time: false }, y: log ? { distr: 3 } : { range: (_, low, high) => [0, high * 1.05] } },
      axes: [
        { ...ink, label: xLabel, labelSize: 22, size: 34, values: show(x), space: 70, incrs: integers ? [1, 2, 4, 8] : undefined },
        { ...ink, label: yLabel, labelSize: 22, size: 64, values: show(y), ...(log ? { splits: powers, filter: (_, shown) => shown } : {}) },
      ],
      series: [{ label: xLabel, value: (_, value) => (value === null ? "" : x(value)) },
        ...series.map((one) => ({ ...one, value: (_, value) => (value === null ? "" : y(value)) }))],
    }, data, place));
  }

  petal.ready.then(() => {
    restore();
    update();
    addEventListener("hashchange", () => {
      restore();
      update();
    });
    // Colours and widths are those at the time of drawing.
    new MutationObserver(() => update()).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
    let width = root.clientWidth;
    addEventListener("resize", () => {
      if (root.clientWidth !== width) {
        width = root.clientWidth;
        update();
      }
    });
  });
})();
