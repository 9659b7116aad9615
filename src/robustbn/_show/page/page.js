/* What all parts of the page use: elements, numbers, tables that sort, fold and turn pages. Labels are
   only ever set as text. */

const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const listeners = [], starters = [];
  let chosen = -1;

  /* make("td", {class: "x"}, "text", child, ...) */
  const make = (tag, attributes, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value !== null && value !== false) element.setAttribute(name, value);
    }
    for (const child of children) element.append(child);
    return element;
  };

  const percent = (whole) => (100 * whole / data.unit).toFixed(whole > 0 && whole < data.unit / 1000 ? 2 : 1);
  const share = (value) => {
    const x = 100 * value;
    if (x === 0) return "0 %";
    if (x < 0.001) return "less than 0.001 %";
    return x.toFixed(x >= 1 ? 1 : x >= 0.1 ? 2 : 3) + " %";
  };
  const grouped = (value) => value.toLocaleString("en-US", { maximumFractionDigits: value < 100 ? 1 : 0 });
  const isLong = (text) => text.length > 24;
  const plural = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;

  const copy = async (text, told, before = "") => {
    let done = false;
    try { await navigator.clipboard.writeText(text); done = true; } catch { /* not allowed here */ }
    if (!done) {
      const clip = at("clip"), back = document.activeElement;
      clip.value = text; clip.select();
      try { done = document.execCommand("copy"); } catch { /* told below */ }
      clip.value = ""; if (back) back.focus();
    }
    told.textContent = done ? "Copied" : "The browser does not allow copying here";
    setTimeout(() => { told.textContent = before; }, 4000);
  };

  /* A table that sorts by its heads, turns pages, and folds away the items in which nothing happened.
     columns: {name, group, class, key(item), cell(item), first: "descending"}
     fold: {isQuiet(item), least, say(n)} */
  const sheet = ({ into, pager, columns, items, perPage, noun, rowClass, details, sorted, fold, tableClass }) => {
    let shown = items, order = sorted || { column: -1, down: false }, first = 0;
    let isFolded = Boolean(fold);
    const heads = columns.map((column, c) => {
      const turn = () => {
        const down = order.column === c ? !order.down : column.first === "descending";
        order = { column: c, down }; first = 0; fill();
      };
      return make("th", { scope: "col", class: column.class }, make("button", { type: "button", class: isLong(column.name) ? "label long" : "label", onclick: turn }, column.name));
    });
    const body = make("tbody");
    const groups = columns.some((column) => column.group);
    const head = make("thead");
    if (groups) {
      const row = make("tr", { class: "group" });
      for (let c = 0; c < columns.length;) {
        let span = 1;
        while (c + span < columns.length && columns[c + span].group === columns[c].group) span += 1;
        row.append(make("th", { colspan: span, scope: "colgroup", class: columns[c].class }, columns[c].group || ""));
        c += span;
      }
      head.append(row);
    }
    head.append(make("tr", {}, ...heads));
    into.replaceChildren(make("table", { class: tableClass }, head, body));
    const inOrder = () => {
      if (order.column < 0) return shown;
      const key = columns[order.column].key, sign = order.down ? -1 : 1;
      return shown.slice().sort((a, b) => {
        const x = key(a), y = key(b);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    };
    const unfolded = () => { // what is left when the quiet ones are folded away
      const all = inOrder();
      if (!isFolded) return all;
      const loud = all.filter((item) => !fold.isQuiet(item)).length;
      const keep = Math.max(loud, fold.least);
      if (all.length - keep < 4) return all;
      let quiet = keep - loud;
      return all.filter((item) => !fold.isQuiet(item) || quiet-- > 0);
    };
    const fill = () => {
      heads.forEach((th, c) => {
        if (c === order.column) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
      });
      const all = unfolded(), folded = shown.length - all.length;
      body.replaceChildren();
      for (const item of all.slice(first, first + perPage)) {
        const row = make("tr", { class: rowClass ? rowClass(item) : null });
        for (const column of columns) {
          const cell = make("td", { class: column.class, "data-name": column.name });
          column.cell(item, cell);
          row.append(cell);
        }
        body.append(row);
        if (details) {
          const button = row.querySelector(".open");
          button.addEventListener("click", () => {
            const isOpen = button.getAttribute("aria-expanded") === "true";
            button.setAttribute("aria-expanded", String(!isOpen));
            if (isOpen) row.nextSibling.remove();
            else row.after(make("tr", {}, make("td", { colspan: columns.length }, details(item))));
          });
        }
      }
      pager.replaceChildren();
      if (all.length > perPage) {
        const go = (to) => () => { first = to; fill(); };
        const back = make("button", { type: "button", onclick: go(Math.max(0, first - perPage)) }, "Previous");
        const next = make("button", { type: "button", onclick: go(first + perPage) }, "Next");
        back.disabled = first === 0;
        next.disabled = first + perPage >= all.length;
        const last = Math.min(all.length, first + perPage);
        pager.append(back, next, make("span", { class: "note", role: "status" }, `${grouped(first + 1)} to ${grouped(last)} of ${plural(all.length, noun)}`));
      }
      if (folded > 0) {
        const open = () => { isFolded = false; first = 0; fill(); };
        pager.append(make("button", { type: "button", class: "fold", onclick: open }, fold.say(folded)));
      }
    };
    fill();
    return {
      show: (some) => { shown = some; first = 0; fill(); },
      inOrder,
    };
  };

  /* --- labels of states, of which a node may have too many for all to be here --- */
  const places = data.nodes.map((node) => (node.codes ? new Map(node.codes.map((code, k) => [code, k])) : null));
  const label = (i, code) => {
    const node = data.nodes[i];
    if (code < 0 || code >= node.nStates) return "missing";
    return places[i] ? node.states[places[i].get(code)] ?? `state ${code}` : node.states[code];
  };

  const choose = (i, options) => {
    chosen = i;
    document.querySelectorAll(".rank").forEach((button) => {
      button.setAttribute("aria-current", String(Number(button.dataset.node) === i));
    });
    listeners.forEach((listener) => listener(i, options || {}));
  };

  const setUpCopying = () => {
    at("markdown-copy").addEventListener("click", () => copy(data.markdown, at("markdown-copied")));
    if (at("command-copy")) at("command-copy").addEventListener("click", () => copy(at("command").textContent, at("command-copied")));
    document.querySelectorAll(".copy-way").forEach((button) => {
      button.addEventListener("click", () => copy(button.parentNode.querySelector("code").textContent, button, "Copy"));
    });
  };

  const start = () => {
    document.querySelectorAll(".rank").forEach((button, k) => {
      button.dataset.node = data.order[k];
      button.addEventListener("click", () => choose(data.order[k], { center: true }));
    });
    setUpCopying();
    starters.forEach((starter) => starter());
    choose(data.order[0], { quiet: true });
    document.documentElement.dataset.ready = "true";
  };

  return {
    data, at, make, sheet, copy, percent, share, grouped, plural, isLong, label, choose, start,
    onStart: (starter) => starters.push(starter), onChoose: (listener) => listeners.push(listener), chosen: () => chosen,
  };
})();
