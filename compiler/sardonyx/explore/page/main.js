// Puts the page together when the data are there.

async function start() {
  const model = new Model(await section("main"));
  const selection = new Selection(model);
  const graph = new GraphView(model, selection);
  const panes = new Panes(model, selection);
  const search = new Search(model, selection);
  const details = new Details(model, selection);

  const nodes = model.nodes.filter((node) => node.kind === "node" || node.kind === "constant").length;
  byId("facts").textContent = `${nodes.toLocaleString("en")} nodes, ${model.kernels.filter((one) => one.launches.length).length} kernels. ${model.made}`;
  if (model.error) showError(model, selection);
  chooseColours(model, graph);

  const last = model.stages.at(-1)?.id;
  const wanted = model.kernels.length ? [model.times ? "kernels" : "core", "asm"] : [last];
  if (last) wanted.forEach((id) => panes.add(id));
  byId("more").hidden = byId("panes").hidden = byId("divider").hidden = !last;
  byId("more").addEventListener("click", () => panes.add(panes.unused).scrollIntoView({ inline: "end" }));
  byId("short").addEventListener("change", () => {
    shortNames = byId("short").checked;
    for (const pane of byId("panes").children) pane.view.view?.refresh();
  });
  byId("fit").addEventListener("click", () => graph.fit());
  makeDivider();
  document.addEventListener("keydown", (event) => shortcut(event, graph, search, selection));

  graph.open();
  const linked = location.hash.startsWith("#node=") ? model.byName.get(decodeURIComponent(location.hash.slice(6))) : undefined;
  if (model.chosen.length) selection.select(model.chosen);
  else if (linked !== undefined) selection.select([linked]);
  selection.addEventListener("change", () => remember(model, selection));

  // For tests and for the console.
  window.explorer = { model, selection, graph, panes, search, details };
  document.documentElement.dataset.ready = "true";
}

function showError(model, selection) {
  const box = byId("error");
  box.hidden = false;
  box.append(`${model.error.reached ? `Compiling went no further than the stage ${model.error.reached}` : "The model cannot be imported"}. ${model.error.message} `);
  const nodes = model.sets[model.error.nodes];
  if (nodes.length) {
    box.append(element("button", { type: "button", class: "link", click: () => selection.select(nodes) }, "Show the node"));
  }
}

/** What the colours of nodes can show. */
function chooseColours(model, graph) {
  const plain = (strong) => styled(strong ? "--edge" : "--box");
  const kernelColour = (number, strong) => {
    const kernel = model.kernelsOf[number].at(-1);
    return kernel === undefined ? plain(strong) : hue(model.kernels[kernel].symbol, strong);
  };
  const familyColour = (number, strong) => {
    const { kind, family } = model.nodes[number];
    return kind === "node" ? hue(family, strong) : plain(strong);
  };
  const ways = {
    operator: familyColour,
    ...(model.kernels.length && { kernel: kernelColour }),
    ...(model.times && { time: timeColour(model) }),
  };
  const select = byId("colours");
  select.append(...Object.keys(ways).map((name) => element("option", { value: name }, `by ${name}`)));
  select.value = model.times ? "time" : "operator";
  select.addEventListener("change", () => graph.paint(ways[select.value]));
  graph.paint(ways[select.value]);
}

function timeColour(model) {
  const times = model.times.nodes;
  const most = times.reduce((best, time) => Math.max(best, time ?? 0), Number.MIN_VALUE);
  return (number, strong) => {
    const part = Math.sqrt((times[number] ?? 0) / most); // so that small times differ too
    return `color-mix(in srgb, ${styled("--accent")} ${Math.round(part * 85)}%, ${styled(strong ? "--edge" : "--box")})`;
  };
}

/** The node in the page's address, so that it can be passed on. */
function remember(model, selection) {
  const [first] = selection.nodes;
  const hash = first === undefined ? " " : `#node=${encodeURIComponent(model.nodes[first].name)}`;
  history.replaceState(null, "", hash === " " ? location.pathname + location.search : hash);
}

function shortcut(event, graph, search, selection) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (document.activeElement instanceof HTMLInputElement) document.activeElement.blur();
    selection.clear();
    return;
  }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement?.tagName ?? "")) return;
  const actions = {
    "/": () => search.input.select(),
    n: () => search.next(1),
    N: () => search.next(-1),
    f: () => graph.fit(),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

/** The line between graph and panes can be moved. */
function makeDivider() {
  const divider = byId("divider");
  const set = (part) => byId("main").style.setProperty("--left", `${Math.min(85, Math.max(10, part))}%`);
  divider.addEventListener("pointerdown", (event) => divider.setPointerCapture(event.pointerId));
  divider.addEventListener("pointermove", (event) => {
    if (divider.hasPointerCapture(event.pointerId)) set((event.clientX / window.innerWidth) * 100);
  });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (step) set((byId("left").offsetWidth / window.innerWidth) * 100 + step);
  });
}

start().catch((error) => {
  const box = byId("error");
  box.hidden = false;
  box.textContent = `This page cannot be shown: ${error.message}. It needs a browser of 2023 or newer.`;
  throw error;
});
