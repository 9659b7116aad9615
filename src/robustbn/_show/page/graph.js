/* The network on the page: zoom, drag, walk by keys, search. Reads the drawing, changes its view. */

(() => {
  const { data, at } = page;
  const canvas = at("canvas"), svg = canvas.querySelector("svg");
  const groups = Array.from(svg.querySelectorAll(".node"));
  const paths = Array.from(svg.querySelectorAll("[data-edge]"));
  const full = { w: svg.viewBox.baseVal.width, h: svg.viewBox.baseVal.height };
  const places = groups.map((g) => { const m = g.transform.baseVal.getItem(0).matrix; return { x: m.e, y: m.f }; });
  const edges = paths.map((p) => p.dataset.edge.split(" ").map(Number));
  let view = { x: 0, y: 0, w: full.w, h: full.h };
  let walker = 0;

  /* --- the view --- */
  const size = () => ({ w: canvas.clientWidth || 1, h: canvas.clientHeight || 1 });
  const scale = () => size().w / view.w;
  const fitted = () => {
    const { w, h } = size(), zoom = Math.min(w / full.w, h / full.h, 1.25);
    return { x: full.w / 2 - w / zoom / 2, y: full.h / 2 - h / zoom / 2, w: w / zoom, h: h / zoom };
  };
  let frame = 0;
  const draw = () => {
    frame = 0;
    svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.w} ${view.h}`);
    canvas.classList.toggle("far", scale() < 0.42);
  };
  const show = (next) => { view = next; if (!frame) frame = requestAnimationFrame(draw); };
  const fit = () => show(fitted());
  const zoom = (factor, px, py) => {
    const { w, h } = size(), now = scale();
    const to = Math.min(Math.max(now * factor, Math.min(0.04, w / full.w / 2)), 4), by = now / to;
    const x = view.x + (px === undefined ? w / 2 : px) / now, y = view.y + (py === undefined ? h / 2 : py) / now;
    show({ x: x - (x - view.x) * by, y: y - (y - view.y) * by, w: w / to, h: h / to });
  };
  const move = (dx, dy) => {
    const now = scale();
    const x = Math.min(Math.max(view.x - dx / now, -view.w * 0.8), full.w - view.w * 0.2);
    const y = Math.min(Math.max(view.y - dy / now, -view.h * 0.8), full.h - view.h * 0.2);
    show({ ...view, x, y });
  };
  const bring = (i, closer) => {
    const { w, h } = size(), to = closer ? Math.max(scale(), 0.8) : scale();
    const p = places[i];
    const inside = !closer || to === scale();
    const margin = 60 / to;
    if (inside && p.x > view.x + margin && p.x < view.x + view.w - margin && p.y > view.y + margin / 2 && p.y < view.y + view.h - margin / 2) return;
    show({ x: p.x - w / to / 2, y: p.y - h / to / 2, w: w / to, h: h / to });
  };

  /* --- mouse and touch --- */
  const pointers = new Map();
  let moved = 0;
  const local = (event) => { const box = canvas.getBoundingClientRect(); return { x: event.clientX - box.left, y: event.clientY - box.top }; };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    pointers.set(event.pointerId, local(event));
    moved = 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = local(event);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
      const distance = (p) => Math.hypot(p.x - other.x, p.y - other.y) || 1;
      zoom(distance(now) / distance(before), other.x, other.y);
      moved = 99;
    } else {
      moved += Math.abs(now.x - before.x) + Math.abs(now.y - before.y);
      if (moved > 4) {
        if (!canvas.hasPointerCapture(event.pointerId)) canvas.setPointerCapture(event.pointerId);
        canvas.classList.add("moving");
        move(now.x - before.x, now.y - before.y);
      }
    }
    pointers.set(event.pointerId, now);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => { pointers.delete(event.pointerId); canvas.classList.remove("moving"); });
  }
  canvas.addEventListener("wheel", (event) => {
    if (!(event.ctrlKey || event.metaKey || canvas.contains(document.activeElement))) return; // the page scrolls
    event.preventDefault();
    const p = local(event);
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0022)), p.x, p.y);
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => { const p = local(event); zoom(1.6, p.x, p.y); });
  at("zoom-in").addEventListener("click", () => zoom(1.4));
  at("zoom-out").addEventListener("click", () => zoom(1 / 1.4));
  at("zoom-fit").addEventListener("click", fit);

  /* --- nodes --- */
  const walkTo = (i) => {
    groups[walker].setAttribute("tabindex", "-1");
    walker = i;
    groups[i].setAttribute("tabindex", "0");
  };
  svg.addEventListener("click", (event) => {
    const pair = event.target.closest("[data-pair]");
    if (pair && moved <= 4) { page.showPair(Number(pair.dataset.pair)); at("misfit").scrollIntoView({ block: "nearest" }); }
    const group = event.target.closest(".node");
    if (!group || moved > 4) return;
    const i = Number(group.dataset.node);
    walkTo(i); group.focus({ preventScroll: true });
    page.choose(i, {});
  });
  const nearest = (i, dx, dy) => {
    let best = -1, least = Infinity;
    places.forEach((p, k) => {
      const x = p.x - places[i].x, y = p.y - places[i].y;
      const along = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
      if (k === i || along < 1) return;
      const cost = along + 2.5 * aside;
      if (cost < least) { least = cost; best = k; }
    });
    return best;
  };
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = arrows[event.key];
    if (arrow && event.shiftKey) move(-60 * arrow[0], -60 * arrow[1]);
    else if (arrow) {
      const next = nearest(walker, ...arrow);
      if (next >= 0) { walkTo(next); bring(next, false); groups[next].focus({ preventScroll: true }); }
    } else if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-" || event.key === "_") zoom(0.8);
    else if (event.key === "0") fit();
    else if (event.key === "Enter" || event.key === " ") page.choose(walker, { focus: event.key === "Enter" });
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("focusin", (event) => {
    const group = event.target.closest(".node");
    if (!group) return;
    walkTo(Number(group.dataset.node));
    if (group.matches(":focus-visible")) bring(walker, false); // by keyboard: a click leaves the drawing where it is
  });

  page.onChoose((i, { center, focus, quiet }) => {
    groups.forEach((g, k) => { g.classList.toggle("chosen", k === i); g.setAttribute("aria-pressed", String(k === i)); });
    paths.forEach((p, k) => p.classList.toggle("touches", edges[k].includes(i)));
    canvas.classList.toggle("some-chosen", !quiet);
    walkTo(i);
    if (center) bring(i, true);
    if (focus) { at("table-name").focus(); at("table").scrollIntoView({ block: "nearest" }); }
  });

  /* --- search --- */
  const find = () => {
    const wanted = at("search").value.trim().toLowerCase();
    const hits = [];
    groups.forEach((g, k) => {
      const isHit = wanted !== "" && data.nodes[k].name.toLowerCase().includes(wanted);
      g.classList.toggle("match", isHit);
      if (isHit) hits.push(k);
    });
    canvas.classList.toggle("searching", wanted !== "");
    document.querySelectorAll(".rank").forEach((button) => {
      button.parentNode.hidden = wanted !== "" && !hits.includes(Number(button.dataset.node));
    });
    at("found").textContent = wanted === "" ? "" : hits.length ? `${hits.length} found` : "none found";
    return hits.sort((a, b) => data.nodes[a].name.length - data.nodes[b].name.length);
  };
  at("search").addEventListener("input", find);
  at("search").addEventListener("keydown", (event) => {
    if (event.key === "Escape") { event.target.value = ""; find(); }
    if (event.key !== "Enter") return;
    const hits = find();
    if (hits.length) page.choose(hits[0], { center: true });
  });

  const setHeight = () => { // no taller than the drawing, and never too low to work in
    canvas.style.height = "";
    const most = canvas.clientHeight, wanted = Math.min(canvas.clientWidth / full.w, 1.25) * full.h;
    canvas.style.height = `${Math.max(Math.min(wanted, most), Math.min(380, most))}px`;
  };
  let known = 0;
  new ResizeObserver(() => {
    if (canvas.clientWidth === known) return;
    known = canvas.clientWidth;
    setHeight(); fit();
  }).observe(canvas);
  window.addEventListener("beforeprint", () => { svg.setAttribute("viewBox", `0 0 ${full.w} ${full.h}`); canvas.classList.remove("far"); });
  window.addEventListener("afterprint", draw);
  known = canvas.clientWidth; setHeight(); view = fitted(); draw();
  page.start();
})();
