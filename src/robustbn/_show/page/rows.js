/* The rows that are not trusted, those that are the same on one line; rows repeated too often; and ticks
   that say which rows are good or bad, to be given to --known. */

(() => {
  const { data, at, make, sheet, grouped, plural, label } = page;
  const FORMULA = /^[=+\-@\t\r]/; // what a spreadsheet would run

  /* the states of a row, from base64: each node takes as many bits as its states need */
  const bits = data.nodes.map((node) => 32 - Math.clz32(node.nStates - 1 + data.holes));
  const decoded = new Map();
  const codesOf = (packed) => {
    if (decoded.has(packed)) return decoded.get(packed);
    const bytes = atob(packed);
    let at = 0;
    const codes = bits.map((size) => {
      let code = 0;
      for (let k = 0; k < size; k++, at++) code = code * 2 + ((bytes.charCodeAt(at >> 3) >> (7 - (at & 7))) & 1);
      return code;
    });
    decoded.set(packed, codes);
    return codes;
  };

  /* a row is [number, trust, parts of why, nodes blamed, states, names, how many alike, others, kind] */
  const why = (r) => r[2].map((k) => data.parts[k]).join("; ");
  const rawOf = (node, k) => { // the number before it was cut into intervals
    const value = k >= 0 && data.raw[node.name] ? data.raw[node.name][k] : null;
    return value === null || value === undefined ? [] : [make("span", { class: "note raw" }, ` ${value}`)];
  };
  const statesOf = (codes, blamed, k) => make("dl", { class: "states" }, ...data.nodes.map((node, i) => make(
    "div", { class: blamed.includes(i) ? "blamed" : null },
    make("dt", {}, node.name), make("dd", {}, label(i, codes[i]), ...rawOf(node, k)),
  )));

  /* ticks: row number -> 1 (good) or -1 (bad) */
  const marks = new Map();
  const numbersOf = (r) => [r[0], ...r[7].map((other) => other[0])];
  const pickers = [];
  const ticks = (numbers, name) => {
    const make1 = (side, word) => make("button", { type: "button", class: "tick", "aria-label": `${name}: ${word}`, onclick: () => {
      const isOn = numbers.every((n) => marks.get(n) === side);
      for (const n of numbers) if (isOn) marks.delete(n); else marks.set(n, side);
      tell();
    } }, word);
    const good = make1(1, "good"), bad = make1(-1, "bad");
    const show = () => [[good, 1], [bad, -1]].forEach(([button, side]) => button.setAttribute("aria-pressed", String(numbers.every((n) => marks.get(n) === side))));
    const made = make("span", { class: "ticks" }, good, bad);
    pickers.push([made, show]);
    show();
    return made;
  };
  const tell = () => {
    for (let k = pickers.length - 1; k >= 0; k--) if (pickers[k][0].isConnected) pickers[k][1](); else pickers.splice(k, 1);
    at("marks").hidden = marks.size === 0;
    at("marks-count").textContent = `${plural(marks.size, "row")} marked`;
  };
  const save = (text, name) => {
    const url = URL.createObjectURL(new Blob(["\ufeff", text], { type: "text/csv;charset=utf-8" }));
    const link = make("a", { href: url, download: name });
    document.body.append(link); link.click(); link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };
  const setUpMarks = () => {
    document.querySelectorAll(".ticks[data-group]").forEach((place) => {
      const number = Number(place.dataset.group);
      const numbers = data.rows.filter((r) => r[8] === number).flatMap(numbersOf);
      place.append(make("span", { class: "note" }, `the ${plural(numbers.length, "row")} on this page are `), ticks(numbers, `Group ${number}`));
    });
    at("marks-export").addEventListener("click", () => {
      const lines = [...marks].sort(([a], [b]) => a - b).map(([row, side]) => `${row},${side > 0 ? "good" : "bad"}`);
      save(["row,known", ...lines].join("\r\n") + "\r\n", "known.csv");
    });
  };
  const othersOf = (r) => {
    const named = r[7].map((other) => (other.length > 1 ? `${other[0]} (${other.slice(1).join(", ")})` : other[0]));
    const more = r[6] - 1 - r[7].length;
    return make("p", { class: "note others label" }, `The same: rows ${named.join(", ")}${more > 0 ? ` and ${grouped(more)} more` : ""}.`);
  };
  const rowButton = (number) => make("button", { type: "button", class: "open", "aria-expanded": "false", "aria-label": `Row ${number}: show its states` }, String(number));

  const asCsv = (rows) => {
    const quoted = (value) => {
      let text = String(value);
      if (typeof value === "string" && FORMULA.test(text)) text = "'" + text; // no formula in a spreadsheet
      return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    const lines = [[...data.names, "row", ...(data.line ? ["line"] : []), "trust", "same rows", "group", "why", ...data.nodes.map((n) => n.name)]];
    for (const r of rows) {
      const states = codesOf(r[4]).map((code, i) => label(i, code));
      for (const [number, ...names] of [[r[0], ...r[5]], ...r[7]]) lines.push([...names, number, ...(data.line ? [number + data.line] : []), r[1], r[6], r[8] || "", why(r), ...states]);
    }
    return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
  };

  const textOf = (r) => [
    r[0], why(r), ...[r[5], ...r[7].map((other) => other.slice(1))].flatMap((names) => names.map((value, k) => `${data.names[k]}=${value}`)),
    ...codesOf(r[4]).map((code, i) => `${data.nodes[i].name}=${label(i, code)}`),
  ].join("\n").toLowerCase();
  let texts = null;
  const matches = (wanted, r, k) => {
    const kind = /^group=(\d+)$/.exec(wanted);
    if (kind && data.kinds.includes(Number(kind[1]))) return r[8] === Number(kind[1]);
    if (/^\d+$/.test(wanted) && [r[0], ...r[7].map((other) => other[0])].some((number) => String(number) === wanted)) return true;
    texts = texts || data.rows.map(textOf);
    return texts[k].includes(wanted);
  };

  const total = (rows) => rows.reduce((sum, r) => sum + r[6], 0);
  const setUpRows = () => {
    if (!at("row-scroll")) return;
    const rows = data.rows, hasCopies = rows.some((r) => r[6] > 1);
    const made = sheet({
      into: at("row-scroll"), pager: at("row-pager"), items: rows, perPage: 20, noun: hasCopies ? "line" : "row",
      columns: [
        { name: "Row", key: (r) => r[0], cell: (r, td) => td.append(rowButton(r[0])) },
        ...(data.line ? [{ name: "Line", class: "number", key: (r) => r[0], cell: (r, td) => { td.textContent = grouped(r[0] + data.line); } }] : []),
        ...(hasCopies ? [{ name: "Same rows", class: "number", first: "descending", key: (r) => r[6], cell: (r, td) => { td.textContent = grouped(r[6]); } }] : []),
        ...data.names.map((name, k) => ({ name, class: "label", key: (r) => r[5][k], cell: (r, td) => { td.textContent = r[5][k]; } })),
        ...(data.kinds.length ? [{ name: "Group", class: "number", key: (r) => r[8] || Infinity, cell: (r, td) => { td.textContent = r[8] || "–"; } }] : []),
        {
          name: "Trust", key: (r) => r[1],
          cell: (r, td) => { const bar = make("span", { class: "trust" }, r[1].toFixed(2)); bar.style.setProperty("--v", r[1]); td.append(bar); },
        },
        { name: "Why", class: "why label", key: why, cell: (r, td) => { td.textContent = why(r); } },
        { name: "It is", key: (r) => marks.get(r[0]) || 0, cell: (r, td) => td.append(ticks(numbersOf(r), `Row ${r[0]}`)) },
      ],
      details: (r) => make("div", {}, ...(r[7].length ? [othersOf(r)] : []), statesOf(codesOf(r[4]), r[3], rows.indexOf(r))),
    });
    const filter = at("row-filter");
    filter.addEventListener("input", () => {
      const wanted = filter.value.trim().toLowerCase().replace(/\s*=\s*/g, "=");
      const shown = wanted ? rows.filter((r, k) => matches(wanted, r, k)) : rows;
      made.show(shown);
      at("row-count").textContent = shown.length < rows.length ? `${grouped(total(shown))} of ${plural(total(rows), "row")}` : "";
    });
    at("row-export").addEventListener("click", () => {
      save(asCsv(made.inOrder()), "distrusted-rows.csv");
    });
    document.querySelectorAll(".show-kind").forEach((button) => button.addEventListener("click", () => {
      filter.value = `group = ${button.dataset.kind}`;
      filter.dispatchEvent(new Event("input"));
      at("rows").scrollIntoView();
      filter.focus({ preventScroll: true });
    }));
  };

  const setUpRepeats = () => {
    if (!at("repeat-scroll")) return;
    const expected = (x) => (x < 0.01 ? "under 0.01" : grouped(x));
    sheet({
      into: at("repeat-scroll"), pager: at("repeat-pager"), items: data.repeats, perPage: 8, noun: "row",
      columns: [
        { name: "Row", key: (r) => r[0], cell: (r, td) => td.append(rowButton(r[0])) },
        ...data.names.map((name, k) => ({ name, class: "label", key: (r) => r[4][k], cell: (r, td) => { td.textContent = r[4][k]; } })),
        { name: "Seen", class: "number", first: "descending", key: (r) => r[1], cell: (r, td) => { td.textContent = grouped(r[1]); } },
        { name: "Expected", class: "number", key: (r) => r[2], cell: (r, td) => { td.textContent = expected(r[2]); } },
      ],
      details: (r) => statesOf(codesOf(r[3]), [], -1),
    });
  };

  page.onStart(setUpRows);
  page.onStart(setUpMarks);
  page.onStart(setUpRepeats);
})();
