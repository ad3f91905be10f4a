// Tables and code that are wider than the page: marks the sides on which more follows, and makes them reachable by the
// keyboard. Numbers with their units and options: keeps them on one line. The first press of Tab offers a way past the
// list of pages.
"use strict";

(() => {
  const main = document.querySelector("main");
  const known = new WeakSet();
  const BOXES = ".table-wrapper, table:not(.table-wrapper table, .u-legend), pre > code, .petal-line code";

  function mark(box) {
    const hidden = box.scrollWidth - box.clientWidth;
    box.classList.toggle("petal-scrolls", hidden > 1);
    box.classList.toggle("petal-before", hidden > 1 && box.scrollLeft > 1);
    box.classList.toggle("petal-after", hidden > 1 && hidden - box.scrollLeft > 1);
    if (hidden > 1) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }

  const sizes = new ResizeObserver((entries) => entries.forEach(({ target }) => mark(target)));

  function watch() {
    for (const box of main.querySelectorAll(BOXES)) {
      if (known.has(box)) continue;
      known.add(box);
      mark(box); // The observer does not see what is in a closed `details`.
      sizes.observe(box);
      box.addEventListener("scroll", () => mark(box), { passive: true });
    }
  }

  /** Replaces the space between a number and its unit. */
  function joinUnits() {
    const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const node = texts.currentNode;
      if (!node.parentElement.closest("code, script")) {
        node.data = node.data.replace(/(\d) (%|[KMGT]i?B\b|[mµn]?s\b|×)/g, "$1\u00a0$2");
      }
    }
  }

  function joinOptions() {
    for (const code of main.querySelectorAll(":not(pre) > code")) {
      if (code.textContent.length < 25 && /(^| )-/.test(code.textContent)) code.classList.add("petal-option");
    }
  }

  function addSkip() {
    const skip = document.createElement("button");
    skip.className = "petal-skip";
    skip.textContent = document.documentElement.lang.startsWith("zh") ? "跳到正文" : "Skip to the text";
    skip.addEventListener("click", () => main.focus());
    main.tabIndex = -1;
    document.body.prepend(skip);
  }

  addSkip();
  joinUnits();
  joinOptions();
  watch();
  // The calculator writes its tables again after each input.
  new MutationObserver(watch).observe(main, { childList: true, subtree: true });
})();
