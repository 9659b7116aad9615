/* One node's table: configurations against states, turned on its side or cell by cell where it is wide;
   and the table of a pair that the network has no edge for. */

(() => {
  const { data, at, make, sheet, copy, percent, share, grouped, plural, isLong, label } = page;
  const WIDE = 8, FEW = 6; // states, configurations
  const Z = 1.959964;

  /* Wilson's 95 % interval, in the page's units */
  const interval = (robust, n) => {
    const rows = Math.max(n, 1e-9), q = robust / data.unit;
    const centre = q + Z * Z / (2 * rows), scale = 1 + Z * Z / rows;
    const half = Z * Math.sqrt(q * (1 - q) / rows + Z * Z / (4 * rows * rows));
    return [Math.max(0, (centre - half) / scale) * data.unit, Math.min(1, (centre + half) / scale) * data.unit];
  };
  const between = (low, high) => {
    const text = `${percent(low)}–${percent(high)}`;
    return low < data.unit / 2000 && high > data.unit * 0.9995 ? "not known" : text;
  };
  const isOutside = (cell) => {
    const [low, high] = interval(cell.robust, cell.n);
    return cell.plain < low - 0.5 || cell.plain > high + 0.5;
  };

  /* cells: {codes of the parents, v, robust, plain, n, all} */
  const cellsOf = (i) => {
    const node = data.nodes[i], table = node.table, isSparse = Boolean(table.state);
    const cards = node.parents.map((p) => data.nodes[p].nStates), wide = isSparse ? 1 : node.nStates;
    return table.n.flatMap((n, k) => {
      let rest = table.which ? table.which[k] : k;
      const number = rest, codes = new Array(cards.length);
      for (let j = cards.length - 1; j >= 0; j--) { codes[j] = rest % cards[j]; rest = Math.floor(rest / cards[j]); }
      return Array.from({ length: wide }, (_, v) => {
        const robust = table.robust[k * wide + v];
        return { number, codes, v: isSparse ? table.state[k] : v, robust, plain: robust + table.change[k * wide + v], n, all: table.all[k] };
      });
    });
  };
  const movedBy = (cell) => Math.abs(cell.plain - cell.robust);
  const configurations = (i) => {
    const wide = data.nodes[i].nStates, cells = cellsOf(i), list = [];
    for (let k = 0; k < cells.length; k += wide) {
      const own = cells.slice(k, k + wide);
      const moved = own.reduce((sum, cell) => sum + movedBy(cell), 0) / 2;
      list.push({ codes: own[0].codes, number: own[0].number, n: own[0].n, all: own[0].all, cells: own, moved, adds: moved * own[0].n / data.trusted });
    }
    return list;
  };

  /* --- columns --- */
  const fillCell = (cell, td) => {
    const [low, high] = interval(cell.robust, cell.n);
    td.style.setProperty("--v", (cell.robust / data.unit).toFixed(4));
    td.append(
      make("b", {}, percent(cell.robust)),
      make("i", {}, between(low, high)),
      make("s", { class: isOutside(cell) ? "changed" : null }, `was ${percent(cell.plain)}`),
    );
  };
  const fillRows = (c, td) => {
    td.append(grouped(c.n), make("span", { class: "note" }, ` of ${grouped(c.all)}`));
    const isGone = c.all >= data.group * data.total && c.n < data.kept * c.all;
    if (isGone) td.append(make("span", { class: "gone" }, "nearly all distrusted: do not rely on it"));
  };
  const fillGiven = (parents, codes, td) => codes.forEach((code, j) => td.append(
    make("div", {}, make("span", { class: "note" }, data.nodes[parents[j]].name), ` ${label(parents[j], code)}`),
  ));
  const given = (node) => ({ name: "When", class: "label", key: (c) => c.number, cell: (c, td) => fillGiven(node.parents, c.codes, td) });
  const isPhone = () => window.matchMedia("(max-width: 40rem)").matches;

  const parentColumns = (node) => node.parents.map((p, j) => ({
    name: data.nodes[p].name, group: "When", class: "label",
    key: (c) => c.codes[j], cell: (c, td) => {
      td.textContent = label(p, c.codes[j]);
      td.classList.toggle("long", isLong(td.textContent));
    },
  }));
  const rowsColumn = { name: "Trusted rows", class: "number n", key: (c) => c.n, first: "descending", cell: fillRows };
  const whole = (x) => `${percent(x)} %`;
  const foldOf = (moved, noun) => ({
    isQuiet: (item) => moved(item) <= data.unmoved * data.unit, least: 10,
    say: (n) => `and ${grouped(n)} more ${noun}${n === 1 ? "" : "s"}, none moved by more than ${share(data.unmoved).replace("0.10", "0.1")}`,
  });

  /* --- the three ways to show a table --- */
  const asGrid = (i, list) => {
    const node = data.nodes[i];
    const columns = [
      ...parentColumns(node), rowsColumn,
      ...node.states.map((state, v) => ({
        name: state, group: `${node.name} is (percent)`, class: "p", key: (c) => c.cells[v].robust, first: "descending",
        cell: (c, td) => fillCell(c.cells[v], td),
      })),
      { name: "Moved by", class: "number", key: (c) => c.moved, first: "descending", cell: (c, td) => { td.textContent = whole(c.moved); } },
      { name: "Of all rows", class: "number adds", key: (c) => c.adds, first: "descending", cell: (c, td) => { td.textContent = whole(c.adds); } },
    ];
    return {
      columns, items: list, noun: "configuration", sorted: { column: columns.length - 1, down: true },
      rowClass: (c) => (c.n < data.few ? "thin" : null), fold: foldOf((c) => c.moved, "configuration"),
    };
  };

  const asStates = (i, list) => { // turned on its side: a line a state
    const node = data.nodes[i];
    const items = node.states.map((state, v) => {
      const cells = list.map((c) => c.cells[v]);
      const adds = cells.reduce((sum, cell) => sum + movedBy(cell) * cell.n, 0) / data.trusted;
      return { state, v, cells, adds, moved: Math.max(...cells.map(movedBy)) };
    });
    const columns = [
      { name: node.name, class: "label", key: (s) => s.v, cell: (s, td) => { td.textContent = s.state; td.classList.toggle("long", isLong(s.state)); } },
      ...list.map((c, k) => ({
        name: c.codes.length ? c.codes.map((code, j) => `${data.nodes[node.parents[j]].name} ${label(node.parents[j], code)}`).join(", ") : "Percent",
        group: c.codes.length ? "When" : "", class: "p", key: (s) => s.cells[k].robust, first: "descending", cell: (s, td) => fillCell(s.cells[k], td),
      })),
      { name: "Of all rows", class: "number adds", key: (s) => s.adds, first: "descending", cell: (s, td) => { td.textContent = whole(s.adds); } },
    ];
    return { columns, items, noun: "state", sorted: { column: columns.length - 1, down: true }, fold: foldOf((s) => s.moved, "state"), tableClass: "pinned" };
  };

  const asCells = (i, cells) => {
    const node = data.nodes[i];
    const adds = (c) => movedBy(c) * c.n / data.trusted;
    const columns = [
      { name: node.name, class: "label", key: (c) => c.v, cell: (c, td) => { td.textContent = label(i, c.v); td.classList.toggle("long", isLong(td.textContent)); } },
      ...(node.parents.length ? [given(node)] : []),
      { name: "Percent", class: "p", key: (c) => c.robust, first: "descending", cell: fillCell },
      { name: "Of all rows", class: "number adds", key: adds, first: "descending", cell: (c, td) => { td.textContent = whole(adds(c)); } },
      rowsColumn,
    ];
    const fold = foldOf(movedBy, "cell");
    const isSparse = Boolean(node.table.state);
    if (isSparse) fold.isQuiet = () => false;
    return {
      columns, items: cells, noun: "cell", sorted: { column: columns.length - 2, down: true },
      rowClass: (c) => (c.n < data.few ? "thin" : null), fold, tableClass: "pinned",
    };
  };

  const layOut = (i) => {
    const node = data.nodes[i];
    if (node.table.state || isPhone()) return asCells(i, cellsOf(i));
    const list = configurations(i);
    if (node.nStates <= WIDE) return asGrid(i, list);
    return list.length <= FEW ? asStates(i, list) : asCells(i, cellsOf(i));
  };

  /* The cell that moved most is marked, and brought into view where the table is wider than the screen. */
  const bringMost = (into) => {
    const first = into.querySelector("tbody tr");
    if (!first) return;
    const cells = [...first.querySelectorAll("td.p")];
    const change = (td) => Math.abs(parseFloat(td.children[0].textContent) - parseFloat(td.children[2].textContent.slice(4)));
    const most = cells.sort((a, b) => change(b) - change(a))[0];
    if (!most || change(most) === 0) return;
    most.classList.add("most");
    const over = most.offsetLeft + most.offsetWidth - into.clientWidth;
    into.scrollLeft = over > 0 ? Math.min(over + 16, most.offsetLeft - first.cells[0].offsetWidth) : 0;
  };

  const asText = (i) => {
    const node = data.nodes[i], clean = (text) => String(text).replace(/[\t\r\n]+/g, " ");
    const parents = node.parents.map((p) => data.nodes[p].name);
    const four = (c) => [c.robust, ...interval(c.robust, c.n).map(Math.round), c.plain].map((x) => x / data.unit);
    const codes = (c) => c.codes.map((code, j) => label(node.parents[j], code));
    const lines = node.table.state
      ? [[...parents, "trusted rows", "all rows", node.name, "robust", "low", "high", "plain"],
        ...made.inOrder().map((c) => [...codes(c), c.n, c.all, label(i, c.v), ...four(c)])]
      : [[...parents, "trusted rows", "all rows", ...node.states.flatMap((s) => [`${s} robust`, `${s} low`, `${s} high`, `${s} plain`]), "moved"],
        ...inGrid(i).map((c) => [...codes(c), c.n, c.all, ...c.cells.flatMap(four), c.moved / data.unit])];
    return lines.map((line) => line.map(clean).join("\t")).join("\n") + "\n";
  };
  const inGrid = (i) => (made.noun === "configuration" ? made.inOrder() : configurations(i));

  const links = (words, indices) => [words, ...indices.flatMap((i, k) => [
    k ? ", " : "", make("button", { type: "button", class: "label", onclick: () => page.choose(i) }, data.nodes[i].name),
  ])];

  const say = (node, shown) => {
    const parts = [
      `Moved by ${share(node.moved)}; sampling alone could explain up to ${share(node.error)}. ${grouped(node.perConfiguration)} trusted rows for a configuration on average.`,
    ];
    if (node.missing) parts.push(`${share(node.missing)} of its weight is inferred: those rows miss the value or one of a parent.`);
    if (node.onlyDistrusted) parts.push(`${plural(node.onlyDistrusted, "configuration")} only in distrusted rows.`);
    if (node.table.rest) parts.push(`Shown are the ${grouped(node.table.n.length)} cells that moved most, weighed by their rows, and ${grouped(node.table.rest)} more moved by no more than ${share(Math.max(node.table.restMoved, data.unmoved))}.`);
    else if (!node.table.state && shown < node.size) {
      parts.push(shown
        ? `Shown are the ${grouped(shown)} of ${grouped(node.size)} configurations that moved most, weighed by their rows.`
        : `Its ${grouped(node.size)} configurations are left out: the page holds the tables that moved most.`);
    }
    return parts.join(" ");
  };

  let made = null;
  const showTable = (i) => {
    const node = data.nodes[i];
    const children = data.nodes.flatMap((n, k) => (n.parents.includes(i) ? [k] : []));
    at("table").hidden = false;
    at("table-name").textContent = node.name;
    const family = at("table-family");
    family.replaceChildren(...(node.parents.length ? links("Depends on ", node.parents) : ["Depends on no other node"]));
    if (children.length) family.append(...links("; leads to ", children));
    family.append(".");
    at("table-say").textContent = say(node, node.table.n.length);
    const shape = layOut(i);
    made = sheet({ into: at("table-scroll"), pager: at("table-pager"), perPage: 25, ...shape });
    made.noun = shape.noun;
    at("table-scroll").scrollTop = 0;
    bringMost(at("table-scroll"));
  };

  /* --- a pair without an edge --- */
  const showPair = (k) => {
    const pair = data.pairs[k];
    if (!pair) return;
    const [parent, child] = [data.nodes[pair.parent], data.nodes[pair.child]];
    document.querySelectorAll(".pair-button").forEach((b) => b.setAttribute("aria-pressed", String(Number(b.dataset.pair) === k)));
    document.querySelectorAll(".missing").forEach((g) => g.classList.toggle("chosen", Number(g.dataset.pair) === k));
    const left = pair.given.length < parent.nStates || pair.state.length < child.nStates ? " Shown are the states that differ most." : "";
    at("pair-say").textContent = `How often ${child.name} has each state among the trusted rows with each state of ${parent.name}, and what the network expects of the same rows, in percent.${left}`;
    const items = pair.given.map((code, r) => ({ code, n: pair.n[r], seen: pair.seen[r], expected: pair.expected[r] }));
    sheet({
      into: at("pair-scroll"), pager: make("div"), items, perPage: 100, noun: "state", tableClass: "pinned",
      columns: [
        { name: parent.name, class: "label", key: (x) => x.code, cell: (x, td) => { td.textContent = label(pair.parent, x.code); } },
        { name: "Trusted rows", class: "number", key: (x) => x.n, first: "descending", cell: (x, td) => { td.textContent = grouped(Math.round(x.n)); } },
        ...pair.state.map((code, v) => ({
          name: label(pair.child, code), group: `${child.name} is (percent)`, class: "p", key: (x) => x.seen[v], first: "descending",
          cell: (x, td) => {
            td.style.setProperty("--v", (x.seen[v] / data.unit).toFixed(4));
            const isFar = Math.abs(x.seen[v] - x.expected[v]) > data.unit / 50;
            td.append(make("b", {}, percent(x.seen[v])), make("s", { class: isFar ? "changed" : null }, `expected ${percent(x.expected[v])}`));
          },
        })),
      ],
    });
  };
  page.showPair = showPair;

  page.onChoose(showTable);
  page.onStart(() => {
    at("table-copy").addEventListener("click", () => copy(asText(page.chosen()), at("table-copied")));
    document.querySelectorAll(".pair-button").forEach((button) => button.addEventListener("click", () => showPair(Number(button.dataset.pair))));
    if (data.pairs.length) showPair(0);
    let wasPhone = isPhone();
    window.addEventListener("resize", () => { if (isPhone() !== wasPhone) { wasPhone = isPhone(); showTable(page.chosen()); } });
  });
})();
