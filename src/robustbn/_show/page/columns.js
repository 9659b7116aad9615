/* The profile of every column: its states in all rows and in the trusted ones, and what is odd. And the
   buttons of findings that lead to a table or a pair. */

(() => {
  const { data, at, make, sheet, share, grouped, plural, label, choose } = page;
  const STEPS = 7; // colours of states, as in the network

  const bar = (i, shares, height) => {
    const { states } = data.nodes[i].profile, n = data.nodes[i].nStates;
    const made = make("span", { class: "stack-line", role: "img", "aria-label": states.map((v, k) => `${label(i, v)}: ${share(shares[k])}`).join(", ") });
    made.style.height = height;
    states.forEach((v, k) => {
      if (!shares[k]) return;
      const part = make("span", { class: `step c${Math.floor(v * STEPS / n)}`, title: `${label(i, v)}: ${share(shares[k])}` });
      part.style.width = `${100 * shares[k]}%`;
      made.append(part);
    });
    return made;
  };
  const number = (name, key, text) => ({ name, class: "number", first: "descending", key, cell: (i, td) => { td.textContent = key(i) ? text(i) : "–"; } });
  const of = (i) => data.nodes[i].profile;
  const about = (i) => {
    const { states } = of(i), n = data.nodes[i].nStates, more = n - states.length;
    return `${plural(n, "state")}: ${states.slice(0, 4).map((v) => label(i, v)).join(", ")}${n > 4 ? ", …" : ""}${more > 0 && n > 12 ? ` (${more} more)` : ""}`;
  };

  const setUp = () => {
    const items = data.nodes.map((_, i) => i);
    const isRaw = items.some((i) => of(i).raw), isInferred = items.some((i) => data.nodes[i].missing);
    sheet({
      into: at("column-scroll"), pager: at("column-pager"), items, perPage: 15, noun: "column",
      columns: [
        { name: "Column", class: "label", key: (i) => data.nodes[i].name, cell: (i, td) => td.append(make("button", { type: "button", class: "label to-table", onclick: () => go(i) }, data.nodes[i].name)) },
        { name: "States", class: "label states-cell", key: (i) => data.nodes[i].nStates, cell: (i, td) => td.append(bar(i, of(i).before, ".55rem"), bar(i, of(i).after, ".3rem"), make("span", { class: "note" }, about(i))) },
        number("Missing", (i) => of(i).missing, (i) => `${grouped(of(i).missing)} (${share(of(i).missing / data.total)})`),
        ...(isInferred ? [number("Inferred", (i) => data.nodes[i].missing, (i) => share(data.nodes[i].missing))] : []),
        number("Unreadable", (i) => of(i).odd, (i) => grouped(of(i).odd)),
        number("Rare states", (i) => of(i).rare, (i) => grouped(of(i).rare)),
        number("Not seen", (i) => of(i).unseen, (i) => grouped(of(i).unseen)),
        ...(isRaw ? [{ name: "Range", class: "number", key: (i) => (of(i).raw || [0])[0], cell: (i, td) => { td.textContent = of(i).raw ? of(i).raw.join(" · ") : "–"; } }] : []),
      ],
    });
    const names = new Map(data.nodes.map((node, i) => [node.name, i]));
    document.querySelectorAll(".show-node").forEach((button) => button.addEventListener("click", () => go(names.get(button.dataset.name))));
    document.querySelectorAll(".show-pair").forEach((button) => button.addEventListener("click", () => {
      document.querySelector(`.pair-button[data-pair="${button.dataset.pair}"]`).click();
      at("misfit").scrollIntoView();
    }));
  };
  const go = (i) => {
    if (i === undefined) return;
    choose(i, { center: true });
    at("table").scrollIntoView();
  };

  page.onStart(setUp);
})();
