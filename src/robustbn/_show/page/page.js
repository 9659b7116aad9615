"use strict";
/* The page's script: tables, rows, repeats. Labels are only ever set as text. */

const page = (() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const listeners = [];
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

  const copy = async (text, told) => {
    let done = false;
    try { await navigator.clipboard.writeText(text); done = true; } catch { /* not allowed here */ }
    if (!done) {
      const clip = at("clip"), back = document.activeElement;
      clip.value = text; clip.select();
      try { done = document.execCommand("copy"); } catch { /* told below */ }
      clip.value = ""; if (back) back.focus();
    }
    told.textContent = done ? "Copied" : "The browser does not allow copying here";
    setTimeout(() => { told.textContent = ""; }, 4000);
  };

  /* A table that sorts by its heads and turns pages.
     columns: {name, group, class, key(item), cell(item), first: "descending"} */
  const sheet = ({ into, pager, columns, items, perPage, noun, rowClass, details, sorted }) => {
    let shown = items, order = sorted || { column: -1, down: false }, first = 0;
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
    into.replaceChildren(make("table", {}, head, body));
    const inOrder = () => {
      if (order.column < 0) return shown;
      const key = columns[order.column].key, sign = order.down ? -1 : 1;
      return shown.slice().sort((a, b) => {
        const x = key(a), y = key(b);
        return sign * (x < y ? -1 : x > y ? 1 : 0);
      });
    };
    const fill = () => {
      heads.forEach((th, c) => {
        if (c === order.column) th.setAttribute("aria-sort", order.down ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
      });
      const all = inOrder();
      body.replaceChildren();
      for (const item of all.slice(first, first + perPage)) {
        const row = make("tr", { class: rowClass ? rowClass(item) : null });
        for (const column of columns) {
          const cell = make("td", { class: column.class });
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
    };
    fill();
    return {
      show: (some) => { shown = some; first = 0; fill(); },
      inOrder,
    };
  };

  /* --- one node's table ------------------------------------------------------------------- */

  const configurations = (node) => {
    const cards = node.parents.map((p) => data.nodes[p].states.length);
    const wide = node.states.length, table = node.table;
    return table.n.map((n, k) => {
      let rest = table.which ? table.which[k] : k;
      const codes = new Array(cards.length);
      for (let j = cards.length - 1; j >= 0; j--) { codes[j] = rest % cards[j]; rest = Math.floor(rest / cards[j]); }
      const part = (name) => table[name].slice(k * wide, (k + 1) * wide);
      return { codes, n, all: table.all[k], moved: table.moved[k], robust: part("robust"), plain: part("plain"), low: part("low"), high: part("high") };
    });
  };

  const parentColumns = (node) => {
    const isNarrow = window.matchMedia("(max-width: 40rem)").matches && node.parents.length > 1;
    if (isNarrow) { // a phone: one column, a line a parent
      const cards = node.parents.map((p) => data.nodes[p].states.length);
      return [{
        name: "When", class: "label", key: (c) => c.codes.reduce((sum, code, j) => sum * cards[j] + code, 0),
        cell: (c, td) => c.codes.forEach((code, j) => {
          const p = data.nodes[node.parents[j]];
          td.append(make("div", {}, make("span", { class: "note" }, p.name), ` ${p.states[code]}`));
        }),
      }];
    }
    return node.parents.map((p, j) => ({
      name: data.nodes[p].name, group: "When", class: "label",
      key: (c) => c.codes[j], cell: (c, td) => {
        td.textContent = data.nodes[p].states[c.codes[j]];
        td.classList.toggle("long", isLong(td.textContent));
      },
    }));
  };

  const tableColumns = (node) => [
    ...parentColumns(node),
    {
      name: "Trusted rows", class: "number n", key: (c) => c.n, first: "descending",
      cell: (c, td) => {
        td.append(grouped(c.n), make("span", { class: "note" }, ` of ${grouped(c.all)}`));
        const isGone = c.all >= data.group * data.total && c.n < data.kept * c.all;
        if (isGone) td.append(make("span", { class: "gone" }, "nearly all distrusted: not to be relied on"));
      },
    },
    ...node.states.map((state, v) => ({
      name: state, group: `${node.name} is (percent)`, class: "p", key: (c) => c.robust[v], first: "descending",
      cell: (c, td) => {
        td.style.setProperty("--v", (c.robust[v] / data.unit).toFixed(4));
        const changed = c.plain[v] < c.low[v] || c.plain[v] > c.high[v];
        td.append(
          make("b", {}, percent(c.robust[v])),
          make("i", {}, `${percent(c.low[v])}–${percent(c.high[v])}`),
          make("s", { class: changed ? "changed" : null }, `was ${percent(c.plain[v])}`),
        );
      },
    })),
    { name: "Moved by", class: "number", key: (c) => c.moved, first: "descending", cell: (c, td) => { td.textContent = `${percent(c.moved)} %`; } },
  ];

  const tableAsText = (node, list) => {
    const clean = (text) => String(text).replace(/[\t\r\n]+/g, " ");
    const head = [...node.parents.map((p) => data.nodes[p].name), "trusted rows", "all rows",
      ...node.states.flatMap((s) => [`${s} robust`, `${s} low`, `${s} high`, `${s} plain`]), "moved"];
    const lines = list.map((c) => [
      ...c.codes.map((code, j) => data.nodes[node.parents[j]].states[code]), c.n, c.all,
      ...node.states.flatMap((_, v) => [c.robust[v], c.low[v], c.high[v], c.plain[v]].map((x) => x / data.unit)), c.moved / data.unit,
    ]);
    return [head, ...lines].map((line) => line.map(clean).join("\t")).join("\n") + "\n";
  };

  const links = (words, indices) => {
    const parts = [words];
    indices.forEach((i, k) => {
      if (k) parts.push(", ");
      parts.push(make("button", { type: "button", class: "label", onclick: () => choose(i) }, data.nodes[i].name));
    });
    return parts;
  };

  let copyTable = () => {};
  const showTable = (i) => {
    const node = data.nodes[i];
    const children = data.nodes.flatMap((n, k) => (n.parents.includes(i) ? [k] : []));
    at("table").hidden = false;
    at("table-name").textContent = node.name;
    at("table-family").replaceChildren(
      ...(node.parents.length ? links("Depends on ", node.parents) : ["Depends on no other node"]),
      ...(children.length ? links("; leads to ", children) : []), ".",
    );
    const list = configurations(node);
    const parts = [
      `Moved by ${share(node.moved)}; sampling alone could explain up to ${share(node.error)}.`,
      `${grouped(node.perConfiguration)} trusted rows a configuration on average.`,
    ];
    if (node.missing) parts.push(`${share(node.missing)} of its weight is inferred: those rows miss the value or one of a parent.`);
    if (node.onlyDistrusted) parts.push(`${plural(node.onlyDistrusted, "configuration")} only in distrusted rows.`);
    if (list.length < node.size) {
      parts.push(list.length
        ? `Shown are the ${grouped(list.length)} of ${grouped(node.size)} configurations that moved most, weighed by their rows.`
        : `Its ${grouped(node.size)} configurations are left out: the page holds the tables that moved most.`);
    }
    at("table-say").textContent = parts.join(" ");
    const columns = tableColumns(node);
    const made = sheet({
      into: at("table-scroll"), pager: at("table-pager"), columns, items: list, perPage: 25, noun: "configuration",
      rowClass: (c) => (c.n < data.few ? "thin" : null),
    });
    copyTable = () => copy(tableAsText(node, made.inOrder()), at("table-copied"));
  };

  const choose = (i, options) => {
    chosen = i;
    showTable(i);
    document.querySelectorAll(".rank").forEach((button) => {
      const isIt = Number(button.dataset.node) === i;
      button.setAttribute("aria-current", String(isIt));
    });
    listeners.forEach((listener) => listener(i, options || {}));
  };

  /* --- rows --------------------------------------------------------------------------------- */

  const stateOf = (node, code) => (code < 0 ? "missing" : node.states[code]);

  const statesOf = (codes, blamed) => make("dl", { class: "states" }, ...data.nodes.map((node, i) => make(
    "div", { class: blamed.includes(i) ? "blamed" : null },
    make("dt", {}, node.name), make("dd", {}, stateOf(node, codes[i])),
  )));

  const rowButton = (number) => make("button", { type: "button", class: "open", "aria-expanded": "false", "aria-label": `Row ${number}: show its states` }, String(number));

  const asCsv = (rows) => {
    const quoted = (value) => {
      let text = String(value);
      if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text; // no formula in a spreadsheet
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [[...data.names, "row", "trust", "why", ...data.nodes.map((n) => n.name)],
      ...rows.map((r) => [...r[5], r[0], r[1], r[2], ...r[4].map((code, i) => stateOf(data.nodes[i], code))])];
    return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
  };

  const setUpRows = () => {
    if (!at("row-scroll")) return;
    const rows = data.rows;
    const made = sheet({
      into: at("row-scroll"), pager: at("row-pager"), items: rows, perPage: 20, noun: "row",
      columns: [
        { name: "Row", key: (r) => r[0], cell: (r, td) => td.append(rowButton(r[0])) },
        ...data.names.map((name, k) => ({ name, class: "label", key: (r) => r[5][k], cell: (r, td) => { td.textContent = r[5][k]; } })),
        {
          name: "Trust", key: (r) => r[1],
          cell: (r, td) => { const bar = make("span", { class: "trust" }, r[1].toFixed(2)); bar.style.setProperty("--v", r[1]); td.append(bar); },
        },
        { name: "Why", class: "why label", key: (r) => r[2], cell: (r, td) => { td.textContent = r[2]; } },
      ],
      details: (r) => statesOf(r[4], r[3]),
    });
    let shown = rows;
    const tell = () => { at("row-count").textContent = shown.length < rows.length ? `${grouped(shown.length)} of ${plural(rows.length, "row")}` : ""; };
    let texts = null;
    at("row-filter").addEventListener("input", (event) => {
      texts = texts || rows.map((r) => [r[0], r[2], ...r[5].map((value, k) => `${data.names[k]}=${value}`), ...r[4].map((code, i) => `${data.nodes[i].name}=${stateOf(data.nodes[i], code)}`)].join("\n").toLowerCase());
      const wanted = event.target.value.trim().toLowerCase().replace(/\s*=\s*/g, "=");
      shown = wanted ? rows.filter((r, k) => (/^\d+$/.test(wanted) && String(r[0]) === wanted) || texts[k].includes(wanted)) : rows;
      made.show(shown); tell();
    });
    at("row-export").addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob(["\ufeff", asCsv(made.inOrder())], { type: "text/csv;charset=utf-8" }));
      const link = make("a", { href: url, download: "distrusted-rows.csv" });
      document.body.append(link); link.click(); link.remove();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    });
  };

  const setUpRepeats = () => {
    if (!at("repeat-scroll")) return;
    const expected = (x) => (x < 0.01 ? "under 0.01" : grouped(x));
    sheet({
      into: at("repeat-scroll"), pager: at("repeat-pager"), items: data.repeats, perPage: 8, noun: "row",
      columns: [
        { name: "Row", key: (r) => r[0], cell: (r, td) => td.append(rowButton(r[0])) },
        { name: "Seen", class: "number", first: "descending", key: (r) => r[1], cell: (r, td) => { td.textContent = grouped(r[1]); } },
        { name: "Expected", class: "number", key: (r) => r[2], cell: (r, td) => { td.textContent = expected(r[2]); } },
      ],
      details: (r) => statesOf(r[3], []),
    });
  };

  /* --- light and dark --------------------------------------------------------------------- */

  const setUpTheme = () => {
    const button = at("theme"), root = document.documentElement;
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const tell = () => { button.textContent = isDark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} colours`); };
    button.hidden = false;
    button.addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; tell(); });
    system.addEventListener("change", tell);
    tell();
  };

  const start = () => {
    document.querySelectorAll(".rank").forEach((button, k) => {
      button.dataset.node = data.order[k];
      button.addEventListener("click", () => choose(data.order[k], { center: true }));
    });
    at("table-copy").addEventListener("click", () => copyTable());
    if (at("command-copy")) at("command-copy").addEventListener("click", () => copy(at("command").textContent, at("command-copied")));
    setUpTheme(); setUpRows(); setUpRepeats();
    choose(data.order[0], { quiet: true });
    document.documentElement.dataset.ready = "true";
  };

  return { data, at, choose, start, onChoose: (listener) => listeners.push(listener), chosen: () => chosen };
})();
